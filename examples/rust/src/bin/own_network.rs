//! TCP over a network of your own: the network is this file, the ends are lfn-tcp's. 3000 segments cross a link of
//! 10 Mbit/s with a delay of 20 ms each way. It loses every 100th packet that it sees in the first two seconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use lfn_law::{LawSpec, SlowStartKind};
use lfn_tcp::{Acknowledgement, Receiver, ReceiverConfig, Segment, Sender, SenderConfig};
use lfn_units::Time;

const DELAY: Time = Time::from_ms(20);
/// Of 1514 bytes at 10 Mbit/s.
const SERIALISATION: Time = Time::from_ns(1_211_200);
const SEGMENTS: u64 = 3000;

enum Packet {
    Data(Segment),
    Ack(Acknowledgement),
}

fn main() {
    let law: LawSpec = "cubic:linux".parse().expect("a law of the registry");
    let config = SenderConfig { handshake: false, ..SenderConfig::linux(1448, SlowStartKind::HyStart) };
    let mut sender = Sender::new(&Arc::new(config), &law, 1, Time::ZERO, SEGMENTS, 1514);
    let mut receiver = Receiver::new(&ReceiverConfig::linux(Time(2 * DELAY.0), 1448));
    // Packets under way by arrival time, and by number where times are equal.
    let mut under_way: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let (mut now, mut link_free, mut sent) = (Time::ZERO, Time::ZERO, 0);
    while sender.una() < SEGMENTS {
        while let Some(segment) = sender.next_segment(now) {
            sent += 1;
            link_free = link_free.max(now) + SERIALISATION;
            if sent % 100 != 0 || now > Time::from_s(2) {
                under_way.insert((link_free + DELAY, sent), Packet::Data(segment));
            }
        }
        // The next thing that happens: an arrival, or a timer of one of the ends.
        let arrival = under_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        now = arrival.min(sender.deadline()).min(receiver.deadline());
        let mut acks = Vec::new();
        if arrival == now {
            match under_way.pop_first().expect("it arrives now").1 {
                Packet::Data(segment) => {
                    receiver.on_segment(now, segment.received(false), &mut |ack| acks.push(*ack));
                }
                Packet::Ack(ack) => sender.on_ack(now, &ack),
            }
        }
        receiver.on_deadline(now, &mut |ack| acks.push(*ack));
        for ack in acks {
            sent += 1;
            under_way.insert((ack.at + DELAY, sent), Packet::Ack(ack));
        }
        if sender.deadline() <= now {
            sender.on_timer(now);
        }
    }
    let stats = sender.stats(now);
    println!("{SEGMENTS} segments in {:.2} s, {} sent again", now.in_s(), stats.retransmits);
}
