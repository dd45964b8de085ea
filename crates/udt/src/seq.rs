//! Sequence numbers: 31 bits on the wire, 64 inside.
//!
//! Within a connection packets are numbered from 0, in `u64`, so that order is the order of integers.
//! Only [`Numbering`] knows that the wire's numbers wrap.

/// A sequence number on the wire: 0 to 2^31 - 1, then 0 again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seq(u32);

impl Seq {
    /// The largest number.
    pub const MAX: Seq = Seq(0x7fff_ffff);

    /// The lower 31 bits of `word`.
    pub const fn new(word: u32) -> Seq {
        Seq(word & Seq::MAX.0)
    }

    /// The number, below 2^31.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// How a connection's packets are numbered on the wire: packet 0 carries the initial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbering {
    initial: Seq,
}

impl Numbering {
    /// Packet 0 carries `initial`.
    pub const fn new(initial: Seq) -> Numbering {
        Numbering { initial }
    }

    /// Sequence number of packet 0.
    pub const fn initial(self) -> Seq {
        self.initial
    }

    /// Sequence number of packet `index`.
    pub const fn wire(self, index: u64) -> Seq {
        Seq::new(self.initial.0.wrapping_add(index as u32))
    }

    /// The packet nearest to packet `near` that carries `seq`; `None` if that is before packet 0.
    pub fn index(self, seq: Seq, near: u64) -> Option<u64> {
        // The difference of two 31-bit numbers, moved up by a bit, has its sign where i32 has it.
        let ahead = (seq.0.wrapping_sub(self.wire(near).0) << 1) as i32 >> 1;
        near.checked_add_signed(i64::from(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_wrap_to_zero_after_the_largest() {
        let numbering = Numbering::new(Seq::MAX);
        assert_eq!([0, 1, 2].map(|index| numbering.wire(index).get()), [0x7fff_ffff, 0, 1]);
        assert_eq!(numbering.index(Seq::new(0), 0), Some(1));
        assert_eq!(numbering.index(Seq::MAX, 1), Some(0));
        assert_eq!(numbering.index(Seq::new(0x7fff_fffe), 1), None);
    }

    proptest! {
        /// Any packet within 2^30 of a known one is found again, however often the numbers wrapped.
        #[test]
        fn an_index_survives_the_wire(initial in 0u32..1 << 31, near in 0u64..1 << 40, ahead in -(1i64 << 30)..1 << 30) {
            let numbering = Numbering::new(Seq::new(initial));
            let index = near.checked_add_signed(ahead);
            prop_assume!(index.is_some());
            prop_assert_eq!(numbering.index(numbering.wire(index.unwrap()), near), index);
        }
    }
}
