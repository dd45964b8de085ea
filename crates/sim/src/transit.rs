//! Packets in flight between two points, and the events of their arrivals.
//!
//! Packets with the same delay keep their order, also packets of different flows: they share a wire, a
//! FIFO of which only the head is an event. A packet that would break a wire's order (an ACK of a timer,
//! a path that became shorter, jitter) is an event of its own. So the cost of an event grows with the number
//! of different distances, not with packets or flows, and the order is that of (time, kind, flow)
//! either way.

use std::collections::VecDeque;

use lfn_header::Header;
use lfn_path::PacketKind;
use lfn_tcp::{prefetch, prefetch_behind, Acknowledgement, Range, Segment, SACK_BLOCKS};
use lfn_units::Time;

use crate::events::{Events, Kind};

/// Names parcels out of line among the wires of an event's index.
const LATE: u32 = 1 << 23;

/// Two cache lines of parcels.
const PARCELS_AHEAD: usize = 8;

const ECHOES_ORIGINAL: u8 = 1;
const DUPLICATE: u8 = 2;
const ECE: u8 = 4;
/// It has a header for routers.
const HEADED: u8 = 8;
const BLOCKS_SHIFT: u32 = 4;
const RETRANSMISSION: u8 = 1;
const CWR: u8 = 2;
/// A control packet of UDT goes to the sender of data.
const TO_SENDER: u8 = 2;
/// The ACK that ends a handshake.
const THIRD: u8 = 1;
const CE: u8 = 4;

/// The SACK blocks of an ACK; those that it has come first.
pub(crate) type Blocks = [Range; SACK_BLOCKS];

/// Fields that only few parcels have, beside their word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    pub blocks: Blocks,
    pub header: Header,
}

/// Kind of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cargo {
    Data,
    Ack,
    Udp,
    UdtData,
    UdtControl,
    /// A SYN, or the ACK that ends a handshake: on the way of data.
    Syn,
    /// A SYN-ACK: on the way of ACKs.
    SynAck,
}

impl Cargo {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// Kind for queues and paths: control packets of UDT count as ACKs, those of TCP's handshake as data.
    pub fn packet_kind(self) -> PacketKind {
        match self {
            Cargo::Ack | Cargo::UdtControl => PacketKind::Ack,
            Cargo::Data | Cargo::Udp | Cargo::UdtData | Cargo::Syn | Cargo::SynAck => PacketKind::Data,
        }
    }

    /// Whether it has payload. Only such packets are held up, overtaken or doubled by chance.
    pub fn has_payload(self) -> bool {
        matches!(self, Cargo::Data | Cargo::Udp | Cargo::UdtData)
    }

    /// Whether its header asks the routers on its way.
    pub fn asks_routers(self) -> bool {
        matches!(self, Cargo::Data | Cargo::Syn)
    }

    /// Whether it counts as data.
    pub fn is_data(self) -> bool {
        self.packet_kind() == PacketKind::Data
    }
}

/// The end of a wire: the link at this place of a route, for parcels of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub cargo: Cargo,
    pub route: u16,
    pub hop: u16,
}

/// A packet without its SACK blocks: the flow (or UDP source) in 24 bits, flags in 8, the low 32 of the
/// segment number, or the place of a control packet of UDT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel(u64);

impl Parcel {
    #[inline(always)]
    fn new(flow: usize, flags: u8, seq: u64) -> Parcel {
        Parcel(((flow as u64) << 40) | (u64::from(flags) << 32) | (seq & 0xffff_ffff))
    }

    pub fn of_udp(source: usize) -> Parcel {
        Parcel::new(source, 0, 0)
    }

    pub fn of_udt_data(flow: usize, index: u64, retransmission: bool) -> Parcel {
        Parcel::new(flow, u8::from(retransmission) * RETRANSMISSION, index)
    }

    /// A control packet of UDT, kept at `slot`.
    pub fn of_udt_control(flow: usize, slot: usize, to_sender: bool) -> Parcel {
        Parcel::new(flow, u8::from(to_sender) * TO_SENDER, slot as u64)
    }

