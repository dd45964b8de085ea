#![doc = include_str!("../README.md")]

mod macros;
mod per_flow;
mod quantity;
mod value;

pub use per_flow::{PerFlow, Spread};
pub use quantity::{quantity, Packets, Quantity};
pub use value::{
    clip, did_you_mean, nearest, quote, Each, Entries, File, Given, Kind, Name, Said, Shape, Span, Step,
    Value, Wrong, PATH,
};

use lfn_units::{Bytes, Time};

/// Longest delay of a scenario.
pub const DELAY_MAX: Time = Time::from_s(1000);
/// Largest IP packet of a scenario.
pub const PACKET_MAX: Bytes = Bytes(64_000);
/// A probability.
pub const PROBABILITY: Span = Span::at_least(0.0).at_most(1.0);

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its meaning in one sentence, without its default.
    pub about: &'static str,
    /// Its type and range.
    pub kind: fn() -> Kind,
    /// A valid line, if the key must be there.
    pub needed: Option<&'static str>,
}

/// A table of keys.
pub trait Keys {
    /// All keys, in the order of the declaration.
    fn keys(&self) -> Vec<Key>;

    /// Sets a key.
    ///
    /// # Errors
    /// The value found and the values allowed.
    fn set(&mut self, key: &str, given: &Given) -> Result<(), Wrong>;

    /// The value of a key.
    fn get(&self, key: &str) -> Said;

    /// Completes the values after all keys were set: defaults that depend on other keys, and rules between keys.
    ///
    /// # Errors
    /// The value found and the values allowed, at a key.
    fn settle(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        let _ = is_said;
        Ok(())
    }

    /// Keys of which exactly one must be there.
    fn one_of(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// The value of a key in a table.
pub fn entry<'a, 'b>(entries: &'b Entries<'a>, key: &str) -> Option<&'b Given<'a>> {
    entries.iter().find(|(name, _)| *name == key).map(|(_, given)| given)
}

/// Checks that a table has no other keys than these.
///
/// # Errors
/// The first that it has.
pub fn known(entries: &Entries, keys: &[&str]) -> Result<(), Wrong> {
    let Some((key, _)) = entries.iter().find(|(name, _)| !keys.contains(name)) else { return Ok(()) };
    let hint = format!("allowed: {}", keys.join(", "));
    let hint = did_you_mean(key, keys.iter().copied(), &hint);
    Err(Wrong::new("unknown key", hint).below(Step::Unknown((*key).into())))
}

/// Sets the keys that a table has; those that it does not have keep their values.
///
/// # Errors
/// The first fault.
pub fn set(keys: &mut dyn Keys, entries: &Entries) -> Result<(), Wrong> {
    for key in keys.keys() {
        match (entry(entries, key.name), key.needed) {
            (Some(given), _) => keys.set(key.name, given).map_err(|wrong| wrong.of(key.name))?,
            (None, Some(example)) => return Err(Wrong::missing(example).of(key.name)),
            (None, None) => {}
        }
    }
    keys.settle(&|key| entry(entries, key).is_some())
}

/// Reads a table that has these keys and no others.
///
/// # Errors
/// The first fault.
pub fn read(keys: &mut dyn Keys, given: &Given) -> Result<(), Wrong> {
    let entries = given.entries()?;
    known(entries, &names(keys))?;
    set(keys, entries)
}

/// The names of the keys.
pub fn names(keys: &dyn Keys) -> Vec<&'static str> {
    keys.keys().into_iter().map(|key| key.name).collect()
}

/// The keys that are given, with their values.
pub fn said(keys: &dyn Keys) -> Vec<(&'static str, Said)> {
    let said = keys.keys().into_iter().map(|key| (key.name, keys.get(key.name)));
    said.filter(|(_, value)| *value != Said::Nothing).collect()
}

/// A table of one of several kinds, which its key `kind` names.
pub trait Kinds: Sized + 'static {
    /// Its name in schemas, and what it is.
    const NAME: (&'static str, &'static str) = ("", "");
    /// A valid line, if the kind must be said; else it is the first.
    const NEEDED: Option<&'static str> = None;

    /// The kinds, what each does, and its keys by default.
    fn kinds() -> Vec<(&'static str, &'static str, Self)>;

    /// Its kind.
    fn kind(&self) -> &'static str;

    /// Its keys.
    fn keys(&self) -> &dyn Keys;

    /// Its keys, to be set.
    fn keys_mut(&mut self) -> &mut dyn Keys;

    /// The kind that a table names, its keys by default.
    ///
    /// # Errors
    /// No such kind, or none said where one must be.
    fn named(entries: &Entries) -> Result<Self, Wrong> {
        let mut kinds = Self::kinds();
        match (entry(entries, "kind"), Self::NEEDED) {
            (Some(given), _) => {
                let words: Vec<_> = kinds.iter().map(|&(kind, ..)| kind).collect();
                let found = words.iter().position(|word| *given == Given::Text(word));
                let found = found.ok_or_else(|| given.refused(&words).of("kind"))?;
                Ok(kinds.swap_remove(found).2)
            }
            (None, Some(example)) => {
                let mut any: Vec<_> = kinds.iter().flat_map(|(.., keys)| names(keys.keys())).collect();
                any.sort_unstable();
                any.dedup();
                any.insert(0, "kind");
                known(entries, &any)?;
                Err(Wrong::missing(example).of("kind"))
            }
            (None, None) => Ok(kinds.swap_remove(0).2),
        }
    }

    /// The table of a kind.
    ///
    /// # Errors
    /// The first fault.
    fn of(given: &Given) -> Result<Self, Wrong> {
        let entries = given.entries()?;
        let mut table = Self::named(entries)?;
        known(entries, &[&["kind"], &names(table.keys())[..]].concat())?;
        set(table.keys_mut(), entries)?;
        Ok(table)
    }

    /// Its kind and its keys.
    fn table(&self) -> Vec<(&'static str, Said)> {
        [vec![("kind", Said::Text(self.kind().into()))], said(self.keys())].concat()
    }

    /// All kinds of table.
    fn shapes() -> Kind {
        let shape = |(kind, about, table): (_, _, Self)| (kind, Shape::new("", about, table.keys()));
        Kind::Kinds(
            Self::NAME.0,
            Self::NAME.1,
            Self::kinds().into_iter().map(shape).collect(),
            Self::NEEDED.is_some(),
        )
    }
}
