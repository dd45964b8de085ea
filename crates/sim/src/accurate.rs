//! AccECN (RFC 9768) between the ends of a flow.

use lfn_keys::words;
use lfn_tcp::accecn::{Mode, Received};

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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    pub received: Received,
    /// Its ACKs have the option.
    pub option: bool,
}

impl Counting {
    /// Before the first packet.
    pub fn of(accecn: AccEcn) -> Counting {
        Counting { received: Received::default(), option: accecn == AccEcn::Option }
    }
}
