//! Background, UDP and models of traffic.

use super::network::{links, DIAMOND};
use super::*;

#[test]
fn background_follows_level_and_rate() {
    let text =
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"10Gbit/s\"\n[link.queue]\nsize = \"100 packets\"\n\
                [background]\nlevel = 2\n";
    let background = parse(text).config(1).background.unwrap();
    let traffic = background.traffic;
    assert_eq!((traffic.forward, traffic.reverse), (Rate(2_500_000_000), Rate(1_250_000_000)));
    assert_eq!(traffic.long_flows, 10);
    assert_eq!(background.carrier.sender.initial_window_segments, 2);
    assert!(background.carrier.receiver.delayed_ack);
    let only_long = parse(&text.replace("level = 2", "long_flows = 3")).config(1).background.unwrap().traffic;
    assert_eq!((only_long.forward, only_long.long_flows), (Rate(0), 3));
}

#[test]
fn udp_sends_in_bursts_in_steps_or_at_random() {
    let text =
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nqueue = { size = \"100 packets\" }\n\
                [[udp]]\nbursts = [{ stop = \"1s\", rate = \"5Mbit/s\" }, { rate = \"7Mbit/s\" }]\n\
                [[udp]]\nname = \"steps\"\npacket = \"1000B\"\nsteps = { start = \"58s\", each = \"1s\", \
                rates = [\"2Mbit/s\", \"0bit/s\", \"3Mbit/s\"] }\n\
                [[udp]]\ndirection = \"reverse\"\non_off = { sources = 100 }\n";
    let scenario = parse(text);
    assert_eq!(parse(&scenario.to_toml().unwrap()), scenario);
    let config = scenario.config(1);
    let burst = |start, stop, mbit: u64| Burst {
        start: Time::from_s(start),
        stop: Time::from_s(stop),
        rate: Rate(mbit * 1_000_000),
    };
    let sources: Vec<_> =
        config.udp.iter().map(|udp| (&*udp.name, udp.traffic.packet_bytes, udp.route)).collect();
    assert_eq!(
        sources,
        [("udp0", 1514, RouteId(0)), ("steps", 1014, RouteId(0)), ("udp2", 1514, RouteId(1))]
    );
    let patterns: Vec<_> = config.udp.iter().map(|udp| udp.traffic.pattern.clone()).collect();
    // The third step would begin when the run ends.
    assert_eq!(
        patterns,
        [
            Pattern::Bursts(vec![burst(0, 1, 5), burst(1, 60, 7)]),
            Pattern::Bursts(vec![burst(58, 59, 2), burst(59, 60, 0)]),
            Pattern::OnOff(OnOff::gigabit(100)),
        ]
    );
}

#[test]
fn background_on_a_route_follows_its_slowest_link() {
    let text = DIAMOND.replacen("\"1Gbit/s\"", "\"100Mbit/s\"", 1);
    let scenario = parse(&format!(
        "{text}[[flow]]\nlaw = \"reno\"\nfrom = \"a\"\nto = \"d\"\n[background]\nlevel = 1\nroute = [\"ab\", \"bd\"]\n"
    ));
    let config = scenario.config(1);
    let background = config.background.as_ref().unwrap();
    assert_eq!(background.traffic.forward, Rate(10_000_000));
    let routes = background.carrier.routes.map(|route| links(&config, route));
    assert_eq!(routes, [[0, 2], [3, 1]]);
}

/// The models of a dumbbell with these tables.
fn models(text: &str) -> Vec<lfn_sim::config::TrafficConfig> {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scenario.toml");
    let text = format!(
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nqueue = {{ size = \"100 packets\" }}\n{text}"
    );
    let scenario = Scenario::parse(&text, name, None).unwrap_or_else(|error| panic!("{error}"));
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(Scenario::parse(&canonical, name, None).unwrap(), scenario, "{canonical}");
    scenario.config(1).traffic
}

#[test]
fn every_traffic_model_is_the_simulators() {
    let usual =
        PathConfig::of_rtt(Distribution::Uniform(Time::from_ms(10).as_s(), Time::from_ms(200).as_s()));
    let of = |table: &str| {
        models(&format!("[[traffic]]\nrtt = \"uniform(10ms, 200ms)\"\n{table}")).remove(0).model
    };
    let forward = Direction::Forward;
    let short = open::Config::poisson(forward, Rate(100_000_000), open::short_flow_bytes(), usual);
    assert_eq!(of("short_flows = { load = \"100Mbit/s\" }"), Model::Open(short));
    let clients = requests::Config {
        direction: forward,
        gap_s: Distribution::Exponential(8.0 * 36_500.0 / 1e6),
        more_exchanges: Distribution::Exponential(0.0).into(),
        request_bytes: Distribution::Constant(500.0).into(),
        server_delay_s: Distribution::Constant(0.0),
        response_bytes: open::short_flow_bytes().into(),
        think_s: Distribution::Exponential(1.0),
        persistent: true,
        path: usual,
    };
    assert_eq!(of("requests = { load = \"1Mbit/s\" }"), Model::Requests(clients.clone()));
    let own = requests::Config {
        gap_s: Distribution::Exponential(8.0 * 4.0 * 1e5 / 1e6),
        more_exchanges: Distribution::Exponential(3.0).into(),
        request_bytes: Distribution::Lognormal(400.0, 0.5).into(),
        server_delay_s: Distribution::Constant(0.002),
        response_bytes: Distribution::Constant(1e5).into(),
        think_s: Distribution::Exponential(0.0),
        persistent: false,
        ..clients
    };
    let table = "requests = { load = \"1Mbit/s\", request = { median = \"400B\", sigma = 0.5 }, response = \"100kB\", \
                 exchanges = 4, server_delay = \"2ms\", think = \"0s\", persistent = false }";
    assert_eq!(of(table), Model::Requests(own));
    let packmime = packmime::requests(forward, 50.0, usual);
    assert_eq!(of("packmime = { connections = 50 }"), Model::Requests(packmime));
    let answers = packmime::flows(forward, 50.0, usual);
    assert_eq!(of("packmime = { connections = 50, requests = false }"), Model::Open(answers));
    let webtraf = web::Config::webtraf(Direction::Reverse, 400, usual);
    assert_eq!(of("direction = \"reverse\"\nwebtraf = { sessions = 400 }"), Model::Web(webtraf));
    let surge = web::Config::surge(forward, 30, usual);
    assert_eq!(of("surge = { users = 30 }"), Model::Web(surge));
    let suite = evaluation_suite::Config {
        load: [Rate(1_000_000), Rate(2_000_000)],
        rtts: vec![Time::from_ms(4), Time::from_ms(74)],
    };
    let table = "direction = \"reverse\"\nsuite = { load = \"2Mbit/s\", reverse_load = \"1Mbit/s\", rtts = [\"4ms\", \"74ms\"] }";
    assert_eq!(of(table), Model::EvaluationSuite(suite));
    let table = "vectors = { file = \"connections.txt\", scale = 2, shuffle = \"1s\" }";
    let Model::Replay(replay) = of(table) else { panic!() };
    assert_eq!((replay.trace.vectors.len(), replay.scale, replay.shuffle), (2, 2.0, Some(Time::from_s(1))));
}

#[test]
fn a_traffic_model_has_the_defaults_of_the_background() {
    let traffic = &models("[[traffic]]\nsurge = { users = 3 }\n[[traffic]]\nname = \"w\"\nlaw = \"cubic\"\n\
                           direction = \"reverse\"\nrtt = \"40ms\"\nreceive_window = \"20 packets\"\nsurge = { users = 3 }\n")[..];
    let [usual, own] = traffic else { panic!() };
    for (one, name, law, window_bytes) in [(usual, "traffic0", "reno", 65_536), (own, "w", "cubic", 29_200)] {
        assert_eq!((&*one.name, &*one.carrier.law.label()), (name, law));
        assert_eq!(one.carrier.routes, [RouteId(0), RouteId(1)]);
        assert_eq!(one.carrier.receive_window_bytes, window_bytes);
    }
    let Model::Web(web) = &own.model else { panic!() };
    assert_eq!((web.direction, web.path.rtt_s), (Direction::Reverse, Distribution::Constant(0.04)));
}
