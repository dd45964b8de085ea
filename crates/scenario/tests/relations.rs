//! The same scenario said in another way gives the same figures: `LFN_RELATIONS_DRAWS` scenarios of all kinds, `LFN_SEED`
//! the seed; `make soak` draws many with a new seed.

mod drawn;

use std::fmt::Write;

use lfn_scenario::Scenario;
use lfn_sim::Sim;
use serde_json::Value;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
}

/// The summary of a run, if it can be run.
fn run(text: &str) -> Option<Value> {
    let scenario = Scenario::parse(text, "drawn.toml", None).ok()?;
    let config = scenario.config(scenario.seed);
    let mut sim = Sim::new(&config).ok()?;
    sim.run_until(config.duration);
    let summary = sim.finish().unwrap_or_else(|error| panic!("{error}\n{text}")).summary;
    Some(serde_json::to_value(summary).expect("plain data"))
}

/// The first value of a key with this unit.
fn first(text: &str, key: &str, unit: &str) -> f64 {
    let rest = text.split(&format!("{key} = \"")).nth(1).expect("the key");
    rest.split(unit).next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Another way to say a scenario; `None` where it does not apply.
type Relation = (&'static str, fn(&str) -> Option<String>);

const RELATIONS: [Relation; 7] = [
    ("a schedule entry that changes nothing", |text| {
        let at = first(text, "duration", "us") * 0.7;
        text.contains("[link]")
            .then(|| format!("{text}[[schedule]]\nat = \"{at:.0}us\"\nlink = \"reverse\"\ndown = false\n"))
    }),
    ("no loss", |text| {
        (text.contains("[link]") && !text.contains("\nloss"))
            .then(|| text.replacen("[link]", "[link]\nloss = 0", 1))
    }),
    ("no loss of ACKs", |text| {
        (text.contains("[link]") && !text.contains(".reverse]"))
            .then(|| text.replacen("[[flow]]", "[link.reverse]\nacks = { loss = 0 }\n[[flow]]", 1))
    }),
    ("an event for each packet", |text| {
        (text.contains("[link]") && !text.contains("mode ="))
            .then(|| text.replacen("[link]", "[link]\nmode = \"event\"", 1))
    }),
    ("times in nanoseconds", |text| {
        let mut parts = text.split("us\"");
        let mut other = parts.next()?.to_string();
        for part in parts {
            other += "000ns\"";
            other += part;
        }
        Some(other)
    }),
    ("flows one by one", |text| {
        let at = text.find("\n[[flow]]")? + 1;
        let end = text[at + 1..].find("\n[").map_or(text.len(), |length| at + 1 + length + 1);
        let flow = &text[at..end];
        let count = flow.lines().find_map(|line| line.strip_prefix("count = "))?;
        let alone = flow.replace(&format!("count = {count}\n"), "");
        let every = alone.repeat(count.parse().ok().filter(|&count: &usize| count < 20)?);
        Some(format!("{}{every}{}", &text[..at], &text[end..]))
    }),
    ("no samples", |text| {
        let at = text.find("sample = ")?;
        let end = at + text[at..].find('\n')?;
        Some(format!("{}sample = \"off\"{}", &text[..at], &text[end..]))
    }),
];

/// Figures that have to be equal: those of flows and links, and the packets that arrived.
fn figures(summary: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for part in ["flows", "links"] {
        for (i, row) in summary[part].as_array().into_iter().flatten().enumerate() {
            for (key, value) in row.as_object().expect("a row") {
                found.push((format!("{part}[{i}].{key}"), value.clone()));
            }
        }
    }
    found.push(("data_packets_delivered".into(), summary["data_packets_delivered"].clone()));
    found
}

#[test]
fn what_changes_nothing_changes_no_figure() {
    let (draws, seed) = (number("LFN_RELATIONS_DRAWS", 40), number("LFN_SEED", 1));
    println!("LFN_RELATIONS_DRAWS={draws} LFN_SEED={seed}");
    let mut tried = [0; RELATIONS.len()];
    let mut failed = String::new();
    for i in 0..draws {
        let text = drawn::scenario(seed, i, 5_000.0);
        let Some(plain) = run(&text) else { continue };
        for (j, (what, other)) in RELATIONS.iter().enumerate() {
            let Some(other) = other(&text).and_then(|text| run(&text)) else { continue };
            tried[j] += 1;
            let differ: Vec<String> = figures(&plain)
                .into_iter()
                .zip(figures(&other))
                .filter(|(a, b)| a != b)
                .map(|(a, b)| format!("{} {} {}", a.0, a.1, b.1))
                .collect();
            if !differ.is_empty() {
                writeln!(
                    failed,
                    "draw {i}: {what}: {} differ: {}",
                    differ.len(),
                    differ[..differ.len().min(6)].join("; ")
                )
                .unwrap();
            }
        }
    }
    println!("{tried:?}");
    assert!(draws < 40 || tried.iter().all(|&count| count > 5), "{tried:?}");
    assert!(failed.is_empty(), "{failed}");
}
