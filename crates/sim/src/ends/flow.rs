//! A flow inside the engine: sender, receiver, and the lines between them.

pub(crate) mod accurate;
mod misbehaving;

use std::sync::Arc;

use lfn_header::{Header, Protocol};
use lfn_path::Ecn;
use lfn_tcp::accecn::Mode;
use lfn_tcp::{Acknowledgement, Receiver, Segment, SegmentIn, Sender, SenderConfig};
use lfn_units::Time;

use crate::accurate::Counting;
use crate::application::Application;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, LinkId, RouteId};
use crate::clock::packet::{Extras, Packet};
use crate::clock::scheduler::{timer_fires, Scheduler};
use crate::config::{Direction, FlowConfig};
use crate::misbehaving::Misbehaviour;
use crate::network::Network;

/// The task of a flow of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// Which source.
    pub source: usize,
    /// To be told to the model when the transfer is done.
    pub session: u64,
    pub bytes: u64,
    pub begun: Time,
    /// More of the session will go over the connection.
    pub stays: bool,
}

/// Role of a flow in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reported one by one; the index is the flow's.
    Reported,
    /// Background, until it is done; then its place is free for another.
    Short,
    /// Background without end.
    Long,
    /// Not in use.
    Free,
}

/// The earliest pending events of a flow's timers.
pub(crate) struct Timers {
    pub sender_at: Time,
    pub receiver_at: Time,
}

/// Delays that a flow's packets pass without an event.
pub(crate) struct Legs {
    /// From the last bit's departure from the last link to the receiver, as long as no delay changes.
    pub forward_delay: Time,
    /// From the receiver to the sender where ACKs meet no queue; else nothing.
    pub ack_shift: Time,
    /// Delay line of the receiver's ACKs: to the first link where they queue, else to the sender.
    pub ack_line: LineId,
    /// The one link of its route, where nothing but its queue keeps data from the receiver.
    pub direct: Option<LinkId>,
}

/// Sizes of segments at the queue.
struct Sizes {
    last_seq: u64,
    last_wire_bytes: u32,
    wire_bytes: u32,
}

/// Delay lines beside a flow's routes.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    /// From the last link of the ACKs to the sender.
    pub to_sender: LineId,
    /// From the last link of the data to the receiver.
    pub to_receiver: LineId,
}

/// Routes, and the delay lines and a flow's own links beside them.
pub(crate) struct Path {
    pub direction: Direction,
    pub route: RouteId,
    pub ack_route: RouteId,
    /// Data packets may overtake one another on the last link, so that each arrival is an event.
    pub by_event: bool,
    pub lines: Lines,
    /// Protocol of the headers that its packets have for routers.
    pub protocol: Option<Protocol>,
    /// How its receiver breaks the rules.
    pub misbehaves: Option<Misbehaviour>,
    /// Its receiver has more to do than acknowledge: one of both, or to count marks.
    pub is_special: bool,
    /// A link erases the ECN field of its data.
    pub bleached: bool,
    /// The flow's own links at the receiver's end.
    pub forward_access: Time,
    /// The flow's own links at the sender's end.
    pub return_access: Time,
}

/// Task of a flow of a traffic source, or of one whose application is slow.
#[derive(Default)]
pub(crate) struct Task {
    /// Of a flow of a traffic source.
    pub origin: Origin,
    /// Writes that an interactive session has still to make.
    pub writes_left: u64,
    /// Their mean distance.
    pub write_gap: Time,
}

/// Fields of packets that the receiver keeps.
#[derive(Default)]
pub(crate) struct Heard {
    /// The header that the next ACK brings back.
    header: Header,
    /// When the copy was sent that moved the receiver on last.
    moved_by_copy: Time,
    /// Arrival of the last new segment, at a receiver that acknowledges segments before they arrive.
    new_at: Time,
    /// [`FlowConfig::negotiates`].
    negotiates: Option<[Mode; 2]>,
    /// Counters of marks, of a receiver with AccECN.
    counting: Option<Counting>,
}

/// Place of packets without payload in [`Flow::ecn`].
pub(crate) const CONTROL: usize = 2;

