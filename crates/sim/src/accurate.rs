//! AccECN (RFC 9768) between the ends of a flow.

use lfn_keys::words;
use lfn_tcp::accecn::Received;

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

/// The receiver's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counting {
    pub received: Received,
    /// Its ACKs have the option.
    pub option: bool,
}

impl Counting {
    /// Before the first packet; `None` for a flow without AccECN.
    pub fn of(accecn: AccEcn) -> Option<Counting> {
        accecn.is_on().then(|| Counting { received: Received::default(), option: accecn == AccEcn::Option })
    }
}