    /// Where a control packet of UDT is kept.
    pub fn slot(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether a control packet of UDT goes to the sender of data.
    pub fn is_to_sender(self) -> bool {
        self.flags() & TO_SENDER != 0
    }

    /// A SYN or SYN-ACK with the time that its timestamp shows, in ms.
    pub fn of_syn(flow: usize, stamp_ms: u64) -> Parcel {
        Parcel::new(flow, 0, stamp_ms)
    }

    /// The ACK that ends a handshake.
    pub fn of_third(flow: usize) -> Parcel {
        Parcel::new(flow, THIRD, 0)
    }

    /// The time that a SYN or SYN-ACK shows, modulo 2^32 ms.
    pub fn stamp_ms(self) -> u32 {
        self.0 as u32
    }

    /// Whether this packet of a handshake is the ACK that ends it.
    pub fn is_third(self) -> bool {
        self.flags() & THIRD != 0
    }

    pub fn of_segment(flow: usize, segment: Segment) -> Parcel {
        let flags = (u8::from(segment.retransmission) * RETRANSMISSION) | (u8::from(segment.cwr) * CWR);
        Parcel::new(flow, flags, segment.seq)
    }

    #[inline(always)]
    fn of_ack(flow: usize, ack: &Acknowledgement) -> Parcel {
        let flags = (u8::from(ack.echoes_original) * ECHOES_ORIGINAL)
            | (u8::from(ack.duplicate) * DUPLICATE)
            | (u8::from(ack.ece) * ECE)
            | (ack.blocks << BLOCKS_SHIFT);
        Parcel::new(flow, flags, ack.cumulative)
    }

    /// Fills `ack`, except its SACK blocks. `near` is a segment number less than 2^31 away.
    #[inline(always)]
    fn fill(self, at: Time, near: u64, ack: &mut Acknowledgement) {
        ack.at = at;
        ack.cumulative = self.seq(near);
        let flags = self.flags();
        ack.echoes_original = flags & ECHOES_ORIGINAL != 0;
        ack.duplicate = flags & DUPLICATE != 0;
        ack.ece = flags & ECE != 0;
        ack.blocks = flags >> BLOCKS_SHIFT;
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
            cwr: self.flags() & CWR != 0,
        }
    }

    /// The data packet was marked on its way.
    pub fn ce(self) -> bool {
        self.flags() & CE != 0
    }

    /// The data packet, marked if `ce`.
    #[must_use]
    pub fn marked(self, ce: bool) -> Parcel {
        Parcel(self.0 | (u64::from(if ce { CE } else { 0 }) << 32))
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
        u8::from(self.flags() & ECE != 0) << 2
    }

    /// SACK blocks of an ACK.
    pub fn blocks(self) -> usize {
        usize::from(self.flags() >> BLOCKS_SHIFT)
    }

    /// The parcel, with the flag that it has a header or without it.
    fn headed(self, headed: bool) -> Parcel {
        Parcel((self.0 & !(u64::from(HEADED) << 32)) | (u64::from(if headed { HEADED } else { 0 }) << 32))
    }

    fn is_headed(self) -> bool {
        self.flags() & HEADED != 0
    }

    /// Whether it has SACK blocks or a header.
    #[inline(always)]
    fn has_extras(self) -> bool {
        self.flags() >= HEADED
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        (self.0 >> 32) as u8
    }

    #[inline(always)]
    pub fn flow(self) -> usize {
        (self.0 >> 40) as usize
    }
}

/// A line of parcels, 16 bytes each with their times; SACK blocks and headers, which few have, stand in
/// lines of their own.
#[derive(Debug)]
struct Wire {
    kind: Kind,
    place: Place,
    /// When the last parcel arrives.
    last: Time,
    parcels: VecDeque<(Time, Parcel)>,
    blocks: VecDeque<Range>,
    headers: VecDeque<Header>,
}

