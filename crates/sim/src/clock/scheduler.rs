//! The clock, all pending events, and the packets on delay lines.
//!
//! Packets with the same delay keep their order, also packets of different flows: they share a delay line, a
//! FIFO of which only the head is an event. A packet that would break a line's order (an ACK of a timer,
//! a path that became shorter, jitter) is an event of its own, and so is each packet of a flow of a traffic source,
//! whose delay no other flow has: it carries all that is known of it, and no line is looked up. So the cost of an event
//! grows with the number of different distances, not with packets or flows, and the order is that of (time, kind, flow)
//! either way.

use std::collections::{BTreeMap, VecDeque};

use lfn_header::Header;
use lfn_tcp::{prefetch, prefetch_behind, Acknowledgement, Range};
use lfn_units::Time;

use super::events::{Events, Kind, LineId};
use super::ids::{FlowId, LinkId};
use super::packet::{Extras, Hop, Packet, Routed};

/// Three cache lines of packets.
const PACKETS_AHEAD: usize = 12;

/// A line of packets, 16 bytes each with their times; SACK blocks and headers, which few have, stand in
/// lines of their own.
#[derive(Debug)]
struct DelayLine {
    kind: Kind,
    hop: Hop,
    /// It stands for all delays: each packet is an event of its own.
    loose: bool,
    /// When the last packet arrives.
    last: Time,
    packets: VecDeque<(Time, Packet)>,
    blocks: VecDeque<Range>,
    headers: VecDeque<Header>,
}

impl DelayLine {
    #[inline(always)]
    fn push_extras(&mut self, packet: Packet, extras: &Extras) {
        for &block in &extras.blocks[..packet.blocks()] {
            self.blocks.push_back(block);
        }
        if packet.is_headed() {
            self.headers.push_back(extras.header);
        }
    }

    /// Pops the SACK blocks and the header of the packet that was popped last.
    fn pop_extras(&mut self, packet: Packet, extras: &mut Extras) {
        for (slot, block) in extras.blocks.iter_mut().zip(self.blocks.drain(..packet.blocks())) {
            *slot = block;
        }
        if packet.is_headed() {
            extras.header = self.headers.pop_front().unwrap_or_default();
        }
    }

    /// Whether a packet may stand behind those on the line.
    #[inline(always)]
    fn is_in_order(&self, at: Time, flow: FlowId) -> bool {
        at > self.last || self.packets.back().is_none_or(|last| (last.0, last.1.flow()) <= (at, flow))
    }
}

/// SACK blocks and headers of packets that are events of their own; few have any.
#[derive(Debug, Default)]
struct Kept {
    extras: Vec<Extras>,
    /// Places that are not in use.
    free: Vec<u32>,
}

impl Kept {
    /// No place.
    const NONE: u32 = u32::MAX;

    #[cold]
    fn put(&mut self, extras: Extras) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.extras[place as usize] = extras;
                place
            }
            None => {
                self.extras.push(extras);
                self.extras.len() as u32 - 1
            }
        }
    }

    #[cold]
    fn take(&mut self, place: u32) -> Extras {
        self.free.push(place);
        self.extras[place as usize]
    }
}

/// A timer's event happens: whether it is still pending, not stale. `pending` as in [`Scheduler::set_timer`].
pub(crate) fn timer_fires([at, later]: [&mut Time; 2], now: Time) -> bool {
    let is_due = *at <= now;
    if is_due {
        *at = std::mem::replace(later, Time::NEVER);
    }
    is_due
}

/// A packet that sets out at a hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departing {
    pub routed: Routed,
    pub header: Header,
}

/// The packets that an end may send now. The network takes them one by one, since a window of them may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    None,
    /// A flow over TCP.
    Tcp(FlowId),
    /// An end of a flow over UDT.
    Udt(usize),
}

/// The clock, all pending events, and all packets under way.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Simulated time reached.
    pub now: Time,
    events: Events,
    lines: Vec<DelayLine>,
    /// Delay lines that flows share, by kind of event at the end, link at the beginning, hop and delay.
    shared: BTreeMap<(Kind, LinkId, Hop, Time), LineId>,
    /// Lines for packets of all delays.
    loose: Vec<LineId>,
    /// Of packets that are events of their own.
    kept: Kept,
    /// Packets that set out now.
    departing: VecDeque<Departing>,
    /// `None` if nothing sets out now.
    burst: Option<Burst>,
}

impl Scheduler {
    /// The next event: when, what, of which flow (or link), on which delay line.
    #[inline(always)]
    pub fn peek(&self) -> Option<(Time, Kind, usize, LineId)> {
        self.events.peek()
    }

