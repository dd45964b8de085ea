//! Files beside a scenario: what they held when it was read.

/// The 64-bit hash of Fowler, Noll and Vo (FNV-1a, RFC 9923) in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let fold = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

#[cfg(test)]
mod tests {
    /// Test vectors of RFC 9923.
    #[test]
    fn fnv() {
        assert_eq!(super::hash(b""), "cbf29ce484222325");
        assert_eq!(super::hash(b"a"), "af63dc4c8601ec8c");
        assert_eq!(super::hash(b"foobar"), "85944171f73967e8");
    }
}
