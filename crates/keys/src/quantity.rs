//! Values that are a text with a unit: times, rates, sizes, numbers of packets.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;

use lfn_units::{Bytes, Rate, Time, UnitError};

use crate::value::outside;
use crate::{clip, quote, Given, Kind, Said, Value, Wrong};

/// A value that is a text with a unit, in the spelling that it prints and parses. An error of the parser reads
/// `what was found; what is allowed`.
pub trait Quantity: FromStr<Err: Display> + Display {
    /// Its name in an error, with an article.
    const WHAT: &'static str;
    /// A valid spelling.
    const EXAMPLE: &'static str;
}

/// A text with a unit. `what` it is, with its article; `example`: a valid spelling.
///
/// # Errors
/// The value found and the values allowed.
pub fn quantity<T: FromStr<Err: Display>>(given: &Given, what: &str, example: &str) -> Result<T, Wrong> {
    let hint = || format!("{what} is a text, for example {example:?}");
    let text = match given {
        Given::Text(text) => text,
        Given::Integer(digits, _) | Given::Number(digits) => {
            return Err(Wrong::new(format!("bare number {}", clip(digits)), hint()));
        }
        other => return Err(other.wrong_type(hint())),
    };
    if text.len() > 200 {
        return Err(Wrong::new(quote(text), hint()));
    }
    text.parse().map_err(|error: T::Err| {
        let message = error.to_string();
        match message.split_once("; ") {
            Some((found, hint)) => Wrong::new(found, hint),
            None => Wrong::new(message, hint()),
        }
    })
}

macro_rules! quantities {
    ($($type:ident: $what:literal $example:literal;)*) => {$(
        impl Quantity for $type {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = $example;
        }

        impl Value for $type {
            type Range = RangeInclusive<$type>;
            const ANY: RangeInclusive<$type> = $type(0)..=$type(u64::MAX);

            fn read(given: &Given, range: &RangeInclusive<$type>) -> Result<$type, Wrong> {
                let value: $type = quantity(given, $what, $example)?;
                let text = if let Given::Text(text) = given { text } else { "" };
                if range.contains(&value) { Ok(value) } else { Err(outside(&quote(text), range)) }
            }

            fn said(&self) -> Said {
                Said::Text(self.to_string())
            }

            fn kind(range: &RangeInclusive<$type>) -> Kind {
                let said = (*range != Self::ANY).then(|| format!("{} to {}", range.start(), range.end()));
                Kind::Quantity($example, said)
            }
        }
    )*};
}
quantities! {
    Time: "a time" "100ms";
    Rate: "a rate" "10Gbit/s";
    Bytes: "a size" "12.5MB";
    Packets: "a number of packets" "250 packets";
}

/// A whole number of packets: `"250 packets"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(pub u64);

impl Packets {
    /// The number before a word for packets, `None` when no such word ends the text.
    pub fn before_word(text: &str) -> Option<Result<u64, UnitError>> {
        let text = text.trim();
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"))?.trim_end();
        let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_whole(digits) || !is_whole(exponent.strip_prefix('+').unwrap_or(exponent)) {
            let (got, example) = (text.into(), Packets::EXAMPLE);
            let is_decimal = number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                && number.parse().is_ok_and(f64::is_finite);
            return Some(Err(match is_decimal {
                true => UnitError::NotWhole { got, example },
                false => UnitError::BadNumber { got, example },
            }));
        }
        let too_large = |_| UnitError::TooLarge { got: text.into(), most: "18446744073709551615 packets" };
        // Of whole numbers bytes are exact.
        Some(format!("{number}B").parse().map(|Bytes(n)| n).map_err(too_large))
    }

    /// The text after its leading number.
    pub fn unit(text: &str) -> &str {
        text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim_start()
    }
}

impl FromStr for Packets {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Packets, UnitError> {
        match Packets::before_word(text) {
            Some(number) => number.map(Packets),
            None if Packets::unit(text).is_empty() => {
                Err(UnitError::NoUnit { got: text.into(), example: Packets::EXAMPLE })
            }
            None => Err(UnitError::BadUnit {
                unit: Packets::unit(text).into(),
                what: "a number of packets",
                allowed: "packets",
            }),
        }
    }
}

impl Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packet{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_may_have_an_exponent() {
        let packets = |text: &str| text.parse::<Packets>().map(|Packets(n)| n);
        assert_eq!(packets("1e3 packets"), Ok(1_000));
        assert_eq!(packets("25E+1packets"), Ok(250));
        assert_eq!(packets("18446744073709551615 packets"), Ok(u64::MAX));
        assert!(matches!(packets("1e20 packets"), Err(UnitError::TooLarge { .. })));
        for wrong in ["e1 packets", "1e packets", "1e1e1 packets", "+1 packets", "-1 packets", "x packets"] {
            assert!(matches!(packets(wrong), Err(UnitError::BadNumber { .. })), "{wrong}");
        }
        for wrong in ["1.5 packets", "0.5packets", ".5 packet", "1.5e1 packets", "1e-1 packets"] {
            assert!(matches!(packets(wrong), Err(UnitError::NotWhole { .. })), "{wrong}");
        }
    }
}
