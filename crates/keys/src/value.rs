//! Values of keys: how a text says them, and what is wrong with one that it should not say.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeInclusive};

use crate::{entry, known, Key, Keys};

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
    /// The values of an array.
    Array(Vec<Given<'a>>),
    /// The keys of a table and their values.
    Table(Entries<'a>),
    /// Something else, with its article.
    Other(String),
}

/// The keys of a table and their values.
pub type Entries<'a> = Vec<(&'a str, Given<'a>)>;

/// A step from a value to one that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the value of this key.
    Key(String),
    /// To this key itself, which its table does not have.
    Unknown(String),
    /// To this element of an array.
    Index(usize),
}

/// In a hint, stands for the path of the key at fault.
pub const PATH: &str = "{PATH}";

/// A value that a key cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The way from the value that was read to what is at fault in it, outermost step first.
    pub at: Vec<Step>,
    /// The value found.
    pub found: String,
    /// The values allowed, or a correct spelling.
    pub hint: String,
}

impl Wrong {
    /// An error at the value itself, from the value found and the values allowed.
    pub fn new(found: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { at: Vec::new(), found: found.into(), hint: hint.into() }
    }

    /// A key that must be there and is not; `example` is a valid line.
    pub fn missing(example: &str) -> Wrong {
        Wrong::new("missing", format!("write for example {example}"))
    }

    /// The same fault, of a value that stands one step below.
    #[must_use]
    pub fn below(mut self, step: Step) -> Wrong {
        self.at.insert(0, step);
        self
    }

    /// The same fault, of the value of this key.
    #[must_use]
    pub fn of(self, key: &str) -> Wrong {
        self.below(Step::Key(key.into()))
    }
}

/// The name nearest to `got` by edit distance, whatever its case, if it is near: at most two letters in five differ
/// (one always may), it begins with all of `got`, three letters at least, or it stands in `got`, four letters at least.
pub fn nearest<'a>(got: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let got: String = got.chars().take(64).collect::<String>().to_lowercase();
    let letters = got.chars().count();
    let near = |name: &'a str| {
        let lower = name.to_lowercase();
        let far = strsim::damerau_levenshtein(&got, &lower);
        let begins = letters >= 3 && lower.starts_with(&got);
        let within = lower.len() >= 4 && got.contains(&lower);
        (far <= (2 * letters / 5).max(1) || begins || within).then_some((far, name))
    };
    names.filter_map(near).min_by_key(|&(far, _)| far).map(|(_, name)| name)
}

