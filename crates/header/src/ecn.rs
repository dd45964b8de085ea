//! The ECN field of the IP header.

/// The ECN field of an IP header, two bits (RFC 3168 §5, RFC 9331 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: it can only be dropped.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, and of a scalable control: it asks for L4S treatment.
    Ect1 = 0b01,
    /// ECN-capable, of a Classic control.
    Ect0 = 0b10,
    /// Congestion experienced: a queue on its way has marked it.
    Ce = 0b11,
}

impl Ecn {
    /// Every value, in the order of its bits.
    pub const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// The field of these bits; all but the lowest two are ignored.
    pub fn from_bits(bits: u8) -> Ecn {
        Ecn::ALL[usize::from(bits & 3)]
    }

    /// Whether it can be marked instead of dropped. A packet with CE can: it keeps its mark (RFC 3168 §5).
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// Whether the packet is for L4S treatment (RFC 9331 §5.1): what carries CE may have been ECT(1).
    #[inline]
    pub fn is_l4s(self) -> bool {
        self as u8 & 1 == 1
    }

    /// The field behind a queue that marks the packet or does not; what is not ECN-capable stays so.
    #[inline]
    #[must_use]
    pub fn marked(self, mark: bool) -> Ecn {
        if mark && self.is_capable() {
            Ecn::Ce
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ecn_follows_rfc_3168_and_rfc_9331() {
        let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(all.map(|ecn| ecn as u8), [0, 1, 2, 3]);
        assert_eq!([0, 1, 2, 3].map(Ecn::from_bits), all);
        assert_eq!(Ecn::from_bits(0b1010_1001), Ecn::Ect1);
        assert_eq!(all.map(Ecn::is_capable), [false, true, true, true]);
        assert_eq!(all.map(Ecn::is_l4s), [false, true, false, true]);
        // CE never goes back, and what is not capable gets no mark.
        assert_eq!(all.map(|ecn| ecn.marked(true)), [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce]);
        assert_eq!(all.map(|ecn| ecn.marked(false)), all);
    }
}
