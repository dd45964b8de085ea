//! Counters of marks at both ends of a half-connection, and how the sender follows the receiver's through three bits
//! (RFC 9768 §3.2.1, §3.2.2.2, §3.2.2.5, appendix A).

use super::{Ace, Fields};
use lfn_header::Ecn;

/// Start values of both ends (§3.2.1).
const CEP: u64 = 5;
const EB: u64 = 1;
/// The counters of the option have 24 bits.
const WRAP_BYTES: u64 = 1 << 24;
/// Marks since the last ACK that ask for one, with data to acknowledge and without (§3.2.2.5.1).
const MARKS_WITH_DATA: u32 = 2;
const MARKS_WITHOUT: u32 = 3;

/// The counters of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Packets with CE, but no SYN.
    pub cep: u64,
    /// Payload that came with CE, in bytes.
    pub ceb_bytes: u64,
    /// Payload that came as ECT(0), in bytes.
    pub e0b_bytes: u64,
    /// Payload that came as ECT(1), in bytes.
    pub e1b_bytes: u64,
    /// The last packet had CE.
    last: bool,
    /// Packets with CE since the last ACK.
    since_ack: u32,
    /// Unacknowledged data are here.
    has_data: bool,
}

impl Default for Received {
    fn default() -> Received {
        Received {
            cep: CEP,
            ceb_bytes: 0,
            e0b_bytes: EB,
            e1b_bytes: EB,
            last: false,
            since_ack: 0,
            has_data: false,
        }
    }
}

impl Received {
    /// The client's counters: a SYN-ACK with CE counts, a SYN with CE does not (§3.2.2.2).
    pub fn after_syn_ack(field: Ecn) -> Received {
        Received { cep: CEP + u64::from(field == Ecn::Ce), ..Received::default() }
    }

    /// An acceptable packet behind the handshake, a pure ACK with 0 bytes of payload. Returns whether an ACK must leave
    /// now: a marked data packet after an unmarked packet, the second mark since the last ACK, or the third where there is no data
    /// to acknowledge.
    pub fn on_packet(&mut self, field: Ecn, payload_bytes: u32) -> bool {
        let marked = field == Ecn::Ce;
        match field {
            Ecn::NotEct => {}
            Ecn::Ect1 => self.e1b_bytes += u64::from(payload_bytes),
            Ecn::Ect0 => self.e0b_bytes += u64::from(payload_bytes),
            Ecn::Ce => self.ceb_bytes += u64::from(payload_bytes),
        }
        self.cep += u64::from(marked);
        self.since_ack += u32::from(marked);
        self.has_data |= payload_bytes > 0;
        let changes = marked && payload_bytes > 0 && !self.last;
        self.last = marked;
        let most = if self.has_data { MARKS_WITH_DATA } else { MARKS_WITHOUT };
        changes || (marked && self.since_ack >= most)
    }

    /// Packets with CE so far, without the start value.
    pub fn marks(&self) -> u64 {
        self.cep - CEP
    }

    /// The flags of an ACK that leaves now.
    pub fn acknowledge(&mut self) -> Ace {
        (self.since_ack, self.has_data) = (0, false);
        self.ace()
    }

    /// The counter of marks in three bits.
    pub fn ace(&self) -> Ace {
        Ace::from_bits((self.cep % 8) as u8)
    }

    /// The counters of bytes, as the option carries them.
    pub fn fields(&self) -> Fields {
        let [e0b, ceb, e1b] = self.low_bytes().map(Some);
        Fields { e0b, ceb, e1b }
    }

    /// The same as numbers: ECT(0), CE, ECT(1).
    pub fn low_bytes(&self) -> [u32; 3] {
        [self.e0b_bytes, self.ceb_bytes, self.e1b_bytes].map(|bytes| (bytes % WRAP_BYTES) as u32)
    }

    /// Which counters have moved since the start, in the order of [`Fields`].
    pub fn moved(&self) -> [bool; 3] {
        [self.e0b_bytes != EB, self.ceb_bytes != 0, self.e1b_bytes != EB]
    }
}

