//! Models of TCP traffic in the engine: transfers begin, end, and bring the next ones.

use crate::common::{drop_tail, dumbbell, law, rate, run};
use lfn_law::SlowStartKind;
use lfn_sim::config::{Carrier, Config, RouteId, TrafficConfig};
use lfn_sim::rng::Distribution;
use lfn_sim::traffic::{open, packmime, requests, web, Direction, Model, PathConfig};
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::Time;

fn path() -> PathConfig {
    PathConfig::of_rtt(Distribution::Uniform(0.01, 0.1))
}

fn with(model: Model, link: &str, seconds: u64) -> Config {
    let mut config = dumbbell(drop_tail(rate(link), 500), Vec::new(), Time::from_s(seconds));
    config.traffic.push(TrafficConfig {
        name: "users".into(),
        model,
        carrier: Carrier {
            law: law("cubic"),
            sender: SenderConfig::linux(1448, SlowStartKind::HyStart),
            receiver: ReceiverConfig::linux(Time::from_ms(50), 1448),
            receive_window_bytes: 1 << 20,
            ack_bytes: 66,
            routes: [RouteId(0), RouteId(1)],
        },
    });
    config
}

#[test]
fn short_flows_carry_what_they_offer() {
    let flows = open::Config::poisson(Direction::Forward, rate("20Mbit/s"), open::short_flow_bytes(), path());
    let outcome = run(&with(Model::Open(flows), "1Gbit/s", 60));
    let users = &outcome.summary.traffic[0];
    assert_eq!(users.name.as_deref(), Some("users"));
    assert!(users.flows_started > 1000, "{}", users.flows_started);
    // All but those under way, each with at most a window.
    assert!(users.flows_completed + 50 > users.flows_started);
    assert!((users.goodput_bps[0] / users.offered_bps[0] - 1.0).abs() < 0.05, "{users:?}");
    assert_eq!(users.offered_bps[1], 0.0);

    let table = &outcome.tables.transfers;
    assert_eq!(table.t_s.len() as u64, users.flows_completed);
    // No transfer is faster than the shortest way there.
    assert!(table.duration_s.iter().all(|&s| s > 0.005));
    let bytes: u64 = table.bytes.iter().sum();
    assert!((bytes as f64 * 8.0 / 60.0 / users.offered_bps[0] - 1.0).abs() < 0.05);
}

#[test]
fn people_wait_for_their_answers() {
    // The same users behind a link of a tenth: closed loops ask for less, open ones do not care.
    let asked = |model: Model, link: &str| run(&with(model, link, 60)).summary.traffic[0].offered_bps[0];
    let surfing = || Model::Web(web::Config::surge(Direction::Forward, 300, path()));
    let (fast, slow) = (asked(surfing(), "1Gbit/s"), asked(surfing(), "2Mbit/s"));
    assert!(slow < 0.8 * fast, "{slow} {fast}");
    let load =
        || open::Config::poisson(Direction::Forward, rate("10Mbit/s"), open::short_flow_bytes(), path());
    assert_eq!(asked(Model::Open(load()), "1Gbit/s"), asked(Model::Open(load()), "5Mbit/s"));
}

#[test]
fn answers_follow_requests_over_the_other_direction() {
    let exchanges = packmime::requests(Direction::Forward, 50.0, path());
    let outcome = run(&with(Model::Requests(exchanges), "100Mbit/s", 60));
    let users = &outcome.summary.traffic[0];
    assert!(users.offered_bps[0] > 0.0 && users.offered_bps[1] > 0.0, "{users:?}");
    // Two messages an exchange, one each way, of about 50 exchanges a second.
    let exchanges = users.flows_completed as f64 / 2.0 / 60.0;
    assert!((40.0..60.0).contains(&exchanges), "{exchanges}");
    let directions = &outcome.tables.transfers.direction;
    let forward = directions.iter().filter(|&&direction| direction == 0).count();
    assert!(forward.abs_diff(directions.len() - forward) < 50);
}

#[test]
fn a_message_follows_when_the_one_before_it_has_arrived() {
    // One client on an idle path of 50 ms each way: it asks, the server takes 7 ms, the client thinks
    // for 20 ms and asks once more. An ACK in flight delays no message.
    let of = |persistent| {
        let constant = |value: f64| Distribution::Constant(value);
        let dialogue = requests::Config {
            direction: Direction::Forward,
            gap_s: constant(1.5),
            more_exchanges: constant(1.0).into(),
            request_bytes: constant(400.0).into(),
            server_delay_s: constant(0.007),
            response_bytes: constant(40.0 * 1460.0).into(),
            think_s: constant(0.02),
            persistent,
            path: PathConfig { small_mss_share: 0.0, ..PathConfig::of_rtt(constant(0.1)) },
        };
        let config = with(Model::Requests(dialogue), "1Gbit/s", 3);
        let table = run(&config).tables.transfers;
        assert_eq!(table.direction, [1, 0, 1, 0]);
        let ends = table.t_s.clone();
        let begins: Vec<f64> = ends.iter().zip(&table.duration_s).map(|(end, took)| end - took).collect();
        for (i, pause_s) in [0.007, 0.02, 0.007].into_iter().enumerate() {
            assert!((begins[i + 1] - ends[i] - pause_s).abs() < 1e-9, "{begins:?} {ends:?}");
        }
        table.duration_s
    };
    let (one, several) = (of(true), of(false));
    // A request of 466 bytes on the wire takes 3.728 us besides the propagation.
    assert!([one[0], one[2], several[0], several[2]].iter().all(|s| (s - 0.050_003_728).abs() < 1e-9));
    // Slow start takes 10, 20, and 10 more segments; an answer on the same connection has the window at once.
    assert!((0.25..0.26).contains(&one[1]) && one[1] == several[1], "{one:?} {several:?}");
    assert!((0.05..0.06).contains(&one[3]) && several[3] == several[1], "{one:?} {several:?}");
}

#[test]
fn every_law_meets_the_same_open_traffic() {
    let flows =
        || open::Config::poisson(Direction::Forward, rate("20Mbit/s"), open::short_flow_bytes(), path());
    let seen = ["reno", "cubic", "bic"].map(|name| {
        let mut config = with(Model::Open(flows()), "15Mbit/s", 20);
        config.traffic[0].carrier.law = law(name);
        let users = run(&config).summary.traffic.remove(0);
        (users.flows_started, users.offered_bps[0].to_bits())
    });
    assert!(seen.iter().all(|one| *one == seen[0]));
}
