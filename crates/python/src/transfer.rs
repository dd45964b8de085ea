//! Files over UDT: a Rust thread runs the transfer; Python gets reports and may interrupt.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

use lfn_transfer::{
    send, serve, Key, Listener, Plan, Progress, Sending, Served, Serving, Statistics, TransferError,
};
use lfn_units::{Rate, UnitError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use serde::Serialize;

use crate::errors::{LabError, LawError, StoreError, UsageError};

/// Interval of checks for Python's signals.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Report to Python, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    /// Buffer sizes, as text.
    Plan(String),
    Listening(String),
    Progress(Progress),
    Done(Statistics),
    Failed(String),
}

/// Path and settings, as in `lfn-udt`.
#[pyclass(frozen, module = "lfnlab._core")]
pub(crate) struct UdtPlan(Plan);

fn quantity<T>(option: &str, parsed: Result<T, UnitError>) -> PyResult<T> {
    parsed.map_err(|error| UsageError::new_err(format!("{option}: {error}")))
}

/// The exception whose exit code is the error's.
fn raised(error: TransferError) -> PyErr {
    match error.exit_code() {
        2 => UsageError::new_err(error.to_string()),
        3 => StoreError::new_err(error.to_string()),
        _ => LabError::new_err(error.to_string()),
    }
}

#[pymethods]
impl UdtPlan {
    #[new]
    #[pyo3(signature = (rate, rtt, mss_bytes, max_rate, law, key = None, insecure = false))]
    fn new(
        rate: &str,
        rtt: &str,
        mss_bytes: &Bound<'_, PyInt>,
        max_rate: Option<&str>,
        law: &str,
        key: Option<PathBuf>,
        insecure: bool,
    ) -> PyResult<UdtPlan> {
        let max_rate: Option<Rate> = quantity("--max-rate", max_rate.map(str::parse).transpose())?;
        let plan = Plan {
            rate: quantity("--rate", rate.parse())?,
            rtt: quantity("--rtt", rtt.parse())?,
            max_rate,
            // A number beyond the type's range is not allowed either.
            mss_bytes: mss_bytes
                .extract()
                .map_err(|_| UsageError::new_err(format!("--mss: {mss_bytes} is not from 576 to 65535")))?,
            control: law.parse().map_err(|error| LawError::new_err(format!("{error}")))?,
            window_packets: None,
            key: key.map(|path| Key::read(&path)).transpose().map_err(raised)?,
            insecure,
        };
        plan.check().map_err(raised)?;
        Ok(UdtPlan(plan))
    }
}

/// Runs `work` in a thread, passes on what it reports, and stops it when Python is interrupted.
fn attended(
    py: Python<'_>,
    tell: &Bound<'_, PyAny>,
    work: impl FnOnce(Sender<Report>, Arc<AtomicBool>) -> Result<(), TransferError> + Send + 'static,
) -> PyResult<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let (say, mut hear) = channel();
    let end = stop.clone();
    let thread = std::thread::spawn(move || work(say, end));
    let mut outcome = Ok(());
    loop {
        let heard = {
            let hear = &mut hear;
            py.detach(move || hear.recv_timeout(LOOK_EVERY))
        };
        let report = match heard {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if outcome.is_ok() {
            outcome = py.check_signals().and_then(|()| match &report {
                Some(report) => {
                    let json = serde_json::to_string(report);
                    let json = json.map_err(|error| LabError::new_err(error.to_string()))?;
                    tell.call1((json,)).map(drop)
                }
                None => Ok(()),
            });
            stop.store(outcome.is_err(), Relaxed);
        }
    }
    let done = py.detach(|| thread.join());
    outcome?;
    match done {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(raised(error)),
        Err(_) => Err(LabError::new_err("a defect in the transfer")),
    }
}

#[pyfunction]
pub(crate) fn udt_send(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    to: String,
    plan: &UdtPlan,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let plan = plan.0.clone();
    attended(py, tell, move |say, stop| {
        let mut explain = Some(Report::Plan(plan.explain(&to)));
        let sending = Sending { paths: &paths, to: &to, plan };
        // The other end of the channel outlives this thread.
        let mut progress = |progress: &Progress| {
            if let Some(explain) = explain.take() {
                drop(say.send(explain));
            }
            drop(say.send(Report::Progress(*progress)));
        };
        let done = send(&sending, move || stop.load(Relaxed), &mut progress)?;
        drop(say.send(Report::Done(done)));
        Ok(())
    })
}

#[pyfunction]
pub(crate) fn udt_receive(
    py: Python<'_>,
    directory: PathBuf,
    listen: String,
    once: bool,
    overwrite: bool,
    plan: &UdtPlan,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let plan = plan.0.clone();
    attended(py, tell, move |say, stop| {
        let begin = || {
            let listener = Listener::bind(&listen, plan.clone())?;
            let local = listener.local().to_string();
            drop(say.send(Report::Plan(plan.explain(&local))));
            drop(say.send(Report::Listening(local)));
            Ok(listener)
        };
        let serving = Serving { directory: &directory, once, overwrite, stop };
        serve(begin, &serving, &mut |served| {
            let report = match served {
                Served::Progress(_, progress) => Report::Progress(progress),
                Served::Done(_, Ok(statistics)) => Report::Done(statistics),
                Served::Done(peer, Err(error)) => Report::Failed(format!("{peer}: {error}")),
            };
            drop(say.send(report));
        })
    })
}
