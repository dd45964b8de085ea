//! AccECN (RFC 9768): the fields of a TCP header that count marks.

/// The part of a TCP header that tells of marks that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The flags AE, CWR and ECE as one number; AE is its highest bit (§3.1).
    pub ace: u8,
    /// The counters of the option: payload that came as ECT(0), with CE, and as ECT(1), in bytes modulo 2^24 (§3.2.3).
    pub counted_bytes: Option<[u32; 3]>,
    /// The time in the segment's timestamp (RFC 7323), in ms modulo 2^32.
    pub stamp_ms: u32,
}
