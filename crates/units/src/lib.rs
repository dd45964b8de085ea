#![doc = include_str!("../README.md")]

use std::fmt;

/// Simulated time or a duration, in picoseconds. `u64` holds 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text has no unit.
    #[error("{got:?} has no unit; write for example {example:?}")]
    NoUnit {
        /// The text.
        got: String,
        /// A valid quantity of the kind wanted.
        example: &'static str,
    },
    /// The unit is not one of this quantity's.
    #[error("{unit:?} is not a unit of {what}; allowed: {allowed}")]
    BadUnit {
        /// The text in place of the unit.
        unit: String,
        /// The quantity.
        what: &'static str,
        /// Its units.
        allowed: &'static str,
    },
    /// The number part is not a decimal number of at least zero.
    #[error("{got:?} does not begin with a decimal number of at least 0; write for example {example:?}")]
    BadNumber {
        /// The text.
        got: String,
        /// A valid quantity of the kind wanted.
        example: &'static str,
    },
    /// A number of things that are not divided has a fraction.
    #[error("{got:?} is not a whole number; write for example {example:?}")]
    NotWhole {
        /// The text.
        got: String,
        /// A valid quantity of the kind wanted.
        example: &'static str,
    },
    /// The value does not fit.
    #[error("{got:?} is too large; the most is {most}")]
    TooLarge {
        /// The text.
        got: String,
        /// The largest value.
        most: &'static str,
    },
}

struct Kind {
    what: &'static str,
    example: &'static str,
    allowed: &'static str,
    most: &'static str,
    units: &'static [(&'static str, u64)],
}

const TIME: Kind = Kind {
    what: "time",
    example: "100ms",
    allowed: "ps, ns, us, ms, s, min, h",
    most: "213 days",
    units: &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
        ("h", 3_600_000_000_000_000),
    ],
};

const RATE: Kind = Kind {
    what: "rate",
    example: "10Gbit/s",
    allowed: "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s",
    most: "18 Ebit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
    ],
};

const BYTES: Kind = Kind {
    what: "size",
    example: "12.5MB",
    allowed: "B, kB, MB, GB, TB, KiB, MiB, GiB",
    most: "18 EB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};

fn parse(text: &str, kind: &Kind) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, rest) = trimmed.split_at(split);
    let (exponent, unit) = exponent(rest);
    let unit = unit.trim_start();
    let bad_number = || UnitError::BadNumber { got: text.into(), example: kind.example };
    let too_large = || UnitError::TooLarge { got: text.into(), most: kind.most };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(bad_number());
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit { got: text.into(), example: kind.example });
    }
    let &(_, scale) = kind
        .units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(|| UnitError::BadUnit { unit: unit.into(), what: kind.what, allowed: kind.allowed })?;
    let (whole, fraction) = shifted(whole, fraction, exponent);
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let mut value = whole.checked_mul(scale.into()).ok_or_else(too_large)?;
    // Digits beyond the twentieth are below any unit's resolution.
    let digits = &fraction[..fraction.len().min(20)];
    if !digits.is_empty() {
        let numerator: u128 = digits.parse().map_err(|_| bad_number())?;
        value += numerator * u128::from(scale) / 10u128.pow(digits.len() as u32);
    }
    u64::try_from(value).map_err(|_| too_large())
}

/// Largest exponent of ten that is told from a larger one: the value is beyond every unit then, or 0.
const EXPONENT_MAX: i32 = 60;

/// The exponent at the beginning of a text, `e9` or `E-3`, and what follows; 0 without one.
fn exponent(text: &str) -> (i32, &str) {
    let Some(signed) = text.strip_prefix(['e', 'E']) else { return (0, text) };
    let digits = signed.strip_prefix(['+', '-']).unwrap_or(signed);
    let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if length == 0 {
        return (0, text);
    }
    let size = digits[..length].parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    (if signed.starts_with('-') { -size } else { size }, &digits[length..])
}

/// The digits before and behind the point, times ten to the power of `exponent`.
fn shifted(whole: &str, fraction: &str, exponent: i32) -> (String, String) {
    let zeros = "0".repeat(EXPONENT_MAX as usize);
    let places = exponent.unsigned_abs() as usize;
    if exponent >= 0 {
        let padded = format!("{fraction}{zeros}");
        let end = fraction.len().saturating_sub(places);
        (format!("{whole}{}", &padded[..places]), fraction[fraction.len() - end..].into())
    } else {
        let padded = format!("{zeros}{whole}");
        let (whole, below) = padded.split_at(padded.len() - places);
        (whole.into(), format!("{below}{fraction}"))
    }
}

/// Prints with the largest unit that leaves the value exact, so that printing and parsing agree.
fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let &(name, scale) = units
        .iter()
        .rev()
        .filter(|(name, _)| !name.ends_with("iB") && *name != "min" && *name != "h")
        .find(|(_, scale)| value >= *scale)
        .unwrap_or(&units[0]);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}{name}");
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    write!(f, "{whole}.{}{name}", fraction.trim_end_matches('0'))
}

