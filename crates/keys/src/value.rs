//! Values of keys: how a text says them, and what is wrong with one that it should not say.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeInclusive};
use std::str::FromStr;

use lfn_units::{Bytes, Rate, Time, UnitError};

/// A value as a text has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Given<'a> {
    /// A text.
    Text(&'a str),
    /// The digits of an integer, and their base.
    Integer(&'a str, u32),
    /// The digits of a number.
    Number(&'a str),
    /// `true` or `false`.
    Boolean(bool),
    /// Something else, with its article.
    Other(String),
}

/// A value that a key cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What was found.
    pub found: String,
    /// What is allowed, or what to write instead.
    pub hint: String,
}

impl Wrong {
    /// What was found, and what is allowed.
    pub fn new(found: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { found: found.into(), hint: hint.into() }
    }
}

impl Given<'_> {
    /// That it is not of the type of the key.
    pub fn wrong_type(&self, hint: impl Into<String>) -> Wrong {
        let found = match self {
            Given::Text(text) => format!("found the text {}", quote(text)),
            Given::Integer(digits, _) => format!("found the integer {}", clip(digits)),
            Given::Number(digits) => format!("found the number {}", clip(digits)),
            Given::Boolean(value) => format!("found {value}"),
            Given::Other(what) => format!("found {what}"),
        };
        Wrong::new(found, hint)
    }

    /// That a key has no such word.
    pub fn refused(&self, hint: &str) -> Wrong {
        match self {
            Given::Text(text) => Wrong::new(format!("found {}", quote(text)), hint),
            other => other.wrong_type(hint),
        }
    }
}

/// A value as canonical TOML and JSON say it.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Not at all.
    Nothing,
    /// As a text.
    Text(String),
    /// As an integer.
    Integer(u64),
    /// As a number.
    Number(f64),
    /// As `true` or `false`.
    Boolean(bool),
}

/// The type and range of a key, for schemas and references.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// An integer within bounds.
    Integer(u64, u64),
    /// A number.
    Number(Span),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A text with a unit: an example, and what is allowed if not all is.
    Quantity(&'static str, Option<String>),
    /// This word, or a number.
    WordOr(&'static str, Span),
}

/// What a key can hold.
pub trait Value: Sized {
    /// What bounds it.
    type Range;
    /// No bounds.
    const ANY: Self::Range;

    /// The value that a text gives.
    ///
    /// # Errors
    /// What was found and what is allowed.
    fn read(given: &Given, range: &Self::Range) -> Result<Self, Wrong>;

    /// How canonical TOML says it.
    fn said(&self) -> Said;

    /// Its type.
    fn kind(range: &Self::Range) -> Kind;
}

impl Value for bool {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<bool, Wrong> {
        match given {
            Given::Boolean(value) => Ok(*value),
            other => Err(other.wrong_type("allowed: true, false")),
        }
    }

    fn said(&self) -> Said {
        Said::Boolean(*self)
    }

    fn kind((): &()) -> Kind {
        Kind::Boolean
    }
}

fn outside(found: &str, range: &RangeInclusive<impl Display>) -> Wrong {
    let (low, high) = (range.start().to_string(), range.end().to_string());
    let allowed = if low == high { low } else { format!("{low} to {high}") };
    Wrong::new(format!("{found} is out of range"), format!("allowed: {allowed}"))
}

impl Value for u64 {
    type Range = RangeInclusive<u64>;
    const ANY: RangeInclusive<u64> = 0..=i64::MAX as u64;

    fn read(given: &Given, range: &RangeInclusive<u64>) -> Result<u64, Wrong> {
        let Given::Integer(digits, base) = given else {
            let (low, high) = (range.start(), range.end());
            return Err(given.wrong_type(format!("allowed: an integer from {low} to {high}")));
        };
        let value = u64::from_str_radix(digits, *base).ok().filter(|value| range.contains(value));
        value.ok_or_else(|| outside(&clip(digits), range))
    }

    fn said(&self) -> Said {
        Said::Integer(*self)
    }

    fn kind(range: &RangeInclusive<u64>) -> Kind {
        Kind::Integer(*range.start(), *range.end())
    }
}

impl Value for u32 {
    type Range = RangeInclusive<u32>;
    const ANY: RangeInclusive<u32> = 0..=u32::MAX;

    fn read(given: &Given, range: &RangeInclusive<u32>) -> Result<u32, Wrong> {
        u64::read(given, &((*range.start()).into()..=(*range.end()).into())).map(|value| value as u32)
    }

    fn said(&self) -> Said {
        Said::Integer(u64::from(*self))
    }

    fn kind(range: &RangeInclusive<u32>) -> Kind {
        Kind::Integer((*range.start()).into(), (*range.end()).into())
    }
}

/// Bounds of a number, which is finite in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its lower end.
    pub low: Bound<f64>,
    /// Its upper end.
    pub high: Bound<f64>,
}

