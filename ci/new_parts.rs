//! The parts that ci/new_parts.sh adds, at work in one run.

use lfn_scenario::Scenario;
use lfn_sim::Sim;

const TEXT: &str = r#"
schema = 1
duration = "9500ms"
[link]
rate = "10Mbit/s"
queue = { kind = "blue", size = "20 packets", first = 0.01 }
[[flow]]
law = "reno"
rtt = "20ms"
max_rto = "2s"
[[traffic]]
periodic = { size = "10kB" }
"#;

#[test]
fn new_parts_work() {
    let scenario = Scenario::parse(TEXT, "new.toml", None).unwrap();
    let canonical = scenario.to_toml().unwrap();
    for key in ["first = 0.01", "max_rto = \"2s\"", "every = \"1s\""] {
        assert!(canonical.contains(key), "{canonical}");
    }
    let config = scenario.config(1);
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let outcome = sim.finish().unwrap();
    assert_eq!(outcome.summary.traffic[0].flows_started, 9);
    let timeouts = &outcome.tables.flows.timeouts;
    assert_eq!(timeouts.len(), outcome.tables.flows.t_s.len());
    assert_eq!(timeouts.last().copied(), Some(outcome.summary.flows[0].timeouts));
    let wrong = Scenario::parse(&TEXT.replace("10kB", "0B"), "new.toml", None).unwrap_err().to_string();
    assert!(wrong.contains("traffic[0].periodic.size"), "{wrong}");
}

#[test]
fn a_new_router_divides_a_link() {
    let text = r#"
schema = 1
duration = "20s"
warmup = "10s"
[link]
rate = "10Mbit/s"
queue = { size = "100 packets" }
router = { kind = "phantom" }
[[flow]]
law = "phantom"
rtt = "20ms"
count = 2
"#;
    let config = Scenario::parse(text, "new.toml", None).unwrap().config(1);
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let summary = sim.finish().unwrap().summary;
    // Of C = 10 Mbit/s each has fC / (1 + 2f), with f = 5 and the headers.
    for flow in &summary.flows {
        let share = flow.goodput_bps.unwrap() / 10e6 * 1514.0 / 1448.0;
        assert!((share - 5.0 / 11.0).abs() < 0.02, "{share}");
    }
}
