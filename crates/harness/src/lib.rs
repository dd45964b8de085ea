//! Twenty scenarios with assertions on goodput, loss, queue, fairness and recovery time, for a congestion controller in
//! the tests of its own stack.
//!
//! A simulation is a function of scenario and seed, so a test that fails fails again. docs/harness.md has an example.

mod c;
mod measure;
mod picture;
mod scenarios;

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

pub use c::lfn_harness_run;
pub use lfn_controller::{
    Ack, Config, Control, Controller, Event, Packet, ACK_DUPLICATE, ACK_RATE_APP_LIMITED, ACK_RECOVERY,
    ACK_ROUND_START, ACK_WINDOW_LIMITED, PACKET_APP_LIMITED,
};
use lfn_law::{LawSpec, Prototype};
use lfn_scenario::{Outside, Scenario};
use lfn_sim::{Outcome, Sim};

pub use measure::Measure;
use scenarios::{Bound, Case, CASES};

/// The law of a scenario's text that is the controller under test.
const TESTED: &str = "tested";
/// A run has no more memory than this.
const MEMORY_BYTES: u64 = 1 << 30;
const SEED: u64 = 1;

/// Why scenarios cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The controller has no name, or a wrong one.
    #[error("{0}")]
    Controller(String),
    /// No scenario is called so.
    #[error("no scenario {0:?}; allowed: {all}", all = names())]
    Name(String),
    /// A scenario does not have this assertion.
    #[error("{0}: no assertion on {1}; allowed: {allowed}", allowed = measures(.0))]
    Measure(&'static str, Measure),
    /// A file of a failure cannot be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/harness.md")]
struct Page;

fn names() -> String {
    CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
}

fn measures(case: &str) -> String {
    let bounds = CASES.iter().filter(|known| known.name == case).flat_map(|known| known.bounds);
    bounds.map(|bound| bound.0.to_string()).collect::<Vec<_>>().join(", ")
}

/// A controller and the scenarios that judge it.
pub struct Harness {
    name: String,
    law: LawSpec,
    cases: Vec<(&'static Case, Vec<Bound>)>,
    folder: Option<PathBuf>,
}

impl Harness {
    /// All scenarios for the controller that `build` makes for each connection. The name is one of results: a letter,
    /// then letters, digits, `.`, `_` or `-`.
    ///
    /// # Errors
    ///
    /// [`Error::Controller`] if the name is not one.
    pub fn new<C: Controller + 'static>(
        name: &str,
        build: impl Fn(&Config, &mut Control) -> C + Send + Sync + 'static,
    ) -> Result<Harness, Error> {
        lfn_controller::law(name.into(), "00000000".into(), Vec::new(), build)
            .map(Harness::of)
            .map_err(Error::Controller)
    }

    /// All scenarios for a law of the registry, to compare with.
    ///
    /// # Errors
    ///
    /// [`Error::Controller`] if nothing has this name.
    pub fn of_law(name: &str) -> Result<Harness, Error> {
        let law: LawSpec =
            name.parse().map_err(|error: lfn_law::LawError| Error::Controller(error.to_string()))?;
        Ok(Harness::with(name.into(), law))
    }

    /// All scenarios for a controller whose table of functions is `table`, a `struct lfn_controller` of `controller.h`.
    ///
    /// # Errors
    ///
    /// [`Error::Controller`] if it does not have that interface.
    ///
    /// # Safety
    ///
    /// `table` is NULL or points to such a table, which is constant and lives as long as the process.
    pub unsafe fn linked(table: *const c_void) -> Result<Harness, Error> {
        // SAFETY: the caller says so.
        let law = unsafe { lfn_controller::linked(table, "00000000".into()) };
        law.map(Harness::of).map_err(Error::Controller)
    }

    fn of(prototype: Prototype) -> Harness {
        Harness::with(prototype.name.clone(), prototype.into())
    }

    fn with(name: String, law: LawSpec) -> Harness {
        let cases = CASES.iter().map(|case| (case, case.bounds.to_vec())).collect();
        Harness { name, law, cases, folder: None }
    }

    /// Writes of each scenario that fails `NAME.toml`, `NAME.svg` and `NAME.qlog` into a folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Harness {
        self.folder = Some(folder.into());
        self
    }

    /// Leaves out a scenario.
    ///
    /// # Errors
    ///
    /// [`Error::Name`] if nothing has this name.
    pub fn without(mut self, scenario: &str) -> Result<Harness, Error> {
        let place = self.place(scenario)?;
        self.cases.remove(place);
        Ok(self)
    }

    /// Only the scenarios of these names.
    ///
    /// # Errors
    ///
    /// [`Error::Name`] if nothing has one of the names.
    pub fn only(mut self, scenarios: &[&str]) -> Result<Harness, Error> {
        for scenario in scenarios {
            self.place(scenario)?;
        }
        self.cases.retain(|(case, _)| scenarios.contains(&case.name));
        Ok(self)
    }

    /// Other bounds of an assertion, in the unit of the [`Measure`].
    ///
    /// # Errors
    ///
    /// [`Error::Name`] or [`Error::Measure`] if there is no such assertion.
    pub fn bound(
        mut self,
        scenario: &str,
        measure: Measure,
        allowed: RangeInclusive<f64>,
    ) -> Result<Harness, Error> {
        let place = self.place(scenario)?;
        let (case, bounds) = &mut self.cases[place];
        let bound = bounds.iter_mut().find(|bound| bound.0 == measure);
        bound.ok_or(Error::Measure(case.name, measure))?.1 = allowed;
        Ok(self)
    }

    fn place(&self, scenario: &str) -> Result<usize, Error> {
        let found = self.cases.iter().position(|(case, _)| case.name == scenario);
        found.ok_or_else(|| Error::Name(scenario.into()))
    }

    /// Runs the scenarios. The first one runs twice: both runs must be equal.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if a file of a failure cannot be written.
    pub fn run(&self) -> Result<Report, Error> {
        let mut report = Report { name: self.name.clone(), results: Vec::new() };
        for (case, bounds) in &self.cases {
            let done = simulate(case, &self.law);
            let mut result = Verdict { name: case.name, about: case.about, ..Verdict::default() };
            match &done {
                Err(why) => result.failures.push(why.clone()),
                Ok(outcome) => {
                    for (measure, allowed) in bounds {
                        let found = measure.of(case.own, case.rate_bps, case.changes_s, outcome);
                        result.found.push((*measure, found));
                        if !allowed.contains(&found) {
                            result.failures.push(measure.failure(found, allowed));
                        }
                    }
                    let repeats = report.results.is_empty();
                    if repeats && !simulate(case, &self.law).is_ok_and(|again| equal(&again, outcome)) {
                        result.failures.push(
                            "two runs differ; allowed: decisions from the calls' arguments and the seed alone"
                                .into(),
                        );
                    }
                }
            }
            if let (Some(folder), false) = (&self.folder, result.failures.is_empty()) {
                result.files = write(folder, case, bounds, done.ok().as_ref(), &result.failures)?;
            }
            report.results.push(result);
        }
        Ok(report)
    }
}

