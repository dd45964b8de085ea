//! The marks that an ACK tells of: an echo, or AccECN's counters (RFC 9768).

use lfn_header::Feedback;

use super::{Sender, State};
use crate::accecn::{Ace, Decoder, Fields, Heard};

/// Segments acknowledged, none of which arrived as it was sent, that show a path which erases the ECN field. The number
/// is ours: RFC 9768 appendix A.4 has the arithmetic and no threshold.
const BLEACHED_SEGMENTS: u64 = 64;

/// The sender's end of AccECN.
pub(super) struct Marks {
    decoder: Decoder,
    /// Of the ACK that comes next.
    heard: Option<Feedback>,
    /// The newest timestamp of an ACK.
    newest_ms: Option<u32>,
    /// Payload acknowledged since a counter of bytes moved last.
    unmoved_bytes: u64,
    erased: bool,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { decoder: Decoder::new(false), heard: None, newest_ms: None, unmoved_bytes: 0, erased: false }
    }
}

impl Marks {
    /// Marked segments that the ACK tells of, which delivers so many segments, repairs that were not ECN-capable among them
    /// if `repairs`.
    fn count(&mut self, delivered: u32, mss_bytes: u32, repairs: bool) -> u32 {
        let Some(feedback) = self.heard.take() else { return 0 };
        let ahead_ms = self.newest_ms.map(|newest| feedback.stamp_ms.wrapping_sub(newest) as i32);
        let is_newer = ahead_ms.is_none_or(|ahead| ahead > 0);
        let is_older = ahead_ms.is_some_and(|ahead| ahead < 0);
        if is_newer {
            self.newest_ms = Some(feedback.stamp_ms);
        }
        let acked_bytes = u64::from(delivered) * u64::from(mss_bytes);
        let fields = feedback.counted_bytes.map(|[e0b, ceb, e1b]| Fields {
            e0b: Some(e0b),
            ceb: Some(ceb),
            e1b: Some(e1b),
        });
        let before = self.decoder.bytes();
        let heard = Heard { ace: Ace::from_bits(feedback.ace), fields, acked_bytes, is_newer, is_older };
        let marked = self.decoder.on_ack(&heard, mss_bytes);
        if self.decoder.bytes() != before {
            self.unmoved_bytes = 0;
        } else if fields.is_some() && !repairs {
            self.unmoved_bytes += acked_bytes;
            self.erased |= self.unmoved_bytes >= BLEACHED_SEGMENTS * u64::from(mss_bytes);
        }
        u32::try_from(marked).unwrap_or(u32::MAX)
    }
}

impl Sender {
    /// Marked segments that an ACK with [`AckFlags::ECE`](crate::AckFlags::ECE) tells of, which delivers so many segments.
    /// An echo covers all of them.
    #[cold]
    pub(super) fn count_marks(&mut self, delivered: u32) -> u32 {
        let repairs = !self.config.ecn_repairs && matches!(self.state, State::Recovery | State::Loss);
        match self.rare.as_mut().and_then(|rare| rare.marks.as_mut()) {
            Some(marks) => marks.count(delivered, self.config.mss_bytes, repairs),
            None => delivered.max(1),
        }
    }

    /// The ACK that comes next brings AccECN's counters.
    #[cold]
    pub(super) fn hear(&mut self, feedback: Feedback) {
        if let Some(marks) = self.rare.as_mut().and_then(|rare| rare.marks.as_mut()) {
            marks.heard = Some(feedback);
        }
    }

    /// Segments that arrived with CE, as AccECN told so far; `None` without it.
    pub fn marks_counted(&self) -> Option<u64> {
        Some(self.rare.as_ref()?.marks.as_ref()?.decoder.marks())
    }

    /// The path erases the ECN field of segments, as the option of AccECN shows (RFC 9768 appendix A.4): marks would not
    /// arrive, so the sender must not ask for them.
    pub fn finds_ecn_erased(&self) -> bool {
        self.rare.as_ref().and_then(|rare| rare.marks.as_ref()).is_some_and(|marks| marks.erased)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    fn ack(marks: &mut Marks, feedback: Feedback, delivered: u32) -> u32 {
        marks.heard = Some(feedback);
        marks.count(delivered, MSS, false)
    }

    #[test]
    fn an_ack_that_was_overtaken_counts_nothing() {
        let mut marks = Marks::default();
        let at = |ace, stamp_ms| Feedback { ace, counted_bytes: None, stamp_ms };
        assert_eq!(ack(&mut marks, at(7, 20), 2), 2);
        // It left before, and acknowledges nothing new: its counter is older.
        assert_eq!(ack(&mut marks, at(6, 19), 0), 0);
        // Nor one whose SACK blocks are new.
        assert_eq!(ack(&mut marks, at(6, 19), 1), 0);
        // A newer one without new data tells of a copy that arrived with a mark.
        assert_eq!(ack(&mut marks, at(0, 21), 0), 1);
        // The clock of timestamps wraps.
        marks.newest_ms = Some(u32::MAX);
        assert_eq!(ack(&mut marks, at(1, 0), 0), 1);
        assert_eq!(marks.decoder.marks(), 4);
        // An ACK without feedback tells of none.
        assert_eq!(marks.count(2, MSS, false), 0);
    }

    #[test]
    fn a_path_that_erases_the_field_is_found_by_the_option_alone() {
        let told = |counted_bytes| {
            let mut marks = Marks::default();
            (0..40).for_each(|at| {
                let feedback = Feedback { ace: 5, counted_bytes, stamp_ms: at };
                ack(&mut marks, feedback, 2);
            });
            marks.erased
        };
        assert!(told(Some([1, 0, 1])));
        assert!(!told(None));
        // Repairs leave as Not-ECT, and move no counter.
        let mut marks = Marks::default();
        for stamp_ms in 0..40 {
            marks.heard = Some(Feedback { ace: 5, counted_bytes: Some([1, 0, 1]), stamp_ms });
            marks.count(2, MSS, true);
        }
        assert!(!marks.erased);
        // Counters that move say that the field arrives.
        let mut marks = Marks::default();
        for at in 0..200 {
            let counted_bytes = Some([1, 0, 1 + (at + 1) / 16 * 16 * 2 * MSS]);
            ack(&mut marks, Feedback { ace: 5, counted_bytes, stamp_ms: at }, 2);
        }
        assert!(!marks.erased);
    }
}
