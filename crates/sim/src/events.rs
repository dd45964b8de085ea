//! Pending events and their total order.
//!
//! The contract: events happen in order of (time, rank), where the rank is a fixed property of what
//! happens (its kind, then the flow or link), not of when it was scheduled. So the order does not
//! depend on the mode of a link or on the structure that holds the events. A FIFO line of packets or
//! ACKs has one entry here however many fly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_units::Time;

/// What happens; the order of variants is the order of events at one instant, and so part of every
/// result hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Event mode: a link's server is free.
    Depart = 0,
    /// Statistics begin.
    Warmup,
    /// A flow begins: with a handshake, or at once with data.
    Begin,
    /// A handshake is over.
    Established,
    /// A flow stops to send.
    Stop,
    /// An ACK reaches the link of the reverse direction.
    AckAtLink,
    /// An ACK reaches the sender.
    AckAtSender,
    /// A receiver's delayed or compressed ACK.
    ReceiverTimer,
    /// A sender's timer.
    SenderTimer,
    /// An interactive session writes.
    Write,
    /// A background flow arrives.
    Arrival,
    /// One second is over: bins of the coefficient of variation.
    Second,
    /// Tables are sampled.
    Sample,
}

const KINDS: [Kind; 13] = [
    Kind::Depart,
    Kind::Warmup,
    Kind::Begin,
    Kind::Established,
    Kind::Stop,
    Kind::AckAtLink,
    Kind::AckAtSender,
    Kind::ReceiverTimer,
    Kind::SenderTimer,
    Kind::Write,
    Kind::Arrival,
    Kind::Second,
    Kind::Sample,
];

/// Events by (time, kind, index). One u128 compares in two instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<u128>>,
}

fn key(at: Time, kind: Kind, index: usize) -> u128 {
    (u128::from(at.0) << 64) | ((kind as u128) << 48) | index as u128
}

impl Events {
    #[inline]
    pub fn push(&mut self, at: Time, kind: Kind, index: usize) {
        self.heap.push(Reverse(key(at, kind, index)));
    }

    /// The next event.
    #[inline]
    pub fn peek(&self) -> Option<(Time, Kind, usize)> {
        let key = self.heap.peek()?.0;
        let kind = KINDS[(key >> 48) as usize & 0xffff];
        Some((Time((key >> 64) as u64), kind, key as usize & 0xffff_ffff_ffff))
    }

    pub fn pop(&mut self) {
        self.heap.pop();
    }

    /// The next event comes again at `at`: one sift instead of a pop and a push.
    #[inline]
    pub fn reschedule_next(&mut self, at: Time) {
        if let Some(mut top) = self.heap.peek_mut() {
            top.0 = (u128::from(at.0) << 64) | (top.0 & u128::from(u64::MAX));
        }
    }
}
