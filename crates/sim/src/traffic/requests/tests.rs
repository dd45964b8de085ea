use super::super::testing::{assert_close, carried, load_bps};
use super::super::{packmime, Model, Transfer};
use super::*;

const PATH: PathConfig = PathConfig::of_rtt(Distribution::Constant(0.05));

/// Ten clients a second on average, three exchanges each, answers of 20 kB with a tail of index 1.5.
fn clients(persistent: bool) -> Config {
    Config {
        direction: Direction::Reverse,
        gap_s: Distribution::Exponential(0.1),
        more_exchanges: Distribution::Exponential(2.0).into(),
        request_bytes: Distribution::Uniform(300.0, 500.0).into(),
        server_delay_s: Distribution::Constant(0.02),
        response_bytes: Distribution::pareto_of_mean(20e3, 1e3, 1.5).into(),
        think_s: Distribution::Exponential(1.0),
        persistent,
        path: PATH,
    }
}

fn message(config: Config) -> String {
    Requests::new(&config, &Streams::new(1, "requests")).expect_err("bad").to_string()
}

#[test]
fn load_is_the_nominal_one_in_both_directions() {
    let config = clients(true);
    assert_close(config.offered_bps(Direction::Reverse), 10.0 * 3.0 * 20e3 * 8.0, 1e-12);
    assert_close(config.offered_bps(Direction::Forward), 10.0 * 3.0 * 400.0 * 8.0, 1e-12);
    // 600,000 exchanges, so 2 % is four standard errors. A client takes 3 s: left out at the beginning.
    let load = load_bps(&Model::Requests(config.clone()), Time::from_s(50), Time::from_s(2050));
    for direction in Direction::ALL {
        assert_close(load[direction as usize], config.offered_bps(direction), 0.02);
    }
}

#[test]
fn a_load_of_answers_sets_the_rate_of_clients() {
    let config = clients(true).poisson(Rate(4_800_000));
    assert_close(config.offered_bps(Direction::Reverse), 4.8e6, 1e-12);
    assert_close(config.gap_s.mean(), 0.1, 1e-12);
}

#[test]
fn answers_have_the_tail_of_the_shape_and_requests_their_bounds() {
    let mut requests = Requests::new(&clients(true), &Streams::new(1, "requests")).expect("valid");
    let messages: Vec<Message> =
        (0..70_000).flat_map(|_| requests.next().expect("endless").messages).collect();
    let sizes = |direction| messages.iter().filter(move |m| m.direction == direction).map(|m| m.bytes);
    let Distribution::BoundedPareto(least, ..) = Distribution::pareto_of_mean(20e3, 1e3, 1.5) else {
        panic!()
    };
    let n = sizes(Direction::Reverse).count() as f64;
    // Four standard errors; the bound takes less than 1 % off up to 30 times the least.
    for (times, tolerance) in [(3.0, 0.02), (10.0, 0.05), (30.0, 0.12)] {
        let above = sizes(Direction::Reverse).filter(|&bytes| bytes as f64 > times * least).count() as f64;
        assert_close(above / n, f64::powf(times, -1.5), tolerance);
    }
    assert!(sizes(Direction::Forward).all(|bytes| (300..=500).contains(&bytes)));
}

#[test]
fn answers_follow_requests_and_requests_answers() {
    for persistent in [true, false] {
        let model = Model::Requests(clients(persistent));
        let duration = |transfer: &Transfer| Time::from_us(1000 + transfer.bytes % 7);
        let transfers = carried(&model, 1, Time::from_s(30), duration);
        assert!(transfers.is_sorted_by_key(|transfer| transfer.at));
        let sessions = transfers.iter().map(|transfer| transfer.session).max().expect("some");
        let mut longest = 0;
        for session in 0..sessions {
            let own: Vec<&Transfer> = transfers.iter().filter(|t| t.session == session).collect();
            longest = longest.max(own.len());
            assert!(own.iter().step_by(2).all(|t| t.direction == Direction::Forward && t.bytes <= 500));
            assert!(own.iter().skip(1).step_by(2).all(|t| t.direction == Direction::Reverse));
            for pair in own.windows(2) {
                let waited = pair[1].at - (pair[0].at + duration(pair[0]));
                assert!(pair[1].direction == Direction::Forward || waited == Time::from_ms(20));
            }
            // The first transfer each way opens a connection; where it persists, no other does.
            for (i, transfer) in own.iter().enumerate() {
                assert_eq!(transfer.first, !persistent || i < 2);
                assert!(persistent || transfer.last);
            }
            if persistent {
                assert!(own.iter().rev().skip(2).all(|transfer| !transfer.last));
            }
        }
        assert!(longest > 8, "{longest}");
    }
}

#[test]
fn the_last_message_each_way_says_so() {
    let once = Config { more_exchanges: Distribution::Constant(1.0).into(), ..clients(true) };
    let transfers = carried(&Model::Requests(once), 1, Time::from_s(60), |_| Time::from_ms(1));
    let of_first: Vec<bool> = transfers.iter().filter(|t| t.session == 0).map(|t| t.last).collect();
    assert_eq!(of_first, [false, false, true, true]);
}

#[test]
fn what_is_asked_does_not_depend_on_the_network() {
    let exchanged = |duration: Time| {
        let model = Model::Requests(clients(true));
        let mut seen: Vec<(u64, u64)> = carried(&model, 1, Time::from_s(100), |_| duration)
            .into_iter()
            .filter(|transfer| transfer.session < 200)
            .map(|transfer| (transfer.session, transfer.bytes))
            .collect();
        seen.sort_by_key(|(session, _)| *session);
        seen
    };
    assert_eq!(exchanged(Time::from_ms(1)), exchanged(Time::from_ms(700)));
}

#[test]
fn packmime_has_the_means_of_its_model() {
    let config = packmime::requests(Direction::Forward, 100.0, PATH);
    // The model's means in bytes and seconds; ours are those of a table, cut at 25 MB, 14 kB and 0.1 s.
    assert_close(config.response_bytes.mean(), 8060.0, 0.025);
    assert_close(config.request_bytes.mean(), 580.0, 0.035);
    assert_close(config.server_delay_s.mean(), 0.02195, 0.01);
    assert_close(1.0 + config.more_exchanges.mean(), 1.054, 1e-12);
    let load = Rate(config.offered_bps(Direction::Forward) as u64);
    assert_close(load.as_bps(), 100.0 * 1.054 * 8.0 * config.response_bytes.mean(), 1e-6);
}

#[test]
fn what_cannot_be_is_named() {
    let none = || Distribution::Constant(0.0);
    assert_eq!(message(Config { gap_s: none(), ..clients(true) }), "gap: 0; above 0 and finite");
    assert_eq!(
        message(Config { request_bytes: none().into(), ..clients(true) }),
        "request: 0; above 0 and finite"
    );
    let late = Distribution::Constant(-1.0);
    assert_eq!(
        message(Config { server_delay_s: late, ..clients(true) }),
        "server_delay: -1; at least 0 and finite"
    );
    let endless = Distribution::Constant(f64::INFINITY).into();
    assert!(message(Config { more_exchanges: endless, ..clients(true) }).starts_with("more_exchanges: inf"));
}
