//! What is under way between two points, and the events of its arrivals.
//!
//! Packets that cover the same distance keep their order, whoever sent them: they share a wire, a FIFO
//! line of which only the head is an event. What would break a wire's order (an ACK of a timer, a path
//! that became shorter) is an event of its own. So the cost of an event grows with the number of
//! different distances, not with packets or flows, and the order is that of (time, kind, flow)
//! either way.

use std::collections::VecDeque;

use lfn_tcp::{Acknowledgement, Range, SACK_BLOCKS};
use lfn_units::Time;

use crate::events::{Events, Kind};

const ECHOES_ORIGINAL: u8 = 1;
const DUPLICATE: u8 = 2;
const ECE: u8 = 4;
const BLOCKS_SHIFT: u32 = 3;
/// How far ahead the engine looks for flows whose memory it fetches, in parcels of a wire.
const NEAR: usize = 0;
const FAR: usize = 1;
/// Names parcels out of line among the wires of an event's index.
const LATE: u32 = 1 << 23;

/// An ACK without its SACK blocks: the flow in 24 bits, flags in 8, the low 32 of the segment number.
#[derive(Clone, Copy, Debug)]
struct Parcel(u64);

impl Parcel {
    #[inline(always)]
    fn of_ack(flow: usize, ack: &Acknowledgement) -> Parcel {
        let flags = (u8::from(ack.echoes_original) * ECHOES_ORIGINAL)
            | (u8::from(ack.duplicate) * DUPLICATE)
            | (u8::from(ack.ece) * ECE)
            | (ack.blocks << BLOCKS_SHIFT);
        Parcel(((flow as u64) << 40) | (u64::from(flags) << 32) | (ack.cumulative & 0xffff_ffff))
    }

    /// Fills `ack`, but for its SACK blocks. `near` is a segment number less than 2^31 away.
    #[inline(always)]
    fn fill(self, at: Time, near: u64, ack: &mut Acknowledgement) {
        ack.at = at;
        let distance = (self.0 as u32).wrapping_sub(near as u32) as i32;
        ack.cumulative = near.wrapping_add_signed(i64::from(distance));
        let flags = self.flags();
        ack.echoes_original = flags & ECHOES_ORIGINAL != 0;
        ack.duplicate = flags & DUPLICATE != 0;
        ack.ece = flags & ECE != 0;
        ack.blocks = flags >> BLOCKS_SHIFT;
    }

    #[inline(always)]
    fn flags(self) -> u8 {
        (self.0 >> 32) as u8
    }

    #[inline(always)]
    fn flow(self) -> usize {
        (self.0 >> 40) as usize
    }
}

/// A line of parcels, 16 bytes each with their times; SACK blocks, which few have, stand in a line of their own.
#[derive(Debug)]
struct Wire {
    kind: Kind,
    /// When the last parcel arrives.
    last: Time,
    parcels: VecDeque<(Time, Parcel)>,
    blocks: VecDeque<Range>,
}

impl Wire {
    /// Whether a parcel may stand behind those on the wire.
    #[inline(always)]
    fn is_in_order(&self, at: Time, flow: usize) -> bool {
        at > self.last || self.parcels.back().is_none_or(|last| (last.0, last.1.flow()) <= (at, flow))
    }
}

/// All that is under way, and all pending events.
#[derive(Debug, Default)]
pub(crate) struct Transit {
    pub events: Events,
    wires: Vec<Wire>,
    /// Parcels out of line, by the order in which they were sent; the first has number `late_base`.
    late: VecDeque<Option<(Time, Parcel, [Range; SACK_BLOCKS])>>,
    late_base: u32,
}

impl Transit {
    /// A new wire, at whose end parcels are events of this kind.
    pub fn wire(&mut self, kind: Kind) -> u32 {
        self.wires.push(Wire { kind, last: Time::ZERO, parcels: VecDeque::new(), blocks: VecDeque::new() });
        self.wires.len() as u32 - 1
    }

    /// Parcels under way.
    pub fn len(&self) -> usize {
        let on_wires: usize = self.wires.iter().map(|wire| wire.parcels.len()).sum();
        on_wires + self.late.iter().flatten().count()
    }

    /// Bytes of memory that grow with what is under way.
    pub fn memory_bytes(&self) -> usize {
        let wires: usize =
            self.wires.iter().map(|wire| wire.parcels.capacity() * 16 + wire.blocks.capacity() * 16).sum();
        wires + self.late.capacity() * std::mem::size_of::<Option<(Time, Parcel, [Range; SACK_BLOCKS])>>()
    }

    /// The ACK of `flow` will be at the end of the wire at `at`.
    #[inline(always)]
    pub fn send(&mut self, wire: u32, at: Time, flow: usize, ack: &Acknowledgement) {
        let line = &mut self.wires[wire as usize];
        let parcel = Parcel::of_ack(flow, ack);
        if line.parcels.is_empty() {
            self.events.push_wire(at, line.kind, flow, wire);
        } else if !line.is_in_order(at, flow) {
            let kind = line.kind;
            return self.send_late(kind, at, parcel, ack.sack);
        }
        line.last = at;
        line.parcels.push_back((at, parcel));
        if ack.blocks > 0 {
            line.blocks.extend(&ack.sack[..usize::from(ack.blocks)]);
        }
    }

    #[cold]
    fn send_late(&mut self, kind: Kind, at: Time, parcel: Parcel, sack: [Range; SACK_BLOCKS]) {
        let number = self.late_base.wrapping_add(self.late.len() as u32) % LATE;
        self.late.push_back(Some((at, parcel, sack)));
        self.events.push_wire(at, kind, parcel.flow(), LATE | number);
    }

    /// Takes what the next event stands for, an ACK at the end of `wire`, into `ack`, and removes the
    /// event. `near` is a segment number less than 2^31 from the ACK's. `ack.sack` beyond `ack.blocks` keeps what it held. (An `Option` of this size by value costs
    /// a tenth of the run.)
    #[inline(always)]
    pub fn take(&mut self, wire: u32, near: u64, ack: &mut Acknowledgement) {
        if wire & LATE != 0 {
            return self.take_late(wire & !LATE, near, ack);
        }
        let line = &mut self.wires[wire as usize];
        let Some((at, parcel)) = line.parcels.pop_front() else { return self.events.pop() };
        parcel.fill(at, near, ack);
        if ack.blocks > 0 {
            for (slot, block) in ack.sack.iter_mut().zip(line.blocks.drain(..usize::from(ack.blocks))) {
                *slot = block;
            }
        }
        match line.parcels.front() {
            Some(&(at, next)) => self.events.reschedule_next(at, next.flow()),
            None => self.events.pop(),
        }
    }

    /// The flows of two parcels that will arrive on this wire soon: the nearer one first.
    #[inline]
    pub fn soon(&self, wire: u32) -> [Option<usize>; 2] {
        let line = self.wires.get(wire as usize).map(|wire| &wire.parcels);
        [NEAR, FAR].map(|place| line.and_then(|line| line.get(place)).map(|parcel| parcel.1.flow()))
    }

    #[cold]
    fn take_late(&mut self, number: u32, near: u64, ack: &mut Acknowledgement) {
        self.events.pop();
        let place = number.wrapping_sub(self.late_base) % LATE;
        if let Some((at, parcel, sack)) = self.late.get_mut(place as usize).and_then(Option::take) {
            parcel.fill(at, near, ack);
            ack.sack = sack;
        }
        while let Some(None) = self.late.front() {
            self.late.pop_front();
            self.late_base = (self.late_base + 1) % LATE;
        }
    }
}
