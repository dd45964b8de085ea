//! The tables of a run: each column is a vector, here of the window of a flow and of the queue, every half second.

use lfn_sim::config::{Config, FlowConfig, LinkConfig};
use lfn_sim::Sim;
use lfn_tcp::EventKind;
use lfn_units::{Rate, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flow = FlowConfig::linux("cubic:linux".parse()?, Time::from_ms(50));
    let link = LinkConfig::drop_tail("", Rate(20_000_000), 40);
    let mut config = Config::dumbbell(link, vec![flow], Time::from_s(4));
    config.sample = Some(Time::from_ms(500));
    let mut sim = Sim::new(&config)?;
    sim.run_until(sim.duration());
    let outcome = sim.finish()?;

    let (flows, queues) = (&outcome.tables.flows, &outcome.tables.queues);
    println!("  time  cwnd  queue");
    for row in 0..flows.t_s.len() {
        // Two links are sampled, at the times of the flow: forward, then reverse.
        let queue = (0..queues.t_s.len()).find(|&n| queues.t_s[n] == flows.t_s[row] && queues.link[n] == 0);
        let packets = queue.map_or(0, |queue| queues.packets[queue]);
        println!("{:4.1} s {:5.1} {packets:6}", flows.t_s[row], flows.cwnd_seg[row]);
    }
    let events = &outcome.tables.events;
    let losses = (0..events.t_s.len()).filter(|&n| events.kind[n] == EventKind::FastRetransmit as u8);
    losses.for_each(|n| println!("a loss at {:.3} s: ssthresh {:.1}", events.t_s[n], events.ssthresh_seg[n]));
    Ok(())
}
