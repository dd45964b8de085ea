//! Laws that a scenario names by a file, or by a stack.

use std::path::Path;

use lfn_law::LawSpec;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interrupts::kept;
use crate::{controller, prototype};

/// The law in Python that a scenario in `folder` names, if it has the form of one.
pub(crate) fn find(text: &str, folder: &Path) -> Option<Result<LawSpec, String>> {
    let of_file = text.contains(".py") || text.ends_with(".h") || text.ends_with(".so");
    // STACK:CONTROLLER; the registry has laws by their name and a variant.
    let of_stack = text.split_once(':').is_some_and(|(name, _)| name.parse::<LawSpec>().is_err());
    if !text.contains('@') && !of_file && !of_stack {
        return None;
    }
    Python::attach(|py| {
        let found = py
            .import("lfnlab.control_laws.prototype")
            .and_then(|module| module.call_method1("find", (text, folder)))
            .and_then(|found| match found.cast::<PyType>() {
                Ok(class) => prototype::spec_of(class).map(Some),
                Err(_) if found.is_none() => Ok(None),
                Err(_) => controller::spec_of(&found).map(Some),
            });
        found.map_err(|error| kept(py, error).value(py).to_string()).transpose()
    })
}
