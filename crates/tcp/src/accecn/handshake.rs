//! Negotiation (RFC 9768 §3.1, §3.2.2.1 to §3.2.2.3).

use super::{is_mangled, Ace};
use lfn_header::Ecn;

/// The feedback that both ends agreed on; of an end, the most that it can do. Once entered it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// No ECN.
    Not,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

/// The rights and duties of an end in its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its mode.
    pub mode: Mode,
    /// It may send ECN-capable packets.
    pub sends_ect: bool,
    /// It has to answer feedback of marks.
    pub responds: bool,
    /// The path changed the ECN field of its packet to one that cannot come from it.
    pub mangled: bool,
    /// Its packet of the handshake arrived with CE: congestion, to be answered.
    pub congested: bool,
}

impl Verdict {
    fn of(mode: Mode) -> Verdict {
        let capable = mode != Mode::Not;
        Verdict { mode, sends_ect: capable, responds: capable, mangled: false, congested: false }
    }
}

/// A handshake that mixes requests for Classic ECN and AccECN must be reset (RFC 9768 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset;

/// The end that sends the SYN.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The request of its SYNs: [`Ace::NONE`], [`Ace::CLASSIC`] or [`Ace::ACCURATE`].
    asks: Ace,
    /// The ECN field of its SYNs.
    sent: Ecn,
    syns: u32,
    mode: Option<Mode>,
}

impl Client {
    /// Before the first SYN, which leaves with the ECN field `sent`.
    pub fn new(asks: Mode, sent: Ecn) -> Client {
        let asks = match asks {
            Mode::Not => Ace::NONE,
            Mode::Classic => Ace::CLASSIC,
            Mode::Accurate => Ace::ACCURATE,
        };
        Client { asks, sent, syns: 0, mode: None }
    }

    /// Flags of the next SYN. From the third on it asks for nothing, since the path may drop what asks (§3.1.4); one that asks
    /// for Classic ECN does so from the second on (RFC 3168 §6.1.1.1).
    pub fn syn(&mut self) -> Ace {
        self.syns += 1;
        let patient = if self.asks == Ace::ACCURATE { 2 } else { 1 };
        if self.syns > patient {
            Ace::NONE
        } else {
            self.asks
        }
    }

    /// A SYN-ACK with these flags. The first decides on the mode (§3.1.2); later ones only bring feedback. One that agrees to
    /// Classic ECN answers a SYN that asked, also if later SYNs did not: the client uses ECN then, as Linux does, where RFC 3168
    /// §6.1.1 forbids it.
    ///
    /// # Errors
    /// [`Reset`] if it is of the other kind of ECN than the first.
    pub fn on_syn_ack(&mut self, flags: Ace) -> Result<Verdict, Reset> {
        let said = match (self.asks, flags.bits()) {
            (Ace::NONE, _) => Mode::Not,
            (Ace::CLASSIC, 0b001) => Mode::Classic,
            (Ace::CLASSIC, _) => Mode::Not,
            // 111 comes from a server that echoes the flags of the SYN.
            (_, 0b000 | 0b111) => Mode::Not,
            (_, 0b001) => Mode::Classic,
            _ => Mode::Accurate,
        };
        let mode = *self.mode.get_or_insert(said);
        if matches!((mode, said), (Mode::Classic, Mode::Accurate) | (Mode::Accurate, Mode::Classic)) {
            return Err(Reset);
        }
        let mut verdict = Verdict::of(mode);
        if mode == Mode::Accurate {
            // 101 is reserved, and read as if the SYN had arrived unchanged.
            let seen = flags.field().unwrap_or(self.sent);
            verdict.mangled = is_mangled(self.sent, seen);
            verdict.congested = seen == Ecn::Ce && !verdict.mangled;
            verdict.sends_ect = !verdict.mangled;
        }
        Ok(verdict)
    }

    /// The mode, once a SYN-ACK has come.
    pub fn mode(&self) -> Option<Mode> {
        self.mode
    }
}

