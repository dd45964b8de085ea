//! Reads tables of TOML key by key, so that every fault has a line and a path.

use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lfn_keys::{did_you_mean, Entries, Given, Keys, Step, Value, Wrong, PATH};
use lfn_law::{LawSpec, Prototype};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::error::{quote, ScenarioError};
use crate::Outside;

/// The text that is read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    pub(crate) outside: &'a dyn Outside,
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

/// A table; an absent one is empty.
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
    /// The table of a whole text.
    pub(crate) fn root(source: Source<'a>, entries: &'a DeTable<'a>) -> Table<'a> {
        Table { source, path: String::new(), span: 0..0, entries: Some(entries) }
    }

    /// Reads its keys, and refuses others.
    pub(crate) fn read(&self, keys: &mut dyn Keys) -> Result<(), ScenarioError> {
        let given = Given::Table(self.entries.map(entries).unwrap_or_default());
        lfn_keys::read(keys, &given).map_err(|wrong| self.refused(&wrong))
    }

    /// Sets those of the keys that it has.
    pub(crate) fn set(&self, keys: &mut dyn Keys) -> Result<(), ScenarioError> {
        let given = self.entries.map(entries).unwrap_or_default();
        lfn_keys::set(keys, &given).map_err(|wrong| self.refused(&wrong))
    }

    fn refused(&self, wrong: &Wrong) -> ScenarioError {
        refused(self.source, &self.path, self.span.clone(), self.entries.map(Held::Table), wrong)
    }

    /// The value of a key, if it is there.
    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        let value = self.entries?.get(key)?;
        Some(Item { source: self.source, path: join(&self.path, key), value })
    }

    /// The error about a key that must be there and is not.
    pub(crate) fn missing(&self, key: &str, example: &str) -> ScenarioError {
        self.refused(&Wrong::missing(example).of(key))
    }

    /// The values of an array, none if it is not there.
    pub(crate) fn items(&self, key: &str) -> Vec<Item<'a>> {
        self.get(key).map_or(Vec::new(), |item| item.items())
    }

    /// The table of this key, or an empty one.
    pub(crate) fn table(&self, key: &str) -> Table<'a> {
        let empty = || Table {
            source: self.source,
            path: join(&self.path, key),
            span: self.span.clone(),
            entries: None,
        };
        self.get(key).map_or_else(empty, |item| item.table())
    }

    /// The tables of an array, none if it is not there.
    pub(crate) fn tables(&self, key: &str) -> Vec<Table<'a>> {
        self.items(key).iter().map(Item::table).collect()
    }

    /// An error about a key of this table, at its value or else at the table.
    pub(crate) fn error(
        &self,
        key: &str,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScenarioError {
        self.refused(&Wrong::new(found, hint).of(key))
    }

    /// A value within narrower bounds than those of its key, if it is there.
    pub(crate) fn value_in<T: Value>(&self, key: &str, range: &T::Range) -> Result<Option<T>, ScenarioError> {
        self.get(key).map(|item| item.value(range)).transpose()
    }
}

/// Target of a path of keys.
#[derive(Clone, Copy)]
enum Held<'a> {
    Table(&'a DeTable<'a>),
    Value(&'a Spanned<DeValue<'a>>),
}

/// The error about what is wrong at, or below, a value.
fn refused(
    source: Source,
    path: &str,
    span: Range<usize>,
    held: Option<Held>,
    wrong: &Wrong,
) -> ScenarioError {
    let (mut path, mut span, mut held) = (path.to_string(), span, held);
    for step in &wrong.at {
        let table = match held {
            Some(Held::Table(table)) => Some(table),
            Some(Held::Value(value)) => value.get_ref().as_table(),
            None => None,
        };
        let next = match step {
            Step::Key(key) => {
                path = join(&path, key);
                table.and_then(|table| table.get(key.as_str()))
            }
            Step::Unknown(key) => {
                path = join(&path, &key.chars().take(64).collect::<String>());
                let found = table.and_then(|table| table.get_key_value(key.as_str()));
                span = found.map_or(span, |(key, _)| key.span());
                None
            }
            Step::Index(index) => {
                path = format!("{path}[{index}]");
                match held {
                    Some(Held::Value(value)) => {
                        value.get_ref().as_array().and_then(|values| values.get(*index))
                    }
                    _ => None,
                }
            }
        };
        span = next.map_or(span, |value| value.span());
        held = next.map(Held::Value);
    }
    source.error(span.start, &path, wrong.found.clone(), wrong.hint.replace(PATH, &path))
}

