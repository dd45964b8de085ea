//! A scenario says whether its runs depend on their seed, and the runs agree.

use lfn_law::registry;
use lfn_scenario::Scenario;
use lfn_sim::Sim;

/// Whether the scenario says so, and the hashes of runs with two seeds.
fn look(text: &str) -> (bool, [String; 2]) {
    let scenario = Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{text}: {error}"));
    let hash = |seed| {
        let config = scenario.config(seed);
        let mut sim = Sim::new(&config).unwrap();
        sim.run_until(config.duration);
        sim.finish().unwrap().summary.hash
    };
    (scenario.is_random(), [hash(1), hash(2)])
}

/// Two flows that fill 10 Mbit/s × 20 ms for 4 s, with these changes.
fn scenario(link: &str, flow: &str, more: &str) -> String {
    let law = if flow.contains("law") { "" } else { "law = \"reno\"\n" };
    format!(
        "schema = 1\nduration = \"4s\"\nsample = \"off\"\n[link]\nrate = \"10Mbit/s\"\n{link}\n\
         [[flow]]\nrtt = \"20ms\"\ncount = 2\n{law}{flow}\n{more}\n"
    )
}

#[test]
fn whatever_draws_makes_a_scenario_random() {
    let small = "queue = { kind = \"fq-codel\", queues = 2 }";
    for (link, flow, more) in [
        ("loss = 0.01", "", ""),
        ("loss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.2 }", "", ""),
        ("duplicate = 0.01", "", ""),
        ("reorder = { p = 0.01, delay = \"5ms\" }", "", ""),
        ("jitter = { low = \"0s\", high = \"1ms\" }", "", ""),
        ("acks = { loss = 0.01 }", "", ""),
        ("acks = { reorder = { p = 0.01, delay = \"5ms\" } }", "", ""),
        ("acks = { jitter = { high = \"1ms\" } }", "", ""),
        ("queue = { kind = \"red\" }", "", ""),
        ("queue = { kind = \"pie\", size = \"200 packets\" }", "", ""),
        (small, "", "[[flow]]\nlaw = \"cubic\"\nrtt = \"40ms\"\ncount = 3"),
        ("", "start = \"uniform(0s, 1s)\"", ""),
        ("", "law = \"udt\"", ""),
        ("", "", "[background]\nlevel = 1"),
        ("", "", "[[udp]]\non_off = { sources = 3, rate = \"1Mbit/s\" }"),
        ("", "", "[[traffic]]\nshort_flows = { load = \"1Mbit/s\" }"),
        ("", "", "[[schedule]]\nat = \"1s\"\nlink = \"forward\"\nloss = 0.01"),
    ] {
        let text = scenario(link, flow, more);
        let (said, [one, other]) = look(&text);
        assert!(said, "{text}");
        assert_ne!(one, other, "{text}");
    }
}

#[test]
fn what_draws_nothing_runs_the_same_with_every_seed() {
    for (link, flow, more) in [
        ("", "", ""),
        ("loss = 0\nduplicate = 0", "", ""),
        ("queue = { kind = \"drop-head\" }", "", ""),
        ("queue = { kind = \"codel\" }", "ecn = true", ""),
        ("acks = { loss = 0, aggregate = \"5ms\" }", "", ""),
        ("", "parallel = 3", ""),
        ("", "direction = \"reverse\"", "[[udp]]\nbursts = [{ rate = \"1Mbit/s\", start = \"1s\" }]"),
        ("", "", "[background]\nlevel = 0"),
        ("", "", "[[schedule]]\nat = \"1s\"\nlink = \"forward\"\nrate = \"5Mbit/s\"\nloss = 0"),
    ] {
        let text = scenario(link, flow, more);
        let (said, [one, other]) = look(&text);
        assert!(!said, "{text}");
        assert_eq!(one, other, "{text}");
    }
}

#[test]
fn a_law_draws_if_it_uses_its_seed() {
    for law in registry().iter().filter(|law| law.header.is_none()) {
        for variant in law.variants {
            let text = scenario("", &format!("law = \"{}:{variant}\"", law.name), "").replace("4s", "12s");
            let (said, [one, other]) = look(&text);
            assert_eq!(said, law.draws, "{}:{variant}", law.name);
            assert_eq!(one != other, law.draws, "{}:{variant}: says it draws: {said}", law.name);
        }
    }
    let drawing: Vec<_> = registry().iter().filter(|law| law.draws).map(|law| law.name).collect();
    assert_eq!(drawing, ["bbr", "bbr3", "udt"]);
}
