//! A program with the simulator in it: how large must a buffer be for CUBIC to fill this path?

use std::error::Error;

use lfn_scenario::Scenario;
use lfn_sim::{Sim, Summary};

/// A scenario as `lfn run` reads it; every other key has its default.
fn scenario(buffer: &str) -> String {
    format!(
        "schema = 1
duration = \"60s\"
warmup = \"20s\"
[link]
rate = \"100Mbit/s\"
queue = {{ size = {buffer:?} }}
[[flow]]
law = \"cubic\"
rtt = \"100ms\""
    )
}

/// A run with this seed. The same scenario and seed give the same hash, also under `lfn run`.
fn simulate(text: &str, seed: u64) -> Result<Summary, Box<dyn Error>> {
    let scenario = Scenario::parse(text, "embedded", Some(1 << 30))?;
    let mut sim = Sim::new(&scenario.config(seed))?;
    sim.run_until(sim.duration()); // or in steps, to show progress
    Ok(sim.finish()?.summary)
}

fn main() -> Result<(), Box<dyn Error>> {
    for buffer in ["0.05bdp", "0.1bdp", "0.2bdp", "0.5bdp", "1bdp"] {
        let summary = simulate(&scenario(buffer), 1)?;
        let goodput = summary.flows[0].goodput_bps.unwrap_or_default() / 1e6;
        println!("{buffer:>7}  {goodput:5.1} Mbit/s  {}", summary.hash);
    }
    Ok(())
}
