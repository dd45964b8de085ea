//! A flow inside the engine: sender, receiver, and the lines between them.

use lfn_law::LawSpec;
use lfn_tcp::{Acknowledgement, Receiver, ReceiverConfig, Segment, SegmentIn, Sender, SenderConfig};
use lfn_units::{Rate, Time};

use crate::config::Direction;
use crate::events::{Events, Kind};
use crate::line::Line;

/// What a flow is to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reported one by one; the index is the flow's.
    Reported,
    /// Background, until it is done; then its place is free for another.
    Short,
    /// Background without end.
    Long,
    /// Nobody's.
    Free,
}

/// Everything that a flow is made of, as the engine needs it to begin one.
#[derive(Clone, Debug)]
pub(crate) struct FlowSetup {
    pub law: LawSpec,
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub direction: Direction,
    pub rtt: Time,
    pub size_segments: u64,
    pub payload_bytes: u32,
    pub wire_bytes: u32,
    pub ack_bytes: u32,
    /// Data travel on the reverse link, and ACKs queue with them.
    pub acks_meet_data: bool,
    /// Rate of the reverse link.
    pub ack_rate: Rate,
    /// Bytes on the wire of the last segment, if it is not full.
    pub last_wire_bytes: u32,
}

/// Sender, receiver, and all between them that is theirs.
pub(crate) struct Flow {
    /// ACKs on the way to the sender.
    pub acks: Line,
    pub sender: Sender,
    pub receiver: Receiver,
    /// The earliest pending event of the sender's timer.
    pub timer_at: Time,
    /// The earliest pending event of the receiver's timer.
    pub receiver_timer_at: Time,
    /// From the bottleneck to the receiver, and to the reverse link.
    pub forward_delay: Time,
    /// From the reverse link to the sender.
    pub return_delay: Time,
    /// ACKs queue on the reverse link, and so are events there.
    to_link: bool,
    /// From the receiver to the end of the line of ACKs: to the reverse link at once where data contend
    /// with them there, else all the way, their own serialisation included.
    ack_shift: Time,
    last_seq: u64,
    last_wire_bytes: u32,
    pub wire_bytes: u32,
    pub ack_bytes: u32,
    pub payload_bytes: u32,
    pub direction: Direction,
    pub role: Role,
    pub ect: bool,
    /// Packets of this flow in queues of links in event mode.
    pub queued: u32,
    pub finished: Option<Time>,
    /// Writes that an interactive session has still to make.
    pub writes_left: u64,
    pub write_gap: Time,
    pub started: Time,
    /// Acknowledged segments at the end of the warm-up.
    pub base: u64,
    /// ACKs on the way to the reverse link, where data contend with them.
    pub acks_to_link: Line,
}

impl Flow {
    /// A flow that begins at `now`. The path is cut so that the bottleneck is next to the sender and
    /// the reverse link next to the receiver: on one loop only the sum of delays matters.
    pub fn new(setup: &FlowSetup, role: Role, now: Time) -> Flow {
        let (sender, receiver) = (Self::sender(setup, now), Receiver::new(&setup.receiver));
        let mut flow = Flow {
            sender,
            receiver,
            acks: Line::default(),
            acks_to_link: Line::default(),
            timer_at: Time::NEVER,
            receiver_timer_at: Time::NEVER,
            forward_delay: Time::ZERO,
            return_delay: Time::ZERO,
            to_link: false,
            ack_shift: Time::ZERO,
            direction: setup.direction,
            role,
            ect: false,
            wire_bytes: 0,
            ack_bytes: 0,
            payload_bytes: 0,
            last_seq: 0,
            last_wire_bytes: 0,
            queued: 0,
            writes_left: 0,
            write_gap: Time::ZERO,
            started: now,
            finished: None,
            base: 0,
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
        self.forward_delay = Time(setup.rtt.0 / 2);
        self.return_delay = setup.rtt - self.forward_delay;
        self.to_link = setup.acks_meet_data;
        let serialisation = Time(u64::from(setup.ack_bytes) * 8_000_000_000_000 / setup.ack_rate.0);
        self.ack_shift = if self.to_link { Time::ZERO } else { self.return_delay + serialisation };
        self.ect = setup.sender.ecn;
        self.wire_bytes = setup.wire_bytes;
        self.ack_bytes = setup.ack_bytes;
        self.payload_bytes = setup.payload_bytes;
        self.last_seq = setup.size_segments.wrapping_sub(1);
        self.last_wire_bytes = setup.last_wire_bytes;
        self.writes_left = 0;
        self.started = now;
        self.finished = None;
        self.base = 0;
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
        self.writes_left == 0 && self.sender.is_done()
    }

    /// Nothing of it is in the network any more.
    pub fn is_silent(&self) -> bool {
        self.queued == 0
            && self.acks.is_empty()
            && self.acks_to_link.is_empty()
            && self.receiver.deadline() == Time::NEVER
    }

    /// A segment that left the bottleneck at `departs` comes to the receiver. Returns the ACKs sent.
    #[inline]
    pub fn receive(
        &mut self,
        departs: Time,
        segment: Segment,
        ce: bool,
        index: usize,
        events: &mut Events,
    ) -> u64 {
        let at = departs + self.forward_delay;
        let Segment { seq, retransmission, cwr } = segment;
        let segment = SegmentIn { seq, retransmission, ce, cwr };
        let shift = self.ack_shift;
        let line = if self.to_link { &mut self.acks_to_link } else { &mut self.acks };
        let (first, mut sent) = (line.is_empty(), 0);
        self.receiver.on_segment(at, segment, &mut |ack: &Acknowledgement| {
            sent += 1;
            line.push(ack.at + shift, ack);
        });
        self.announce(first, index, events);
        sent
    }

    /// The receiver's held-back ACK may be due. Returns the ACKs sent.
    pub fn on_receiver_timer(&mut self, now: Time, index: usize, events: &mut Events) -> u64 {
        let shift = self.ack_shift;
        let line = if self.to_link { &mut self.acks_to_link } else { &mut self.acks };
        let (first, mut sent) = (line.is_empty(), 0);
        self.receiver.on_deadline(now, &mut |ack: &Acknowledgement| {
            sent += 1;
            line.push(ack.at + shift, ack);
        });
        self.announce(first, index, events);
        sent
    }

    /// Schedules the head of the line of ACKs if it was empty (`first`), and the receiver's timer.
    #[inline]
    fn announce(&mut self, first: bool, index: usize, events: &mut Events) {
        if first {
            let (line, kind) = if self.to_link {
                (&self.acks_to_link, Kind::AckAtLink)
            } else {
                (&self.acks, Kind::AckAtSender)
            };
            if let Some(at) = line.next_at() {
                events.push(at, kind, index);
            }
        }
        let deadline = self.receiver.deadline();
        if deadline < self.receiver_timer_at {
            self.receiver_timer_at = deadline;
            events.push(deadline, Kind::ReceiverTimer, index);
        }
    }
}
