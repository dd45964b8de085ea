//! Reads tables of TOML key by key, so that every fault has a line and a path.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use lfn_keys::{Given, Keys, Kind, Span, Value, Wrong};
use lfn_law::{LawSpec, Prototype};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::error::{quote, ScenarioError};
use crate::quantity::{Name, Quantity};
use crate::FindLaw;

/// The text that is read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    pub(crate) find_law: &'a FindLaw<'a>,
}

impl<'a> Source<'a> {
    /// The tables of the text.
    pub(crate) fn tables(&self) -> Result<Spanned<DeTable<'a>>, ScenarioError> {
        DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            if error.message() == "duplicate key" {
                let key = self.text.get(span.clone()).unwrap_or_default();
                return self.error(span.start, key, "found a second time", "write each key once");
            }
            self.error(span.start, "", format!("not TOML: {}", error.message()), "see toml.io")
        })
    }

    /// The line of a place in the text, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(crate) fn error(
        &self,
        at: usize,
        key: &str,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError {
            file: self.file.into(),
            line: Some(self.line(at)),
            key: key.into(),
            found: found.into(),
            hint: hint.into(),
        }
    }
}

/// A word that stands for a value.
pub(crate) trait Choice: Copy + 'static {
    /// All of them.
    const ALL: &'static [(&'static str, Self)];
}

/// A table whose keys are all known; an absent one is empty.
#[derive(Clone)]
pub(crate) struct Table<'a> {
    source: Source<'a>,
    path: String,
    span: Range<usize>,
    entries: Option<&'a DeTable<'a>>,
}

/// A value and where it stands.
#[derive(Clone)]
pub(crate) struct Item<'a> {
    source: Source<'a>,
    path: String,
    value: &'a Spanned<DeValue<'a>>,
}

/// The path of a key below another.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let key = if bare && !key.is_empty() { key.into() } else { quote(key) };
    if path.is_empty() {
        key
    } else {
        format!("{path}.{key}")
    }
}

