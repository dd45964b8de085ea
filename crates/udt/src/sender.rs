//! The sending half: packets to send, lost packets, acknowledgements.

use std::collections::VecDeque;
use std::ops::Range;

use lfn_units::Time;

use crate::packet::{AckReport, Boundary, MAX_MESSAGE};
use crate::LossList;

/// A run of packets with one message number.
#[derive(Clone, Debug)]
struct Message {
    packets: Range<u64>,
    number: u32,
    in_order: bool,
    expires: Time,
    dropped: bool,
}

/// A data packet to send now, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number within the connection, from 0.
    pub index: u64,
    /// It is a retransmission.
    pub retransmission: bool,
    /// Its place in its message.
    pub boundary: Boundary,
    /// Its message waits for those before it.
    pub in_order: bool,
    /// Number of its message.
    pub message: u32,
}

/// Packets of an expired message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub message: u32,
    pub packets: Range<u64>,
}

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// NAKs received.
    pub naks: u64,
    /// Packets that NAKs newly named.
    pub lost: u64,
    /// Timeouts with data in flight.
    pub timeouts: u64,
    /// Packets of messages that expired.
    pub expired: u64,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    /// End of the application's data.
    end: u64,
    next: u64,
    /// By any ACK.
    acked: u64,
    /// By full ACKs: the buffer may forget what lies before.
    released: u64,
    flow_window: u64,
    loss: LossList,
    messages: VecDeque<Message>,
    message_number: u32,
    /// Speed of arrival and capacity as the peer measured them, smoothed, packets a second.
    pub arrival_pps: u32,
    pub capacity_pps: u32,
    pub stats: SenderStats,
}

/// The effect of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acked {
    /// It names a packet that was never sent.
    Beyond,
    /// Nothing that matters to the control.
    Nothing,
    /// It moved on; by a light ACK, or releasing data.
    Advanced,
}

impl Sender {
    pub fn new(flow_window: u32) -> Sender {
        Sender {
            end: 0,
            next: 0,
            acked: 0,
            released: 0,
            flow_window: flow_window.into(),
            loss: LossList::default(),
            messages: VecDeque::new(),
            message_number: 0,
            arrival_pps: 16,
            capacity_pps: 1,
            stats: SenderStats::default(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.loss.memory_bytes() + self.messages.capacity() * size_of::<Message>()
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }

    pub fn repairing(&self) -> u64 {
        self.loss.len()
    }

    pub fn released(&self) -> u64 {
        self.released
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    pub fn flow_window(&self) -> u64 {
        self.flow_window
    }

    pub fn set_flow_window(&mut self, packets: u32) {
        self.flow_window = packets.into();
    }

    pub fn offer(&mut self, packets: u64, in_order: bool, expires: Time) {
        self.message_number = if self.message_number == MAX_MESSAGE { 1 } else { self.message_number + 1 };
        let end = self.end + packets;
        self.messages.push_back(Message {
            packets: self.end..end,
            number: self.message_number,
            in_order,
            expires,
            dropped: false,
        });
        self.end = end;
    }

    /// Withdraws data that has not been sent yet.
    pub fn withdraw(&mut self) {
        self.end = self.next;
        while self.messages.back().is_some_and(|message| message.packets.start >= self.next) {
            self.messages.pop_back();
        }
        if let Some(last) = self.messages.back_mut() {
            last.packets.end = last.packets.end.min(self.next);
        }
    }

    fn message_at(&self, index: u64) -> usize {
        self.messages.partition_point(|message| message.packets.end <= index)
    }

    /// The next packet to send under `window`.
    fn candidate(&self, window: u64) -> Option<u64> {
        self.loss.first().or_else(|| {
            let in_flight = self.next - self.acked;
            (self.next < self.end && in_flight < window.min(self.flow_window)).then_some(self.next)
        })
    }

    pub fn may_send(&self, window: u64) -> bool {
        self.candidate(window).is_some()
    }

    /// The message that would leave next and whose time is over: none of it leaves any more.
    pub fn take_dropped(&mut self, now: Time, window: u64) -> Option<Dropped> {
        let index = self.candidate(window)?;
        let at = self.message_at(index);
        let message = &mut self.messages[at];
        if message.expires > now {
            return None;
        }
        let Range { start, end } = message.packets;
        if !std::mem::replace(&mut message.dropped, true) {
            self.stats.expired += end - start;
        }
        let dropped = Dropped { message: message.number, packets: start..end };
        self.loss.remove(start..end);
        self.next = self.next.max(end);
        Some(dropped)
    }

    /// The next packet to leave, which then counts as sent.
    pub fn take(&mut self, window: u64) -> Option<Outgoing> {
        let index = self.candidate(window)?;
        let message = &self.messages[self.message_at(index)];
        let outgoing = Outgoing {
            index,
            retransmission: index < self.next,
            boundary: Boundary::new(index == message.packets.start, index + 1 == message.packets.end),
            in_order: message.in_order,
            message: message.number,
        };
        self.stats.sent += 1;
        if outgoing.retransmission {
            self.loss.pop_first();
            self.stats.retransmits += 1;
        } else {
            self.next += 1;
        }
        Some(outgoing)
    }

    /// An ACK covers every packet before `index`.
    pub fn on_ack(&mut self, index: u64, report: Option<&AckReport>) -> Acked {
        if index > self.next {
            return Acked::Beyond;
        }
        let Some(report) = report else {
            if index <= self.acked {
                return Acked::Nothing;
            }
            self.flow_window = self.flow_window.saturating_sub(index - self.acked);
            self.acked = index;
            return Acked::Advanced;
        };
        if index >= self.acked {
            self.flow_window = report.buffer_packets.into();
            self.acked = index;
        }
        if index <= self.released {
            return Acked::Nothing;
        }
        self.loss.remove(self.released..index);
        self.released = index;
        while self.messages.front().is_some_and(|message| message.packets.end <= index) {
            self.messages.pop_front();
        }
        if let Some(speeds) = report.speeds {
            let smooth = |old: u32, new: u32| ((7 * u64::from(old) + u64::from(new)) / 8) as u32;
            if speeds.arrival_pps > 0 {
                self.arrival_pps = smooth(self.arrival_pps, speeds.arrival_pps);
            }
            if speeds.capacity_pps > 0 {
                self.capacity_pps = smooth(self.capacity_pps, speeds.capacity_pps);
            }
        }
        Acked::Advanced
    }

    /// A NAK names `packets`, all of which were sent.
    pub fn on_nak(&mut self, packets: Range<u64>) {
        self.stats.lost += self.loss.insert(packets.start.max(self.acked)..packets.end);
    }

    /// Timeout. Returns whether data are in flight; then all of them count as lost.
    pub fn on_timeout(&mut self) -> bool {
        if self.next == self.acked {
            return false;
        }
        self.stats.timeouts += 1;
        if self.loss.is_empty() {
            self.loss.insert(self.acked..self.next);
        }
        true
    }
}
