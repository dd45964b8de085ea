//! FQ-CoDel (RFC 8290): flows hashed to queues, each with its own CoDel, served by deficit round robin
//! with a head start for queues that were empty.

use std::cmp::Reverse;
use std::collections::VecDeque;

use lfn_keys::{keys, Wrong, DELAY_MAX, PACKET_MAX};
use lfn_units::{Bytes, Time};

use crate::codel::{check_selector, Codel, CodelConfig};
use crate::counters::Ledger;
use crate::fifo::{Fifo, Waiting};
use crate::limit::{DropReason, Limit};
use crate::packet::{Packet, PacketKind};
use crate::rule::{Arrival, Parameters, Rule, Site};

/// The most packets that go at once where not all fit (measured on Linux 6.12).
const MOST_DROPPED: u64 = 64;

keys! {
    /// Queues that flows are hashed to, each with its own CoDel, served in turn (RFC 8290). If not all fit, half
    /// of the longest is dropped.
    #[derive(Copy)]
    pub struct FqCodelConfig {
        /// Number of queues.
        queues: u32 = 1024, in 1..=65_536;
        /// Bytes that a queue may send in its turn. Default: the largest packet of the flows on the wire.
        quantum: Option<Bytes> = None, in Bytes(1)..=PACKET_MAX;
        /// Standing delay that is acceptable.
        target: Time = Time::from_ms(5), in Time::from_us(1)..=DELAY_MAX;
        /// The delay may be above the target for this time.
        interval: Time = Time::from_ms(100), in Time::from_us(1)..=DELAY_MAX;
        /// Mark packets of flows with `ecn` instead of dropping them.
        ecn: bool = true;
        /// A packet that waited longer is marked if it is ECN-capable, whatever `ecn` says. Default: none.
        ce_threshold: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
        /// With `ce_threshold`: only packets whose ECN field is this in the bits of `ce_threshold_mask`; 1 with a mask
        /// of 3 is ECT(1).
        ce_threshold_selector: u32 = 0, in 0..=3;
        /// The bits of the ECN field that `ce_threshold_selector` names.
        ce_threshold_mask: u32 = 0, in 0..=3;
    }
    set {
        /// The largest packet: CoDel drops none while no more waits in its queue.
        mtu_bytes: u32 = 1514;
    }
    settle FqCodelConfig::check;
}

impl Parameters for FqCodelConfig {
    type Rule = FqCodel;
    type Error = FqCodelError;
    /// The hash that sorts flows into the queues is drawn.
    const DRAWS: bool = true;

    fn fit(&mut self, packet_bytes: u32) {
        self.mtu_bytes = packet_bytes;
    }

    fn build(self, site: Site) -> Result<FqCodel, FqCodelError> {
        FqCodel::new(self, site.salt)
    }
}

impl FqCodelConfig {
    fn check(&mut self, _: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        check_selector(self.ce_threshold, self.ce_threshold_selector, self.ce_threshold_mask)
    }

    /// The default for packets of at most this size.
    pub fn new(largest_packet_bytes: u32) -> FqCodelConfig {
        FqCodelConfig { mtu_bytes: largest_packet_bytes, ..FqCodelConfig::default() }
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("FQ-CoDel needs {name} above 0")]
pub struct FqCodelError {
    /// The parameter that is 0.
    pub name: &'static str,
}

#[derive(Debug)]
struct FlowQueue {
    fifo: Fifo,
    codel: Codel,
    /// Bytes that it may still send in this turn; below 0 after a packet larger than the rest.
    credit: i64,
    /// It stands in one of the two lists.
    active: bool,
}

/// The state of one FQ-CoDel queue.
#[derive(Debug)]
pub struct FqCodel {
    queues: Vec<FlowQueue>,
    quantum: i64,
    salt: u64,
    /// Queues that became active and have not used their first turn; served first.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: u64,
    bytes: u64,
}

/// A bijection of 64 bits in which every input bit reaches every output bit (SplitMix64; Steele,
/// Lea, Flood 2014).
fn mix(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl FqCodel {
    /// Queues that have seen no packet. `salt` decides which flows share a queue; draw it.
    ///
    /// # Errors
    /// [`FqCodelError`] when there is no queue or no quantum.
    pub fn new(config: FqCodelConfig, salt: u64) -> Result<FqCodel, FqCodelError> {
        let quantum_bytes = config.quantum.map_or(u64::from(config.mtu_bytes), |quantum| quantum.0);
        for (name, value) in [("queues", config.queues.into()), ("quantum", quantum_bytes)] {
            if value == 0 {
                return Err(FqCodelError { name });
            }
        }
        let codel = CodelConfig {
            target: config.target,
            interval: config.interval,
            ecn: config.ecn,
            ce_threshold: config.ce_threshold,
            ce_threshold_selector: config.ce_threshold_selector,
            ce_threshold_mask: config.ce_threshold_mask,
            mtu_bytes: config.mtu_bytes,
        };
        let queue =
            |_| FlowQueue { fifo: Fifo::default(), codel: Codel::new(codel), credit: 0, active: false };
        Ok(FqCodel {
            queues: (0..config.queues).map(queue).collect(),
            quantum: quantum_bytes.min(u32::MAX.into()) as i64,
            salt,
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        })
    }

    /// The queue of a packet's flow. A flow's data and its ACKs are two flows: their addresses differ.
    fn index(&self, packet: &Packet) -> usize {
        let flow = u64::from(packet.flow) << 1 | u64::from(packet.kind == PacketKind::Ack);
        let hash = mix(mix(self.salt) ^ flow);
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as usize
    }

    /// Takes a packet in. If not all fit, half of the queue with most bytes is dropped, from its head; of several such
    /// queues the first by number loses (measured on Linux 6.12: shares of a short queue depend on the hash).
    #[inline(always)]
    fn push(&mut self, arrived: Waiting, limit: Limit, ledger: &mut Ledger) {
        let index = self.index(&arrived.packet);
        let queue = &mut self.queues[index];
        queue.fifo.push(arrived);
        self.packets += 1;
        self.bytes += u64::from(arrived.packet.bytes);
        if !queue.active {
            queue.active = true;
            queue.credit = self.quantum;
            self.new.push_back(index);
        }
        if self.packets > limit.packets || self.bytes > limit.bytes {
            self.make_room(limit, ledger);
        }
    }

    #[cold]
    fn make_room(&mut self, limit: Limit, ledger: &mut Ledger) {
        while self.packets > limit.packets || self.bytes > limit.bytes {
            let active = self.new.iter().chain(&self.old).copied();
            let fattest = active.max_by_key(|&index| (self.queues[index].fifo.bytes(), Reverse(index)));
            let Some(fattest) = fattest else { break };
            self.halve(fattest, ledger);
        }
    }

    /// A search for the queue with most bytes is long: so one drops many packets (as in Linux).
    #[cold]
    fn halve(&mut self, index: usize, ledger: &mut Ledger) {
        let queue = &mut self.queues[index];
        let half = queue.fifo.bytes() / 2;
        let (mut packets, mut bytes) = (0, 0);
        while packets < MOST_DROPPED && bytes < half.max(1) {
            let Some(head) = queue.fifo.pop() else { break };
            packets += 1;
            bytes += u64::from(head.packet.bytes);
            ledger.drop_full(head.packet);
        }
        queue.codel.on_overflow(packets);
        self.packets -= packets;
        self.bytes -= bytes;
    }

    /// The packet to send now.
    fn next(&mut self, now: Time, ledger: &mut Ledger) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index];
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = (queue.fifo.packets(), queue.fifo.bytes());
            // As in Linux: while more than a packet waits in all queues together, CoDel may drop the last of one.
            let taken = queue.codel.first(now, &mut queue.fifo, self.bytes - before.1, ledger);
            self.packets -= before.0 - queue.fifo.packets();
            self.bytes -= before.1 - queue.fifo.bytes();
            if let Some(head) = taken {
                queue.credit -= i64::from(head.packet.bytes);
                return taken;
            }
            list.pop_front();
            if is_new {
                // Else a flow that sends one packet at a time would starve the old ones.
                self.old.push_back(index);
            } else {
                queue.active = false;
            }
        }
    }
}

