//! A receiver that acknowledges what it does not have.

use lfn_units::Time;

use super::{AckFlags, Acknowledgement, Receiver, SegmentIn};

impl Receiver {
    /// A segment arrives at an optimistic receiver (Savage, Cardwell, Wetherall, Anderson, 1999): it hides gaps, and its
    /// ACK covers `ahead` segments that have not arrived. A repetition is acknowledged honestly.
    pub fn on_segment_optimistic(&mut self, now: Time, segment: SegmentIn, ahead: u64) -> Acknowledgement {
        self.received += 1;
        if segment.seq < self.next {
            self.duplicates += 1;
        } else {
            self.skipped += segment.seq - self.next;
            self.next = segment.seq + 1;
        }
        self.flags = if segment.retransmission {
            self.flags.echoing(segment.copy)
        } else {
            self.flags.with(AckFlags::ECHOES_ORIGINAL, true)
        };
        let ack = self.next_ack(now);
        let ahead = if segment.retransmission { 0 } else { ahead };
        Acknowledgement { cumulative: self.next + ahead, ..ack }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReceiverConfig;

    #[test]
    fn gaps_are_hidden_and_segments_counted() {
        let mut receiver = Receiver::new(&ReceiverConfig::linux(Time::from_ms(40), 1448));
        let mut acked = |seq, retransmission| {
            let segment = SegmentIn { seq, retransmission, copy: 0, ce: false, cwr: false };
            let ack = receiver.on_segment_optimistic(Time::ZERO, segment, 8);
            (ack.cumulative, ack.flags.blocks(), receiver.unique(), receiver.duplicates())
        };
        assert_eq!(acked(0, false), (9, 0, 1, 0));
        assert_eq!(acked(5, false), (14, 0, 2, 0));
        assert_eq!(acked(3, false), (14, 0, 2, 1));
        assert_eq!(acked(14, true), (15, 0, 3, 1));
    }
}
