//! The scenario: a TOML text with units, a value with every default filled in ([`Scenario`]), and from
//! it the configuration of a simulation. Every fault of the text is a [`ScenarioError`] that names
//! file, line, key, what was found and what is allowed. No text makes this crate panic.

mod config;
mod document;
mod error;
mod file;
pub mod model;
mod network;
mod parse;
mod peaks;
mod predict;
pub mod quantity;
mod random;
mod reader;
mod sampling;
#[cfg(test)]
mod schema;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use lfn_law::LawSpec;

pub use document::Document;
pub use error::ScenarioError;
pub use model::Scenario;
pub use predict::Prediction;

/// Finds the law that a text names, from the folder of the scenario. `None`: it is for the registry to
/// know; an error says `what was found; what is allowed`.
pub type FindLaw<'a> = dyn Fn(&str, &Path) -> Option<Result<LawSpec, String>> + 'a;

/// Longest scenario.
const TEXT_MAX_BYTES: u64 = 1 << 20;

/// The text of a scenario file, or of standard input, which is called `-`.
///
/// # Errors
/// When the file cannot be read, is longer than 1 MiB or is not UTF-8.
pub fn read(file: &str) -> Result<String, ScenarioError> {
    let error = |line, found, hint: &str| ScenarioError {
        file: file.into(),
        line,
        key: String::new(),
        found,
        hint: hint.into(),
    };
    let mut bytes = Vec::new();
    let source: io::Result<Box<dyn Read>> = match file {
        "-" => Ok(Box::new(io::stdin())),
        path => fs::File::open(path).map(|open| Box::new(open) as Box<dyn Read>),
    };
    source
        .and_then(|open| open.take(TEXT_MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|cause| error(None, format!("cannot be read: {cause}"), "give the path of a TOML file"))?;
    if bytes.len() as u64 > TEXT_MAX_BYTES {
        return Err(error(None, "longer than 1 MiB".into(), "give the path of a TOML file"));
    }
    String::from_utf8(bytes).map_err(|cause| {
        let valid = cause.utf8_error().valid_up_to();
        let line = 1 + cause.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
        error(Some(line), "not UTF-8 text".into(), "save the file as UTF-8")
    })
}

impl Scenario {
    /// The laws of its flows and models of traffic, as often as they are named.
    pub fn laws(&self) -> impl Iterator<Item = &LawSpec> {
        let flows = self.flow.iter().filter_map(|flow| flow.control.law());
        flows.chain(self.traffic.iter().map(|traffic| &traffic.spec))
    }

    /// The canonical TOML: every key with its value, defaults included. Parses to the same value.
    ///
    /// # Errors
    /// None for a scenario that was parsed.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}
