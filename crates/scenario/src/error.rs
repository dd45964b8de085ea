//! An error in a scenario, with its place.

use std::fmt;

pub(crate) use lfn_keys::quote;

/// One fault, with all that is needed to mend it. Prints as
/// `FILE:LINE: KEY: what was found; what is allowed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line of the fault, from 1; `None` when the file could not be read at all.
    pub line: Option<usize>,
    /// Path of the key, such as `link.queue.size`; empty when the fault belongs to no key.
    pub key: String,
    /// The value found.
    pub found: String,
    /// The values allowed, or a correct spelling.
    pub hint: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}; {}", self.found, self.hint)
    }
}

impl std::error::Error for ScenarioError {}