impl Rule for FqCodel {
    fn admit(
        &mut self,
        arrival: &Arrival,
        _: &mut Fifo,
        _: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) -> Result<bool, DropReason> {
        let idle = Limit { packets: 1, bytes: u64::MAX };
        let limit = if arrival.idle_since.is_some() { idle } else { arrival.limit };
        self.push(Waiting { packet: arrival.packet, since: arrival.now }, limit, ledger);
        Ok(false)
    }

    fn keeps(&self) -> Option<(u64, u64)> {
        Some((self.packets, self.bytes))
    }

    fn kept_bytes(&self) -> usize {
        self.queues.iter().map(|queue| size_of::<FlowQueue>() + queue.fifo.memory_bytes()).sum::<usize>()
            + (self.new.capacity() + self.old.capacity()) * size_of::<usize>()
    }

    fn take(&mut self, now: Time, _: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        self.next(now, ledger)
    }
}

#[cfg(test)]
mod tests {
    use lfn_units::Rate;

    use super::*;
    use crate::counters::{Counters, DataTotals};
    use lfn_header::Ecn;

    fn packet(flow: u32) -> Packet {
        Packet { word: 0, more: 0, flow, bytes: 1, kind: PacketKind::Data, ecn: Ecn::NotEct }
    }

    fn index(salt: u64, flow: u32) -> usize {
        let fair = FqCodel::new(FqCodelConfig::default(), salt).expect("valid");
        fair.index(&packet(flow))
    }

    #[test]
    fn flows_spread_evenly_over_the_queues() {
        let fair = FqCodel::new(FqCodelConfig { queues: 16, ..FqCodelConfig::default() }, 3).expect("valid");
        let mut counts = [0.0; 16];
        for flow in 0..16_000 {
            counts[fair.index(&packet(flow))] += 1.0;
        }
        let chi_square: f64 = counts.iter().map(|n: &f64| (n - 1000.0).powi(2) / 1000.0).sum();
        // 99.9 % quantile at 15 degrees of freedom.
        assert!(chi_square < 37.7, "{chi_square}");
    }

    #[test]
    fn the_salt_decides_who_shares_a_queue() {
        let partner = (1..).find(|&flow| index(1, flow) == index(1, 0)).expect("1024 queues");
        assert_ne!(index(2, partner), index(2, 0));
    }

    #[test]
    fn of_equally_long_queues_the_first_by_number_is_dropped_from() {
        let first = (0..3).min_by_key(|&flow| index(1, flow)).expect("three flows");
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut fair = FqCodel::new(FqCodelConfig::default(), 1).expect("valid");
            let limit = Limit { packets: 2, bytes: u64::MAX };
            let mut counters = Counters::new(Rate(1_000_000), limit, 1);
            let (mut data, mut dropped) = (DataTotals::default(), Vec::new());
            let ledger = &mut Ledger { counters: &mut counters, data: &mut data, dropped: &mut dropped };
            for flow in order {
                fair.push(Waiting { packet: packet(flow), since: Time(0) }, limit, ledger);
            }
            let flows: Vec<u32> = dropped.iter().map(|packet| packet.flow).collect();
            assert_eq!(flows, [first], "arrived as {order:?}");
        }
    }
}
