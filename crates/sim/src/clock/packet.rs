//! A packet as the engine moves it: a word of 64 bits, and SACK blocks and headers, which few packets have.

use lfn_header::Header;
use lfn_path::{Ecn, PacketKind};
use lfn_tcp::{AckFlags, Acknowledgement, Range, Segment, SACK_BLOCKS};
use lfn_units::Time;

use super::ids::{FlowId, RouteId};

/// It has a header for routers. The flags of ACKs leave this bit free.
const HEADED: u8 = AckFlags::FREE;
const RETRANSMISSION: u8 = 1;
const CWR: u8 = 2;
/// A control packet of UDT goes to the sender of data.
const TO_SENDER: u8 = 2;
/// The ACK that ends a handshake.
const THIRD: u8 = 1;
/// A control packet of UDT belongs to a handshake.
const OPENS: u8 = 1;
const CE: u8 = 4;
/// ECN of a datagram was erased.
const BLEACHED: u8 = 1;
/// SACK blocks of an ACK.
const BLOCKS: u8 = 3 << 4;
/// Which retransmission a data packet is, or an ACK echoes.
const COPY_SHIFT: u32 = 6;

/// SACK blocks beside timestamps and AccECN's option with two counters (RFC 9768 section 3.2.3.3).
const BLOCKS_BESIDE_OPTION: usize = 2;

/// Room for the SACK blocks of an ACK; its blocks come first.
pub(crate) type Blocks = [Range; SACK_BLOCKS];

/// Fields that only few packets have, beside their word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    pub blocks: Blocks,
    pub header: Header,
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Data,
    Ack,
    Udp,
    UdtData,
    UdtControl,
    /// A SYN, or the ACK that ends a handshake: on the way of data.
    Syn,
    /// A SYN-ACK: on the way of ACKs.
    SynAck,
    /// Of a stack.
    Datagram,
}

impl Class {
    /// How many there are.
    pub const COUNT: usize = Class::ALL.len();
    /// All of them, in order.
    pub const ALL: [Class; 8] = [
        Class::Data,
        Class::Ack,
        Class::Udp,
        Class::UdtData,
        Class::UdtControl,
        Class::Syn,
        Class::SynAck,
        Class::Datagram,
    ];

    /// Kind for queues and paths: control packets of UDT count as ACKs, those of TCP's handshake as data.
    pub fn packet_kind(self) -> PacketKind {
        match self {
            Class::Ack | Class::UdtControl => PacketKind::Ack,
            Class::Data | Class::Udp | Class::UdtData | Class::Syn | Class::SynAck | Class::Datagram => {
                PacketKind::Data
            }
        }
    }

    /// Whether it has payload. Such packets are held up, overtaken or doubled by the impairments of a link, others by
    /// those of its `acks`.
    pub fn has_payload(self) -> bool {
        matches!(self, Class::Data | Class::Udp | Class::UdtData | Class::Datagram)
    }

    /// Whether its end learns of marks.
    pub fn tells_marks(self) -> bool {
        matches!(self, Class::Data | Class::Datagram)
    }

    /// Whether its header asks the routers on its way.
    pub fn asks_routers(self) -> bool {
        matches!(self, Class::Data | Class::Syn)
    }

    /// Whether it counts as data.
    pub fn is_data(self) -> bool {
        self.packet_kind() == PacketKind::Data
    }
}

/// Where a delay line leads: the link at this place of a route, for packets of one kind. The number of the link on the
/// route has 16 bits, the route 16, the class 3: one number stays in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop(u64);

impl Hop {
    /// Bits of its word.
    pub const BITS: u32 = 35;
    const ROUTE_SHIFT: u32 = 16;
    const CLASS_SHIFT: u32 = 32;

    #[inline(always)]
    pub fn new(class: Class, route: RouteId, number: u16) -> Hop {
        let route = u64::from(route.0) << Hop::ROUTE_SHIFT;
        Hop(u64::from(number) | route | ((class as u64) << Hop::CLASS_SHIFT))
    }

    /// As it stands in a queue.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The hop in the lowest bits of a word.
    #[inline(always)]
    pub fn of_word(word: u64) -> Hop {
        Hop(word & ((1 << Hop::BITS) - 1))
    }

    /// The next hop of the route.
    #[must_use]
    pub fn next(self) -> Hop {
        Hop::new(self.class(), self.route(), self.number() + 1)
    }

