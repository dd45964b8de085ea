//! AccECN (RFC 9768): feedback of how many packets arrived with a mark, where RFC 3168 tells only that one did. Negotiation
//! in the handshake, the counter ACE of three bits on every later segment, and the option with bytes.
//!
//! No I/O and no clock: a connection's end gets flags and ECN fields, and gives those to send.

mod counters;
mod handshake;
mod option;

pub use counters::{Decoder, Heard, Received};
pub use handshake::{Client, Mode, Reset, Server, Verdict};
pub use option::{Fields, OptionError, KIND_0, KIND_1, LONGEST_BYTES};

use lfn_header::Ecn;

/// The flags AE, CWR and ECE of a TCP header as one number, ACE (RFC 9768 §3.1): AE is the highest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ace(u8);

impl Ace {
    /// No flag: no ECN.
    pub const NONE: Ace = Ace(0b000);
    /// ECE alone: a SYN-ACK that agrees to Classic ECN.
    pub const CLASSIC_AGREED: Ace = Ace(0b001);
    /// CWR and ECE: a SYN that asks for Classic ECN.
    pub const CLASSIC: Ace = Ace(0b011);
    /// All three: a SYN that asks for AccECN.
    pub const ACCURATE: Ace = Ace(0b111);

    /// The flags of these three bits; higher ones are ignored.
    pub fn from_bits(bits: u8) -> Ace {
        Ace(bits & 0b111)
    }

    /// The three bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// How a SYN-ACK, or the ACK that ends a handshake, tells the ECN field of the packet that it answers (RFC 9768,
    /// tables 2 and 3).
    pub fn of_field(field: Ecn) -> Ace {
        Ace(match field {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        })
    }

    /// The field that [`Ace::of_field`] tells; `None` for the codes that tell none.
    pub fn field(self) -> Option<Ecn> {
        Ecn::ALL.into_iter().find(|&field| Ace::of_field(field) == self)
    }
}

/// Whether a path may turn `sent` into `seen`: CE from either ECT, nothing else but ECT(0) and ECT(1) into each other, which
/// RFC 9768 §3.2.2.3 does not call invalid.
pub fn is_mangled(sent: Ecn, seen: Ecn) -> bool {
    match sent {
        Ecn::NotEct => seen != Ecn::NotEct,
        Ecn::Ect0 | Ecn::Ect1 => seen == Ecn::NotEct,
        Ecn::Ce => seen != Ecn::Ce,
    }
}

#[cfg(test)]
mod tests;
