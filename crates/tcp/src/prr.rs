//! Reduction of the window in recovery.

/// Proportional rate reduction: RFC 6937 with the slow-start reduction bound, as Linux has it.
/// Segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    delivered: u64,
    out: u64,
    /// Window (RFC 6937) or flight (RFC 9937) at the start of recovery.
    recover_fs: u64,
}

impl Prr {
    /// Recovery begins.
    pub fn new(recover_fs: u64) -> Prr {
        Prr { delivered: 0, out: 0, recover_fs: recover_fs.max(1) }
    }

    /// An ACK delivered `delivered` segments; returns how many may be sent beyond `pipe`. `safe`: the
    /// cumulative ACK advanced and no further loss was found.
    pub fn on_ack(&mut self, pipe: u64, ssthresh: u64, delivered: u64, safe: bool) -> u64 {
        self.delivered += delivered;
        let may = if pipe > ssthresh {
            (self.delivered * ssthresh).div_ceil(self.recover_fs).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + u64::from(safe);
            (ssthresh - pipe).min(limit)
        };
        may.max(u64::from(self.out == 0))
    }

    /// `segments` were sent.
    pub fn on_sent(&mut self, segments: u64) {
        self.out += segments;
    }
}
