//! An application that writes less than the network carries.

use lfn_units::{Rate, Time};

/// Writes of the application of a flow: a segment at a time, evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Application {
    /// Payload that it writes while it is active.
    pub rate: Rate,
    /// How long it is active before it pauses; with `off`.
    pub on: Option<Time>,
    /// How long it pauses; with `on`.
    pub off: Option<Time>,
    /// How long after it is written a segment is of use.
    pub deadline: Option<Time>,
}

impl Application {
    /// How long after the first it writes segment `number`, counted from 0, of so many bytes.
    pub fn writes_at(&self, number: u64, payload_bytes: u32) -> Time {
        let bits = u128::from(number) * u128::from(payload_bytes) * 8;
        let active = bits * 1_000_000_000_000 / u128::from(self.rate.0.max(1));
        let at = match (self.on, self.off) {
            (Some(on), Some(off)) if on > Time::ZERO => {
                let on = u128::from(on.0);
                active / on * (on + u128::from(off.0)) + active % on
            }
            _ => active,
        };
        Time(u64::try_from(at).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_at_its_rate_and_pauses() {
        // A segment of 1250 bytes each ms.
        let rate = Rate(10_000_000);
        let steady = Application { rate, on: None, off: None, deadline: None };
        assert_eq!(steady.writes_at(7, 1250), Time::from_ms(7));
        let bursts = Application { on: Some(Time::from_ms(3)), off: Some(Time::from_ms(10)), ..steady };
        let writes: Vec<u64> = (0..7).map(|n| bursts.writes_at(n, 1250).0 / Time::from_ms(1).0).collect();
        assert_eq!(writes, [0, 1, 2, 13, 14, 15, 26]);
        assert_eq!(steady.writes_at(u64::MAX, 64_000), Time::NEVER);
    }
}
