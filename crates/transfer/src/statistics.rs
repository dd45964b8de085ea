//! A transfer in numbers; names are those of the simulator's summary.

use lfn_units::Time;
use serde::Serialize;

use crate::{ControlSpec, Stream};

/// Progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Progress {
    /// Bytes of files transferred, those of an earlier run included.
    pub done_bytes: u64,
    /// All bytes of all files.
    pub total_bytes: u64,
    /// Time since the start of the transfer.
    pub elapsed_s: f64,
    /// Smoothed RTT.
    pub rtt_s: f64,
    /// Fraction of packets retransmitted (sender) or detected as lost (receiver).
    pub loss: f64,
}

/// A finished transfer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// `udt`.
    pub transport: &'static str,
    /// The other end.
    pub peer: String,
    /// Congestion control of the sender; null at a receiver, which does not know it.
    pub law: Option<String>,
    /// Files transferred, those that were already there included.
    pub files: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Bytes of those that were already there.
    pub resumed_bytes: u64,
    /// Payload rate of this transfer, in bit/s.
    pub goodput_bps: f64,
    /// Bytes of files transferred now; holes count.
    pub delivered_bytes: u64,
    /// Data packets sent, or taken.
    pub sent: u64,
    /// Data packets retransmitted (sender), or received again (receiver).
    pub retransmits: u64,
    /// Timeouts with data in flight.
    pub timeouts: u64,
    /// NAKs received (sender) or sent (receiver).
    pub loss_events: u64,
    /// Smoothed RTT at the end.
    pub srtt_s: f64,
    /// Duration.
    pub completion_s: f64,
}

/// Counts of a transfer in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub files: u64,
    pub total_bytes: u64,
    pub resumed_bytes: u64,
    pub done_bytes: u64,
}

/// Reports progress a few times a second.
pub(crate) struct Teller<'a> {
    tell: &'a mut dyn FnMut(&Progress),
    last: Time,
}

impl<'a> Teller<'a> {
    const EVERY: Time = Time::from_ms(200);

    pub fn new(tell: &'a mut dyn FnMut(&Progress)) -> Teller<'a> {
        Teller { tell, last: Time::ZERO }
    }

    /// Reports the start of the transfer.
    pub fn begin(&mut self, stream: &Stream, tally: &Tally) {
        self.report(stream.age(), stream, tally);
    }

    pub fn tell(&mut self, stream: &Stream, tally: &Tally) {
        let now = stream.age();
        if now >= self.last + Self::EVERY {
            self.report(now, stream, tally);
        }
    }

    fn report(&mut self, now: Time, stream: &Stream, tally: &Tally) {
        self.last = now;
        let (sent, received) = (stream.connection().sender_stats(), stream.connection().receiver_stats());
        let packets = (sent.sent + received.received).max(1);
        (self.tell)(&Progress {
            done_bytes: tally.done_bytes,
            total_bytes: tally.total_bytes,
            elapsed_s: now.as_s(),
            rtt_s: stream.connection().rtt().smoothed.as_s(),
            loss: (sent.retransmits + received.lost) as f64 / packets as f64,
        });
    }
}

impl Tally {
    pub fn finish(&self, stream: &Stream, law: Option<ControlSpec>) -> Statistics {
        let (sent, received) = (stream.connection().sender_stats(), stream.connection().receiver_stats());
        let completion_s = stream.age().as_s();
        let delivered_bytes = self.done_bytes.saturating_sub(self.resumed_bytes);
        Statistics {
            transport: "udt",
            peer: stream.peer().to_owned(),
            law: law.map(|law| law.to_string()),
            files: self.files,
            total_bytes: self.total_bytes,
            resumed_bytes: self.resumed_bytes,
            goodput_bps: delivered_bytes as f64 * 8.0 / completion_s,
            delivered_bytes,
            sent: sent.sent.max(received.received),
            retransmits: sent.retransmits.max(received.duplicates),
            timeouts: sent.timeouts,
            loss_events: sent.naks.max(received.naks),
            srtt_s: stream.connection().rtt().smoothed.as_s(),
            completion_s,
        }
    }
}
