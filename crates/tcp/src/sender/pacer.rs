//! Pacing: segment by segment at a rate, or in blocks.

use lfn_law::Control;
use lfn_units::Time;

/// When the next segment may be sent.
pub(super) struct Pacer {
    /// No segment before this.
    pub next_send: Time,
    /// Block pacing: no new block before this.
    block_end: Time,
    /// Segments that this block may still send.
    block_left: u32,
    /// Of a full segment.
    pub wire_bytes: u32,
    /// Every segment sent is timed: for pacing that the law does not ask for, or for the rate sampler.
    pub times_all: bool,
    /// A segment that leaves late shortens the gap after it by as much, at most by half, as in Linux (measured). The
    /// routers of a protocol count on the rate that they gave.
    pub makes_up: bool,
    /// A segment was ready and had to wait for `next_send`.
    pub held: bool,
}

/// Time to send an amount at a rate in the same unit per second.
fn gap(size: u128, rate: u128) -> Time {
    Time(u64::try_from(size * 1_000_000_000_000 / rate.max(1)).unwrap_or(u64::MAX))
}

impl Pacer {
    pub fn new(times_all: bool, makes_up: bool, wire_bytes: u32) -> Pacer {
        Pacer {
            next_send: Time::ZERO,
            block_end: Time::ZERO,
            block_left: 0,
            wire_bytes,
            times_all,
            makes_up,
            held: false,
        }
    }

    /// Whether a segment that is ready must wait.
    pub fn holds(&mut self, now: Time) -> bool {
        self.held = now < self.next_send;
        self.held
    }

    /// Time has passed: whether a segment still waits.
    pub fn release(&mut self, now: Time) {
        self.held &= now < self.next_send;
    }

    /// The law changed its rate: the next segment leaves one gap of the new rate after the last one.
    pub fn change_rate(&mut self, mss_bytes: u32, before_bytes_per_s: u64, after_bytes_per_s: u64) {
        let gap = |bytes_per_s| gap(u128::from(mss_bytes), u128::from(bytes_per_s));
        self.next_send = self.next_send.since(gap(before_bytes_per_s)).after(gap(after_bytes_per_s));
    }

    /// A segment is sent: the next one waits for the law's rate, or for Linux's. `outstanding` are segments.
    pub fn on_sent(&mut self, now: Time, srtt_ns: u64, mss_bytes: u32, outstanding: u64, control: &Control) {
        let (bits, bits_per_s) = if control.pacing_Bps != 0 {
            // A law's rate counts payload, like its window, and as in Linux.
            (u128::from(mss_bytes) * 8, u128::from(control.pacing_Bps) * 8)
        } else {
            if srtt_ns == 0 {
                return;
            }
            // Linux: twice the window a round trip in slow start, 1.2 times after; in a recovery what is outstanding,
            // received or not, if that is more (measured: 70 retransmissions a millisecond where the window had 37).
            let gain = if control.cwnd < control.ssthresh / 2 { 200 } else { 120 };
            let bits = u128::from(self.wire_bytes) * 8;
            let window = u128::from(control.cwnd.floor().max(outstanding));
            (bits, window * bits * 1_000_000_000 * gain / (100 * u128::from(srtt_ns)))
        };
        let gap = gap(bits, bits_per_s);
        let late = if self.makes_up { now.since(self.next_send) } else { Time::ZERO };
        self.next_send = self.next_send.max(now).after(gap.since(late.min(Time(gap.0 / 2))));
    }

    /// Counts a new segment in its block. A block begins with its first segment and lasts at least
    /// srtt/blocks: if all of it is sent earlier, the sender pauses. Unused segments of a block expire at its
    /// end.
    pub fn count_in_block(&mut self, now: Time, srtt_ns: u64, control: &Control) {
        if self.block_left == 0 || now >= self.block_end {
            let blocks = u64::from(control.blocks.max(1));
            self.block_end = now + Time::from_ns(srtt_ns / blocks);
            self.block_left = control.block;
        }
        self.block_left -= 1;
        if self.block_left == 0 {
            self.next_send = self.block_end;
        }
    }

    /// An episode begins: nothing waits for a block's end.
    pub fn end_block(&mut self, now: Time, control: &Control) {
        if control.block > 0 {
            self.block_left = 0;
            self.next_send = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux keeps the mean rate where its segments leave late, and sends no two of them closer than half a gap.
    #[test]
    fn a_late_segment_shortens_the_next_gap_by_half_at_most() {
        let control = Control { pacing_Bps: 1_000_000, ..Control::new(10) };
        let us = |us: u64| Time::from_ns(us * 1000);
        for (makes_up, left_us, next_us) in
            [(true, 1000, 2000), (true, 1300, 2000), (true, 5000, 5500), (false, 1300, 2300)]
        {
            let mut pacer = Pacer::new(true, makes_up, 1000);
            pacer.next_send = us(1000);
            assert!(pacer.holds(us(999)) && !pacer.holds(us(left_us)));
            pacer.on_sent(us(left_us), 0, 1000, 1, &control);
            assert_eq!(pacer.next_send, us(next_us), "{makes_up} {left_us}");
        }
    }
}