impl Wire {
    /// Takes the SACK blocks and the header of the parcel that was taken last.
    fn take_extras(&mut self, parcel: Parcel, extras: &mut Extras) {
        for (slot, block) in extras.blocks.iter_mut().zip(self.blocks.drain(..parcel.blocks())) {
            *slot = block;
        }
        if parcel.is_headed() {
            extras.header = self.headers.pop_front().unwrap_or_default();
        }
    }

    /// Whether a parcel may stand behind those on the wire.
    #[inline(always)]
    fn is_in_order(&self, at: Time, flow: usize) -> bool {
        at > self.last || self.parcels.back().is_none_or(|last| (last.0, last.1.flow()) <= (at, flow))
    }
}

/// A parcel out of line.
#[derive(Debug)]
struct Late {
    at: Time,
    wire: u32,
    parcel: Parcel,
    extras: Extras,
}

/// All that is under way, and all pending events.
#[derive(Debug, Default)]
pub(crate) struct Transit {
    pub events: Events,
    wires: Vec<Wire>,
    /// Parcels out of line, by the order in which they were sent; the first has number `late_base`.
    late: VecDeque<Option<Late>>,
    late_base: u32,
}

impl Transit {
    /// A new wire, at whose end parcels are events of this kind at this place.
    pub fn wire(&mut self, kind: Kind, place: Place) -> u32 {
        let (parcels, blocks, headers) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        self.wires.push(Wire { kind, place, last: Time::ZERO, parcels, blocks, headers });
        self.wires.len() as u32 - 1
    }

    /// An empty wire leads to another place from now on.
    pub fn aim(&mut self, wire: u32, place: Place) {
        let wire = &mut self.wires[wire as usize];
        debug_assert!(wire.parcels.is_empty());
        wire.place = place;
    }

