//! A path with a delivery trace, as of a mobile link: 300 ms at about 24 Mbit/s, then 200 ms at 2 Mbit/s. The trace is
//! in memory; a scenario finds it by a name that is no file.

use std::io;
use std::path::Path;

use lfn_path::DeliveryTrace;
use lfn_scenario::{Outside, Scenario};
use lfn_sim::Sim;

/// Each line is the time in ms at which a packet may leave; after the last it begins again.
fn trace() -> String {
    let fast = (0..300).flat_map(|ms| [ms, ms]);
    let slow = (300..=500).step_by(6);
    fast.chain(slow).map(|ms| format!("{ms}\n")).collect()
}

struct InMemory;

impl Outside for InMemory {
    fn read(&self, file: &Path, _most_bytes: u64) -> io::Result<Vec<u8>> {
        if file.ends_with("mobile") {
            return Ok(trace().into_bytes());
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mean: DeliveryTrace = trace().parse()?;
    println!("trace          {:5.2} Mbit/s in the mean", mean.mean_rate().0 as f64 / 1e6);
    for (law, queue) in [("cubic", "drop-tail"), ("cubic", "codel"), ("bbr", "drop-tail")] {
        let text = format!(
            r#"
schema = 1
duration = "30s"
warmup = "10s"
[link]
trace = "mobile"
queue = {{ kind = "{queue}", size = "300packets" }}
[[flow]]
law = "{law}"
rtt = "40ms"
"#
        );
        let scenario = Scenario::parse_with(&text, "mobile", Some(1 << 30), &InMemory)?;
        let mut sim = Sim::new(&scenario.config(1))?;
        sim.run_until(sim.duration());
        let summary = sim.finish()?.summary;
        let goodput = summary.flows[0].goodput_bps.unwrap_or_default() / 1e6;
        let wait = summary.links[0].mean_queue_s * 1e3;
        println!("{law:5} {queue:9} {goodput:5.2} Mbit/s, mean wait {wait:5.1} ms");
    }
    Ok(())
}
