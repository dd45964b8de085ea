//! Detection of lost segments: by time (RACK) or by three SACKed segments; and undoing it after a spurious loss.

use std::cmp::Reverse;

use lfn_units::Time;

use super::{whole_us, Losses, Scoreboard, EVER, FOUND, HISTORY, LOST, RETRANS, SPARED};

impl Scoreboard {
    /// When a segment that is due now, by RACK, was last sent (RFC 8985 §6.3).
    pub fn due_by_time(&self, now: Time, reorder_window: Time) -> Time {
        whole_us(now).since(whole_us(self.rack.rtt) + whole_us(reorder_window))
    }

    /// RACK (RFC 8985 §6.2 step 5): a segment sent before the most recently delivered one is lost once
    /// `rack.rtt + reorder_window` passed since.
    pub fn detect_by_time(&mut self, now: Time, reorder_window: Time) -> Losses {
        let mut losses = Losses::default();
        let (now, limit) = (whole_us(now), whole_us(self.rack.rtt) + whole_us(reorder_window));
        self.repair.examined = self.repair.examined.max(self.una);
        let mut waits = false;
        while self.repair.examined < self.nxt {
            let seq = self.repair.examined;
            if self.repair.sacked.contains(seq) {
                self.repair.examined = self.repair.sacked.end_of(seq).unwrap_or(seq + 1);
                continue;
            }
            if self.flags(seq) & (LOST | EVER | FOUND) == 0 {
                let sent = whole_us(self.sent[self.at(seq)]);
                if (sent, seq) >= self.rack.newest() {
                    break;
                }
                if sent + limit > now {
                    waits = true;
                    break;
                }
                self.touch();
                self.mark_lost(seq, &mut losses);
                let at = self.at(seq);
                self.repair.flags[at] |= FOUND;
            }
            self.repair.examined += 1;
        }
        while let Some(&(sent, seq)) = self.repair.retransmitted.front() {
            if self.is_copy_in_flight(sent, seq) {
                let sent = whole_us(sent);
                if (sent, seq) >= self.rack.newest() {
                    break;
                }
                if sent + limit > now {
                    waits = true;
                    break;
                }
                let at = self.at(seq);
                if self.flags(seq) & SPARED != 0 {
                    self.repair.flags[at] |= LOST | FOUND;
                } else {
                    self.clear_outstanding(seq);
                    self.repair.flags[at] = self.repair.flags[at] & HISTORY | LOST | FOUND;
                    losses.copies = true;
                    self.repair.lost_again.push(Reverse(seq));
                }
                self.lost_out += 1;
                self.note_loss(seq, &mut losses);
            }
            self.repair.retransmitted.pop_front();
        }
        losses.look_again = waits.then(|| self.last_before_delivered() + limit);
        losses
    }

    /// When the last of the segments that wait and were sent before the most recently delivered one was sent.
    fn last_before_delivered(&self) -> Time {
        let (delivered, repair) = (self.rack.newest(), &self.repair);
        let mut original = None;
        let in_window = (self.una..self.nxt).contains(&self.rack.seq);
        let mut top =
            if in_window { Some(self.rack.seq) } else { self.originals_before(delivered).checked_sub(1) };
        while let Some(seq) = top.and_then(|top| repair.sacked.gap_at_or_below(top, repair.examined)) {
            let sent = whole_us(self.sent[self.at(seq)]);
            if self.flags(seq) & (LOST | EVER | FOUND) == 0 && (sent, seq) < delivered {
                original = Some(sent);
                break;
            }
            top = seq.checked_sub(1);
        }
        let before = repair.retransmitted.partition_point(|&(sent, seq)| (whole_us(sent), seq) < delivered);
        let copies = repair.retransmitted.range(..before).rev();
        let copy = copies
            .copied()
            .find(|&(sent, seq)| self.is_copy_in_flight(sent, seq))
            .map(|(sent, _)| whole_us(sent));
        original.max(copy).unwrap_or(delivered.0)
    }

    /// One past the last segment to be examined that was sent before `delivered`, those retransmitted aside: originals
    /// leave in order.
    pub(super) fn originals_before(&self, delivered: (Time, u64)) -> u64 {
        let (mut below, mut above) = (self.repair.examined, self.nxt);
        while below < above {
            let middle = below + (above - below) / 2;
            match (middle..above).find(|&seq| self.flags(seq) & EVER == 0) {
                Some(seq) if (whole_us(self.sent[self.at(seq)]), seq) < delivered => below = seq + 1,
                _ => above = middle,
            }
        }
        below
    }

    /// Whether the retransmission of `seq` at `sent` is its last one, and neither lost nor SACKed.
    pub(super) fn is_copy_in_flight(&self, sent: Time, seq: u64) -> bool {
        let flags = if seq >= self.una { self.flags(seq) } else { 0 };
        flags & (EVER | FOUND) == EVER
            && flags & (LOST | RETRANS) != LOST
            && self.sent[self.at(seq)] == sent
            && !self.repair.sacked.contains(seq)
    }

    /// Removes all marks of loss after a spurious timeout or reduction; segments are examined for loss again.
    pub fn unmark_lost(&mut self) {
        for seq in self.una..self.nxt {
            let at = self.at(seq);
            if self.repair.flags[at] & (LOST | RETRANS) == LOST | RETRANS {
                self.repair.flags[at] |= SPARED;
            }
            self.repair.flags[at] &= !LOST;
        }
        self.lost_out = 0;
        self.repair.lost.clear();
        self.repair.lost_again.clear();
        self.repair.examined = self.una;
        let copies = (self.una..self.nxt).filter(|&seq| self.flags(seq) & (EVER | FOUND) == EVER);
        let mut copies: Vec<(Time, u64)> = copies.map(|seq| (self.sent[self.at(seq)], seq)).collect();
        copies.sort_unstable();
        self.repair.retransmitted = copies.into();
    }

    /// RFC 6675 IsLost: three SACKed segments above it.
    pub fn detect_by_count(&mut self) -> Losses {
        let mut losses = Losses::default();
        let below = self.repair.highest_sacked[2];
        self.repair.examined = self.repair.examined.max(self.una);
        while self.repair.examined < below {
            let seq = self.repair.examined;
            if self.repair.sacked.contains(seq) {
                self.repair.examined = self.repair.sacked.end_of(seq).unwrap_or(seq + 1);
                continue;
            }
            if self.flags(seq) & (LOST | RETRANS) == 0 {
                self.touch();
                self.mark_lost(seq, &mut losses);
            }
            self.repair.examined += 1;
        }
        losses
    }
}
