use proptest::prelude::*;

use super::super::connection::Dialogues;
use super::super::testing::{assert_close, carried};
use super::super::Model;
use super::*;
use crate::rng::Distribution;

const EXAMPLE: &str = "\
# A trace of two connections, the later first.
duration 60s
connection 2s               # round-trip time and segment size of the scenario
send 25MB

connection 1.5s mss 536B rtt 54ms
  send 420B
  receive 8.9kB after 2ms
  send 380B after 1.2s
";

const PATH: PathConfig =
    PathConfig { rtt_s: Distribution::Constant(0.1), mss_bytes: 1460, small_mss_share: 0.0 };

fn example(direction: Direction, scale: f64) -> Config {
    Config { trace: Arc::new(EXAMPLE.parse().expect("valid")), direction, scale, shuffle: None, path: PATH }
}

/// A hundred connections, one a second, each of as many bytes as its number.
fn hundred(shuffle: Option<Time>) -> Config {
    let lines = (0..100).map(|i| format!("connection {i}s\nsend {}B\n", i + 1));
    let trace = format!("duration 100s\n{}", lines.collect::<String>()).parse().expect("valid");
    Config { trace: Arc::new(trace), direction: Direction::Forward, scale: 0.5, shuffle, path: PATH }
}

fn starts(config: &Config, seed: u64) -> Vec<(Time, u64)> {
    let replay = Replay::new(config, &Streams::new(seed, "replay")).expect("valid");
    replay.map(|connection| (connection.start, connection.messages[0].bytes)).collect()
}

/// The example of the documentation.
#[test]
fn the_documented_example_is_a_trace() {
    let manual = include_str!("../../../../../docs/traffic.md");
    let (_, example) = manual.split("```").nth(1).and_then(|block| block.split_once('\n')).expect("a block");
    let trace: Trace = example.parse().expect("valid");
    assert_eq!(trace.duration, Time::from_s(60));
    assert_eq!(trace.vectors.iter().map(|vector| vector.messages.len()).collect::<Vec<_>>(), [4, 1]);
    assert_eq!((trace.vectors[0].mss_bytes, trace.vectors[1].mss_bytes), (Some(1460), None));
}

fn error(text: &str) -> String {
    text.parse::<Trace>().expect_err("bad").to_string()
}

#[test]
fn a_trace_is_read_and_replayed() {
    let tenth = Time::from_ms(100);
    for (there, scale) in [(Direction::Forward, 1), (Direction::Reverse, 2)] {
        let model = Model::Replay(example(there, scale as f64));
        let transfers = carried(&model, 1, Time::from_s(60), |_| tenth);
        let seen: Vec<_> =
            transfers.iter().map(|t| (t.at, t.direction, t.bytes, t.mss_bytes, t.rtt)).collect();
        let (first, answer) = (Time::from_ms(1500 * scale), Time::from_ms(1500 * scale + 102));
        let (again, other) = (answer + tenth + Time::from_ms(1200), Time::from_s(2 * scale));
        let rtt = Time::from_ms(54);
        let mut expected = vec![
            (first, there, 420, 536, rtt),
            (answer, there.opposite(), 8_900, 536, rtt),
            (again, there, 380, 536, rtt),
            (other, there, 25_000_000, 1460, tenth),
        ];
        expected.sort();
        assert_eq!(seen, expected);
    }
}

#[test]
fn load_is_that_of_the_bytes_and_scales_exactly() {
    let config = example(Direction::Reverse, 1.0);
    assert_close(config.offered_bps(Direction::Reverse), 25_000_800.0 * 8.0 / 60.0, 1e-12);
    assert_close(config.offered_bps(Direction::Forward), 8_900.0 * 8.0 / 60.0, 1e-12);
    let scaled = config.scaled_to(Direction::Reverse, Rate(1_000_000));
    assert_close(scaled.offered_bps(Direction::Reverse), 1e6, 1e-12);
    assert_close(scaled.scale, 25_000_800.0 * 8.0 / 60.0 / 1e6, 1e-12);
}

#[test]
fn shuffling_changes_places_within_bins() {
    let plain = starts(&hundred(None), 1);
    let in_order: Vec<(Time, u64)> = (0..100).map(|i| (Time::from_ms(500 * i), i + 1)).collect();
    assert_eq!(plain, in_order);
    let config = hundred(Some(Time::from_s(5)));
    let shuffled = starts(&config, 1);
    assert!(shuffled.iter().zip(&plain).all(|(a, b)| a.0 == b.0));
    let moved = shuffled.iter().zip(&plain).filter(|(a, b)| a.1 != b.1).count();
    assert!(moved > 70, "{moved}");
    // Ten connections a bin.
    for (bin, connections) in shuffled.chunks(10).zip(0..) {
        let mut bytes: Vec<u64> = bin.iter().map(|(_, bytes)| *bytes).collect();
        bytes.sort();
        assert!(bytes.into_iter().eq(10 * connections + 1..=10 * connections + 10));
    }
    assert_eq!(starts(&config, 1), shuffled);
    assert_ne!(starts(&config, 2), shuffled);
}

