#![doc = include_str!("../README.md")]

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
pub use predict::{amount, Part, Prediction};

/// All that a scenario needs from outside of its text and the registry.
pub trait Outside {
    /// The law that a text names, from the folder of the scenario. `None`: it is for the registry to know; an error
    /// says `what was found; what is allowed`.
    fn find_law(&self, text: &str, folder: &Path) -> Option<Result<LawSpec, String>> {
        let _ = (text, folder);
        None
    }

    /// The first `most_bytes` bytes of a file that a scenario names.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        read_bytes(file, most_bytes)
    }
}

/// The file system, and no laws beside the registry's.
pub struct Files;

impl Outside for Files {}

/// The first `most_bytes` bytes of a file.
///
/// # Errors
/// When it cannot be read.
pub fn read_bytes(file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Without the byte order mark that some editors write before a text.
fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

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
    String::from_utf8(bytes).map(without_mark).map_err(|cause| {
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
