//! What scenarios need from outside of their text: laws in Python, and files, for which a wait ends with a signal.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread::spawn;
use std::time::Duration;

use lfn_law::LawSpec;
use lfn_scenario::{read_bytes, Outside, Scenario, ScenarioError as Fault};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::ScenarioError;
use crate::prototype;

/// How often a wait looks for a signal.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

thread_local! {
    /// The exception of a signal that came while Rust read a scenario.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// The file system, with laws in Python or without.
struct Here {
    laws: bool,
}

impl Outside for Here {
    fn find_law(&self, text: &str, folder: &Path) -> Option<Result<LawSpec, String>> {
        self.laws.then(|| prototype::find(text, folder)).flatten()
    }

    fn read(&self, file: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
        let path = file.to_owned();
        let read = Python::attach(|py| waited(py, move || read_bytes(&path, most_bytes)));
        read.unwrap_or_else(|error| {
            INTERRUPT.set(Some(error));
            Err(io::ErrorKind::Interrupted.into())
        })
    }
}

/// Keeps the exception of a signal for the end of the reading; returns any exception.
pub(crate) fn kept(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        INTERRUPT.set(Some(error.clone_ref(py)));
    }
    error
}

/// Does work that may block for ever, such as opening a FIFO without a writer. Another thread waits for it, so that
/// a signal ends the wait.
///
/// # Errors
/// The exception of a signal.
pub(crate) fn waited<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let worker = spawn(move || sender.send(work()).ok());
    loop {
        let receiver = &mut receiver;
        match py.detach(move || receiver.recv_timeout(LOOK_EVERY)) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                let panic = worker.join().expect_err("a thread without a result has panicked");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// The exception of a signal that came meanwhile, else what was read.
fn settled<T>(read: Result<T, Fault>) -> PyResult<T> {
    match INTERRUPT.take() {
        Some(error) => Err(error),
        None => read.map_err(scenario_error),
    }
}

/// A scenario whose laws may be in Python.
pub(crate) fn parse(text: &str, file: &str, memory_limit_bytes: Option<u64>) -> PyResult<Scenario> {
    settled(Scenario::parse_with(text, file, memory_limit_bytes, &Here { laws: true }))
}

/// A scenario with laws of the registry alone.
pub(crate) fn parse_registered(text: &str, file: &str) -> PyResult<Scenario> {
    settled(Scenario::parse_with(text, file, None, &Here { laws: false }))
}

/// The text of a scenario with a table beside it.
pub(crate) fn document(text: &str, file: &str, beside: Option<&str>) -> PyResult<lfn_scenario::Document> {
    settled(lfn_scenario::Document::read(text, file, beside, &Here { laws: true }))
}

pub(crate) fn scenario_error(fault: Fault) -> PyErr {
    ScenarioError::new_err((fault.found, fault.hint, fault.key, fault.file, fault.line))
}
