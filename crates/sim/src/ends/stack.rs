//! Whole stacks without I/O as ends of routes. A datagram travels as a number; its payload stays with the stack.

use lfn_header::Header;
use lfn_path::Ecn;
use lfn_units::Time;

use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, RouteId};
use crate::clock::packet::{AtQueue, Class, Extras, Hop, Packet, PacketView, Routed};
use crate::clock::scheduler::{Departing, Scheduler};

/// An end sends at most so many datagrams at one instant; the others leave at its next event.
const MOST_AT_ONCE: usize = 1 << 16;
/// A timer that is due again at once is due after this time, so that time goes on.
const LEAST_WAIT: Time = Time::from_us(1);

/// A datagram that an end hands over.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Where the stack keeps its payload; the other end gets this number.
    pub id: u64,
    /// On the wire, with all headers; at least 1.
    pub bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
}

/// Both ends of a connection of a stack without I/O: end 0 sends over the first route, end 1 over the second.
///
/// All is called in virtual time. A stack that reads a clock or draws from the operating system makes a run that cannot be
/// repeated.
pub trait Stack: Send {
    /// The next datagram that an end sends now; `None` if there is none. It is asked after each of the other calls, until then.
    fn poll_transmit(&mut self, end: usize, now: Time) -> Option<Datagram>;

    /// A datagram of the other end reaches this one; `ce` if its field says congestion experienced.
    fn handle_datagram(&mut self, end: usize, now: Time, id: u64, ce: bool);

    /// When an end wants [`Stack::handle_timeout`]; [`Time::NEVER`] if it does not.
    fn timeout(&mut self, end: usize) -> Time;

    /// The time that an end asked for has come.
    fn handle_timeout(&mut self, end: usize, now: Time);

    /// A datagram is under way no more: it was delivered, or it is lost.
    fn forget(&mut self, _id: u64) {}
}

/// A stack and its place in the network.
pub struct StackConfig {
    /// Routes of the datagrams of end 0 and of end 1.
    pub routes: [RouteId; 2],
    /// Delay behind the last link of each route.
    pub delays: [Time; 2],
    /// When both ends are first asked for datagrams.
    pub start: Time,
    /// Largest datagram on the wire.
    pub largest_bytes: u32,
    /// Both ends.
    pub stack: Box<dyn Stack>,
}

/// Datagrams of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// Handed over by the end.
    pub sent: u64,
    /// That reached the other end, copies included.
    pub delivered: u64,
    /// Dropped by a queue, or lost.
    pub lost: u64,
}

/// A datagram under way.
struct UnderWay {
    datagram: Datagram,
    /// Itself and the copies that a link made.
    copies: u32,
}

/// All stacks, and their datagrams.
#[derive(Default)]
pub(crate) struct Stacks {
    stacks: Vec<Box<dyn Stack>>,
    /// Two for each stack.
    ends: Vec<End>,
    under_way: Vec<UnderWay>,
    free: Vec<usize>,
}

struct End {
    route: RouteId,
    /// From the last link of its route to the other end.
    line: LineId,
    delay: Time,
    /// The earliest pending event of its timer.
    timer_at: Time,
    counts: StackCounts,
}

impl Stacks {
    /// Adds both ends of a stack.
    pub fn add(&mut self, scheduler: &mut Scheduler, config: StackConfig) {
        for (&route, &delay) in config.routes.iter().zip(&config.delays) {
            let line = scheduler.add_line(Kind::AtReceiver, Hop::new(Class::Datagram, route, 0));
            scheduler.schedule(config.start, Kind::StackTimer, self.ends.len());
            self.ends.push(End {
                route,
                line,
                delay,
                timer_at: config.start,
                counts: StackCounts::default(),
            });
        }
        self.stacks.push(config.stack);
    }

    /// The timer of an end is due, or was.
    pub fn on_timer(&mut self, scheduler: &mut Scheduler, index: usize) {
        let (now, end) = (scheduler.now, &mut self.ends[index]);
        if end.timer_at <= now {
            end.timer_at = Time::NEVER;
        }
        let stack = &mut self.stacks[index / 2];
        if stack.timeout(index % 2) <= now {
            stack.handle_timeout(index % 2, now);
        }
        self.transmit(scheduler, index, now + LEAST_WAIT);
    }

