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
