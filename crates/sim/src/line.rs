//! A FIFO line of ACKs under way with constant delay.

use std::collections::VecDeque;

use lfn_tcp::{Acknowledgement, Range};
use lfn_units::Time;

const SEQ_BITS: u32 = 56;
const ECHOES_ORIGINAL: u64 = 1 << 56;
const DUPLICATE: u64 = 1 << 57;
const ECE: u64 = 1 << 58;
const BLOCKS_SHIFT: u32 = 60;

/// ACKs in order of arrival: 16 bytes each; SACK blocks, which few have, stand in a line of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    acks: VecDeque<(Time, u64)>,
    blocks: VecDeque<Range>,
}

impl Line {
    pub fn len(&self) -> usize {
        self.acks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    pub fn memory_bytes(&self) -> usize {
        self.acks.capacity() * 16 + self.blocks.capacity() * 16
    }

    pub fn next_at(&self) -> Option<Time> {
        self.acks.front().map(|ack| ack.0)
    }

    /// `ack` arrives at the end of the line at `at`, not before the ones ahead of it.
    #[inline(always)]
    pub fn push(&mut self, at: Time, ack: &Acknowledgement) {
        debug_assert!(self.acks.back().is_none_or(|last| last.0 <= at));
        let word = ack.cumulative
            | (u64::from(ack.echoes_original) * ECHOES_ORIGINAL)
            | (u64::from(ack.duplicate) * DUPLICATE)
            | (u64::from(ack.ece) * ECE)
            | (u64::from(ack.blocks) << BLOCKS_SHIFT);
        self.acks.push_back((at, word));
        if ack.blocks > 0 {
            self.blocks.extend(&ack.sack[..usize::from(ack.blocks)]);
        }
    }

    /// Takes the first ACK into `ack`, whose `sack` beyond `blocks` keeps what it held; `false` if the
    /// line is empty. (An `Option` of this size by value costs a tenth of the run.)
    #[inline(always)]
    pub fn pop_into(&mut self, ack: &mut Acknowledgement) -> bool {
        let Some((at, word)) = self.acks.pop_front() else { return false };
        ack.at = at;
        ack.cumulative = word & ((1 << SEQ_BITS) - 1);
        ack.echoes_original = word & ECHOES_ORIGINAL != 0;
        ack.duplicate = word & DUPLICATE != 0;
        ack.ece = word & ECE != 0;
        ack.blocks = (word >> BLOCKS_SHIFT) as u8;
        if ack.blocks > 0 {
            for (slot, block) in ack.sack.iter_mut().zip(self.blocks.drain(..usize::from(ack.blocks))) {
                *slot = block;
            }
        }
        true
    }
}
