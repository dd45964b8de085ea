//! Quantities that differ between flows: drawn from a distribution, or from a list.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

use crate::{quote, Given, Kind, Quantity, Said, Step, Value, Wrong};

/// A quantity, or the distribution from which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread<T> {
    /// Always this value.
    At(T),
    /// Uniform between these, the second excluded: `uniform(20ms, 200ms)`.
    Uniform(T, T),
    /// Its logarithm is uniform between those of these, the second excluded: `log-uniform(1MB, 1GB)`.
    LogUniform(T, T),
}

/// How distributions are written, and their names.
const DISTRIBUTIONS: [&str; 2] = ["uniform", "log-uniform"];

impl<T: Copy> Spread<T> {
    /// The least value that it gives.
    pub fn least(self) -> T {
        match self {
            Spread::At(value) | Spread::Uniform(value, _) | Spread::LogUniform(value, _) => value,
        }
    }

    /// A bound that no value exceeds.
    pub fn most(self) -> T {
        match self {
            Spread::At(value) | Spread::Uniform(_, value) | Spread::LogUniform(_, value) => value,
        }
    }
}

impl<T: Display> Display for Spread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::At(value) => value.fmt(f),
            Spread::Uniform(low, high) => write!(f, "uniform({low}, {high})"),
            Spread::LogUniform(low, high) => write!(f, "log-uniform({low}, {high})"),
        }
    }
}

impl<T> Value for Spread<T>
where
    T: Quantity + Value<Range = RangeInclusive<T>> + Copy + PartialOrd + Default,
{
    type Range = RangeInclusive<T>;
    const ANY: RangeInclusive<T> = T::ANY;

    fn read(given: &Given, range: &RangeInclusive<T>) -> Result<Spread<T>, Wrong> {
        let Given::Text(text) = given else { return T::read(given, range).map(Spread::At) };
        let Some((name, rest)) = text.trim().split_once('(') else {
            return T::read(given, range).map(Spread::At);
        };
        let hint = || format!("allowed: uniform(LOW, HIGH) or log-uniform(LOW, HIGH), or {:?}", T::EXAMPLE);
        let bounds = rest.strip_suffix(')').and_then(|rest| rest.split_once(','));
        let (Some((low, high)), true) = (bounds, DISTRIBUTIONS.contains(&name.trim_end())) else {
            return Err(Wrong::new(format!("found {}", quote(text)), hint()));
        };
        let bound = |text: &str| T::read(&Given::Text(text.trim()), range);
        let (low, high) = (bound(low)?, bound(high)?);
        let logarithmic = name.trim_end() == DISTRIBUTIONS[1];
        let spread = if logarithmic { Spread::LogUniform(low, high) } else { Spread::Uniform(low, high) };
        // NaN is no quantity.
        if low >= high {
            let hint = format!("allowed: {}(LOW, HIGH) with LOW below HIGH", name.trim_end());
            return Err(Wrong::new(spread.to_string(), hint));
        }
        if logarithmic && low == T::default() {
            return Err(Wrong::new(spread.to_string(), "allowed: log-uniform(LOW, HIGH) with LOW above 0"));
        }
        Ok(spread)
    }

    fn said(&self) -> Said {
        Said::Text(self.to_string())
    }

    fn kind(range: &RangeInclusive<T>) -> Kind {
        T::kind(range)
    }
}

/// A quantity of each flow of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerFlow<T> {
    /// The same for all, or drawn for each.
    One(Spread<T>),
    /// These in the order of the flows, from the first again after the last.
    Each(Vec<T>),
}

impl<T: Copy + PartialOrd> PerFlow<T> {
    /// That of the `i`th flow of the group.
    pub fn at(&self, i: usize) -> Spread<T> {
        match self {
            PerFlow::One(spread) => *spread,
            PerFlow::Each(values) => Spread::At(values[i % values.len()]),
        }
    }

    /// How many flows have it before it repeats.
    pub fn period(&self) -> usize {
        match self {
            PerFlow::One(_) => 1,
            PerFlow::Each(values) => values.len(),
        }
    }

    /// The least value that one of `count` flows may have.
    pub fn least(&self, count: u32) -> T {
        let values = (0..self.period().min(count as usize)).map(|i| self.at(i).least());
        values.reduce(|a, b| if b < a { b } else { a }).unwrap_or(self.at(0).least())
    }

    /// A bound that no value of `count` flows exceeds.
    pub fn most(&self, count: u32) -> T {
        let values = (0..self.period().min(count as usize)).map(|i| self.at(i).most());
        values.reduce(|a, b| if b > a { b } else { a }).unwrap_or(self.at(0).most())
    }
}

