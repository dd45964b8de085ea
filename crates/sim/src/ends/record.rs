//! All that a run leaves behind beside its end: rows of tables, and the hash.

use lfn_units::Time;

use crate::clock::ids::FlowId;
use crate::tables::Tables;

/// Tables and hash of a run so far.
pub(crate) struct Record {
    pub tables: Tables,
    pub hash: u64,
    /// Events that happened.
    pub events: u64,
    /// When statistics begin.
    pub warmup: Time,
}

/// One round of the result hash.
#[inline]
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

impl Record {
    pub fn new(warmup: Time) -> Record {
        Record { tables: Tables::default(), hash: 0, events: 0, warmup }
    }

    /// Flow `id` was told at `now` that this much has arrived.
    #[inline]
    pub fn acknowledged(&mut self, now: Time, id: FlowId, total: u64) {
        self.hash = mix(mix(self.hash, now.0 ^ id.index() as u64), total);
    }
}
