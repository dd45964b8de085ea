//! Many runs at once, one core each, with progress and cancellation.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use lfn_scenario::Scenario;
use lfn_sim::{Sim, Summary, Tables};
use lfn_units::Time;
use pyo3::prelude::*;
use serde::Serialize;

/// How often the caller hears of progress.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// How long a slice of a run should take: a cancelled run ends within about that.
const SLICE: Duration = Duration::from_millis(30);

/// A run to do.
pub(crate) struct Job {
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) file: String,
}

/// A run that is over.
pub(crate) struct Finished {
    /// The JSON of its result.
    pub(crate) summary: String,
    pub(crate) tables: Tables,
    /// What it took, in seconds.
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
}

/// A finished run, or why there is none.
type Done = Result<Finished, String>;

/// The result object of a run (docs/results.md).
#[derive(Serialize)]
struct Report<'a> {
    name: Option<&'a str>,
    #[serde(flatten)]
    summary: &'a Summary,
}

thread_local! {
    /// Message and place of this thread's last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps message and place of a panic for the error that it becomes, instead of printing them.
pub(crate) fn record_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with_borrow_mut(|place| *place = info.to_string().replace('\n', " "));
    }));
}

/// As many threads, up to those wanted, as the limit allows if the largest runs come together.
pub(crate) fn threads_in_memory(jobs: &[Job], threads: usize, limit_bytes: u64) -> usize {
    let mut needs: Vec<u64> = jobs.iter().map(|job| job.scenario.predict().memory_bytes).collect();
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum: u64 = 0;
    let fit = needs.iter().take_while(|&&need| {
        sum = sum.saturating_add(need);
        sum <= limit_bytes
    });
    fit.count().min(threads).max(1)
}

/// Runs all jobs. `tell` gets index and fraction on this thread and answers whether to go on; `None`
/// is the result of a run that was cancelled.
pub(crate) fn run(
    py: Python<'_>,
    jobs: &[Job],
    threads: usize,
    mut tell: impl FnMut(usize, f64) -> PyResult<bool>,
) -> PyResult<Vec<Option<Done>>> {
    let cancel = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let fractions: Vec<AtomicU64> = jobs.iter().map(|_| AtomicU64::new(0)).collect();
    let mut results: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    let (sender, mut receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let (sender, cancel, next, fractions) = (sender.clone(), &cancel, &next, &fractions);
            scope.spawn(move || {
                while let Some(index) = Some(next.fetch_add(1, Relaxed)).filter(|&i| i < jobs.len()) {
                    let done = guarded(&jobs[index], cancel, &fractions[index]);
                    // The receiver outlives the scope.
                    let _ = sender.send((index, done));
                }
            });
        }
        drop(sender);
        let mut told = vec![0.0; jobs.len()];
        let mut outcome = Ok(());
        loop {
            // A message, or time to tell, or the end of all threads.
            let receiver = &mut receiver;
            let message = py.detach(move || receiver.recv_timeout(TELL_EVERY));
            match message {
                Ok((index, done)) => results[index] = done,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return outcome,
            }
            if cancel.load(Relaxed) {
                continue;
            }
            let go_on = py.check_signals().and_then(|()| {
                for (index, fraction) in fractions.iter().enumerate() {
                    let fraction = f64::from_bits(fraction.load(Relaxed));
                    if fraction > told[index] {
                        told[index] = fraction;
                        if !tell(index, fraction)? {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            });
            cancel.store(!matches!(go_on, Ok(true)), Relaxed);
            outcome = go_on.map(|_| ());
        }
    })?;
    Ok(results)
}

/// One run; a panic becomes an error that names it.
fn guarded(job: &Job, cancel: &AtomicBool, fraction: &AtomicU64) -> Option<Done> {
    let run = catch_unwind(AssertUnwindSafe(|| simulate(job, cancel, fraction)));
    let name = job.scenario.name.as_deref().unwrap_or(&job.file);
    run.unwrap_or_else(|panic: Box<dyn Any + Send>| {
        drop(panic);
        Some(Err(format!("a defect in the simulator: {}", PANIC.take())))
    })
    .map(|done| done.map_err(|message| format!("{name}, seed {}: {message}", job.seed)))
}

fn simulate(job: &Job, cancel: &AtomicBool, fraction: &AtomicU64) -> Option<Done> {
    let (wall, cpu_s) = (now(), thread_cpu_s());
    let config = job.scenario.config(job.seed);
    let mut sim = match Sim::new(&config) {
        Ok(sim) => sim,
        Err(error) => return Some(Err(error.to_string())),
    };
    let mut step = Time(config.duration.0 / 1_000).max(Time(1));
    while sim.now() < config.duration {
        if cancel.load(Relaxed) {
            return None;
        }
        let begun = now();
        sim.run_until(sim.now().after(step));
        fraction.store((sim.now().as_s() / config.duration.as_s()).to_bits(), Relaxed);
        step = match begun.elapsed() {
            long if long > 2 * SLICE => Time((step.0 / 2).max(1)),
            short if short < SLICE / 2 => Time(step.0.saturating_mul(2)),
            _ => step,
        };
    }
    let done = sim.finish().map_err(|error| error.to_string()).and_then(|outcome| {
        let report = Report { name: job.scenario.name.as_deref(), summary: &outcome.summary };
        Ok(Finished {
            summary: serde_json::to_string(&report).map_err(|error| error.to_string())?,
            tables: outcome.tables,
            wall_s: wall.elapsed().as_secs_f64(),
            cpu_s: thread_cpu_s() - cpu_s,
        })
    });
    Some(done)
}

#[allow(clippy::disallowed_methods, reason = "measures the run; nothing simulated depends on it")]
fn now() -> Instant {
    Instant::now()
}

/// Processor time of this thread, in seconds.
fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the call can fail only for an unknown clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