    #[inline(always)]
    pub fn class(self) -> Class {
        /// All of them, and one of them up to a power of 2: its index is a mask.
        const BY_NUMBER: [Class; 8] = {
            let mut classes = [Class::Data; 8];
            let mut at = 0;
            while at < Class::COUNT {
                classes[at] = Class::ALL[at];
                at += 1;
            }
            classes
        };
        BY_NUMBER[(self.0 >> Hop::CLASS_SHIFT) as usize % BY_NUMBER.len()]
    }

    #[inline(always)]
    pub fn route(self) -> RouteId {
        RouteId((self.0 >> Hop::ROUTE_SHIFT) as u16)
    }

    /// The number of its link on the route.
    #[inline(always)]
    pub fn number(self) -> u16 {
        self.0 as u16
    }
}

/// A packet without its SACK blocks: the flow (or UDP source) in 24 bits, flags in 8, the low 32 of the
/// segment number, or the place of a control packet of UDT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet(u64);

impl Packet {
    #[inline(always)]
    fn new(flow: FlowId, flags: u8, seq: u64) -> Packet {
        Packet(((flow.index() as u64) << 40) | (u64::from(flags) << 32) | (seq & 0xffff_ffff))
    }

    /// As it stands in a queue.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.0
    }

    /// The packet that stood in a queue as this word.
    #[inline(always)]
    pub fn of_word(word: u64) -> Packet {
        Packet(word)
    }

    /// A packet of UDP, sent at this stamp.
    pub fn of_udp(source: FlowId, stamp: u32) -> Packet {
        Packet::new(source, 0, stamp.into())
    }

    /// When a packet of UDP was sent.
    pub fn stamp(self) -> u32 {
        self.0 as u32
    }

    pub fn of_udt_data(flow: FlowId, index: u64, retransmission: bool) -> Packet {
        Packet::new(flow, u8::from(retransmission) * RETRANSMISSION, index)
    }

    /// A control packet of UDT, kept at `slot`; `opens` where it belongs to a handshake.
    pub fn of_udt_control(flow: FlowId, slot: usize, to_sender: bool, opens: bool) -> Packet {
        let flags = (u8::from(to_sender) * TO_SENDER) | (u8::from(opens) * OPENS);
        Packet::new(flow, flags, slot as u64)
    }

    /// A datagram of this end of a stack, kept at `slot`.
    pub fn of_datagram(end: FlowId, slot: usize) -> Packet {
        Packet::new(end, 0, slot as u64)
    }

    /// Where a control packet of UDT, or a datagram, is kept.
    pub fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether a control packet of UDT goes to the sender of data.
    pub fn is_to_sender(self) -> bool {
        self.flags() & TO_SENDER != 0
    }

    /// Whether this packet of a class without payload belongs to a handshake.
    pub fn opens(self, class: Class) -> bool {
        match class {
            Class::Syn | Class::SynAck => true,
            Class::UdtControl => self.flags() & OPENS != 0,
            Class::Data | Class::Ack | Class::Udp | Class::UdtData | Class::Datagram => false,
        }
    }

    /// A SYN or SYN-ACK with the time that its timestamp shows, in ms.
    pub fn of_syn(flow: FlowId, stamp_ms: u64) -> Packet {
        Packet::new(flow, 0, stamp_ms)
    }

    /// The ACK that ends a handshake.
    pub fn of_third(flow: FlowId) -> Packet {
        Packet::new(flow, THIRD, 0)
    }

    /// The time that a SYN or SYN-ACK shows, modulo 2^32 ms.
    pub fn stamp_ms(self) -> u32 {
        self.0 as u32
    }

    /// Whether this packet of a handshake is the ACK that ends it.
    pub fn is_third(self) -> bool {
        self.flags() & THIRD != 0
    }

    pub fn of_segment(flow: FlowId, segment: Segment) -> Packet {
        let flags = (u8::from(segment.retransmission) * RETRANSMISSION)
            | (u8::from(segment.cwr) * CWR)
            | (segment.copy << COPY_SHIFT);
        Packet::new(flow, flags, segment.seq)
    }

    #[inline(always)]
    pub fn of_ack(flow: FlowId, ack: &Acknowledgement) -> Packet {
        Packet::new(flow, ack.flags.bits(), ack.cumulative)
    }

    /// The ACK, with the flag that it brings AccECN's feedback if `header` is that. Beside the option there is room for two
    /// SACK blocks only.
    #[must_use]
    pub fn with_feedback(self, header: &Header) -> Packet {
        let Header::Accurate(feedback) = header else { return self };
        let flags = AckFlags::from_bits(self.flags()).with(AckFlags::ECE, true);
        let most = if feedback.counted_bytes.is_some() { BLOCKS_BESIDE_OPTION } else { SACK_BLOCKS };
        let flags = flags.with_blocks(flags.blocks().min(most));
        Packet((self.0 & !(0xff << 32)) | (u64::from(flags.bits()) << 32))
    }

    /// Fills `ack`, except its SACK blocks. `near` is a segment number less than 2^31 away.
    #[inline(always)]
    pub fn fill(self, at: Time, near: u64, ack: &mut Acknowledgement) {
        ack.at = at;
        ack.cumulative = self.seq(near);
        ack.flags = AckFlags::from_bits(self.flags());
    }

    /// The segment number, given one that is less than 2^31 away.
    #[inline(always)]
    pub fn seq(self, near: u64) -> u64 {
        let distance = (self.0 as u32).wrapping_sub(near as u32) as i32;
        near.wrapping_add_signed(i64::from(distance))
    }

    pub fn segment(self, near: u64) -> Segment {
        Segment {
            seq: self.seq(near),
            retransmission: self.is_retransmission(),
            copy: self.flags() >> COPY_SHIFT,
            cwr: self.flags() & CWR != 0,
        }
    }

    /// The data packet was marked on its way.
    pub fn ce(self) -> bool {
        self.flags() & CE != 0
    }

    /// The packet of a class that tells marks, marked if `ce`.
    #[must_use]
    pub fn marked(self, ce: bool) -> Packet {
        Packet(self.0 | (u64::from(if ce { CE } else { 0 }) << 32))
    }

    /// The packet of a class that tells marks, without ECN.
    #[must_use]
    pub fn bleached(self, class: Class) -> Packet {
        let bleached = u64::from(if class == Class::Datagram { BLEACHED } else { 0 });
        Packet(self.0 & !(u64::from(CE) << 32) | bleached << 32)
    }

    /// The ECN field of a datagram that was sent with this one, as it is now.
    pub fn ecn_of_datagram(self, sent: Ecn) -> Ecn {
        match self.flags() & BLEACHED != 0 {
            true => Ecn::NotEct,
            false => sent.marked(self.ce()),
        }
    }

    /// Whether a data packet was sent before.
    pub fn is_retransmission(self) -> bool {
        self.flags() & RETRANSMISSION != 0
    }

    /// Flags of a data packet as recorded: 1 retransmission, 2 CE, 8 CWR.
    pub fn data_flags(self) -> u8 {
        let is = |flag: u8| u8::from(self.flags() & flag != 0);
        is(RETRANSMISSION) | (is(CE) << 1) | (is(CWR) << 3)
    }

    /// Flags of an ACK as recorded: 4 ECE.
    pub fn ack_flags(self) -> u8 {
        u8::from(AckFlags::from_bits(self.flags()).has(AckFlags::ECE)) << 2
    }

    /// SACK blocks of an ACK.
    pub fn blocks(self) -> usize {
        AckFlags::from_bits(self.flags()).blocks()
    }

    /// The packet, with the flag that it has a header or without it.
    pub fn headed(self, headed: bool) -> Packet {
        Packet((self.0 & !(u64::from(HEADED) << 32)) | (u64::from(if headed { HEADED } else { 0 }) << 32))
    }

    pub fn is_headed(self) -> bool {
        self.flags() & HEADED != 0
    }

    /// Whether it has SACK blocks or a header.
    #[inline(always)]
    pub fn has_extras(self) -> bool {
        self.flags() & (HEADED | BLOCKS) != 0
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        (self.0 >> 32) as u8
    }

    #[inline(always)]
    pub fn flow(self) -> FlowId {
        FlowId::new((self.0 >> 40) as usize)
    }
}

/// A packet at a hop of its route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed {
    pub hop: Hop,
    pub packet: Packet,
}

impl Routed {
    /// The packet, marked if `ce`.
    #[must_use]
    pub fn marked(self, ce: bool) -> Routed {
        Routed { packet: self.packet.marked(ce), ..self }
    }
}

/// A packet as a queue sees it.
pub(crate) struct AtQueue {
    pub bytes: u32,
    /// As its host sent it, or Not-ECT behind a link that erases it.
    pub ecn: Ecn,
    /// Delay behind the last link of its route, before which nothing happens.
    pub last_leg: Time,
}

/// A packet as recordings see it.
pub(crate) struct PacketView {
    pub bytes: u32,
    pub class: Class,
    pub seq: u64,
    pub payload_bytes: u32,
    /// Number of its connection, or of its UDP source.
    pub number: u32,
    /// It travels in the reverse direction.
    pub reverse: bool,
    /// Its host sent it as ECT(1).
    pub l4s: bool,
}
