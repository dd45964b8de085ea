//! Signals that come while Rust works for Python.

use std::cell::Cell;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread::spawn;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How often a wait looks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

thread_local! {
    /// The exception of a signal that came while Rust read a scenario.
    static INTERRUPT: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Keeps the exception of a signal, for [`take`].
pub(crate) fn keep(error: PyErr) {
    INTERRUPT.set(Some(error));
}

/// The exception that was kept in this thread since the last call.
pub(crate) fn take() -> Option<PyErr> {
    INTERRUPT.take()
}

/// Keeps the exception of a signal for the end of the reading; returns any exception.
pub(crate) fn kept(py: Python<'_>, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        keep(error.clone_ref(py));
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
