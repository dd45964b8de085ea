//! A flow whose ends count marks by AccECN (RFC 9768): its arrivals, and the feedback of its ACKs.

use lfn_header::{Feedback, Header};
use lfn_path::Ecn;
use lfn_tcp::accecn::{Ace, Mode, Received};
use lfn_tcp::Segment;
use lfn_units::Time;

use super::{Flow, Heard};
use crate::accurate::{AccEcn, Counting};
use crate::clock::ids::FlowId;
use crate::clock::scheduler::Scheduler;
use crate::config::FlowConfig;

/// The feedback of a segment that leaves at `at`, with the option if `option`.
pub(crate) fn feedback(ace: Ace, received: Option<&Received>, at: Time) -> Header {
    Header::Accurate(Feedback {
        ace: ace.bits(),
        counted_bytes: received.map(Received::low_bytes),
        stamp_ms: (at.as_ns() / 1_000_000) as u32,
    })
}

impl Heard {
    /// The header of an ACK that leaves at `at`.
    pub fn header_of_ack(&mut self, at: Time) -> Header {
        match &mut self.counting {
            None => std::mem::take(&mut self.header),
            Some(Counting { received, option, .. }) => {
                let ace = received.acknowledge();
                feedback(ace, option.then_some(&*received), at)
            }
        }
    }
}

impl Flow {
    /// [`FlowConfig::negotiates`](crate::config::FlowConfig::negotiates).
    pub fn negotiates(&self) -> Option<[Mode; 2]> {
        self.heard.as_ref()?.negotiates
    }

    /// The receiver's counters, if it has them.
    pub fn counting(&self) -> Option<&Counting> {
        self.heard.as_ref()?.counting.as_ref()
    }

    /// The feedback of marks that data asked for last, by its word in a summary; `None` for a flow that never asked for ECN.
    pub fn feedback_of_marks(&self, config: &FlowConfig) -> Option<&'static str> {
        let asked = config.sender.ecn || self.negotiates().is_some();
        asked.then(|| match self.ecn[0] {
            Ecn::NotEct => "off",
            _ if self.counting().is_some() => "accecn",
            _ if config.receiver.echo_each_mark => "dctcp",
            _ => "classic",
        })
    }

    /// Bytes of AccECN's option in its ACKs, as long as both ends mean to send it.
    pub fn option_bytes(&self) -> u32 {
        let with = self.counting().is_some_and(|counting| counting.option);
        if with {
            AccEcn::Option.ack_bytes()
        } else {
            0
        }
    }

    /// The ends agreed on no feedback of marks, or the path erases them: data are not ECN-capable.
    pub fn give_up_ecn(&mut self) {
        self.ecn = [Ecn::NotEct; 3];
    }

    /// The ends did not agree on the feedback of marks that both can do. ACKs keep the size that they were set up with.
    pub fn refuse_ecn(&mut self) {
        if let Some(heard) = &mut self.heard {
            heard.counting = None;
        }
        self.give_up_ecn();
        self.sender.on_ecn_refused();
    }

    /// The ACK that the sender takes next has this header. Out of the way of ACKs without one.
    #[inline(never)]
    pub fn on_header(&mut self, now: Time, header: Header) {
        self.sender.on_header(now, header);
        if self.sender.finds_ecn_erased() {
            self.give_up_ecn();
        }
    }

    /// A segment comes to the receiver at `at`, which counts it. Returns the ACKs sent.
    pub fn receive_counting(
        &mut self,
        at: Time,
        segment: Segment,
        ce: bool,
        id: FlowId,
        scheduler: &mut Scheduler,
    ) -> u64 {
        // An ACK that was due before does not count this segment.
        let before =
            if self.receiver.deadline() <= at { self.on_receiver_timer(at, id, scheduler) } else { 0 };
        let sent =
            if self.path.bleached { Ecn::NotEct } else { self.ecn[usize::from(segment.retransmission)] };
        let payload_bytes = self.payload_bytes_of(self.wire_bytes_of(segment.seq));
        let counting = self.heard.as_mut().and_then(|heard| heard.counting.as_mut());
        let urgent =
            counting.is_some_and(|it| it.on_packet(scheduler.now, at, sent.marked(ce), payload_bytes));
        let segment = segment.received(false);
        let sent = match self.receiver.on_plain_segment(at, segment) {
            Some(at_once) if at_once || urgent => {
                self.answer(id, scheduler, |receiver, emit| emit(&receiver.next_ack(at)))
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
}
