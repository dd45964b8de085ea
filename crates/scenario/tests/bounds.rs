//! Every run ends with a check that no result is beyond what its path allows. No right run may fail it:
//! `LFN_BOUNDS_DRAWS` scenarios of all kinds, `LFN_SEED` the seed; `make soak` draws many with a new seed.

mod drawn;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lfn_scenario::Scenario;
use lfn_sim::rng::Stream;
use lfn_sim::{Sim, Summary};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
}

/// Traces of different means and gaps, in a folder of the tests.
fn traces() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bounds");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut draws = Stream::new(7, "traces");
    for (name, mean_ms) in [("slow", 9.0), ("fast", 0.4)] {
        let (mut text, mut at_ms) = (String::new(), 0.0);
        for _ in 0..2000 {
            at_ms += -mean_ms * (1.0 - draws.f64()).ln();
            if draws.f64() < 0.005 {
                at_ms += 300.0;
            }
            writeln!(text, "{at_ms:.0}").expect("a line");
        }
        std::fs::write(folder.join(name), text + "999999\n").expect("a trace");
    }
    folder
}

/// A scenario drawn from all kinds, and made harder: warm-ups, ends, liars, shapers, traces, several changes.
fn troubled(seed: u64, number: u64, most_packets: f64) -> String {
    let mut draws = Stream::new(seed, &format!("bounds[{number}]"));
    let mut text = drawn::scenario(seed, number, most_packets);
    let first = |text: &str, before: &str, after: &str| -> f64 {
        let rest = text.split(before).nth(1).expect("the key");
        rest.split(after).next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let duration_us = first(&text, "duration = \"", "us");
    let rate_bps = first(&text, "rate = \"", "bit/s");
    let between = |draws: &mut Stream, low: f64, high: f64| duration_us * (low + (high - low) * draws.f64());
    let [warmup_us, stop_us] = [(0.05, 0.9), (0.2, 0.8)].map(|(low, high)| between(&mut draws, low, high));
    let slower_bps = rate_bps * 0.3;
    for (p, head, more) in [
        (0.5, "seed", format!("warmup = \"{warmup_us:.0}us\"\nseed")),
        (0.3, "[[flow]]", format!("[[flow]]\nstop = \"{stop_us:.0}us\"")),
        (0.1, "[[flow]]", "[[flow]]\nmisbehaves = \"optimistic\"".into()),
        (0.05, "[[flow]]", "[[flow]]\nmisbehaves = \"splits-acks\"".into()),
        (0.1, "[[flow]]", "[[flow]]\napplication = { rate = \"3Mbit/s\" }".into()),
        (0.1, "[link]", format!("[link]\nshaper = {{ rate = \"{slower_bps:.0}bit/s\", burst = \"100kB\" }}")),
        (0.1, "[link]", format!("[link]\npolicer = {{ rate = \"{slower_bps:.0}bit/s\", burst = \"50kB\" }}")),
        (0.1, "[link]", "[link]\nacks = { loss = 0.1, aggregate = \"5ms\" }".into()),
        (
            0.15,
            &format!("rate = \"{rate_bps}bit/s\""),
            format!("trace = \"{}\"", if rate_bps > 5e7 { "fast" } else { "slow" }),
        ),
    ] {
        if draws.f64() < p {
            text = text.replacen(&format!("\n{head}"), &format!("\n{more}"), 1);
        }
    }
    if text.contains("optimistic") && !text.contains("receive_window") {
        // Nothing else keeps its sender back.
        text = text.replacen("\nmisbehaves", "\nreceive_window = \"500 packets\"\nmisbehaves", 1);
    }
    if draws.f64() < 0.4 && text.contains("\n[link]") && !text.contains("[[schedule]]") {
        for i in 1..6 {
            let at_us = duration_us * f64::from(i) / 7.0;
            let what = match (draws.f64() * 5.0) as u32 {
                0 => "down = true".into(),
                1 => format!("down = false\nrate = \"{:.0}bit/s\"", rate_bps * 0.2 * f64::from(i)),
                2 => format!("delay = \"{}us\"", 1000 * i),
                3 => "loss = 0.1".into(),
                _ => "down = false\nloss = 0".into(),
            };
            let link = if i == 4 { "reverse" } else { "forward" };
            writeln!(text, "[[schedule]]\nat = \"{at_us:.0}us\"\nlink = \"{link}\"\n{what}").expect("text");
        }
    }
    text
}

/// A run of the scenario, if it can be run.
fn run(text: &str, folder: &Path) -> Option<Summary> {
    let file = folder.join("drawn.toml");
    let scenario = Scenario::parse(text, file.to_str()?, None).ok()?;
    let config = scenario.config(scenario.seed);
    let mut sim = Sim::new(&config).ok()?;
    sim.run_until(config.duration);
    Some(sim.finish().unwrap_or_else(|error| panic!("{error}\n{text}")).summary)
}

#[test]
fn no_right_run_is_beyond_its_bounds() {
    let (draws, seed) = (number("LFN_BOUNDS_DRAWS", 100), number("LFN_SEED", 1));
    println!("LFN_BOUNDS_DRAWS={draws} LFN_SEED={seed}");
    let folder = traces();
    let runs: Vec<Summary> = (0..draws).filter_map(|i| run(&troubled(seed, i, 50_000.0), &folder)).collect();
    assert!(runs.len() as u64 > draws / 2, "only {} of {draws} draws can be run", runs.len());
    let busy = runs.iter().filter(|run| run.links[0].utilization > 0.5).count();
    assert!(busy > runs.len() / 5, "only {busy} of {} runs fill half of their link", runs.len());
    println!("{} runs, {busy} fill half of their link", runs.len());
}

/// A receiver that acknowledges data before they arrive, behind an outage: more is acknowledged than the link sends.
#[test]
fn a_receiver_that_lies_has_no_bound() {
    let text = r#"
schema = 1
compat = "linux"
duration = "505369us"
sample = "386us"
warmup = "156664us"
seed = 3
[[flow]]
law = "copa:paper"
ecn = true
initial_ssthresh = "40 packets"
misbehaves = "optimistic"
receive_window = "500 packets"
rtt = "35148us"
[link]
rate = "79817441323bit/s"
queue = { kind = "codel", target = "2ms", ecn = true }
router = { kind = "jetmax" }
[[schedule]]
at = "144391us"
link = "forward"
down = true
[[schedule]]
at = "288782us"
link = "reverse"
delay = "4ms"
"#;
    let run = run(text, &traces()).expect("it can be run");
    assert!(run.flows[0].delivered_bytes > 0);
}