/// The keys of a table and their values, without their places.
fn entries<'a>(table: &'a DeTable<'a>) -> Entries<'a> {
    table.iter().map(|(key, value)| (key.get_ref().as_ref(), given(value.get_ref()))).collect()
}

/// A value without its place.
fn given<'a>(value: &'a DeValue<'a>) -> Given<'a> {
    match value {
        DeValue::String(text) => Given::Text(text),
        DeValue::Integer(number) => Given::Integer(number.as_str(), number.radix()),
        DeValue::Float(number) => Given::Number(number.as_str()),
        DeValue::Boolean(value) => Given::Boolean(*value),
        DeValue::Datetime(value) => Given::Other(format!("the date {value}")),
        DeValue::Array(values) => Given::Array(values.iter().map(|value| given(value.get_ref())).collect()),
        DeValue::Table(table) => Given::Table(entries(table)),
    }
}

impl<'a> Item<'a> {
    /// An error about this value.
    pub(crate) fn error(&self, found: impl Into<String>, hint: impl Into<String>) -> ScenarioError {
        self.refused(&Wrong::new(found, hint))
    }

    /// The error about this value, or about one below it.
    pub(crate) fn refused(&self, wrong: &Wrong) -> ScenarioError {
        refused(self.source, &self.path, self.value.span(), Some(Held::Value(self.value)), wrong)
    }

    /// A value within bounds.
    pub(crate) fn value<T: Value>(&self, range: &T::Range) -> Result<T, ScenarioError> {
        T::read(&given(self.value.get_ref()), range).map_err(|wrong| self.refused(&wrong))
    }

    /// A table that was read.
    pub(crate) fn table(&self) -> Table<'a> {
        let (source, path, span) = (self.source, self.path.clone(), self.value.span());
        Table { source, path, span, entries: self.value.get_ref().as_table() }
    }

    /// The values of an array, none if it is none.
    pub(crate) fn items(&self) -> Vec<Item<'a>> {
        let values = self.value.get_ref().as_array().into_iter().flat_map(|values| values.iter()).enumerate();
        let item = |(i, value)| Item { source: self.source, path: format!("{}[{i}]", self.path), value };
        values.map(item).collect()
    }

    /// The text, or an empty one.
    pub(crate) fn text(&self) -> &'a str {
        self.value.get_ref().as_str().unwrap_or_default()
    }

    /// A law: what the caller finds under the text, a prototype of a result, or what the registry has.
    pub(crate) fn law(&self) -> Result<LawSpec, ScenarioError> {
        let text = self.text();
        if let Some(found) = self.source.outside.find_law(text, &self.beside("")) {
            return found.map_err(|message| {
                let (found, hint) = message.split_once("; ").unwrap_or((&message, ""));
                self.error(found, hint)
            });
        }
        Prototype::named(text).map_or_else(|| self.spec(), |prototype| Ok(prototype.into()))
    }

    /// A law of the registry, or one of UDT's own.
    pub(crate) fn spec<T: FromStr<Err: Display>>(&self) -> Result<T, ScenarioError> {
        let given = given(self.value.get_ref());
        lfn_keys::quantity(&given, "a law", "cubic").map_err(|wrong| self.refused(&wrong))
    }

    /// The first `most_bytes` bytes of a file, named from the scenario's directory.
    pub(crate) fn read(&self, file: &str, most_bytes: u64) -> io::Result<Vec<u8>> {
        self.source.outside.read(&self.beside(file), most_bytes)
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
            let more = if names.clone().nth(LISTED).is_some() { ", ..." } else { "" };
            let list: Vec<&str> = names.clone().take(LISTED).collect();
            let hint = did_you_mean(name, names, &format!("{what}s: {}{more}", list.join(", ")));
            self.error(format!("no {what} {}", quote(name)), hint)
        })
    }
}
