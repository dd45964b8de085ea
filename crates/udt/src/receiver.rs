//! The receiving half: missing packets, NAKs and ACKs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use lfn_units::Time;

use crate::estimate::{ArrivalFilters, Rtt, SYN};
use crate::loss_list::tree_bytes;
use crate::packet::{AckReport, Speeds};
use crate::trains::TrainFilters;
use crate::{Config, LossList, Seq};

/// Packets between two light ACKs.
const LIGHT_ACK_PACKETS: u64 = 64;
/// Packets that an ACK has room for even if the buffer is full, as in libudt.
pub(crate) const LEAST_ROOM: u64 = 2;
/// ACKs whose confirmation is awaited.
const ACK_HISTORY: usize = 1024;

/// The fate of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is new: the application's buffer takes it.
    New,
    /// It is a duplicate.
    Duplicate,
    /// It lies beyond the buffer, or is longer than the handshake allows.
    Refused,
}

/// Counters of the receiving half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// New data packets.
    pub received: u64,
    /// Duplicate packets.
    pub duplicates: u64,
    /// Packets beyond the buffer.
    pub refused: u64,
    /// Packets found missing.
    pub lost: u64,
    /// Full ACKs sent.
    pub acks: u64,
    /// Light ACKs sent.
    pub light_acks: u64,
    /// NAKs sent.
    pub naks: u64,
}

/// An ACK to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckOut {
    pub number: u32,
    pub next: u64,
    pub report: Option<AckReport>,
}

/// Missing packets whose NAK is repeated until they arrive.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    end: u64,
    times: u64,
}

/// How speeds are measured.
#[derive(Debug)]
enum Filters {
    Packets(ArrivalFilters),
    Trains(TrainFilters),
}

impl Filters {
    #[inline]
    fn on_arrival(&mut self, now: Time, seq: u32) {
        match self {
            Filters::Packets(filters) => filters.on_arrival(now, seq),
            Filters::Trains(filters) => filters.on_arrival(now, seq),
        }
    }

