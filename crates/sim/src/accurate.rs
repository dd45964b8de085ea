//! AccECN (RFC 9768) between the ends of a flow.

use std::collections::VecDeque;

use lfn_keys::words;
use lfn_path::Ecn;
use lfn_tcp::accecn::{Mode, Received};
use lfn_units::Time;

/// Bytes of the option with two counters in an ACK, aligned.
const OPTION_BYTES: u32 = 8;

/// How the ends tell each other of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccEcn {
    /// By an echo (RFC 3168, RFC 8257).
    #[default]
    Off,
    /// By a counter in three bits of the TCP header.
    Counter,
    /// By that counter, and an option with payload in bytes by ECN field.
    Option,
}

words! { AccEcn { Off = "off", Counter = "counter", Option = "option", } }

impl AccEcn {
    /// Whether the ends ask each other for AccECN.
    pub fn is_on(self) -> bool {
        self != AccEcn::Off
    }

    /// Bytes that it adds to an ACK.
    pub fn ack_bytes(self) -> u32 {
        if self == AccEcn::Option {
            OPTION_BYTES
        } else {
            0
        }
    }
}

/// The most that a receiver's host does about ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverEcn {
    /// Nothing.
    Off,
    /// RFC 3168.
    Classic,
    /// AccECN, and RFC 3168 for those that ask for that.
    Accurate,
}

words! { ReceiverEcn { Off = "off", Classic = "classic", Accurate = "accecn", } }

impl ReceiverEcn {
    /// The same as one of the modes of a handshake.
    pub fn mode(self) -> Mode {
        match self {
            ReceiverEcn::Off => Mode::Not,
            ReceiverEcn::Classic => Mode::Classic,
            ReceiverEcn::Accurate => Mode::Accurate,
        }
    }
}

/// The receiver's end.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub received: Received,
    /// Arrivals of marked packets that were not over when the last one was taken, in order: a packet whose arrival is known is
    /// taken when it is sent.
    ahead: VecDeque<Time>,
    /// Its ACKs have the option.
    pub option: bool,
}

impl Counting {
    /// Before the first packet.
    pub fn of(accecn: AccEcn) -> Counting {
        Counting { received: Received::default(), ahead: VecDeque::new(), option: accecn == AccEcn::Option }
    }

    /// Takes a packet at `now` that arrives at `at` with this field. Returns whether an ACK must leave then.
    pub fn on_packet(&mut self, now: Time, at: Time, field: Ecn, payload_bytes: u32) -> bool {
        if field == Ecn::Ce && at > now {
            while self.ahead.front().is_some_and(|&at| at <= now) {
                self.ahead.pop_front();
            }
            self.ahead.push_back(at);
        }
        self.received.on_packet(field, payload_bytes)
    }

    /// Marked packets that have arrived by `now`.
    pub fn arrived(&self, now: Time) -> u64 {
        let later = self.ahead.iter().filter(|&&at| at > now).count();
        self.received.marks() - later as u64
    }
}