/// The end that answers a SYN.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// It does AccECN, or Classic ECN at most, or none.
    able: Mode,
    /// The ECN field of its SYN-ACKs.
    sent: Ecn,
    mode: Option<Mode>,
    /// Flags of the SYN that came first.
    first: Ace,
    /// ECN field of the SYN that came last.
    seen: Ecn,
    syn_acks: u32,
    /// A SYN or SYN-ACK of this handshake had no flags.
    bare: bool,
}

impl Server {
    /// Before the first SYN; its SYN-ACKs leave with the ECN field `sent`.
    pub fn new(able: Mode, sent: Ecn) -> Server {
        Server { able, sent, mode: None, first: Ace::NONE, seen: Ecn::NotEct, syn_acks: 0, bare: false }
    }

    /// A SYN with these flags and this ECN field. The first decides on the mode (§3.1.1, §3.1.3).
    ///
    /// # Errors
    /// [`Reset`] if it asks for the other kind of ECN than one before.
    pub fn on_syn(&mut self, flags: Ace, field: Ecn) -> Result<Mode, Reset> {
        let asked = match flags.bits() {
            0b000 => Mode::Not,
            0b011 => Mode::Classic,
            // Combinations of no meaning yet are taken for AccECN, so that it can be extended.
            _ => Mode::Accurate,
        };
        let Some(mode) = self.mode else {
            let mode = match self.able {
                Mode::Accurate => asked,
                // RFC 3168 does not know AE: a request for AccECN is one for Classic ECN (§3.1.2).
                Mode::Classic if flags.bits() & Ace::CLASSIC.bits() == Ace::CLASSIC.bits() => Mode::Classic,
                Mode::Classic | Mode::Not => Mode::Not,
            };
            (self.mode, self.first, self.seen) = (Some(mode), flags, field);
            self.bare |= flags == Ace::NONE;
            return Ok(mode);
        };
        let before = if self.first == Ace::CLASSIC { Mode::Classic } else { Mode::Accurate };
        let knows = self.able == Mode::Accurate;
        if knows && self.first != Ace::NONE && asked != Mode::Not && asked != before {
            return Err(Reset);
        }
        self.bare |= flags == Ace::NONE;
        self.seen = field;
        Ok(mode)
    }

    /// Flags of the next SYN-ACK. Of the third on in AccECN mode there are none, since the path may drop them (§3.1.4).
    pub fn syn_ack(&mut self) -> Ace {
        self.syn_acks += 1;
        let flags = match self.mode {
            Some(Mode::Accurate) if self.syn_acks <= 2 => Ace::of_field(self.seen),
            Some(Mode::Classic) => Ace::CLASSIC_AGREED,
            _ => Ace::NONE,
        };
        self.bare |= flags == Ace::NONE;
        flags
    }

    /// Whether the next SYN-ACK may carry the option: only the first does (§3.2.3.2.2).
    pub fn may_send_option(&self) -> bool {
        self.mode == Some(Mode::Accurate) && self.syn_acks == 0
    }

    /// The ACK that ends the handshake, a pure ACK without SACK blocks, with these flags (§3.2.2.1).
    pub fn on_third(&self, flags: Ace) -> Verdict {
        let mode = self.mode.unwrap_or(Mode::Not);
        let mut verdict = Verdict::of(mode);
        if mode != Mode::Accurate {
            return verdict;
        }
        if flags == Ace::NONE {
            // Something on the path clears the flags: feedback means nothing.
            (verdict.sends_ect, verdict.responds) = (false, false);
            return verdict;
        }
        if let Some(seen) = flags.field() {
            verdict.mangled = is_mangled(self.sent, seen);
            verdict.congested = seen == Ecn::Ce;
        }
        verdict.sends_ect = !verdict.mangled && !self.bare;
        verdict
    }

    /// The mode, once a SYN has come.
    pub fn mode(&self) -> Option<Mode> {
        self.mode
    }

    /// Whether a pure ACK that brings a valid SYN cookie says that AccECN was negotiated (§5.1).
    pub fn cookie_tells(flags: Ace) -> bool {
        flags.bits() >= 2
    }
}