    fn speeds(&self) -> Speeds {
        let (arrival_pps, capacity_pps) = match self {
            Filters::Packets(filters) => (filters.arrival_pps(), filters.capacity_pps()),
            Filters::Trains(filters) => (filters.arrival_pps(), filters.capacity_pps()),
        };
        Speeds { arrival_pps, capacity_pps }
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    capacity: u64,
    payload_bytes: usize,
    repeat_naks: bool,
    /// The application took everything before.
    read: u64,
    /// One past the largest packet that came.
    next: u64,
    loss: LossList,
    /// Missing packets not yet reported.
    to_report: LossList,
    repeats: BTreeMap<(Time, u64), Repeat>,
    filters: Filters,
    pub acks_sent_to: u64,
    confirmed: u64,
    ack_number: u32,
    history: VecDeque<(u32, u64, Time)>,
    since_ack: u64,
    light_acks: u64,
    /// The timer's next tick, on a grid.
    tick: Time,
    /// Of the last ACK with speeds.
    last_speeds: Time,
    short_packet: bool,
    /// Payload of the last packet.
    last_bytes: usize,
    pub stats: ReceiverStats,
}

impl Receiver {
    pub fn new(now: Time, config: &Config, payload_bytes: usize) -> Receiver {
        let filters = if config.trains {
            Filters::Trains(TrainFilters::new())
        } else {
            Filters::Packets(ArrivalFilters::new(config.compat))
        };
        Receiver {
            capacity: config.window_packets.into(),
            payload_bytes,
            repeat_naks: config.repeat_naks,
            read: 0,
            next: 0,
            loss: LossList::default(),
            to_report: LossList::default(),
            repeats: BTreeMap::new(),
            filters,
            acks_sent_to: 0,
            confirmed: 0,
            ack_number: 0,
            history: VecDeque::new(),
            since_ack: 0,
            light_acks: 0,
            tick: now + SYN,
            last_speeds: now,
            short_packet: false,
            last_bytes: 0,
            stats: ReceiverStats::default(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.loss.memory_bytes()
            + self.to_report.memory_bytes()
            + tree_bytes(self.repeats.len(), size_of::<((Time, u64), Repeat)>())
            + self.history.capacity() * size_of::<(u32, u64, Time)>()
    }

    pub fn set_payload_bytes(&mut self, bytes: usize) {
        self.payload_bytes = bytes;
    }

    /// Everything before this has come.
    pub fn in_order(&self) -> u64 {
        self.loss.first().unwrap_or(self.next)
    }

    /// The largest packet that came so far, to place a wire number beside.
    pub fn near(&self) -> u64 {
        self.next
    }

    pub fn on_read(&mut self, until: u64) {
        self.read = self.read.max(until.min(self.in_order()));
    }

    /// A data packet with `bytes` of payload.
    #[inline]
    pub fn on_data(&mut self, now: Time, index: Option<u64>, seq: Seq, bytes: usize, rtt: &Rtt) -> Arrival {
        self.filters.on_arrival(now, seq.get());
        if now >= self.tick && self.in_order() == self.confirmed {
            // The timer was not checked meanwhile.
            self.tick = self.tick + Time(((now - self.tick).0 / SYN.0 + 1) * SYN.0);
        }
        self.since_ack += 1;
        let fits = |index: &u64| *index < self.read + self.capacity && bytes <= self.payload_bytes;
        let Some(index) = index.filter(fits) else {
            self.stats.refused += 1;
            return Arrival::Refused;
        };
        // An ACK at once for the end of a message; packets of a path with a smaller MTU are all short.
        self.short_packet |= bytes != self.payload_bytes && bytes != self.last_bytes;
        self.last_bytes = bytes;
        if index >= self.next {
            if index > self.next {
                self.on_gap(now, self.next..index, rtt);
            }
            self.next = index + 1;
        } else if self.loss.remove(index..index + 1) == 1 {
            self.to_report.remove(index..index + 1);
        } else {
            self.stats.duplicates += 1;
            return Arrival::Duplicate;
        }
        self.stats.received += 1;
        Arrival::New
    }

    #[cold]
    fn on_gap(&mut self, now: Time, gap: Range<u64>, rtt: &Rtt) {
        self.stats.lost += gap.end - gap.start;
        self.loss.insert(gap.clone());
        self.to_report.insert(gap.clone());
        self.repeat(now, gap, 2, rtt);
    }

    /// Names `gap` again after `times` round trips (draft-gg-udt-03), and 10 ms for a sender that is held
    /// back by its pace; 4.11 never does.
    fn repeat(&mut self, now: Time, gap: Range<u64>, times: u64, rtt: &Rtt) {
        if self.repeat_naks && (self.repeats.len() as u64) < self.capacity {
            let at = now + Time(times * rtt.smoothed.0) + SYN;
            self.repeats.insert((at, gap.start), Repeat { end: gap.end, times });
        }
    }

    /// The peer will not send `packets`. Returns those that were missing.
    pub fn on_drop(&mut self, packets: Range<u64>) -> Vec<Range<u64>> {
        let end = packets.end.min(self.read + self.capacity);
        let mut gone: Vec<_> = self.loss.within(packets.start..end.max(packets.start)).collect();
        for range in &gone {
            self.loss.remove(range.clone());
            self.to_report.remove(range.clone());
        }
        // The next packets belong to it, so none of them will be reported missing.
        if packets.start <= self.next && end > self.next {
            gone.push(self.next..end);
            self.next = end;
        }
        gone
    }

    /// An ACK of an ACK; returns the round trip that it measures.
    pub fn on_ack2(&mut self, now: Time, number: u32) -> Option<Time> {
        let at = self.history.iter().position(|&(sent, ..)| sent == number)?;
        let (_, index, sent_at) = self.history.drain(..=at).next_back()?;
        self.confirmed = self.confirmed.max(index);
        Some(now - sent_at)
    }

    /// When [`Receiver::take_ack`] or [`Receiver::next_nak`] will have something.
    pub fn deadline(&self, rtt: &Rtt) -> Time {
        let next = self.in_order();
        let ack = if next > self.acks_sent_to {
            self.tick
        } else if next > self.confirmed {
            self.tick.max(self.last_speeds + rtt.upper())
        } else {
            Time::NEVER
        };
        self.repeats.first_key_value().map_or(ack, |(&(at, _), _)| ack.min(at))
    }

    /// The ACK that is due, if any. `interval`: a full one after this many packets, if not 0.
    pub fn take_ack(&mut self, now: Time, rtt: &Rtt, interval: u32) -> Option<AckOut> {
        let counted = interval > 0 && self.since_ack >= interval.into();
        if now >= self.tick || self.short_packet || counted {
            if now >= self.tick {
                self.tick = now + SYN;
            }
            self.short_packet = false;
            self.since_ack = 0;
            self.light_acks = 0;
            return self.full_ack(now, rtt);
        }
        if self.since_ack < LIGHT_ACK_PACKETS * (self.light_acks + 1) {
            return None;
        }
        // One for all that came at once.
        self.light_acks = self.since_ack / LIGHT_ACK_PACKETS;
        let next = self.in_order();
        if next == self.confirmed {
            return None;
        }
        self.stats.light_acks += 1;
        Some(AckOut { number: 0, next, report: None })
    }

    fn full_ack(&mut self, now: Time, rtt: &Rtt) -> Option<AckOut> {
        let next = self.in_order();
        let repeated = next == self.acks_sent_to;
        if next == self.confirmed || (repeated && now < self.last_speeds + rtt.upper()) {
            return None;
        }
        self.acks_sent_to = next;
        self.ack_number = self.ack_number % Seq::MAX.get() + 1;
        let speeds = (now >= self.last_speeds + SYN).then(|| self.filters.speeds());
        if speeds.is_some() {
            self.last_speeds = now;
        }
        if self.history.len() == ACK_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.ack_number, next, now));
        self.stats.acks += 1;
        let room = (self.read + self.capacity - next).max(LEAST_ROOM);
        let report = AckReport {
            rtt_us: us(rtt.smoothed),
            rtt_var_us: us(rtt.deviation),
            buffer_packets: u32::try_from(room).unwrap_or(u32::MAX),
            speeds,
        };
        Some(AckOut { number: self.ack_number, next, report: Some(report) })
    }