impl Span {
    /// This number or more.
    pub const fn at_least(low: f64) -> Span {
        Span { low: Bound::Included(low), high: Bound::Unbounded }
    }

    /// More than this number.
    pub const fn above(low: f64) -> Span {
        Span { low: Bound::Excluded(low), high: Bound::Unbounded }
    }

    /// And this number or less.
    pub const fn at_most(self, high: f64) -> Span {
        Span { high: Bound::Included(high), ..self }
    }

    /// And less than this number.
    pub const fn below(self, high: f64) -> Span {
        Span { high: Bound::Excluded(high), ..self }
    }

    /// Whether the number lies within.
    pub fn contains(&self, value: f64) -> bool {
        use std::ops::RangeBounds;
        value.is_finite() && (self.low, self.high).contains(&value)
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = match self.low {
            Bound::Included(low) => format!("of at least {low}"),
            Bound::Excluded(low) => format!("above {low}"),
            Bound::Unbounded => String::new(),
        };
        let high = match self.high {
            Bound::Included(high) => format!("at most {high}"),
            Bound::Excluded(high) => format!("below {high}"),
            Bound::Unbounded => String::new(),
        };
        let parts = [low, high];
        let said: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        f.write_str(&said.join(" and "))
    }
}

impl Value for f64 {
    type Range = Span;
    const ANY: Span = Span { low: Bound::Unbounded, high: Bound::Unbounded };

    fn read(given: &Given, range: &Span) -> Result<f64, Wrong> {
        let hint = format!("allowed: a number {range}");
        let (digits, value) = match given {
            Given::Integer(digits, base) => {
                (digits, i64::from_str_radix(digits, *base).ok().map(|value| value as f64))
            }
            Given::Number(digits) => (digits, digits.parse().ok()),
            other => return Err(other.wrong_type(hint)),
        };
        let value = value.filter(|&value| range.contains(value));
        value.ok_or_else(|| Wrong::new(format!("{} is out of range", clip(digits)), hint))
    }

    fn said(&self) -> Said {
        Said::Number(*self)
    }

    fn kind(range: &Span) -> Kind {
        Kind::Number(*range)
    }
}

impl<T: Value> Value for Option<T> {
    type Range = T::Range;
    const ANY: T::Range = T::ANY;

    fn read(given: &Given, range: &T::Range) -> Result<Option<T>, Wrong> {
        T::read(given, range).map(Some)
    }

    fn said(&self) -> Said {
        self.as_ref().map_or(Said::Nothing, T::said)
    }

    fn kind(range: &T::Range) -> Kind {
        T::kind(range)
    }
}

/// A value that is a text with a unit, in the spelling that it prints and parses. An error of the parser reads
/// `what was found; what is allowed`.
pub trait Quantity: FromStr<Err: Display> + Display {
    /// What it is, with its article.
    const WHAT: &'static str;
    /// A valid spelling.
    const EXAMPLE: &'static str;
}

/// A text with a unit. `what` it is, with its article; `example`: a valid spelling.
///
/// # Errors
/// What was found and what is allowed.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(pub u64);

impl Packets {
    /// The number before a word for packets, `None` when no such word ends the text.
    pub fn before_word(text: &str) -> Option<Result<u64, UnitError>> {
        let text = text.trim();
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"))?.trim_end();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Err(UnitError::BadNumber { got: text.into(), example: Packets::EXAMPLE }));
        }
        let too_large = |_| UnitError::TooLarge { got: text.into(), most: "18446744073709551615 packets" };
        Some(number.parse().map_err(too_large))
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

/// A text of the user's, quoted, escaped and shortened to fit on a line.
pub fn quote(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A number as written, shortened to fit on a line.
pub fn clip(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short + "..."
    } else {
        short
    }
}