    /// All parcels under way: when they arrive, at what kind of event, and where.
    pub fn parcels(&self) -> impl Iterator<Item = (Time, Kind, Place)> + '_ {
        let on_wires = self
            .wires
            .iter()
            .flat_map(|wire| wire.parcels.iter().map(|&(at, _)| (at, wire.kind, wire.place)));
        let late = self.late.iter().flatten().map(|late| {
            let wire = &self.wires[late.wire as usize];
            (late.at, wire.kind, wire.place)
        });
        on_wires.chain(late)
    }

    /// Bytes of memory of events, of wires and of what is under way.
    pub fn memory_bytes(&self) -> usize {
        let bytes = |wire: &Wire| {
            (wire.parcels.capacity() + wire.blocks.capacity()) * 16
                + wire.headers.capacity() * size_of::<Header>()
        };
        self.events.memory_bytes()
            + self.wires.iter().map(bytes).sum::<usize>()
            + self.wires.capacity() * size_of::<Wire>()
            + self.late.capacity() * size_of::<Option<Late>>()
    }

    /// The ACK of `flow` will be at the end of the wire at `at`.
    #[inline(always)]
    pub fn send(&mut self, wire: u32, at: Time, flow: usize, ack: &Acknowledgement) {
        self.put(wire, at, Parcel::of_ack(flow, ack), &ack.sack, || Header::None);
    }

    /// The ACK of `flow`, with the header that it echoes, will be at the end of the wire at `at`.
    pub fn send_headed(&mut self, wire: u32, at: Time, flow: usize, ack: &Acknowledgement, header: Header) {
        let parcel = Parcel::of_ack(flow, ack).headed(!header.is_none());
        self.put(wire, at, parcel, &ack.sack, || header);
    }

    /// The parcel will be at the end of the wire at `at`.
    pub fn send_parcel(&mut self, wire: u32, at: Time, parcel: Parcel, extras: &Extras) {
        let parcel = parcel.headed(!extras.header.is_none());
        self.put(wire, at, parcel, &extras.blocks, || extras.header);
    }

    #[inline(always)]
    fn put(&mut self, wire: u32, at: Time, parcel: Parcel, blocks: &Blocks, header: impl FnOnce() -> Header) {
        let line = &mut self.wires[wire as usize];
        let flow = parcel.flow();
        if line.parcels.is_empty() {
            self.events.push_wire(at, line.kind, flow, wire);
        } else if !line.is_in_order(at, flow) {
            let extras = Extras { blocks: *blocks, header: header() };
            return self.send_late(Late { at, wire, parcel, extras });
        }
        line.last = at;
        line.parcels.push_back((at, parcel));
        if parcel.has_extras() {
            line.blocks.extend(&blocks[..parcel.blocks()]);
            if parcel.is_headed() {
                line.headers.push_back(header());
            }
        }
    }

    /// Brings the places near that parcels on `wire` will take next. Returns the first parcels on it: all of
    /// them, or those up to the end of their ring.
    #[inline(always)]
    pub fn prefetch(&self, wire: u32) -> &[(Time, Parcel)] {
        let Some(wire) = self.wires.get(wire as usize) else { return &[] };
        if let Some(last) = wire.parcels.back() {
            prefetch_behind(last);
        }
        let (parcels, _) = wire.parcels.as_slices();
        if let Some(parcel) = parcels.get(PARCELS_AHEAD) {
            prefetch(parcel);
        }
        parcels
    }

    #[cold]
    fn send_late(&mut self, late: Late) {
        let number = self.late_base.wrapping_add(self.late.len() as u32) % LATE;
        let kind = self.wires[late.wire as usize].kind;
        self.events.push_wire(late.at, kind, late.parcel.flow(), LATE | number);
        self.late.push_back(Some(late));
    }

    /// Takes what the next event stands for, an ACK at the end of `wire`, into `ack`, and removes the
    /// event. `near` is a segment number less than 2^31 from the ACK's. `ack.sack` beyond `ack.blocks`
    /// keeps what it held. A header, which few ACKs have, goes to `headed`. (An `Option` of this size by
    /// value costs a tenth of the run.)
    #[inline(always)]
    pub fn take(&mut self, wire: u32, near: u64, ack: &mut Acknowledgement, headed: impl FnOnce(Header)) {
        if wire & LATE != 0 {
            if let Some(late) = self.take_late(wire & !LATE) {
                late.parcel.fill(late.at, near, ack);
                ack.sack = late.extras.blocks;
                if late.parcel.is_headed() {
                    headed(late.extras.header);
                }
            }
            return;
        }
        let line = &mut self.wires[wire as usize];
        let Some((at, parcel)) = line.parcels.pop_front() else { return self.events.pop_wire() };
        parcel.fill(at, near, ack);
        if parcel.has_extras() {
            let mut extras = Extras { blocks: ack.sack, header: Header::None };
            line.take_extras(parcel, &mut extras);
            ack.sack = extras.blocks;
            if parcel.is_headed() {
                headed(extras.header);
            }
        }
        match line.parcels.front() {
            Some(&(at, next)) => self.events.reschedule_next(at, next.flow()),
            None => self.events.pop_wire(),
        }
    }

    /// Takes the parcel that the next event stands for, and removes the event: where it is, what it is,
    /// and what it has besides. `None` if nothing is there.
    pub fn take_parcel(&mut self, wire: u32) -> Option<(Place, Parcel, Extras)> {
        if wire & LATE != 0 {
            let late = self.take_late(wire & !LATE)?;
            return Some((self.wires[late.wire as usize].place, late.parcel, late.extras));
        }
        let line = &mut self.wires[wire as usize];
        let Some((_, parcel)) = line.parcels.pop_front() else {
            self.events.pop_wire();
            return None;
        };
        let mut extras = Extras::default();
        if parcel.has_extras() {
            line.take_extras(parcel, &mut extras);
        }
        match line.parcels.front() {
            Some(&(at, next)) => self.events.reschedule_next(at, next.flow()),
            None => self.events.pop_wire(),
        }
        Some((line.place, parcel, extras))
    }

    #[cold]
    fn take_late(&mut self, number: u32) -> Option<Late> {
        self.events.pop_wire();
        let place = number.wrapping_sub(self.late_base) % LATE;
        let late = self.late.get_mut(place as usize).and_then(Option::take);
        while let Some(None) = self.late.front() {
            self.late.pop_front();
            self.late_base = (self.late_base + 1) % LATE;
        }
        late
    }
}
