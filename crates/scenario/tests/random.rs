//! A scenario says whether its runs depend on their seed, and the runs agree.

use lfn_law::registry;
use lfn_scenario::Scenario;
use lfn_sim::rng::Stream;
use lfn_sim::Sim;

/// Whether the scenario says so, and the hashes of runs with the first `N` seeds.
fn look<const N: usize>(text: &str) -> (bool, [String; N]) {
    let scenario = Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{text}: {error}"));
    let hash = |seed| {
        let config = scenario.config(seed);
        let mut sim = Sim::new(&config).unwrap();
        sim.run_until(config.duration);
        sim.finish().unwrap().summary.hash
    };
    (scenario.is_random(), std::array::from_fn(|seed| hash(1 + seed as u64)))
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
        ("queue = { kind = \"dualpi2\" }", "law = \"dctcp\"\nl4s = true", ""),
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

/// Every connection over UDT draws its first packet number, and packets are sent in pairs by their number.
#[test]
fn every_law_over_udt_is_random() {
    let mut tried = 0;
    for law in registry().iter().filter(|law| law.header.is_none() && law.family != "rate") {
        for variant in law.variants {
            let text = include_str!("faults/random-over-udt.toml")
                .replace("\"reno\"", &format!("\"{}:{variant}\"", law.name));
            if Scenario::parse(&text, "test.toml", None).is_err() {
                continue;
            }
            let (said, hashes): (bool, [String; 4]) = look(&text);
            assert!(said, "{text}");
            assert!(hashes.iter().any(|hash| *hash != hashes[0]), "{text}");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}

/// Only laws of a router's protocol see when its timers are due.
#[test]
fn a_router_draws_where_somebody_asks_it() {
    for law in registry().iter().filter(|law| law.family == "router") {
        let protocol = law.header.map(|header| format!("{header:?}").to_lowercase()).expect("a header");
        let router = format!("router = {{ kind = \"{protocol}\" }}");
        for (link, flow, random) in [
            (router.as_str(), format!("law = \"{}\"", law.name), true),
            (router.as_str(), String::new(), false),
            ("", format!("law = \"{}\"", law.name), false),
        ] {
            let text = scenario(link, &flow, "").replace("4s", "20s");
            let (said, hashes): (bool, [String; 4]) = look(&text);
            assert_eq!(said, random, "{text}");
            assert_eq!(hashes.iter().any(|hash| *hash != hashes[0]), random, "{text}");
        }
    }
}

/// How a part of a scenario makes its runs depend on the seed.
#[derive(Clone, Copy, PartialEq)]
enum Makes {
    /// The same run with every seed.
    Nothing,
    /// Another run with another seed, or not, as the queue stands.
    Chance,
    /// Another run with another seed.
    Random,
}
use Makes::{Chance, Nothing, Random};

/// Of each row one at most is in a link.
const LINK: [&[(&str, Makes)]; 7] = [
    &[
        ("queue = { kind = \"drop-head\" }", Nothing),
        ("queue = { kind = \"codel\" }", Nothing),
        ("queue = { kind = \"pi2\" }", Nothing),
        ("queue = { kind = \"red\" }", Chance),
        ("queue = { kind = \"pie\", size = \"200 packets\" }", Chance),
        ("queue = { kind = \"fq-codel\", queues = 2 }", Chance),
    ],
    &[
        ("loss = 0.0", Nothing),
        ("loss = { kind = \"gilbert-elliott\", p = 0.0, r = 0.2 }", Nothing),
        ("loss = 0.02", Random),
        ("loss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.2 }", Random),
    ],
    &[("duplicate = 0.0", Nothing), ("duplicate = 0.02", Random)],
    &[
        ("reorder = { p = 0.0, delay = \"5ms\" }", Nothing),
        ("reorder = { p = 1.0, delay = \"5ms\" }", Nothing),
        ("reorder = { p = 0.02, delay = \"5ms\" }", Random),
    ],
    &[
        ("jitter = { low = \"1ms\", high = \"1ms\" }", Nothing),
        ("jitter = { kind = \"normal\", mean = \"1ms\", deviation = \"0s\" }", Nothing),
        ("jitter = { high = \"1ms\" }", Random),
        ("jitter = { kind = \"normal\", mean = \"1ms\", deviation = \"0.3ms\" }", Random),
    ],
    &[
        ("acks = { loss = 0.0, aggregate = \"2ms\" }", Nothing),
        ("acks = { jitter = { high = \"1ms\" } }", Random),
    ],
    &[("router = { kind = \"xcp\" }", Nothing), ("mode = \"event\"", Nothing)],
];
/// Of a flow.
const FLOW: [&[(&str, Makes)]; 2] = [
    &[("law = \"cubic\"", Nothing), ("law = \"vegas\"", Nothing), ("transport = \"udt\"", Random)],
    &[("start = \"1s\"", Nothing), ("start = \"uniform(0s, 1s)\"", Random)],
];
/// Beside the flow.
const MORE: [&[(&str, Makes)]; 3] = [
    &[("[background]\nlevel = 0", Nothing), ("[background]\nlevel = 1\nlong_flows = 0", Random)],
    &[
        ("[[udp]]\nbursts = [{ rate = \"1Mbit/s\", start = \"1s\" }]", Nothing),
        ("[[udp]]\non_off = { sources = 3, rate = \"1Mbit/s\" }", Random),
        ("[[traffic]]\nshort_flows = { load = \"1Mbit/s\" }", Random),
    ],
    &[
        ("[[schedule]]\nat = \"1s\"\nlink = \"forward\"\nrate = \"5Mbit/s\"", Nothing),
        ("[[schedule]]\nat = \"2s\"\nlink = \"reverse\"\ndelay = \"5ms\"", Nothing),
        ("[[schedule]]\nat = \"1s\"\nlink = \"forward\"\nloss = 0.02", Random),
    ],
];

/// Scenarios of parts drawn at random; `LFN_RANDOM_DRAWS` is their number, `LFN_SEED` the seed.
#[test]
fn scenarios_are_random_if_a_part_is() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let (draws, seed) = (number("LFN_RANDOM_DRAWS", 400), number("LFN_SEED", 1));
    println!("LFN_RANDOM_DRAWS={draws} LFN_SEED={seed}");
    let mut seen = [0; 3];
    for i in 0..draws {
        let mut stream = Stream::new(seed, &format!("random[{i}]"));
        // Some have nothing random, some a little.
        let temper = stream.f64();
        let mut makes = Nothing;
        let mut drawn = |rows: &[&[(&str, Makes)]]| {
            let mut lines = String::new();
            for row in rows {
                let (line, made) = row[(stream.f64() * row.len() as f64) as usize];
                if stream.f64() < 0.3 && (made == Nothing || stream.f64() < temper) {
                    makes = if makes as u8 > made as u8 { makes } else { made };
                    lines = lines + line + "\n";
                }
            }
            lines
        };
        let text = scenario(&drawn(&LINK), &drawn(&FLOW), &drawn(&MORE));
        let (said, hashes): (bool, [String; 4]) = look(&text);
        let differ = hashes.iter().any(|hash| *hash != hashes[0]);
        assert_eq!(said, makes != Nothing, "{text}");
        assert!(said || !differ, "not random, but not the same run: {text}");
        assert!(makes != Random || differ, "random, but the same run: {text}");
        seen[makes as usize] += 1;
    }
    assert!(draws < 400 || seen.iter().all(|&count| count > 5), "{seen:?}");
}
