//! Receivers that break the rules to get more than their share.

use lfn_keys::words;
use lfn_tcp::{Acknowledgement, Receiver, SegmentIn};
use lfn_units::Time;

/// ACKs in place of one, of a receiver that splits them.
const PARTS: u32 = 8;
/// Segments that an optimistic receiver acknowledges ahead of their arrival: less than a first flight.
const AHEAD: u64 = 8;

/// How a receiver breaks the rules (Savage, Cardwell, Wetherall, Anderson, 1999; RFC 3168 section 18.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It sends each ACK of new data in eight parts, so that a sender that counts ACKs grows eight times as fast.
    SplitsAcks,
    /// It acknowledges eight segments that have not arrived, and never tells of those that are missing.
    Optimistic,
    /// It does not echo marks.
    HidesMarks,
}

words! {
    Misbehaviour { SplitsAcks = "splits-acks", Optimistic = "optimistic", HidesMarks = "hides-marks", }
}

impl Misbehaviour {
    /// ACKs that one segment may bring about.
    pub(crate) fn most_acks(self) -> u32 {
        match self {
            Misbehaviour::SplitsAcks => PARTS,
            Misbehaviour::Optimistic | Misbehaviour::HidesMarks => 1,
        }
    }

    /// A segment comes to the receiver at `at`.
    pub(crate) fn receive(
        self,
        receiver: &mut Receiver,
        at: Time,
        segment: SegmentIn,
        emit: &mut impl FnMut(&Acknowledgement),
    ) {
        let before = receiver.next_expected();
        match self {
            Misbehaviour::Optimistic => emit(&receiver.on_segment_optimistic(at, segment, AHEAD)),
            Misbehaviour::SplitsAcks => receiver.on_segment(at, segment, &mut |ack: &Acknowledgement| {
                // An ACK of a part of a segment covers no further segment: a sender that counts what is acknowledged
                // has nothing to count (RFC 3465; Linux).
                let parts = if ack.cumulative > before { PARTS - 1 } else { 0 };
                for _ in 0..parts {
                    emit(&Acknowledgement { cumulative: before, ..*ack });
                }
                emit(ack);
            }),
            Misbehaviour::HidesMarks => {
                receiver.on_segment(at, SegmentIn { ce: false, ..segment }, &mut |ack| emit(ack));
            }
        }
    }
}