/// A TCP flow: both ends and the state between them, in order of use. An ordinary ACK touches one cache line and the
/// two ends. State that most flows never need has memory of its own.
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub timers: Timers,
    pub legs: Legs,
    sizes: Sizes,
    /// Packets and ACKs in flight, except data with a known arrival.
    pub under_way: u32,
    /// ECN field: of data sent for the first time, of data sent again, and of SYN, SYN-ACK and ACKs ([`CONTROL`]).
    pub ecn: [Ecn; 3],
    pub role: Role,
    pub sender: Sender,
    pub receiver: Receiver,
    pub path: Path,
    pub ack_bytes: u32,
    pub payload_bytes: u32,
    /// Segments that the receiver has in order when the current message is complete; [`u64::MAX`] if
    /// no application waits for it.
    message_end: u64,
    /// [`Time::NEVER`] until then.
    pub finished: Time,
    /// The earliest pending event of the sender's timer after the first. It is far from that, since the first
    /// cache line is full.
    later_timer_at: Time,
    heard: Option<Box<Heard>>,
    task: Option<Box<Task>>,
    pub started: Time,
}

const _: () = assert!(std::mem::offset_of!(Flow, sender) == 64);
// 17 cache lines: with 10,000 flows each further one costs time.
const _: () = assert!(size_of::<Flow>() <= 1088);

fn take_header(heard: &mut Option<Box<Heard>>, at: Time) -> Header {
    heard.as_mut().map_or(Header::None, |heard| heard.header_of_ack(at))
}

/// Segments that a new flow has to send; a slow application writes them one by one.
fn first_segments(config: &FlowConfig) -> u64 {
    if config.application.is_some() {
        0
    } else {
        config.size_segments
    }
}

impl Sizes {
    fn of(config: &FlowConfig) -> Sizes {
        Sizes {
            last_seq: first_segments(config).wrapping_sub(1),
            last_wire_bytes: config.wire_bytes,
            wire_bytes: config.wire_bytes,
        }
    }
}

impl Lines {
    const NONE: Lines = Lines { to_sender: LineId::NONE, to_receiver: LineId::NONE };
}

impl Path {
    /// Delay between the last link and the end of a route: that of data, or of ACKs.
    #[inline(always)]
    pub fn last_leg(&self, data: bool) -> Time {
        if data {
            self.forward_access
        } else {
            self.return_access
        }
    }

    /// Half of the flow's own links lie between the last link of its data and the first of its ACKs, the rest
    /// before the sender: on one loop only the sum of delays matters.
    fn of(config: &FlowConfig, network: &Network, lines: Lines) -> Path {
        let &FlowConfig { direction, route, ack_route, misbehaves, .. } = config;
        let access = network.access(config.rtt, [route, ack_route]);
        let forward_access = Time(access.0 / 2);
        let protocol = config.law.header();
        Path {
            direction,
            route,
            ack_route,
            // Segments count when they have arrived, also if they are acknowledged before.
            by_event: network.may_reorder(route) || misbehaves == Some(Misbehaviour::Optimistic),
            lines,
            protocol,
            misbehaves,
            is_special: protocol.is_some() || misbehaves.is_some() || config.sender.accurate_ecn,
            bleached: false,
            forward_access,
            return_access: access - forward_access,
        }
    }
}

impl Flow {
    /// A flow that begins at `now`, with the settings `shared` of its sender.
    pub fn new(
        config: &FlowConfig,
        shared: &Arc<SenderConfig>,
        network: &Network,
        role: Role,
        now: Time,
    ) -> Flow {
        let &FlowConfig { ref law, law_seed, wire_bytes, .. } = config;
        let sender = Sender::new(shared, law, law_seed, now, first_segments(config), wire_bytes);
        let mut flow = Flow {
            timers: Timers { sender_at: Time::NEVER, receiver_at: Time::NEVER },
            legs: Legs {
                forward_delay: Time::ZERO,
                ack_shift: Time::ZERO,
                ack_line: LineId::NONE,
                direct: None,
            },
            sizes: Sizes::of(config),
            under_way: 0,
            ecn: [Ecn::NotEct; 3],
            role,
            sender,
            receiver: Receiver::new(&config.receiver),
            path: Path::of(config, network, Lines::NONE),
            ack_bytes: 0,
            payload_bytes: 0,
            message_end: u64::MAX,
            finished: Time::NEVER,
            later_timer_at: Time::NEVER,
            heard: None,
            task: None,
            started: now,
        };
        flow.set_up(config, role, now);
        flow
    }

