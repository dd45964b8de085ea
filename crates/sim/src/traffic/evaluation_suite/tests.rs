use super::super::testing::{assert_close, carried};
use super::super::Model;
use super::*;

const MBIT: u64 = 1_000_000;

fn config(forward_mbit: u64, reverse_mbit: u64) -> Config {
    let edges = EDGE_DELAYS_MS.map(|end| end.map(Time::from_ms));
    Config {
        load: [Rate(forward_mbit * MBIT), Rate(reverse_mbit * MBIT)],
        rtts: pair_rtts(edges, Time::from_ms(2)),
    }
}

#[test]
fn nine_pairs_have_the_round_trip_times_of_the_suite() {
    let edges = EDGE_DELAYS_MS.map(|end| end.map(Time::from_ms));
    let rtts = pair_rtts(edges, Time::ZERO);
    assert_eq!(rtts, [4, 74, 150, 28, 98, 174, 54, 124, 200].map(Time::from_ms));
    assert_eq!(pair_rtts(edges, Time::from_ms(65))[0], Time::from_ms(134));
}

#[test]
fn expected_load_is_exactly_the_nominal_one() {
    for percent in LOADS_PERCENT {
        let config = config(percent / 2, percent);
        let mut load_bps = [0.0; 2];
        for rtt in &config.rtts {
            for clients in Direction::ALL.map(|direction| config.clients_of(direction, *rtt)) {
                for direction in Direction::ALL {
                    load_bps[direction as usize] += clients.offered_bps(direction);
                }
            }
        }
        for (ours, nominal) in load_bps.iter().zip(config.load) {
            assert_close(*ours, nominal.as_bps(), 1e-12);
        }
    }
}

#[test]
fn sampled_load_is_the_nominal_one_in_both_directions() {
    let config = config(400, 600);
    let (seeds, seconds) = (10, 35);
    let mut bytes = [0; 2];
    for seed in 0..seeds {
        let suite = Suite::new(&config, &Streams::new(seed, "suite")).expect("valid");
        for connection in suite.take_while(|connection| connection.start < Time::from_s(seconds)) {
            for message in connection.messages {
                bytes[message.direction as usize] += message.bytes;
            }
        }
    }
    // Sizes have a coefficient of variation of 14: 2 % is 2.5 standard errors of the 3 million
    // connections in reverse, 2 of the 2 million forward.
    for (bytes, nominal) in bytes.into_iter().zip(config.load) {
        assert_close(bytes as f64 * 8.0 / (seeds * seconds) as f64, nominal.as_bps(), 0.02);
    }
}

#[test]
fn connections_have_the_marks_of_the_suite() {
    let config = config(30, 60);
    let transfers =
        carried(&Model::EvaluationSuite(config.clone()), 1, Time::from_s(20), |_| Time::from_ms(50));
    assert!(transfers.is_sorted_by_key(|transfer| transfer.at));
    let opened: Vec<_> = transfers.iter().filter(|transfer| transfer.first).collect();
    let share = |count: usize| count as f64 / opened.len() as f64;
    assert_close(share(opened.iter().filter(|transfer| transfer.mss_bytes == 536).count()), 0.1, 0.06);
    for rtt in config.rtts {
        assert_close(share(opened.iter().filter(|transfer| transfer.rtt == rtt).count()), 1.0 / 9.0, 0.06);
    }
    // The tail of answers between 20 kB and 600 kB has the index of the table, 1.35 there.
    let above = |bytes| transfers.iter().filter(|t| t.bytes > bytes).count() as f64;
    let index = (above(20_311) / above(604_295)).ln() / (604_295_f64 / 20_311.0).ln();
    assert!((index - 100_f64.ln() / (604_295_f64 / 20_311.0).ln()).abs() < 0.1, "{index}");
}

#[test]
fn what_cannot_be_is_named() {
    let message = |config| Suite::new(&config, &Streams::new(1, "suite")).expect_err("bad").to_string();
    assert_eq!(message(Config { rtts: vec![], ..config(1, 1) }), "rtts: none; at least one");
    let want = "load: 7Mbit/s and 100Mbit/s; each above 7.2 % of the other, its requests";
    assert_eq!(message(config(7, 100)), want);
    assert!(Suite::new(&config(72, 1000), &Streams::new(1, "suite")).is_ok());
}