/// A hint that begins with the nearest of these names, if one is near.
pub fn did_you_mean<'a>(got: &str, names: impl Iterator<Item = &'a str>, hint: &str) -> String {
    match nearest(got, names) {
        Some(name) => format!("did you mean {name:?}? {hint}"),
        None => hint.into(),
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
            Given::Array(_) => "found an array".into(),
            Given::Table(_) => "found a table".into(),
            Given::Other(what) => format!("found {what}"),
        };
        Wrong::new(found, hint)
    }

    /// That a key has no such word; these are allowed.
    pub fn refused(&self, words: &[&str]) -> Wrong {
        let hint = format!("allowed: {}", words.join(", "));
        match self {
            Given::Text(text) => {
                Wrong::new(format!("found {}", quote(text)), did_you_mean(text, words.iter().copied(), &hint))
            }
            other => other.wrong_type(hint),
        }
    }

    /// The keys of a table.
    ///
    /// # Errors
    /// Where it is none.
    pub fn entries(&self) -> Result<&Entries<'_>, Wrong> {
        match self {
            Given::Table(entries) => Ok(entries),
            other => Err(other.wrong_type(format!("write [{PATH}]"))),
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
    /// As an array.
    List(Vec<Said>),
    /// As a table, without the keys that it does not say.
    Table(Vec<(&'static str, Said)>),
}

/// The type and range of a key, for schemas and references.
#[derive(Clone, Debug)]
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
    /// Such a value, or an array of them.
    OneOrEach(Box<Kind>),
    /// This word, or a number.
    WordOr(&'static str, Span),
    /// Any text.
    Text,
    /// A [`Name`].
    Name,
    /// A [`File`].
    File,
    /// An array of such values, of so many at least.
    List(Box<Kind>, usize),
    /// A table.
    Table(Shape),
    /// One of several kinds of table: what it is called and means, its kinds, and whether its kind must be said.
    Kinds(&'static str, &'static str, Vec<(&'static str, Shape)>, bool),
    /// One of these, called so and of this meaning; each with its own meaning.
    Either(&'static str, &'static str, Vec<(&'static str, Kind)>),
}

/// A table: what it is called and means, and its keys.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name in schemas, references and Python.
    pub name: &'static str,
    /// Its meaning in one sentence.
    pub about: &'static str,
    /// Its keys, and their defaults.
    pub keys: Vec<(Key, Said)>,
    /// Keys of which exactly one must be there.
    pub one_of: Vec<&'static str>,
}

impl Shape {
    /// The shape of a table with these keys.
    pub fn new(name: &'static str, about: &'static str, keys: &dyn Keys) -> Shape {
        let said = |key: Key| (key, keys.get(key.name));
        Shape { name, about, keys: keys.keys().into_iter().map(said).collect(), one_of: keys.one_of() }
    }
}

/// A type of the values of a key.
pub trait Value: Sized {
    /// Type of its bounds.
    type Range;
    /// No bounds.
    const ANY: Self::Range;
    /// Whether it is a table.
    const TABLE: bool = false;

    /// The value that a text gives.
    ///
    /// # Errors
    /// The value found and the values allowed.
    fn read(given: &Given, range: &Self::Range) -> Result<Self, Wrong>;

    /// How canonical TOML says it.
    fn said(&self) -> Said;

    /// Its type.
    fn kind(range: &Self::Range) -> Kind;

    /// Its keys, if they stand in the table that the value belongs to.
    fn part(&self) -> Option<&dyn Keys> {
        None
    }

    /// The same, to be set.
    fn part_mut(&mut self) -> Option<&mut dyn Keys> {
        None
    }
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

pub(crate) fn outside(found: &str, range: &RangeInclusive<impl Display>) -> Wrong {
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

    fn part(&self) -> Option<&dyn Keys> {
        self.as_ref().and_then(T::part)
    }

    fn part_mut(&mut self) -> Option<&mut dyn Keys> {
        self.as_mut().and_then(T::part_mut)
    }
}

/// Bounds of an array: whether it may be empty, and the bounds of each value.
#[derive(Clone, Debug)]
pub struct Each<R> {
    /// Name of an entry, for the error, if at least one is required.
    pub what: Option<&'static str>,
    /// Bounds of each.
    pub range: R,
}

impl<T: Value> Value for Vec<T> {
    type Range = Each<T::Range>;
    const ANY: Each<T::Range> = Each { what: None, range: T::ANY };

    fn read(given: &Given, each: &Each<T::Range>) -> Result<Vec<T>, Wrong> {
        let Given::Array(values) = given else {
            return Err(given.wrong_type(if T::TABLE {
                format!("write [[{PATH}]]")
            } else {
                "write [...]".into()
            }));
        };
        if let (Some(what), []) = (each.what, &values[..]) {
            return Err(Wrong::new(format!("no {what}"), "write at least one"));
        }
        let read = |(i, value)| T::read(value, &each.range).map_err(|wrong| wrong.below(Step::Index(i)));
        values.iter().enumerate().map(read).collect()
    }

    fn said(&self) -> Said {
        match &self[..] {
            [] => Said::Nothing,
            values => Said::List(values.iter().map(T::said).collect()),
        }
    }

    fn kind(each: &Each<T::Range>) -> Kind {
        Kind::List(Box::new(T::kind(&each.range)), usize::from(each.what.is_some()))
    }
}

impl Value for String {
    type Range = &'static str;
    const ANY: &'static str = "write a text";

    fn read(given: &Given, hint: &&'static str) -> Result<String, Wrong> {
        match given {
            Given::Text(text) => Ok((*text).into()),
            other => Err(other.wrong_type(*hint)),
        }
    }

    fn said(&self) -> Said {
        Said::Text(self.clone())
    }

    fn kind(_: &&'static str) -> Kind {
        Kind::Text
    }
}

/// Name of a node, a link, a group of flows or a source: 1 to 64 letters, digits, `_` and `-`. A number is also a
/// name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub String);

impl Value for Name {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Name, Wrong> {
        const HINT: &str = "allowed: 1 to 64 letters, digits, _ and -, not beginning with -";
        let (Given::Integer(text, 10) | Given::Text(text)) = given else {
            return Err(given.wrong_type(HINT));
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-') {
            return Ok(Name((*text).into()));
        }
        Err(Wrong::new(format!("found {}", quote(text)), HINT))
    }

    fn said(&self) -> Said {
        Said::Text(self.0.clone())
    }

    fn kind((): &()) -> Kind {
        Kind::Name
    }
}

/// A file beside a scenario, as the text names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Where it is, from the directory of the scenario.
    pub path: String,
    /// FNV-1a of its bytes, 16 hexadecimal digits: so that a result belongs to what was read. If it is given, the file
    /// must have it.
    pub hash: Option<String>,
}

impl Value for File {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<File, Wrong> {
        const HINT: &str = "write the path of a file, from the directory of the scenario";
        let Given::Table(entries) = given else {
            return Ok(File { path: String::read(given, &HINT)?, hash: None });
        };
        known(entries, &["path", "hash"])?;
        let text = |key: &str, hint| {
            entry(entries, key).map(|given| String::read(given, &hint).map_err(|wrong| wrong.of(key)))
        };
        let path =
            text("path", HINT).unwrap_or_else(|| Err(Wrong::missing("path = \"trace.mahi\"").of("path")))?;
        Ok(File { path, hash: text("hash", "write 16 hexadecimal digits").transpose()? })
    }

    fn said(&self) -> Said {
        let hash = self.hash.clone().map_or(Said::Nothing, Said::Text);
        Said::Table(vec![("path", Said::Text(self.path.clone())), ("hash", hash)])
    }

    fn kind((): &()) -> Kind {
        Kind::File
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