    /// Removes the next event, which is not the arrival of a packet.
    pub fn pop(&mut self) {
        self.events.pop();
    }

    /// Something happens at `at`: of this kind, to this flow, link or other part.
    pub fn schedule(&mut self, at: Time, kind: Kind, index: usize) {
        self.events.push(at, kind, index);
    }

    /// [`Scheduler::schedule`] out of line, for a loop over packets that rarely schedules and needs its registers.
    #[cold]
    #[inline(never)]
    pub fn schedule_rare(&mut self, at: Time, kind: Kind, index: usize) {
        self.schedule(at, kind, index);
    }

    /// Ensures that an event is pending at or before the deadline. Tracks the two earliest pending events, so that a
    /// deadline that moves back and forth does not accumulate stale events.
    #[inline(always)]
    pub fn set_timer(&mut self, [at, later]: [&mut Time; 2], deadline: Time, kind: Kind, index: usize) {
        if deadline < *at {
            *later = std::mem::replace(at, deadline);
            self.schedule(deadline.max(self.now), kind, index);
        }
    }

    /// Index of an event that is not the arrival of a packet, some places behind the next, if it is known.
    #[inline]
    pub fn timer_ahead(&self, places: usize) -> Option<usize> {
        self.events.other_ahead(places)
    }

    /// The network takes a packet that sets out, before the next event.
    pub fn hand_over(&mut self, departing: Departing) {
        self.departing.push_back(departing);
        self.burst.get_or_insert(Burst::None);
    }

    /// The network takes a burst behind the packets handed over, before the next event. An event has at most one
    /// burst.
    #[inline]
    pub fn hand_over_burst(&mut self, burst: Burst) {
        debug_assert!(self.burst.is_none_or(|before| before == Burst::None || before == burst));
        self.burst = Some(burst);
    }

    /// Whether anything sets out now.
    #[inline(always)]
    pub fn has_departing(&self) -> bool {
        self.burst.is_some()
    }

    /// The next packet that was handed over.
    pub fn take_departing(&mut self) -> Option<Departing> {
        self.departing.pop_front()
    }

    /// The burst behind all packets that were handed over.
    pub fn take_burst(&mut self) -> Burst {
        self.burst.take().unwrap_or(Burst::None)
    }

    /// A new line, at whose end packets are events of this kind at this place.
    pub fn add_line(&mut self, kind: Kind, hop: Hop) -> LineId {
        let (packets, blocks, headers) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        self.lines.push(DelayLine { kind, hop, loose: false, last: Time::ZERO, packets, blocks, headers });
        LineId::new(self.lines.len() as u32 - 1)
    }

    /// The line of this kind at this place for packets of all delays, each of which is an event of its own; made when
    /// first used.
    pub fn loose_line(&mut self, kind: Kind, hop: Hop) -> LineId {
        let of = |&id: &LineId| (self.lines[id.index()].kind, self.lines[id.index()].hop) == (kind, hop);
        if let Some(&line) = self.loose.iter().find(|&id| of(id)) {
            return line;
        }
        let line = self.add_line(kind, hop);
        self.lines[line.index()].loose = true;
        self.loose.push(line);
        line
    }

    /// The delay line from link `from`, `delay` long, to events of this kind at this hop; made when first used.
    pub fn shared_line(&mut self, kind: Kind, from: LinkId, hop: Hop, delay: Time) -> LineId {
        if let Some(&line) = self.shared.get(&(kind, from, hop, delay)) {
            return line;
        }
        let line = self.add_line(kind, hop);
        self.shared.insert((kind, from, hop, delay), line);
        line
    }

