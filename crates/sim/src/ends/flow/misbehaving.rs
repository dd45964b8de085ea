//! A flow whose receiver breaks the rules: its arrivals and its ACKs.

use lfn_tcp::Segment;
use lfn_units::Time;

use super::Flow;
use crate::clock::ids::FlowId;
use crate::clock::scheduler::Scheduler;
use crate::misbehaving::Misbehaviour;

impl Flow {
    /// Segments that arrived, each once, as far as the sender knows: what is acknowledged, unless the receiver
    /// acknowledges what has not arrived.
    #[inline]
    pub fn delivered(&self) -> u64 {
        match self.path.misbehaves {
            Some(Misbehaviour::Optimistic) => self.receiver.unique(),
            _ => self.sender.una(),
        }
    }

    /// Segments that arrived in order or not, each once, as far as the sender knows.
    #[inline]
    pub fn arrived(&self) -> u64 {
        match self.path.misbehaves {
            Some(Misbehaviour::Optimistic) => self.receiver.unique(),
            _ => self.sender.una() + self.sender.sacked(),
        }
    }

    /// When the last segment arrived, of a receiver that acknowledges what has not arrived.
    pub fn new_at(&self) -> Option<Time> {
        let heard = self.heard.as_ref().filter(|_| self.path.misbehaves == Some(Misbehaviour::Optimistic));
        heard.map(|heard| heard.new_at)
    }

    /// A segment comes to a receiver that misbehaves, at `at`. Returns the ACKs sent.
    pub fn receive_misbehaving(
        &mut self,
        at: Time,
        segment: Segment,
        ce: bool,
        how: Misbehaviour,
        id: FlowId,
        scheduler: &mut Scheduler,
    ) -> u64 {
        let segment = segment.received(ce);
        let before = self.receiver.unique();
        let sent =
            self.answer(id, scheduler, |receiver, mut emit| how.receive(receiver, at, segment, &mut emit));
        if self.receiver.unique() > before {
            self.heard.get_or_insert_default().new_at = at;
        }
        sent
    }
}