/// An ACK as the sender's counters see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heard {
    /// Its flags.
    pub ace: Ace,
    /// Its option.
    pub fields: Option<Fields>,
    /// Payload that it acknowledges for the first time, cumulatively or by SACK, in bytes.
    pub acked_bytes: u64,
    /// Its timestamp is newer than any before.
    pub is_newer: bool,
    /// Its timestamp is older than one before.
    pub is_older: bool,
}

/// The sender's copy of the receiver's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    /// Packets with CE.
    pub cep: u64,
    /// Payload that arrived with CE, in bytes, as options told.
    pub ceb_bytes: u64,
    /// As ECT(0).
    pub e0b_bytes: u64,
    /// As ECT(1).
    pub e1b_bytes: u64,
    /// An option came with the last ACK that was counted, so that the next one tells the marked bytes between.
    had_option: bool,
}

impl Decoder {
    /// At the start; `counted` says that the server's SYN-ACK arrived with CE (third ACK 110).
    pub fn new(counted: bool) -> Decoder {
        Decoder {
            cep: CEP + u64::from(counted),
            ceb_bytes: 0,
            e0b_bytes: EB,
            e1b_bytes: EB,
            had_option: true,
        }
    }

    /// Packets with CE so far, without the start value.
    pub fn marks(&self) -> u64 {
        self.cep - CEP
    }

    /// The counters of bytes: ECT(0), CE, ECT(1).
    pub fn bytes(&self) -> [u64; 3] {
        [self.e0b_bytes, self.ceb_bytes, self.e1b_bytes]
    }

    /// Packets with CE that an ACK tells of. Of an ACK that was overtaken nothing counts: it acknowledges nothing new, and
    /// no newer time. SACK blocks of one may be new, for which the ACKs that overtook it had no room; its timestamp or its
    /// counters are older then.
    pub fn on_ack(&mut self, heard: &Heard, mss_bytes: u32) -> u64 {
        let brings_nothing = heard.acked_bytes == 0 && !heard.is_newer;
        if brings_nothing || heard.is_older || heard.fields.is_some_and(|fields| self.is_before(fields)) {
            return 0;
        }
        let marked_bytes = self.count_bytes(heard.fields);
        let least = (u64::from(heard.ace.bits()) + 8 - self.cep % 8) % 8;
        let marked = match marked_bytes {
            // The fewest that the bytes allow. Those of copies count too, so that there may be more than packets that are
            // acknowledged for the first time.
            Some(bytes) => {
                let packets = bytes.div_ceil(u64::from(mss_bytes.max(1)));
                least + packets.saturating_sub(least).div_ceil(8) * 8
            }
            None => safest(heard.acked_bytes / u64::from(mss_bytes.max(1)), least),
        };
        self.cep += marked;
        marked
    }

    /// Whether an option is older than one that came before: a counter of it would have grown by half of its range.
    fn is_before(&self, fields: Fields) -> bool {
        [(self.e0b_bytes, fields.e0b), (self.ceb_bytes, fields.ceb), (self.e1b_bytes, fields.e1b)]
            .into_iter()
            .any(|(counter, field)| field.is_some_and(|field| growth(counter, field) >= WRAP_BYTES / 2))
    }

    /// Takes the counters of an option. Returns the bytes with CE since the ACK before, if both had an option.
    fn count_bytes(&mut self, fields: Option<Fields>) -> Option<u64> {
        let had = std::mem::replace(&mut self.had_option, fields.is_some());
        let fields = fields?;
        let grow = |counter: &mut u64, field: Option<u32>| {
            let grown = growth(*counter, field?);
            *counter += grown;
            Some(grown)
        };
        grow(&mut self.e0b_bytes, fields.e0b);
        grow(&mut self.e1b_bytes, fields.e1b);
        // A counter is left out only while it has never moved.
        let marked = grow(&mut self.ceb_bytes, fields.ceb).unwrap_or(0);
        had.then_some(marked)
    }
}

/// By how much a counter has grown, of which `field` has the lowest 24 bits.
fn growth(counter_bytes: u64, field: u32) -> u64 {
    (u64::from(field) + WRAP_BYTES - counter_bytes % WRAP_BYTES) % WRAP_BYTES
}

/// The most marks that three bits allow among so many packets; what the bits say at least, if that is more, since control
/// packets count too.
pub(super) fn safest(packets: u64, least: u64) -> u64 {
    if least > packets {
        least
    } else {
        packets - (packets - least) % 8
    }
}
