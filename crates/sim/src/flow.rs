//! A flow inside the engine: sender, receiver, and the lines between them.

use lfn_header::{Header, Protocol};
use lfn_law::LawSpec;
use lfn_tcp::{Acknowledgement, Receiver, ReceiverConfig, Segment, SegmentIn, Sender, SenderConfig};
use lfn_units::Time;

use crate::config::Direction;
use crate::events::Kind;
use crate::transit::Transit;

/// The task of a flow of a crowd.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Errand {
    /// Which crowd.
    pub crowd: usize,
    /// To be told to the model when the transfer is done.
    pub session: u64,
    pub bytes: u64,
    pub begun: Time,
    /// More of the session will go over the connection.
    pub stays: bool,
}

/// Not connected yet.
pub(crate) const NO_WIRE: u32 = u32::MAX;

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

/// Everything that a flow is made of, as the engine needs it to begin one.
#[derive(Clone, Debug)]
pub(crate) struct FlowSetup {
    pub law: LawSpec,
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub direction: Direction,
    pub route: u16,
    pub ack_route: u16,
    /// Delay of the flow's own links at both ends.
    pub access: Time,
    /// Packets may overtake one another on the last link.
    pub by_event: bool,
    pub size_segments: u64,
    pub payload_bytes: u32,
    pub wire_bytes: u32,
    pub ack_bytes: u32,
    /// Bytes on the wire of the last segment, if it is not full.
    pub last_wire_bytes: u32,
}

/// Sender, receiver, and all between them that is theirs. In order of use: one cache line and the two ends
/// are all that an ordinary ACK touches.
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// The earliest pending event of the sender's timer.
    pub timer_at: Time,
    /// The earliest pending event of the receiver's timer.
    pub receiver_timer_at: Time,
    /// From the last bit's departure from the last link to the receiver, as long as no delay changes.
    pub forward_delay: Time,
    /// From the receiver to the sender where ACKs meet no queue; else nothing.
    pub ack_shift: Time,
    last_seq: u64,
    last_wire_bytes: u32,
    pub wire_bytes: u32,
    /// Packets and ACKs in flight, except data with a known arrival.
    pub under_way: u32,
    /// Wire of the receiver's ACKs: to the first link where they queue, else to the sender.
    pub wire: u32,
    /// The one link of its route, where nothing but its queue keeps data from the receiver.
    pub direct: Option<u16>,
    /// Whether data are ECN-capable: those sent for the first time, and those sent again.
    pub ect: [bool; 2],
    pub role: Role,
    pub sender: Sender,
    pub receiver: Receiver,
    pub direction: Direction,
    /// Router protocol of the headers of its packets.
    pub protocol: Option<Protocol>,
    /// Data packets may overtake one another on the last link, so that each arrival is an event.
    pub by_event: bool,
    pub route: u16,
    pub ack_route: u16,
    /// Wire from the last link of the ACKs to the sender.
    pub return_wire: u32,
    /// Wire from the last link of the data to the receiver.
    pub receiver_wire: u32,
    /// Wire of its own to the first link of the ACKs, if it shares none.
    pub to_link_wire: u32,
    pub ack_bytes: u32,
    pub payload_bytes: u32,
    /// The flow's own links at the receiver's end.
    pub forward_access: Time,
    /// The flow's own links at the sender's end.
    pub return_access: Time,
    /// Segments that the receiver has in order when the current message is complete; [`u64::MAX`] if
    /// no application waits for it.
    message_end: u64,
    pub finished: Option<Time>,
    /// The earliest pending event of the sender's timer after `timer_at`. Without it a timer that moves to and fro
    /// would leave an event behind each time.
    later_timer_at: Time,
    /// When the copy was sent that moved the receiver on last.
    moved_by_copy: Time,
    /// Task, of a flow of a crowd.
    pub errand: Errand,
    /// Writes that an interactive session has still to make.
    pub writes_left: u64,
    pub write_gap: Time,
    pub started: Time,
    /// Acknowledged segments at the end of the warm-up.
    pub base: u64,
    /// At the receiver: the header that the next ACK brings back.
    pub echo: Header,
}

