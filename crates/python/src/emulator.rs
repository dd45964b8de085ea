//! A command behind the path of a scenario.

use std::ffi::CString;

use lfn_emulator::{shell, EmulatorError, Shell};
use lfn_scenario::Scenario;
use pyo3::prelude::*;

use crate::errors::{LabError, ScenarioError, Unavailable, UsageError};
use crate::scenario_error;

fn words(words: Vec<String>) -> PyResult<Vec<CString>> {
    let word = |word| CString::new(word).map_err(|_| UsageError::new_err("a word has a zero byte"));
    words.into_iter().map(word).collect()
}

#[pyfunction]
#[pyo3(signature = (toml_text, file, command, serve, here))]
pub(crate) fn run_shell(
    py: Python<'_>,
    toml_text: &str,
    file: &str,
    command: Vec<String>,
    serve: Option<String>,
    here: bool,
) -> PyResult<(i32, String)> {
    let scenario = Scenario::parse(toml_text, file, None).map_err(scenario_error)?;
    let serve = serve.map(|line| words(vec![line])).transpose()?.and_then(|mut line| line.pop());
    let config = scenario.config(scenario.seed);
    let Some(plan) = Shell::behind(config, scenario.framing_bytes(), words(command)?, serve, here) else {
        return Err(ScenarioError::new_err(format!("{file}: no [[flow]], whose path it would be")));
    };
    let ended = py.detach(|| shell(&plan)).map_err(|error| match error {
        EmulatorError::Link { .. } => ScenarioError::new_err(format!("{file}: {error}")),
        error => Unavailable::new_err(error.to_string()),
    })?;
    let report = serde_json::to_string(&ended.report);
    Ok((ended.code, report.map_err(|error| LabError::new_err(error.to_string()))?))
}