    /// Moves what is due again to what is to be reported.
    pub fn on_tick(&mut self, now: Time, rtt: &Rtt) {
        while let Some(entry) = self.repeats.first_entry() {
            let &(at, start) = entry.key();
            if at > now {
                break;
            }
            let Repeat { end, times } = entry.remove();
            let missing: Vec<_> = self.loss.within(start..end).collect();
            for range in missing {
                self.to_report.insert(range.clone());
                self.repeat(now, range, times + 1, rtt);
            }
        }
    }

    /// Takes the next range to report in a NAK.
    pub fn next_nak(&mut self) -> Option<Range<u64>> {
        let range = self.to_report.ranges().next()?;
        self.to_report.remove(range.clone());
        Some(range)
    }
}

fn us(time: Time) -> u32 {
    u32::try_from(time.0 / 1_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_come_at_once_have_one_light_ack() {
        let (config, rtt, now) = (Config::default(), Rtt::default(), Time::from_ms(1));
        let mut receiver = Receiver::new(Time::ZERO, &config, 1456);
        for (packets, acked) in [(300, Some(300)), (19, None), (1, Some(320)), (63, None), (1, Some(384))] {
            for _ in 0..packets {
                let index = receiver.next;
                let seq = Seq::new(index as u32);
                assert_eq!(receiver.on_data(now, Some(index), seq, 1456, &rtt), Arrival::New);
            }
            let next = receiver.take_ack(now, &rtt, 0).map(|ack| ack.next);
            assert_eq!(next, acked);
            assert!(receiver.take_ack(now, &rtt, 0).is_none());
        }
    }
}