impl<'a> Table<'a> {
    /// A table of these keys and no others.
    pub(crate) fn new(
        source: Source<'a>,
        path: String,
        entries: &'a DeTable<'a>,
        span: Range<usize>,
        keys: &[&'static str],
    ) -> Result<Table<'a>, ScenarioError> {
        for key in entries.keys() {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let short: String = name.chars().take(64).collect();
                let nearest = lfn_law::nearest(&short, keys.iter().copied());
                return Err(source.error(
                    key.span().start,
                    &join(&path, &short),
                    "unknown key",
                    format!("did you mean {nearest:?}? allowed: {}", keys.join(", ")),
                ));
            }
        }
        Ok(Table { source, path, span, entries: Some(entries) })
    }

    /// The value of a key, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        let value = self.entries?.get(key)?;
        Some(Item { source: self.source, path: join(&self.path, key), value })
    }

    /// The value of a key that must be there.
    pub(crate) fn need(&self, key: &str, example: &str) -> Result<Item<'a>, ScenarioError> {
        self.get(key).ok_or_else(|| self.missing(key, example))
    }

    /// The error about a key that must be there and is not.
    pub(crate) fn missing(&self, key: &str, example: &str) -> ScenarioError {
        let key = join(&self.path, key);
        self.source.error(self.span.start, &key, "missing", format!("write for example {example}"))
    }

    /// A name, if it is there.
    pub(crate) fn name(&self, key: &str) -> Result<Option<Name>, ScenarioError> {
        self.get(key).map(|item| item.name()).transpose()
    }

    /// The values of an array, none if it is not there.
    pub(crate) fn items(&self, key: &str) -> Result<Vec<Item<'a>>, ScenarioError> {
        self.get(key).map_or(Ok(Vec::new()), |item| item.items())
    }

    /// The table of this key, or an empty one.
    pub(crate) fn table(&self, key: &str, keys: &[&'static str]) -> Result<Table<'a>, ScenarioError> {
        match self.get(key) {
            Some(item) => item.table(keys),
            None => Ok(Table {
                source: self.source,
                path: join(&self.path, key),
                span: self.span.clone(),
                entries: None,
            }),
        }
    }

    /// An error about a key of this table, at its value or else at the table.
    pub(crate) fn error(
        &self,
        key: &str,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScenarioError {
        let at = self.get(key).map_or(self.span.start, |item| item.value.span().start);
        self.source.error(at, &join(&self.path, key), found, hint)
    }

    /// Sets the keys of a table that are there.
    pub(crate) fn read(&self, keys: &mut dyn Keys) -> Result<(), ScenarioError> {
        for key in keys.keys() {
            if let Some(item) = self.get(key.name) {
                keys.set(key.name, &item.given()).map_err(|wrong| match key.kind {
                    Kind::Words(words) if wrong.hint.starts_with("allowed") => {
                        item.spelled(wrong, words.iter().copied())
                    }
                    _ => item.error(wrong.found, wrong.hint),
                })?;
            }
        }
        let settled = keys.settle(&|key| self.get(key).is_some());
        settled.map_err(|(key, wrong)| self.error(key, wrong.found, wrong.hint))
    }

    /// A text with a unit, if it is there.
    pub(crate) fn quantity<T: Quantity>(&self, key: &str) -> Result<Option<T>, ScenarioError> {
        self.get(key).map(|item| item.quantity()).transpose()
    }

    /// A text with a unit and within bounds, if it is there.
    pub(crate) fn quantity_in<T: Value<Range = RangeInclusive<T>>>(
        &self,
        key: &str,
        bounds: RangeInclusive<T>,
    ) -> Result<Option<T>, ScenarioError> {
        self.get(key).map(|item| item.quantity_in(bounds)).transpose()
    }

    /// An integer within bounds, or the default.
    pub(crate) fn integer(
        &self,
        key: &str,
        bounds: RangeInclusive<u64>,
        default: u64,
    ) -> Result<u64, ScenarioError> {
        self.get(key).map_or(Ok(default), |item| item.integer(bounds))
    }

    /// A number, or the default.
    pub(crate) fn number(&self, key: &str, default: f64, bounds: Span) -> Result<f64, ScenarioError> {
        self.get(key).map_or(Ok(default), |item| item.number(bounds))
    }

    /// `true` or `false`, or the default.
    pub(crate) fn boolean(&self, key: &str, default: bool) -> Result<bool, ScenarioError> {
        self.get(key).map_or(Ok(default), |item| item.boolean())
    }

    /// One word of several, or the default.
    pub(crate) fn choice<T: Choice>(&self, key: &str, default: T) -> Result<T, ScenarioError> {
        self.get(key).map_or(Ok(default), |item| item.choice())
    }
}

impl<'a> Item<'a> {
    /// An error about this value.
    pub(crate) fn error(&self, found: impl Into<String>, hint: impl Into<String>) -> ScenarioError {
        self.source.error(self.value.span().start, &self.path, found, hint)
    }

    /// The value without its place.
    fn given(&self) -> Given<'_> {
        match self.value.get_ref() {
            DeValue::String(text) => Given::Text(text),
            DeValue::Integer(number) => Given::Integer(number.as_str(), number.radix()),
            DeValue::Float(number) => Given::Number(number.as_str()),
            DeValue::Boolean(value) => Given::Boolean(*value),
            DeValue::Datetime(value) => Given::Other(format!("the date {value}")),
            DeValue::Array(_) => Given::Other("an array".into()),
            DeValue::Table(_) => Given::Other("a table".into()),
        }
    }

    fn wrong_type(&self, hint: impl Into<String>) -> ScenarioError {
        self.refused(self.given().wrong_type(hint))
    }

    fn refused(&self, wrong: Wrong) -> ScenarioError {
        self.error(wrong.found, wrong.hint)
    }

    /// The error about a word, with the nearest that is allowed.
    fn spelled<'n>(&self, wrong: Wrong, words: impl Iterator<Item = &'n str>) -> ScenarioError {
        let Given::Text(text) = self.given() else { return self.refused(wrong) };
        let short: String = text.chars().take(64).collect();
        let nearest = lfn_law::nearest(&short, words);
        self.error(wrong.found, format!("did you mean {nearest:?}? {}", wrong.hint))
    }

    /// A value within bounds.
    pub(crate) fn value<T: Value>(&self, range: &T::Range) -> Result<T, ScenarioError> {
        T::read(&self.given(), range).map_err(|wrong| self.refused(wrong))
    }

    /// The value of a key of this table, whatever its other keys.
    pub(crate) fn entry(&self, key: &str) -> Option<Item<'a>> {
        let value = self.value.get_ref().as_table()?.get(key)?;
        Some(Item { source: self.source, path: join(&self.path, key), value })
    }

    /// A table of these keys and no others.
    pub(crate) fn table(&self, keys: &[&'static str]) -> Result<Table<'a>, ScenarioError> {
        let entries = self
            .value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong_type(format!("write [{}]", self.path)))?;
        Table::new(self.source, self.path.clone(), entries, self.value.span(), keys)
    }

    /// The tables of an array of tables.
    pub(crate) fn tables(&self, keys: &[&'static str]) -> Result<Vec<Table<'a>>, ScenarioError> {
        self.elements()?.iter().map(|item| item.table(keys)).collect()
    }

    /// The values of an array of tables.
    pub(crate) fn elements(&self) -> Result<Vec<Item<'a>>, ScenarioError> {
        self.array(|| format!("write [[{}]]", self.path))
    }

    /// The values of an array.
    pub(crate) fn items(&self) -> Result<Vec<Item<'a>>, ScenarioError> {
        self.array(|| "write [...]".into())
    }

    fn array(&self, hint: impl FnOnce() -> String) -> Result<Vec<Item<'a>>, ScenarioError> {
        let values = self.value.get_ref().as_array().ok_or_else(|| self.wrong_type(hint()))?;
        let item = |(i, value)| Item { source: self.source, path: format!("{}[{i}]", self.path), value };
        Ok(values.iter().enumerate().map(item).collect())
    }

    /// Whether it is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Whether it is a text.
    pub(crate) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// A name, or a number that serves as one.
    pub(crate) fn name(&self) -> Result<Name, ScenarioError> {
        const HINT: &str = "allowed: 1 to 64 letters, digits, _ and -, not beginning with -";
        let text = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => self.text(HINT)?,
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-') {
            return Ok(Name(text.into()));
        }
        Err(self.error(format!("found {}", quote(text)), HINT))
    }

    /// A law: what the caller finds under the text, a prototype of a result, or what the registry has.
    pub(crate) fn law(&self) -> Result<LawSpec, ScenarioError> {
        let text = self.value.get_ref().as_str().unwrap_or_default();
        if let Some(found) = (self.source.find_law)(text, &self.beside("")) {
            return found.map_err(|message| {
                let (found, hint) = message.split_once("; ").unwrap_or((&message, ""));
                self.error(found, hint)
            });
        }
        Prototype::named(text).map_or_else(|| self.quantity(), |prototype| Ok(prototype.into()))
    }

    /// The path of a file that this value names, from the scenario's directory.
    pub(crate) fn beside(&self, file: &str) -> PathBuf {
        Path::new(self.source.file).parent().unwrap_or(Path::new("")).join(file)
    }

    /// One of these names, as a number.
    pub(crate) fn one_of<'n, T>(
        &self,
        what: &str,
        name: &str,
        number: impl Fn(&str) -> Option<T>,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<T, ScenarioError> {
        const LISTED: usize = 20;
        number(name).ok_or_else(|| {
            let short: String = name.chars().take(64).collect();
            let nearest = lfn_law::nearest(&short, names.clone());
            let more = if names.clone().nth(LISTED).is_some() { ", ..." } else { "" };
            let list: Vec<&str> = names.take(LISTED).collect();
            let hint = format!("did you mean {nearest:?}? {what}s: {}{more}", list.join(", "));
            self.error(format!("no {what} {}", quote(name)), hint)
        })
    }

    /// A text.
    pub(crate) fn text(&self, hint: &str) -> Result<&'a str, ScenarioError> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong_type(hint))
    }

    /// A text with a unit.
    pub(crate) fn quantity<T: Quantity>(&self) -> Result<T, ScenarioError> {
        lfn_keys::quantity(&self.given(), T::WHAT, T::EXAMPLE).map_err(|wrong| self.refused(wrong))
    }

    /// A text with a unit and within bounds.
    pub(crate) fn quantity_in<T: Value<Range = RangeInclusive<T>>>(
        &self,
        bounds: RangeInclusive<T>,
    ) -> Result<T, ScenarioError> {
        self.value(&bounds)
    }

    /// An integer within bounds.
    pub(crate) fn integer(&self, bounds: RangeInclusive<u64>) -> Result<u64, ScenarioError> {
        self.value(&bounds)
    }

    /// A number without a unit.
    pub(crate) fn number(&self, bounds: Span) -> Result<f64, ScenarioError> {
        self.value(&bounds)
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self) -> Result<bool, ScenarioError> {
        self.value(&())
    }

    /// One word of several.
    pub(crate) fn choice<T: Choice>(&self) -> Result<T, ScenarioError> {
        self.word(T::ALL)
    }

    /// What one word of several stands for.
    pub(crate) fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, ScenarioError> {
        let names = || words.iter().map(|&(name, _)| name);
        let given = self.given();
        let found = words.iter().find(|(name, _)| given == Given::Text(name)).map(|&(_, value)| value);
        found.ok_or_else(|| {
            let allowed = format!("allowed: {}", names().collect::<Vec<_>>().join(", "));
            self.spelled(given.refused(&allowed), names())
        })
    }
}