impl Time {
    /// Start of a simulation.
    pub const ZERO: Time = Time(0);
    /// Later than everything.
    pub const NEVER: Time = Time(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_ns(n: u64) -> Time {
        Time(n * 1_000)
    }
    /// `n` microseconds.
    pub const fn from_us(n: u64) -> Time {
        Time(n * 1_000_000)
    }
    /// `n` milliseconds.
    pub const fn from_ms(n: u64) -> Time {
        Time(n * 1_000_000_000)
    }
    /// `n` seconds.
    pub const fn from_s(n: u64) -> Time {
        Time(n * 1_000_000_000_000)
    }
    /// Nearest picosecond to `s` seconds; saturates, and takes a negative or NaN as 0.
    pub fn from_s_f64(s: f64) -> Time {
        Time((s * 1e12 + 0.5) as u64)
    }
    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Seconds, by which the engine computes: up to a bit beside the nearest number.
    pub fn as_s(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Seconds, for results: the nearest number, so 50 ms are 0.05.
    pub fn in_s(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// The difference, or zero when `other` is later.
    #[must_use]
    pub const fn since(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// The sum, [`Time::NEVER`] at most.
    #[must_use]
    pub const fn after(self, delay: Time) -> Time {
        Time(self.0.saturating_add(delay.0))
    }
}

impl std::ops::Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl std::ops::Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Rate {
    /// Bits per second as a float.
    pub fn as_bps(self) -> f64 {
        self.0 as f64
    }
    /// Bandwidth-delay product in bytes, rounded down.
    pub fn bdp(self, rtt: Time) -> Bytes {
        let bit_ps = u128::from(self.0) * u128::from(rtt.0);
        Bytes(u64::try_from(bit_ps / 8_000_000_000_000).unwrap_or(u64::MAX))
    }
}

macro_rules! text {
    ($type:ident, $kind:expr) => {
        impl std::str::FromStr for $type {
            type Err = UnitError;
            /// Parses a decimal number with a unit; see the kind's list of units in the error.
            fn from_str(text: &str) -> Result<$type, UnitError> {
                parse(text, &$kind).map($type)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(f, self.0, $kind.units)
            }
        }
    };
}
text!(Time, TIME);
text!(Rate, RATE);
text!(Bytes, BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        assert_eq!("100ms".parse(), Ok(Time::from_ms(100)));
        assert_eq!("0.1 ms".parse(), Ok(Time::from_us(100)));
        assert_eq!("1.4Gbit/s".parse(), Ok(Rate(1_400_000_000)));
        assert_eq!("12.5MB".parse(), Ok(Bytes(12_500_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("1e9 bit/s".parse(), Ok(Rate(1_000_000_000)));
        assert_eq!("1.25E+1Gbit/s".parse(), Ok(Rate(12_500_000_000)));
        assert_eq!("2.5e-3 s".parse(), Ok(Time::from_us(2_500)));
        assert_eq!("125e-2ms".parse(), Ok(Time::from_us(1_250)));
        assert_eq!("1e-300s".parse(), Ok(Time::ZERO));
        assert_eq!("0e99999999999h".parse(), Ok(Time::ZERO));
        assert_eq!(Rate(10_000_000_000).bdp(Time::from_ms(100)), Bytes(125_000_000));
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        assert!(matches!("10".parse::<Time>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("10Gbit/s".parse::<Time>(), Err(UnitError::BadUnit { .. })));
        assert!(matches!("-1ms".parse::<Time>(), Err(UnitError::BadNumber { .. })));
        assert!(matches!("1.2.3ms".parse::<Time>(), Err(UnitError::BadNumber { .. })));
        assert!(matches!("9999999h".parse::<Time>(), Err(UnitError::TooLarge { .. })));
        assert!(matches!("1e40s".parse::<Time>(), Err(UnitError::TooLarge { .. })));
        assert!(matches!("1e99999999999s".parse::<Time>(), Err(UnitError::TooLarge { .. })));
        assert!(matches!("1e9".parse::<Rate>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("1es".parse::<Time>(), Err(UnitError::BadUnit { .. })));
        assert!(matches!("1e1.5s".parse::<Time>(), Err(UnitError::BadUnit { .. })));
        assert!(matches!("e9s".parse::<Time>(), Err(UnitError::BadNumber { .. })));
        assert!(matches!("10GB/s".parse::<Rate>(), Err(UnitError::BadUnit { .. })));
        assert!(matches!("".parse::<Rate>(), Err(UnitError::BadNumber { .. })));
    }

    proptest! {
        /// Below 2^53 ps and with few digits, `f64` is exact enough to compare.
        #[test]
        fn an_exponent_moves_the_point(digits in 0u64..1_000_000, places in 0usize..7, exponent in -6i32..4) {
            let text = format!("{digits:07}");
            let (whole, fraction) = text.split_at(7 - places);
            let expected = digits as f64 * 10f64.powi(exponent - places as i32 + 6);
            let Time(got) = format!("{whole}.{fraction}e{exponent}us").parse().unwrap();
            prop_assert!((got as f64 - expected).abs() <= 1.0 + expected * 1e-12, "{got} {expected}");
        }

        #[test]
        fn printing_and_parsing_agree(value: u64) {
            prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }
    }
}
