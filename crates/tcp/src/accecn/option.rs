//! The AccECN option: counters of payload bytes by ECN field (RFC 9768 §3.2.3).

/// Kind of the option with the order EE0B, ECEB, EE1B.
pub const KIND_0: u8 = 172;
/// Kind of the option with the order EE1B, ECEB, EE0B.
pub const KIND_1: u8 = 174;
/// Bytes of the option with all counters.
pub const LONGEST_BYTES: usize = 11;
const FIELD_BYTES: usize = 3;

/// The counters of an option, modulo 2^24 bytes; `None` for one that it leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// ECT(0).
    pub e0b: Option<u32>,
    /// CE.
    pub ceb: Option<u32>,
    /// ECT(1).
    pub e1b: Option<u32>,
}

/// Bytes that are no AccECN option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionError;

impl Fields {
    /// The shortest option with the counters that have `moved`, in the order of the fields here; `None` if it needs more than
    /// `room_bytes`, since a counter that moved is never left out.
    pub fn encode(&self, moved: [bool; 3], room_bytes: usize) -> Option<Vec<u8>> {
        let values = [self.e0b, self.ceb, self.e1b].map(Option::unwrap_or_default);
        let needed = |moved: [bool; 3]| moved.iter().rposition(|&moved| moved).map_or(0, |last| last + 1);
        let reversed = [moved[2], moved[1], moved[0]];
        let (kind, fields, order) = if needed(moved) <= needed(reversed) {
            (KIND_0, needed(moved), [0, 1, 2])
        } else {
            (KIND_1, needed(reversed), [2, 1, 0])
        };
        let length = 2 + FIELD_BYTES * fields;
        if length > room_bytes {
            return None;
        }
        let mut bytes = vec![kind, length as u8];
        for &which in &order[..fields] {
            bytes.extend(&values[which].to_be_bytes()[1..]);
        }
        Some(bytes)
    }

    /// Reads an option, kind and length included. Of an unusual length the whole counters count.
    ///
    /// # Errors
    /// [`OptionError`] if the kind or the length is not that of such an option.
    pub fn decode(bytes: &[u8]) -> Result<Fields, OptionError> {
        let &[kind, length, ref rest @ ..] = bytes else { return Err(OptionError) };
        if usize::from(length) != bytes.len() || !matches!(kind, KIND_0 | KIND_1) {
            return Err(OptionError);
        }
        let value = |at: usize| {
            let &[high, middle, low] = rest.get(FIELD_BYTES * at..FIELD_BYTES * (at + 1))? else {
                return None;
            };
            Some(u32::from_be_bytes([0, high, middle, low]))
        };
        let [first, ceb, last] = [value(0), value(1), value(2)];
        let (e0b, e1b) = if kind == KIND_0 { (first, last) } else { (last, first) };
        Ok(Fields { e0b, ceb, e1b })
    }
}
