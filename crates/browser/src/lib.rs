//! The simulator for a web page: the text of a scenario in, the summary and the curves of a run as JSON out.
//! [`Run`] is the whole of it; `exports` lets WebAssembly call it. It reads no clock and no file.

mod curves;
mod exports;

use std::path::Path;

use lfn_header::Protocol;
use lfn_law::{registry, LawSpec};
use lfn_scenario::{Outside, Scenario, ScenarioError};
use lfn_sim::{Sim, Summary};
use lfn_units::Time;
use serde::Serialize;

use curves::Curves;

/// The name of the text in errors.
pub const FILE: &str = "scenario.toml";
/// A run is refused if its memory is estimated at three times this, which is 1 GiB. WebAssembly has 4 GiB, a telephone gives a page less.
pub const MEMORY_LIMIT_BYTES: u64 = (1 << 30) / 3;

/// A page has no file, and no compiler for a law in one.
struct Page;

impl Outside for Page {
    fn find_law(&self, text: &str, _: &Path) -> Option<Result<LawSpec, String>> {
        let is_file = text.ends_with(".h") || text.ends_with(".py") || text.contains(".py:");
        is_file.then(|| {
            Err(format!("{text:?} is a file, and a page cannot compile or run it; name a law of the registry, or use lfn run"))
        })
    }
}

fn parsed(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse_with(text, FILE, Some(MEMORY_LIMIT_BYTES), &Page)
}

/// A run under way.
pub struct Run {
    name: Option<String>,
    sim: Sim,
}

/// The result of a run.
#[derive(Serialize)]
struct Report<'a> {
    name: Option<&'a str>,
    summary: &'a Summary,
    #[serde(flatten)]
    curves: Curves,
}

impl Run {
    /// A run of this scenario, with its own seed.
    ///
    /// # Errors
    /// The text of the command `lfn` for a scenario that is wrong.
    pub fn new(text: &str) -> Result<Run, String> {
        let scenario = parsed(text).map_err(|error| error.to_string())?;
        let config = scenario.config(scenario.seed);
        let sim = Sim::new(&config).map_err(|error| error.to_string())?;
        Ok(Run { name: scenario.name, sim })
    }

    /// Simulates this much more of the whole duration, and tells which part of it is done: 1 at the end.
    pub fn advance(&mut self, part: f64) -> f64 {
        let end = self.sim.duration();
        let step = Time(((end.0 as f64 * part.clamp(0.0, 1.0)) as u64).max(1));
        self.sim.run_until(self.sim.now().after(step));
        if self.sim.now() == end {
            return 1.0;
        }
        (self.sim.now().as_s() / end.as_s()).min(1.0 - f64::EPSILON)
    }

    /// The result as JSON.
    ///
    /// # Errors
    /// When the counts of the run do not add up.
    pub fn finish(mut self) -> Result<String, String> {
        while self.advance(1.0) < 1.0 {}
        let outcome = self.sim.finish().map_err(|error| error.to_string())?;
        let curves = Curves::new(&outcome.summary, &outcome.tables);
        let report = Report { name: self.name.as_deref(), summary: &outcome.summary, curves };
        serde_json::to_string(&report).map_err(|error| error.to_string())
    }
}

/// The canonical TOML of a scenario: every key with its value.
///
/// # Errors
/// As [`Run::new`].
pub fn canonical(text: &str) -> Result<String, String> {
    let scenario = parsed(text).map_err(|error| error.to_string())?;
    scenario.to_toml().map_err(|error| error.to_string())
}

/// A law, for a list to choose from.
#[derive(Serialize)]
struct Law {
    name: &'static str,
    title: &'static str,
    family: &'static str,
    variants: Vec<&'static str>,
    /// The router protocol that it needs.
    router: Option<&'static str>,
    probes: Vec<&'static str>,
    color: &'static str,
}

/// All laws of TCP as JSON.
pub fn laws() -> String {
    let laws: Vec<Law> = registry()
        .iter()
        .filter(|law| !law.is_udt())
        .map(|law| Law {
            name: law.name,
            title: law.title,
            family: law.family,
            variants: law.variant_names().collect(),
            router: law.header.and_then(name_of),
            probes: law.probes.iter().map(|probe| probe.name.as_ref()).collect(),
            color: law.look().0,
        })
        .collect();
    serde_json::to_string(&laws).unwrap_or_default()
}

fn name_of(protocol: Protocol) -> Option<&'static str> {
    Protocol::ALL.iter().find(|(_, known, _)| *known == protocol).map(|(name, ..)| *name)
}