impl Flow {
    /// A flow that begins at `now`. Half of its own links lie between the last link of its data and the
    /// first of its ACKs, the rest before the sender: on one loop only the sum of delays matters.
    pub fn new(setup: &FlowSetup, role: Role, now: Time) -> Flow {
        let (sender, receiver) = (Self::sender(setup, now), Receiver::new(&setup.receiver));
        let mut flow = Flow {
            sender,
            receiver,
            timer_at: Time::NEVER,
            later_timer_at: Time::NEVER,
            receiver_timer_at: Time::NEVER,
            forward_access: Time::ZERO,
            return_access: Time::ZERO,
            forward_delay: Time::ZERO,
            route: setup.route,
            ack_route: setup.ack_route,
            direct: None,
            by_event: setup.by_event,
            receiver_wire: NO_WIRE,
            wire: NO_WIRE,
            return_wire: NO_WIRE,
            to_link_wire: NO_WIRE,
            ack_shift: Time::ZERO,
            direction: setup.direction,
            role,
            ect: [false; 2],
            protocol: None,
            wire_bytes: 0,
            ack_bytes: 0,
            payload_bytes: 0,
            last_seq: 0,
            message_end: u64::MAX,
            moved_by_copy: Time::ZERO,
            last_wire_bytes: 0,
            under_way: 0,
            writes_left: 0,
            write_gap: Time::ZERO,
            started: now,
            finished: None,
            errand: Errand::default(),
            base: 0,
            echo: Header::None,
        };
        flow.set_up(setup, role, now);
        flow
    }

    fn sender(setup: &FlowSetup, now: Time) -> Sender {
        Sender::new(&setup.sender, &setup.law, now, setup.size_segments, setup.wire_bytes)
    }

    /// Another flow takes this place; buffers stay. The lines are empty.
    pub fn reuse(&mut self, setup: &FlowSetup, role: Role, now: Time) {
        self.sender.reset(&setup.sender, &setup.law, now, setup.size_segments, setup.wire_bytes);
        self.receiver.reset(&setup.receiver);
        self.set_up(setup, role, now);
    }

    fn set_up(&mut self, setup: &FlowSetup, role: Role, now: Time) {
        self.role = role;
        self.direction = setup.direction;
        self.route = setup.route;
        self.ack_route = setup.ack_route;
        self.by_event = setup.by_event;
        self.forward_access = Time(setup.access.0 / 2);
        self.return_access = setup.access - self.forward_access;
        self.ect = [setup.sender.ecn, setup.sender.ecn && setup.sender.ecn_repairs];
        self.protocol = setup.law.header();
        self.echo = Header::None;
        self.wire_bytes = setup.wire_bytes;
        self.ack_bytes = setup.ack_bytes;
        self.payload_bytes = setup.payload_bytes;
        self.last_seq = setup.size_segments.wrapping_sub(1);
        self.last_wire_bytes = setup.last_wire_bytes;
        self.message_end = u64::MAX;
        self.moved_by_copy = Time::ZERO;
        self.writes_left = 0;
        self.started = now;
        self.finished = None;
        self.base = 0;
    }

    /// Brings what its next ACK needs of the struct itself into the cache.
    #[inline(always)]
    pub fn prefetch(&self) {
        lfn_tcp::prefetch(&self.timer_at);
        self.sender.prefetch();
        self.receiver.prefetch();
    }

    /// Sees to it that the sender's timer is an event, or one before it is.
    #[inline]
    pub fn set_timer(&mut self, now: Time, index: usize, transit: &mut Transit) {
        let deadline = self.sender.deadline();
        if deadline < self.timer_at {
            self.later_timer_at = std::mem::replace(&mut self.timer_at, deadline);
            transit.events.push(deadline.max(now), Kind::SenderTimer, index);
        }
    }

    /// An event of the sender's timer happens: whether it is one that is still known.
    pub fn timer_fires(&mut self, now: Time) -> bool {
        let is_due = self.timer_at <= now;
        if is_due {
            self.timer_at = std::mem::replace(&mut self.later_timer_at, Time::NEVER);
        }
        is_due
    }

    /// Forgets all events of the timers.
    pub fn forget_timers(&mut self) {
        (self.timer_at, self.later_timer_at, self.receiver_timer_at) =
            (Time::NEVER, Time::NEVER, Time::NEVER);
    }

    /// Adds a message to a connection after all messages before it have arrived: a number of segments, and the
    /// bytes of the last one at the queue. If the segment that was last before is retransmitted, it counts
    /// as full.
    pub fn extend(&mut self, segments: u64, last_wire_bytes: u32) {
        self.last_seq += segments;
        self.last_wire_bytes = last_wire_bytes;
        self.sender.offer(segments);
        self.finished = None;
    }

    /// The application waits for the message that is sent now.
    pub fn expect_message(&mut self) {
        self.message_end = self.last_seq + 1;
    }

    /// Whether the message that the application waits for has just become complete.
    pub fn takes_message(&mut self) -> bool {
        let complete = self.receiver.next_expected() >= self.message_end;
        if complete {
            self.message_end = u64::MAX;
        }
        complete
    }