#[test]
fn every_order_of_a_bin_is_equally_likely() {
    let mut count = [[0; 3]; 3];
    let mut stream = Streams::new(1, "replay").stream("shuffle");
    for _ in 0..30_000 {
        let mut places = [0, 1, 2];
        shuffle(&mut places, &mut stream);
        for (place, of) in places.into_iter().enumerate() {
            count[place][of] += 1;
        }
    }
    // Three standard errors are 245.
    assert!(count.iter().flatten().all(|n: &i32| (n - 10_000).abs() < 245), "{count:?}");
}

#[test]
fn a_connection_waits_for_its_messages_and_is_forgotten_after_the_last() {
    let replay = Replay::new(&example(Direction::Forward, 1.0), &Streams::new(1, "replay"));
    let mut dialogues = Dialogues::new(replay.expect("valid"));
    let sessions = [0, 1].map(|_| dialogues.next_transfer().expect("two connections").session);
    assert_eq!((sessions, dialogues.running()), ([0, 1], 2));
    // Both wait, one for an answer to come and one for its end.
    assert_eq!((dialogues.next_at(), dialogues.next_transfer()), (Time::NEVER, None));
    dialogues.on_done(1, Time::from_s(9));
    assert_eq!((dialogues.next_at(), dialogues.running()), (Time::NEVER, 1));
    for _ in 0..2 {
        dialogues.on_done(0, Time::from_s(10));
        assert_eq!(dialogues.next_transfer().map(|transfer| transfer.session), Some(0));
    }
    dialogues.on_done(0, Time::from_s(20));
    assert_eq!((dialogues.next_at(), dialogues.running()), (Time::NEVER, 0));
}

proptest! {
    #[test]
    fn any_text_is_a_trace_or_an_error_on_one_of_its_lines(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "duration", "connection", "send", "receive", "after", "rtt", "mss", "1s", "2ms", "9kB", "0B",
                "\n", "\n", "\n", "#", "x",
            ]),
            0..40,
        )
    ) {
        let text = words.join(" ");
        match format!("duration 10s\n{text}").parse::<Trace>() {
            Ok(trace) => {
                prop_assert!(!trace.vectors.is_empty());
                prop_assert!(trace.vectors.iter().all(|vector| !vector.messages.is_empty()));
                prop_assert!(trace.vectors.iter().all(|vector| vector.start < trace.duration));
            }
            Err(error) => prop_assert!((1..=text.lines().count() + 1).contains(&error.line)),
        }
    }
}

#[test]
fn errors_name_line_and_remedy() {
    for (text, want) in [
        ("", "1: the trace moves no bytes"),
        ("duration 1s\n# nothing\n", "1: the trace moves no bytes"),
        ("connection 0s\n", r#"1: "connection" begins no line here; allowed: duration"#),
        ("duration\n", r#"1: "duration" needs a value"#),
        ("duration 1\n", r#"1: duration: "1" has no unit; write for example "100ms""#),
        ("duration 1s 2s\n", r#"1: "2s" does not belong here; allowed, once each: nothing"#),
        ("duration 1s\nsend 1B\n", r#"2: "send" begins no line here; allowed: connection"#),
        (
            "duration 1s\nconnection 0s\nsend 1B\nduration 2s\n",
            r#"4: "duration" begins no line here; allowed: connection, send, receive"#,
        ),
        ("duration 1s\n\nconnection 1s\n", "3: starts at 1s, but the trace ends at 1s"),
        ("duration 1s\nconnection 0s\nconnection 0s\n", "2: the connection moves no bytes"),
        ("duration 1s\nconnection 0s\n\n# end", "2: the connection moves no bytes"),
        (
            "duration 1s\nconnection 0s\nsend 9B\nsend 380 after 1s\n",
            r#"4: send: "380" has no unit; write for example "12.5MB""#,
        ),
        ("duration 1s\nconnection 0s\nsend 0B\n", "3: the message moves no bytes"),
        ("duration 1s\nconnection 0s mss 0B\n", "2: mss: from 1B to 65.535kB"),
        (
            "duration 1s\nconnection 0s rtt 1ms rtt 1ms\n",
            r#"2: "rtt" does not belong here; allowed, once each: rtt TIME, mss SIZE"#,
        ),
        (
            "duration 1s\nconnection 0s\nsend 1B\nsend 1B then 1s\n",
            r#"4: "then" does not belong here; allowed, once each: after TIME"#,
        ),
        (
            "duration 1s\nconnection 0s\nsend 1B after 1s\n",
            "3: after: the first message goes when its connection begins",
        ),
    ] {
        assert_eq!(error(text), want, "{text:?}");
    }
    let message = |config| Replay::new(&config, &Streams::new(1, "replay")).expect_err("bad").to_string();
    assert_eq!(message(example(Direction::Forward, 0.0)), "scale: 0; above 0 and finite");
    assert_eq!(message(hundred(Some(Time::ZERO))), "shuffle: 0; above 0 and finite");
}
