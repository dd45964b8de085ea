//! A sweep on threads: three laws, three buffers, three seeds. Runs share nothing, and a run's result does not depend
//! on its thread, so the table is the same on any machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lfn_scenario::Scenario;
use lfn_sim::Sim;

const LAWS: [&str; 3] = ["reno", "cubic", "bbr"];
const BUFFERS: [&str; 3] = ["0.1bdp", "0.5bdp", "2bdp"];
const SEEDS: u64 = 3;

/// Share of the link that two flows use, in percent.
fn utilization(law: &str, buffer: &str, seed: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let text = format!(
        r#"
schema = 1
duration = "20s"
warmup = "5s"
sample = "off"
[link]
rate = "50Mbit/s"
queue = {{ size = "{buffer}" }}
[[flow]]
law = "{law}"
rtt = "40ms"
count = 2
start = "uniform(0s, 1s)"
"#
    );
    let scenario = Scenario::parse(&text, "sweep", Some(1 << 30))?;
    let mut sim = Sim::new(&scenario.config(seed))?;
    sim.run_until(sim.duration());
    Ok(100.0 * sim.finish()?.summary.links[0].utilization)
}

fn main() {
    let points: Vec<_> =
        LAWS.iter().flat_map(|law| BUFFERS.iter().map(move |buffer| (*law, *buffer))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some(&(law, buffer)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let runs = (1..=SEEDS).map(|seed| utilization(law, buffer, seed).expect("a valid scenario"));
            done.push((law, buffer, runs.sum::<f64>() / SEEDS as f64));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut rows: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect()
    });
    rows.sort_by_key(|&(law, buffer, _)| points.iter().position(|&point| point == (law, buffer)));
    rows.iter().for_each(|(law, buffer, percent)| println!("{law:6} {buffer:7} {percent:5.1} %"));
}