fn equal(a: &Outcome, b: &Outcome) -> bool {
    a.summary.hash == b.summary.hash
}

struct Tested<'a>(&'a LawSpec);

impl Outside for Tested<'_> {
    fn find_law(&self, text: &str, _: &Path) -> Option<Result<LawSpec, String>> {
        (text == TESTED).then(|| Ok(self.0.clone()))
    }
}

/// A run, or what ended it.
fn simulate(case: &Case, law: &LawSpec) -> Result<Outcome, String> {
    let scenario = Scenario::parse_with(&case.toml(), case.name, Some(MEMORY_BYTES), &Tested(law))
        .map_err(|error| error.to_string())?;
    let run = || {
        let mut sim = Sim::new(&scenario.config(SEED)).map_err(|error| error.to_string())?;
        sim.run_until(sim.duration());
        sim.finish().map_err(|error| error.to_string())
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(ended_by(panic)))
}

/// The words of a panic of the controller, or of its fault.
fn ended_by(panic: Box<dyn Any + Send>) -> String {
    if let Some(fault) = panic.downcast_ref::<lfn_controller::Fault>() {
        return fault.to_string();
    }
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("the controller panicked: {}", text.unwrap_or("without words"))
}

fn write(
    folder: &Path,
    case: &Case,
    bounds: &[Bound],
    outcome: Option<&Outcome>,
    failures: &[String],
) -> Result<Vec<PathBuf>, Error> {
    let mut files = vec![(format!("{}.toml", case.name), case.toml())];
    if let Some(outcome) = outcome {
        files.push((format!("{}.svg", case.name), picture::svg(case, bounds, outcome, failures)));
        files.push((format!("{}.qlog", case.name), picture::qlog(case, outcome)));
    }
    fs::create_dir_all(folder).map_err(|error| Error::Write { path: folder.into(), error })?;
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Error::Write { path: path.clone(), error })?;
        written.push(path);
    }
    Ok(written)
}

/// The verdict on a scenario.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Name of the scenario.
    pub name: &'static str,
    /// A sentence about it.
    pub about: &'static str,
    /// The figures, in the unit of the [`Measure`].
    pub found: Vec<(Measure, f64)>,
    /// Each assertion that does not hold, or what ended the run.
    pub failures: Vec<String>,
    /// Scenario, plot and qlog of a failure.
    pub files: Vec<PathBuf>,
}

/// The verdicts on all scenarios, which its text lists.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the controller.
    pub name: String,
    /// In the order of the scenarios.
    pub results: Vec<Verdict>,
}

impl Report {
    /// Number of scenarios that failed.
    pub fn failed(&self) -> usize {
        self.results.iter().filter(|result| !result.failures.is_empty()).count()
    }

    /// # Panics
    ///
    /// With the report's text, if a scenario failed.
    pub fn assert(&self) {
        assert!(self.failed() == 0, "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, all) = (self.failed(), self.results.len());
        writeln!(f, "{}: {} of {all} scenarios hold, {failed} fail", self.name, all - failed)?;
        for result in &self.results {
            let found: Vec<String> =
                result.found.iter().map(|(measure, found)| measure.words(*found)).collect();
            let word = if result.failures.is_empty() { "ok  " } else { "FAIL" };
            writeln!(f, "{word} {:16} {}", result.name, found.join(", "))?;
            if !result.failures.is_empty() {
                writeln!(f, "       {}", result.about)?;
            }
            for failure in &result.failures {
                writeln!(f, "       {failure}")?;
            }
            for file in &result.files {
                writeln!(f, "       {}", file.display())?;
            }
        }
        Ok(())
    }
}
