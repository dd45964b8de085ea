//! Laws that are not in the registry: what tries an idea out before it is a header.

use crate::{Config, Control, PlacedLaw, Probe, SlowStartKind, Stack, StackSetup};
use std::fmt;
use std::ops::RangeInclusive;

/// Makes the law of a new connection; `control` holds initial window and threshold, which it may change.
pub type BuildLaw = Box<dyn Fn(&Config, &mut Control) -> PlacedLaw + Send + Sync>;

/// Makes both ends of a new connection.
pub type BuildStack = Box<dyn Fn(&StackSetup) -> Box<dyn Stack> + Send + Sync>;

/// How a new connection gets its part.
pub enum Build {
    /// A law.
    Law(BuildLaw),
    /// Both ends of the connection.
    Stack(BuildStack),
}

/// Suffix that results add to the name of a prototype.
pub const STAMP: &str = " (prototype)";

/// A law that someone hands in, for example one written in Python.
pub struct Prototype {
    /// Its name in results; no law of the registry has it.
    pub name: String,
    /// The hash of its source in hexadecimal digits, which distinguishes laws of one name.
    pub source: String,
    /// Its default slow start.
    pub slow_start: SlowStartKind,
    /// Values that [`crate::Law::probe`] writes.
    pub probes: Vec<Probe>,
    /// How a connection gets it. `None`: it is known from results alone and cannot be run.
    pub build: Option<Build>,
    /// It is a whole stack, also where it cannot be run.
    pub is_stack: bool,
}

/// Digits of [`Prototype::source`].
const DIGITS: RangeInclusive<usize> = 8..=64;

impl Prototype {
    /// The prototype that a result names as `NAME@SOURCE`, if the text has this form; it cannot be run.
    pub fn named(text: &str) -> Option<Prototype> {
        let (name, source) = text.split_once('@')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(is_name)
            && DIGITS.contains(&source.len())
            && source.chars().all(|c| c.is_ascii_hexdigit());
        fits.then(|| Prototype {
            name: name.into(),
            source: source.into(),
            slow_start: SlowStartKind::Classic,
            probes: Vec::new(),
            build: None,
            is_stack: false,
        })
    }
}

impl fmt::Display for Prototype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.source)
    }
}
