//! One queue alone: packets of 1500 bytes come to a link of 12 Mbit/s faster than it sends them, and CoDel keeps the
//! queue short. Nothing else is simulated: this program is the clock, the source and the receiver.

use lfn_path::{AqmConfig, AqmError, CodelConfig, DropTail, Ecn, Limit, Packet, PacketKind, QueuedLink};
use lfn_units::{Rate, Time};

/// A packet leaves in 1 ms.
const RATE: Rate = Rate(12_000_000);
/// Packets arrive so often: 5 % too many.
const INTERVAL: Time = Time::from_us(950);

fn main() -> Result<(), AqmError> {
    let queues = [AqmConfig::DropTail(DropTail {}), AqmConfig::Codel(CodelConfig::default())]
        .map(|queue| (queue, 1000));
    println!("queue       dropped  mean wait  99 % wait less than");
    for (config, limit) in queues {
        let queue = config.build(RATE, Time::ZERO, 0)?;
        let mut link = QueuedLink::new(RATE, queue, Limit::packets(limit), 1500);
        let mut dropped = Vec::new();
        for number in 0..20_000 {
            let now = Time(number * INTERVAL.0);
            // First the packets whose last bit has left by now.
            while link.free_at() <= now {
                link.depart(link.free_at(), &mut dropped);
            }
            let packet = Packet {
                word: number,
                more: 0,
                flow: 0,
                bytes: 1500,
                kind: PacketKind::Data,
                ecn: Ecn::NotEct,
            };
            link.enqueue(now, packet, || unreachable!("neither queue draws"), &mut dropped);
        }
        let name = if matches!(config, AqmConfig::Codel(_)) { "CoDel" } else { "drop-tail" };
        let wait = |q| link.counters().wait_quantile(q).in_s() * 1e3;
        let mean = link.counters().mean_wait().in_s() * 1e3;
        println!("{name:10} {:8} {mean:7.1} ms {:9.1} ms", dropped.len(), wait(0.99));
    }
    Ok(())
}