    /// Bytes of a segment at the queue.
    #[inline]
    pub fn wire_bytes_of(&self, seq: u64) -> u32 {
        if seq == self.last_seq {
            self.last_wire_bytes
        } else {
            self.wire_bytes
        }
    }

    /// All was sent and acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.sender.is_done() && self.writes_left == 0
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
        index: usize,
        transit: &mut Transit,
    ) -> u64 {
        let Segment { seq, retransmission, cwr } = segment;
        let segment = SegmentIn { seq, retransmission, ce, cwr };
        let (shift, wire) = (self.ack_shift, self.wire);
        let mut sent = 0;
        self.receiver.on_segment(at, segment, &mut |ack: &Acknowledgement| {
            sent += 1;
            transit.send(wire, ack.at + shift, index, ack);
        });
        self.acknowledged(sent, index, transit)
    }

    /// A segment with a header comes to the receiver at `at`, and its ACK brings the header back. Returns
    /// the ACKs sent.
    pub fn receive_headed(
        &mut self,
        at: Time,
        segment: Segment,
        ce: bool,
        header: Header,
        index: usize,
        transit: &mut Transit,
    ) -> u64 {
        // An ACK that was due before does not contain this header.
        let mut sent = self.on_receiver_timer(at, index, transit);
        self.echo.merge(header);
        let Segment { seq, retransmission, cwr } = segment;
        let segment = SegmentIn { seq, retransmission, ce, cwr };
        let urgent = self.echo.is_urgent();
        sent += self.answer(index, transit, |receiver, emit| {
            receiver.on_segment(at, segment, &mut |ack| emit(ack));
            if urgent {
                receiver.flush(at, &mut |ack| emit(ack));
            }
        });
        sent
    }

    /// Whether a segment that is needed was sent before the copy that moved the receiver on last: that copy's
    /// timestamp is newer, and the receiver refuses what is older by more than one ms (PAWS, RFC 7323 §5; Linux 6.12
    /// as measured).
    pub fn is_stale(&mut self, segment: Segment) -> bool {
        let Segment { seq, retransmission, .. } = segment;
        let next = self.receiver.next_expected();
        if seq < next || !self.sender.has_timestamps() {
            return false;
        }
        // Before the first copy nothing is older: most flows never look up when a segment was sent.
        if !retransmission && self.moved_by_copy == Time::ZERO {
            return false;
        }
        let sender = &self.sender;
        let sent = if retransmission { sender.copy_sent(seq) } else { sender.original_sent(seq) };
        let Some(sent) = sent else { return false };
        let stamp_ms = |at: Time| at.as_ns() / 1_000_000;
        let stale = stamp_ms(sent) + 1 < stamp_ms(self.moved_by_copy);
        if retransmission && seq == next {
            self.moved_by_copy = self.moved_by_copy.max(sent);
        }
        stale
    }

    /// The receiver answers what it does not take. Returns the ACKs sent.
    pub fn refuse(&mut self, at: Time, index: usize, transit: &mut Transit) -> u64 {
        self.answer(index, transit, |receiver, emit| receiver.refuse(at, &mut |ack| emit(ack)))
    }

    /// The receiver's held-back ACK may be due. Returns the ACKs sent.
    pub fn on_receiver_timer(&mut self, now: Time, index: usize, transit: &mut Transit) -> u64 {
        self.answer(index, transit, |receiver, emit| receiver.on_deadline(now, &mut |ack| emit(ack)))
    }

    /// Sends the ACKs that `what` has the receiver emit, and returns how many.
    fn answer(
        &mut self,
        index: usize,
        transit: &mut Transit,
        what: impl FnOnce(&mut Receiver, &mut dyn FnMut(&Acknowledgement)),
    ) -> u64 {
        let (shift, wire, echo) = (self.ack_shift, self.wire, &mut self.echo);
        let mut sent = 0;
        what(&mut self.receiver, &mut |ack: &Acknowledgement| {
            sent += 1;
            transit.send_headed(wire, ack.at + shift, index, ack, std::mem::take(echo));
        });
        self.acknowledged(sent, index, transit)
    }

    /// Counts the ACKs that the receiver sent, and schedules its timer.
    #[inline]
    fn acknowledged(&mut self, sent: u32, index: usize, transit: &mut Transit) -> u64 {
        self.under_way += sent;
        let deadline = self.receiver.deadline();
        if deadline < self.receiver_timer_at {
            self.receiver_timer_at = deadline;
            transit.events.push(deadline, Kind::ReceiverTimer, index);
        }
        u64::from(sent)
    }
}