    /// Another flow takes this place; buffers stay. The lines are empty.
    pub fn reuse(
        &mut self,
        config: &FlowConfig,
        shared: &Arc<SenderConfig>,
        network: &Network,
        role: Role,
        now: Time,
    ) {
        let &FlowConfig { ref law, law_seed, wire_bytes, .. } = config;
        self.sender.reset(shared, law, law_seed, now, first_segments(config), wire_bytes);
        self.receiver.reset(&config.receiver);
        self.path = Path::of(config, network, self.path.lines);
        self.set_up(config, role, now);
    }

    fn set_up(&mut self, config: &FlowConfig, role: Role, now: Time) {
        self.role = role;
        self.ecn = [config.ecn_field(false), config.ecn_field(true), config.ecn_of_control()];
        if let Some(heard) = &mut self.heard {
            **heard = Heard::default();
        }
        if let Some(modes) = config.negotiates() {
            let heard = self.heard.get_or_insert_default();
            heard.negotiates = Some(modes);
            heard.counting = config.sender.accurate_ecn.then(|| Counting::of(config.accecn));
        }
        if let Some(task) = &mut self.task {
            **task = Task::default();
        }
        self.ack_bytes = config.ack_bytes;
        self.payload_bytes = config.payload_bytes;
        self.sizes = Sizes::of(config);
        self.message_end = u64::MAX;
        self.started = now;
        self.finished = Time::NEVER;
    }

    /// Brings what its next ACK needs of the struct itself into the cache.
    #[inline(always)]
    pub fn prefetch(&self) {
        lfn_tcp::prefetch(&self.timers);
        self.sender.prefetch();
        self.receiver.prefetch();
    }

    /// Brings what its timer needs of the struct itself into the cache.
    #[inline(always)]
    pub fn prefetch_timer(&self) {
        self.prefetch();
        lfn_tcp::prefetch(&self.later_timer_at);
    }

    /// Brings the memory behind it that its next ACK needs into the cache.
    #[inline(always)]
    pub fn prefetch_buffers(&self) {
        self.sender.prefetch_buffers();
        self.receiver.prefetch_buffers();
        if let Some(task) = &self.task {
            lfn_tcp::prefetch(&**task);
        }
    }

    /// Sees to it that the sender's timer is an event, or one before it is.
    #[inline]
    pub fn set_timer(&mut self, id: FlowId, scheduler: &mut Scheduler) {
        let pending = [&mut self.timers.sender_at, &mut self.later_timer_at];
        scheduler.set_timer(pending, self.sender.deadline(), Kind::SenderTimer, id.index());
    }

    /// An event of the sender's timer happens: whether it is one that is still known.
    pub fn timer_fires(&mut self, now: Time) -> bool {
        timer_fires([&mut self.timers.sender_at, &mut self.later_timer_at], now)
    }

    /// Forgets all events of the timers.
    pub fn forget_timers(&mut self) {
        self.timers = Timers { sender_at: Time::NEVER, receiver_at: Time::NEVER };
        self.later_timer_at = Time::NEVER;
    }

    /// Its task. One without a task begins one.
    pub fn task(&mut self) -> &mut Task {
        self.task.get_or_insert_default()
    }

    /// The task of a flow of a traffic source.
    pub fn origin(&self) -> Origin {
        self.task.as_ref().map_or_else(Origin::default, |task| task.origin)
    }