    /// All packets under way: when they arrive, at what kind of event, and where.
    pub fn packets(&self) -> impl Iterator<Item = (Time, Kind, Hop)> + '_ {
        let on_lines =
            self.lines.iter().flat_map(|line| line.packets.iter().map(|&(at, _)| (at, line.kind, line.hop)));
        let alone = self.events.packets().map(|flight| {
            let line = &self.lines[flight.line().index()];
            (flight.at(), line.kind, line.hop)
        });
        on_lines.chain(alone)
    }

    /// Bytes of memory of events, delay lines and packets.
    pub fn memory_bytes(&self) -> usize {
        let bytes = |line: &DelayLine| {
            (line.packets.capacity() + line.blocks.capacity()) * 16
                + line.headers.capacity() * size_of::<Header>()
        };
        self.events.memory_bytes()
            + self.lines.iter().map(bytes).sum::<usize>()
            + self.lines.capacity() * size_of::<DelayLine>()
            + self.kept.extras.capacity() * size_of::<Extras>()
            + self.kept.free.capacity() * size_of::<u32>()
            + self.departing.capacity() * size_of::<Departing>()
    }

    /// The packet will be at the end of the line at `at`. `extras`: its SACK blocks, as many as it says, and its header.
    #[inline(always)]
    pub fn push(&mut self, id: LineId, at: Time, packet: Packet, extras: Option<&Extras>) {
        let packet = packet.headed(extras.is_some_and(|extras| !extras.header.is_none()));
        let line = &mut self.lines[id.index()];
        let flow = packet.flow();
        if line.packets.is_empty() {
            if line.loose {
                return self.push_alone(id, at, packet, extras);
            }
            self.events.push_line(at, line.kind, flow.index(), id);
        } else if !line.is_in_order(at, flow) {
            return self.push_alone(id, at, packet, extras);
        }
        line.last = at;
        line.packets.push_back((at, packet));
        if let Some(extras) = extras.filter(|_| packet.has_extras()) {
            line.push_extras(packet, extras);
        }
    }

    /// Kind and flow of a packet that is an event of its own, some places behind the next, if it is known.
    #[inline(always)]
    pub fn packet_ahead(&self, places: usize) -> Option<(Kind, usize)> {
        self.events.packet_ahead(places)
    }

    /// Prefetches the places that packets on `line` will take next. Returns the first packets on it: all, or up to the end
    /// of their ring.
    #[inline(always)]
    pub fn prefetch(&self, line: LineId) -> &[(Time, Packet)] {
        let Some(line) = self.lines.get(line.index()) else { return &[] };
        if let Some(last) = line.packets.back() {
            prefetch_behind(last);
        }
        let (packets, _) = line.packets.as_slices();
        if let Some(packet) = packets.get(PACKETS_AHEAD) {
            prefetch(packet);
        }
        packets
    }

    /// The packet is an event of its own.
    fn push_alone(&mut self, id: LineId, at: Time, packet: Packet, extras: Option<&Extras>) {
        let place = match extras.filter(|_| packet.has_extras()) {
            Some(extras) => self.kept.put(*extras),
            None => Kept::NONE,
        };
        let kind = self.lines[id.index()].kind;
        self.events.push_packet(at, kind, packet.flow().index(), packet, (id, place));
    }

    /// Pops the first packet of the line of the next event; the event becomes that of the packet behind it.
    #[inline(always)]
    fn pop_head(&mut self, line: LineId) -> Option<(Time, Packet)> {
        let line = &mut self.lines[line.index()];
        let head = line.packets.pop_front();
        match line.packets.front() {
            Some(&(at, next)) => self.events.reschedule_next(at, next.flow().index()),
            None => self.events.pop_line(),
        }
        head
    }

    /// Pops the packet of the next event: its hop and its word. `extras`, the default before, become those of the
    /// packet. `None` if nothing is there.
    #[inline(always)]
    pub fn pop_packet(&mut self, line: LineId, extras: &mut Extras) -> Option<Routed> {
        if line.is_late() {
            let alone = self.events.pop_packet();
            if alone.extras() != Kept::NONE {
                *extras = self.kept.take(alone.extras());
            }
            return Some(Routed { hop: self.lines[alone.line().index()].hop, packet: alone.packet() });
        }
        let (_, packet) = self.pop_head(line)?;
        let line = &mut self.lines[line.index()];
        if packet.has_extras() {
            line.pop_extras(packet, extras);
        }
        Some(Routed { hop: line.hop, packet })
    }

    /// Pops the ACK of the next event into `ack`: [`Scheduler::pop_packet`] for the sender of a flow. `near` is a segment
    /// number less than 2^31 from the ACK's. `ack.sack` beyond the ACK's blocks keeps what it held. A header, which few
    /// ACKs have, goes to `headed`. (An `Option` of this size by value costs a tenth of the run.)
    #[inline(always)]
    pub fn pop_ack(
        &mut self,
        line: LineId,
        near: u64,
        ack: &mut Acknowledgement,
        headed: impl FnOnce(Header),
    ) {
        if line.is_late() {
            let alone = self.events.pop_packet();
            alone.packet().fill(alone.at(), near, ack);
            if alone.extras() != Kept::NONE {
                let extras = self.kept.take(alone.extras());
                ack.sack = extras.blocks;
                if alone.packet().is_headed() {
                    headed(extras.header);
                }
            }
            return;
        }
        let Some((at, packet)) = self.pop_head(line) else { return };
        packet.fill(at, near, ack);
        if packet.has_extras() {
            let mut extras = Extras { blocks: ack.sack, header: Header::None };
            self.lines[line.index()].pop_extras(packet, &mut extras);
            ack.sack = extras.blocks;
            if packet.is_headed() {
                headed(extras.header);
            }
        }
    }
}