    /// A datagram reaches the end that it is for.
    pub fn on_delivered(&mut self, scheduler: &mut Scheduler, packet: Packet) {
        let (from, now) = (packet.flow().index(), scheduler.now);
        self.ends[from].counts.delivered += 1;
        let id = self.under_way[packet.slot()].datagram.id;
        self.stacks[from / 2].handle_datagram(1 - from % 2, now, id, packet.ce());
        self.release(packet);
        self.transmit(scheduler, from ^ 1, now);
    }

    /// Sends all that an end has, and sets its timer, not before `earliest`.
    fn transmit(&mut self, scheduler: &mut Scheduler, index: usize, earliest: Time) {
        let (stack, end) = (&mut self.stacks[index / 2], &mut self.ends[index]);
        for _ in 0..MOST_AT_ONCE {
            let Some(datagram) = stack.poll_transmit(index % 2, scheduler.now) else { break };
            let kept = UnderWay { datagram, copies: 1 };
            let slot = self.free.pop().unwrap_or(self.under_way.len());
            match self.under_way.get_mut(slot) {
                Some(place) => *place = kept,
                None => self.under_way.push(kept),
            }
            end.counts.sent += 1;
            let hop = Hop::new(Class::Datagram, end.route, 0);
            let packet = Packet::of_datagram(FlowId::new(index), slot);
            scheduler.hand_over(Departing { routed: Routed { hop, packet }, header: Header::None });
        }
        let timeout = stack.timeout(index % 2);
        if timeout != Time::NEVER {
            let at = timeout.max(earliest);
            if at < end.timer_at {
                end.timer_at = at;
                scheduler.schedule(at, Kind::StackTimer, index);
            }
        }
    }

    /// One of a datagram's copies is under way no more.
    fn release(&mut self, packet: Packet) {
        let place = &mut self.under_way[packet.slot()];
        place.copies -= 1;
        if place.copies == 0 {
            self.stacks[packet.flow().index() / 2].forget(place.datagram.id);
            self.free.push(packet.slot());
        }
    }

    /// A datagram was dropped or lost.
    pub fn on_lost(&mut self, packet: Packet) {
        self.ends[packet.flow().index()].counts.lost += 1;
        self.release(packet);
    }

    /// A link made a copy.
    pub fn on_duplicated(&mut self, packet: Packet) {
        self.under_way[packet.slot()].copies += 1;
    }

    /// A datagram as queues see it.
    pub fn at_queue(&self, packet: Packet) -> AtQueue {
        let Datagram { bytes, ecn, .. } = self.under_way[packet.slot()].datagram;
        AtQueue { bytes: bytes.max(1), ecn, last_leg: Time::ZERO }
    }

    /// A datagram as recordings see it.
    pub fn view(&self, packet: Packet) -> PacketView {
        let Datagram { bytes, ecn, .. } = self.under_way[packet.slot()].datagram;
        let end = packet.flow().index();
        PacketView {
            bytes,
            class: Class::Datagram,
            seq: 0,
            payload_bytes: bytes,
            number: (end / 2) as u32,
            reverse: end % 2 == 1,
            l4s: ecn == Ecn::Ect1,
        }
    }

    /// A datagram comes to the end of its route at `at`, now or later.
    pub fn take(&self, scheduler: &mut Scheduler, at: Time, packet: Packet, extras: &Extras) {
        let end = &self.ends[packet.flow().index()];
        scheduler.push(end.line, at + end.delay, packet, Some(extras));
    }

    /// Datagrams: sent, and delivered.
    pub fn packets(&self) -> (u64, u64) {
        let counts = || self.ends.iter().map(|end| end.counts);
        (counts().map(|one| one.sent).sum(), counts().map(|one| one.delivered).sum())
    }

    /// Of both ends of a stack.
    pub fn counts(&self, number: usize) -> Option<[StackCounts; 2]> {
        let ends = self.ends.get(2 * number..2 * number + 2)?;
        Some([ends[0].counts, ends[1].counts])
    }

    pub fn memory_bytes(&self) -> usize {
        self.under_way.capacity() * size_of::<UnderWay>() + self.ends.capacity() * size_of::<End>()
    }
}