    /// Writes that its application has still to make.
    pub fn writes_left(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| task.writes_left)
    }

    /// The header that the receiver keeps for its next ACK.
    pub fn keep_header(&mut self, header: Header) {
        if self.heard.is_some() || header != Header::None {
            self.heard.get_or_insert_default().header = header;
        }
    }

    /// The header for the receiver's next ACK, once.
    pub fn take_header(&mut self) -> Header {
        self.heard.as_mut().map_or(Header::None, |heard| std::mem::take(&mut heard.header))
    }

    /// Adds a message to a connection after all messages before it have arrived. If the segment that was last before
    /// is retransmitted, it counts as full.
    pub fn extend(&mut self, bytes: u64) {
        let segments = bytes.div_ceil(u64::from(self.payload_bytes));
        self.sizes.last_seq += segments;
        self.end_with(bytes);
        self.sender.offer(segments);
        self.finished = Time::NEVER;
    }

    /// The last segment is that of a message of `bytes`, and need not be full.
    pub fn end_with(&mut self, bytes: u64) {
        let rest = (bytes % u64::from(self.payload_bytes)) as u32;
        let short = if rest == 0 { 0 } else { self.payload_bytes - rest };
        self.sizes.last_wire_bytes = self.sizes.wire_bytes - short;
    }

    /// An application waits until the receiver has this segment in order.
    pub fn expect_segment(&mut self, number: u64) {
        self.message_end = number + 1;
    }

    /// When a segment of an application has to be at the receiver, `within` this time after it was written.
    pub fn due(&self, application: &Application, within: Time, number: u64) -> Time {
        self.started.after(application.writes_at(number, self.payload_bytes)).after(within)
    }

    /// The application waits for the message that is sent now.
    pub fn expect_message(&mut self) {
        self.message_end = self.sizes.last_seq + 1;
    }

    /// Whether the message that the application waits for has just become complete.
    pub fn takes_message(&mut self) -> bool {
        let complete = self.receiver.next_expected() >= self.message_end;
        if complete {
            self.message_end = u64::MAX;
        }
        complete
    }

    /// The same when the last segment's arrival is known beforehand: then it is told at that time.
    #[inline]
    pub fn tell_message(&mut self, at: Time, id: FlowId, scheduler: &mut Scheduler) {
        if self.role == Role::Short && self.takes_message() {
            scheduler.schedule_rare(at, Kind::Message, id.index());
        }
    }

    /// Bytes of a segment at the queue.
    #[inline]
    pub fn wire_bytes_of(&self, seq: u64) -> u32 {
        if seq == self.sizes.last_seq {
            self.sizes.last_wire_bytes
        } else {
            self.sizes.wire_bytes
        }
    }

    /// Payload of a segment of this many bytes at the queue.
    pub fn payload_bytes_of(&self, wire_bytes: u32) -> u32 {
        self.payload_bytes - (self.sizes.wire_bytes - wire_bytes)
    }

    /// All was sent and acknowledged once, or nothing more will be; another message may follow.
    pub fn is_finished(&self) -> bool {
        self.finished != Time::NEVER
    }

    /// It finishes now, unless it has before.
    pub fn finish(&mut self, now: Time) {
        if !self.is_finished() {
            self.finished = now;
        }
    }

    /// The application writes no more, and what was sent is still repaired.
    pub fn stop(&mut self) {
        self.sender.stop();
        if let Some(task) = &mut self.task {
            task.writes_left = 0;
        }
    }

    /// All was sent and acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.sender.is_done() && self.writes_left() == 0
    }

    /// Header of the next data packet.
    pub fn header(&mut self) -> Header {
        if self.path.protocol.is_some() {
            self.sender.header()
        } else {
            Header::None
        }
    }

    /// Nothing of it is in the network any more.
    pub fn is_silent(&self) -> bool {
        self.under_way == 0 && self.receiver.deadline() == Time::NEVER
    }

    /// A segment comes to the receiver at `at`. Returns the ACKs sent.
    #[inline(always)]
    pub fn receive(
        &mut self,
        at: Time,
        segment: Segment,
        ce: bool,
        id: FlowId,
        scheduler: &mut Scheduler,
    ) -> u64 {
        let segment = segment.received(ce);
        let sent = match self.receiver.on_plain_segment(at, segment) {
            Some(true) => {
                let ack = self.receiver.next_ack(at);
                scheduler.push(self.legs.ack_line, at + self.legs.ack_shift, Packet::of_ack(id, &ack), None);
                1
            }
            Some(false) => 0,
            None => self.receive_unusual(at, segment, id, scheduler),
        };
        self.acknowledged(sent, id, scheduler)
    }

    /// The segment is one for [`Receiver::on_unusual_segment`]. Returns the ACKs sent.
    #[inline(never)]
    fn receive_unusual(
        &mut self,
        at: Time,
        segment: SegmentIn,
        id: FlowId,
        scheduler: &mut Scheduler,
    ) -> u32 {
        let (shift, line) = (self.legs.ack_shift, self.legs.ack_line);
        let mut sent = 0;
        self.receiver.on_unusual_segment(at, segment, &mut |ack: &Acknowledgement| {
            sent += 1;
            let extras = Extras { blocks: ack.sack, header: Header::None };
            scheduler.push(line, ack.at + shift, Packet::of_ack(id, ack), Some(&extras));
        });
        sent
    }

    /// A segment with a header comes to the receiver at `at`, and its ACK brings the header back. Returns
    /// the ACKs sent.
    pub fn receive_headed(
        &mut self,
        at: Time,
        segment: Segment,
        ce: bool,
        header: Header,
        id: FlowId,
        scheduler: &mut Scheduler,
    ) -> u64 {
        // An ACK that was due before does not contain this header.
        let before =
            if self.receiver.deadline() <= at { self.on_receiver_timer(at, id, scheduler) } else { 0 };
        let kept = &mut self.heard.get_or_insert_default().header;
        kept.merge(header);
        let urgent = kept.is_urgent();
        let segment = segment.received(ce);
        let sent = match self.receiver.on_plain_segment(at, segment) {
            Some(at_once) if at_once || urgent => {
                let ack = self.receiver.next_ack(at);
                let extras = Extras { blocks: ack.sack, header: self.take_header() };
                let (line, at) = (self.legs.ack_line, at + self.legs.ack_shift);
                scheduler.push(line, at, Packet::of_ack(id, &ack), Some(&extras));
                self.acknowledged(1, id, scheduler)
            }
            Some(_) => self.acknowledged(0, id, scheduler),
            None => self.answer(id, scheduler, |receiver, emit| {
                receiver.on_unusual_segment(at, segment, emit);
                if urgent {
                    receiver.flush(at, &mut |ack| emit(ack));
                }
            }),
        };
        before + sent
    }

    /// Whether a segment that is needed was sent before the copy that moved the receiver on last: that copy's
    /// timestamp is newer, and the receiver refuses what is older by more than one ms (PAWS, RFC 7323 §5; Linux 6.12
    /// as measured).
    pub fn is_stale(&mut self, segment: Segment) -> bool {
        let Segment { seq, retransmission, copy, .. } = segment;
        let next = self.receiver.next_expected();
        if seq < next || !self.sender.has_timestamps() {
            return false;
        }
        // Before the first copy nothing is older: most flows never look up when a segment was sent.
        let moved_by_copy = self.heard.as_ref().map_or(Time::ZERO, |heard| heard.moved_by_copy);
        if !retransmission && moved_by_copy == Time::ZERO {
            return false;
        }
        let sender = &self.sender;
        let sent = sender.transmission(seq, retransmission.then_some(copy));
        let Some(sent) = sent else { return false };
        let stamp_ms = |at: Time| at.as_ns() / 1_000_000;
        let stale = stamp_ms(sent) + 1 < stamp_ms(moved_by_copy);
        if retransmission && seq == next {
            self.heard.get_or_insert_default().moved_by_copy = moved_by_copy.max(sent);
        }
        stale
    }

    /// The receiver answers a segment that it refuses. Returns the ACKs sent.
    pub fn refuse(&mut self, at: Time, id: FlowId, scheduler: &mut Scheduler) -> u64 {
        self.answer(id, scheduler, |receiver, emit| receiver.refuse(at, &mut |ack| emit(ack)))
    }

    /// The receiver's held-back ACK may be due. Returns the ACKs sent.
    pub fn on_receiver_timer(&mut self, now: Time, id: FlowId, scheduler: &mut Scheduler) -> u64 {
        self.answer(id, scheduler, |receiver, emit| receiver.on_deadline(now, &mut |ack| emit(ack)))
    }

    /// Sends the ACKs that the receiver emits in `what`, and returns their number.
    pub fn answer(
        &mut self,
        id: FlowId,
        scheduler: &mut Scheduler,
        what: impl FnOnce(&mut Receiver, &mut dyn FnMut(&Acknowledgement)),
    ) -> u64 {
        let (shift, line, heard) = (self.legs.ack_shift, self.legs.ack_line, &mut self.heard);
        let mut sent = 0;
        what(&mut self.receiver, &mut |ack: &Acknowledgement| {
            sent += 1;
            let extras = Extras { blocks: ack.sack, header: take_header(heard, ack.at) };
            let packet = Packet::of_ack(id, ack).with_feedback(&extras.header);
            scheduler.push(line, ack.at + shift, packet, Some(&extras));
        });
        self.acknowledged(sent, id, scheduler)
    }

    /// Counts the ACKs that the receiver sent, and schedules its timer.
    #[inline]
    fn acknowledged(&mut self, sent: u32, id: FlowId, scheduler: &mut Scheduler) -> u64 {
        self.under_way += sent;
        let deadline = self.receiver.deadline();
        if deadline < self.timers.receiver_at {
            self.timers.receiver_at = deadline;
            scheduler.schedule_rare(deadline, Kind::ReceiverTimer, id.index());
        }
        u64::from(sent)
    }
}
