//! A command behind the path of a scenario.

use std::ffi::CString;

use lfn_emulator::{shell, EmulatorError, Plan, Shell};
use lfn_scenario::Scenario;
use lfn_units::{Time, UnitError};
use pyo3::prelude::*;

use crate::errors::{LabError, ScenarioError, Unavailable, UsageError};
use crate::scenario_error;

fn words(words: Vec<String>) -> PyResult<Vec<CString>> {
    let word = |word| CString::new(word).map_err(|_| UsageError::new_err("a word has a zero byte"));
    words.into_iter().map(word).collect()
}

#[pyfunction]
pub(crate) fn plan_testbed(toml_text: &str, file: &str, seed: u64) -> PyResult<String> {
    let scenario = Scenario::parse(toml_text, file, None).map_err(scenario_error)?;
    let plan = Plan::of(&scenario.config(seed));
    let plan = plan.map_err(|why| ScenarioError::new_err(format!("{file}: {why}")))?;
    serde_json::to_string(&plan).map_err(|error| LabError::new_err(error.to_string()))
}

/// `lead_s`: the scenario begins so long after the path is there, and its links are sampled.
#[pyfunction]
#[pyo3(signature = (toml_text, file, command, serve, here, coalesce, seed=None, lead_s=None))]
#[expect(clippy::too_many_arguments)]
pub(crate) fn run_shell(
    py: Python<'_>,
    toml_text: &str,
    file: &str,
    command: Vec<String>,
    serve: Option<String>,
    here: bool,
    coalesce: &str,
    seed: Option<u64>,
    lead_s: Option<f64>,
) -> PyResult<(i32, String)> {
    let scenario = Scenario::parse(toml_text, file, None).map_err(scenario_error)?;
    let serve = serve.map(|line| words(vec![line])).transpose()?.and_then(|mut line| line.pop());
    let together: Time =
        coalesce.parse().map_err(|error: UnitError| UsageError::new_err(format!("--coalesce: {error}")))?;
    let config = scenario.config(seed.unwrap_or(scenario.seed));
    let sample = config.sample;
    let framing_bytes = scenario.framing_bytes();
    let Some(mut plan) = Shell::behind(config, framing_bytes, words(command)?, serve, here, together) else {
        return Err(ScenarioError::new_err(format!("{file}: no [[flow]], whose path it would be")));
    };
    if let Some(lead_s) = lead_s {
        plan.sample = sample.unwrap_or(Time::NEVER);
        for change in &mut plan.network.changes {
            change.at = change.at.after(Time::from_s_f64(lead_s));
        }
    }
    let ended = py.detach(|| shell(&plan)).map_err(|error| match error {
        EmulatorError::Link { .. } => ScenarioError::new_err(format!("{file}: {error}")),
        error => Unavailable::new_err(error.to_string()),
    })?;
    let report = serde_json::to_string(&ended.report);
    Ok((ended.code, report.map_err(|error| LabError::new_err(error.to_string()))?))
}