impl<T: Display> Display for PerFlow<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerFlow::One(spread) => spread.fmt(f),
            PerFlow::Each(values) => {
                let texts: Vec<String> = values.iter().take(5).map(|value| format!("\"{value}\"")).collect();
                let more = if values.len() > texts.len() { ", ..." } else { "" };
                write!(f, "[{}{more}]", texts.join(", "))
            }
        }
    }
}

impl<T> Value for PerFlow<T>
where
    T: Quantity + Value<Range = RangeInclusive<T>> + Copy + PartialOrd + Default,
{
    type Range = RangeInclusive<T>;
    const ANY: RangeInclusive<T> = T::ANY;

    fn read(given: &Given, range: &RangeInclusive<T>) -> Result<PerFlow<T>, Wrong> {
        let Given::Array(values) = given else { return Spread::read(given, range).map(PerFlow::One) };
        if values.is_empty() {
            return Err(Wrong::new(
                "an empty list",
                format!("write at least one, for example {:?}", T::EXAMPLE),
            ));
        }
        let read = |(i, value)| T::read(value, range).map_err(|wrong| wrong.below(Step::Index(i)));
        values.iter().enumerate().map(read).collect::<Result<_, _>>().map(PerFlow::Each)
    }

    fn said(&self) -> Said {
        match self {
            PerFlow::One(spread) => spread.said(),
            PerFlow::Each(values) => Said::List(values.iter().map(T::said).collect()),
        }
    }

    fn kind(range: &RangeInclusive<T>) -> Kind {
        Kind::OneOrEach(Box::new(T::kind(range)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lfn_units::{Bytes, Time};

    fn read<T>(given: &Given) -> Result<PerFlow<T>, Wrong>
    where
        T: Quantity + Value<Range = RangeInclusive<T>> + Copy + PartialOrd + Default,
    {
        PerFlow::read(given, &T::ANY)
    }

    #[test]
    fn a_list_is_repeated_in_its_order() {
        let texts = ["20ms", "100ms", "5ms"].map(Given::Text);
        let rtts: PerFlow<Time> = read(&Given::Array(texts.to_vec())).unwrap();
        let ms: Vec<u64> = (0..7).map(|i| rtts.at(i).least().as_ns() / 1_000_000).collect();
        assert_eq!(ms, [20, 100, 5, 20, 100, 5, 20]);
        // Values that no flow has do not count.
        assert_eq!((rtts.least(2), rtts.most(1)), (Time::from_ms(20), Time::from_ms(20)));
        assert_eq!((rtts.least(9), rtts.most(9)), (Time::from_ms(5), Time::from_ms(100)));
        assert_eq!(rtts.to_string(), r#"["20ms", "100ms", "5ms"]"#);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["20ms", "uniform(20ms, 200ms)", "log-uniform(1ms, 1s)"] {
            let value: PerFlow<Time> = read(&Given::Text(text)).unwrap();
            assert_eq!(value.said(), Said::Text(text.into()));
        }
        let spaced: PerFlow<Bytes> = read(&Given::Text(" uniform( 1MB ,2 MB) ")).unwrap();
        assert_eq!(spaced, PerFlow::One(Spread::Uniform(Bytes(1_000_000), Bytes(2_000_000))));
    }

    #[test]
    fn wrong_ones_name_value_and_allowed() {
        let wrong = |text: &str| read::<Time>(&Given::Text(text)).unwrap_err();
        for text in ["normal(1s, 2s)", "uniform(1s)", "uniform(1s, 2s", "(1s, 2s)"] {
            let wrong = wrong(text);
            assert!(wrong.found.contains(text), "{wrong:?}");
            assert!(wrong.hint.contains("log-uniform(LOW, HIGH)"), "{wrong:?}");
        }
        assert_eq!(wrong("uniform(2s, 1s)").hint, "allowed: uniform(LOW, HIGH) with LOW below HIGH");
        assert_eq!(wrong("log-uniform(0s, 1s)").hint, "allowed: log-uniform(LOW, HIGH) with LOW above 0");
        assert!(wrong("uniform(1s, 2 parsec)").found.contains("parsec"));
        assert_eq!(read::<Time>(&Given::Array(Vec::new())).unwrap_err().found, "an empty list");
        let nested = read::<Time>(&Given::Array(vec![Given::Text("1s"), Given::Text("uniform(1s, 2s)")]));
        assert_eq!(nested.unwrap_err().at, [Step::Index(1)]);
    }
}
