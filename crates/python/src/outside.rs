//! Laws in Python and files that scenarios name.

use std::io;
use std::path::Path;

use lfn_law::LawSpec;
use lfn_scenario::{read_bytes, Outside, Scenario, ScenarioError as Fault};
use pyo3::prelude::*;

use crate::errors::ScenarioError;
use crate::interrupts::{keep, take, waited};
use crate::named;

/// The file system, with laws in Python or without.
struct Here {
    laws: bool,
}

impl Outside for Here {
    fn find_law(&self, text: &str, folder: &Path) -> Option<Result<LawSpec, String>> {
        self.laws.then(|| named::find(text, folder)).flatten()
    }

    fn read(&self, file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        let path = file.to_owned();
        let read = Python::attach(|py| waited(py, move || read_bytes(&path, most_bytes)));
        read.unwrap_or_else(|error| {
            keep(error);
            Err(io::ErrorKind::Interrupted.into())
        })
    }
}

/// The exception of a signal that came meanwhile, else what was read.
fn settled<T>(read: Result<T, Fault>) -> PyResult<T> {
    match take() {
        Some(error) => Err(error),
        None => read.map_err(scenario_error),
    }
}

/// A scenario; with `laws` also those in Python, else the registry's alone.
pub(crate) fn parse(
    text: &str,
    file: &str,
    memory_limit_bytes: Option<u64>,
    laws: bool,
) -> PyResult<Scenario> {
    settled(Scenario::parse_with(text, file, memory_limit_bytes, &Here { laws }))
}

/// The text of a scenario with a table beside it.
pub(crate) fn document(text: &str, file: &str, beside: Option<&str>) -> PyResult<lfn_scenario::Document> {
    settled(lfn_scenario::Document::read(text, file, beside, &Here { laws: true }))
}

pub(crate) fn scenario_error(fault: Fault) -> PyErr {
    ScenarioError::new_err((fault.found, fault.hint, fault.key, fault.file, fault.line))
}
