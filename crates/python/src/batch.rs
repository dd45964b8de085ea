//! Many runs at once, one core each, with progress and cancellation.
//!
//! A run with a law in Python holds the interpreter's lock while it computes, in slices: asking for it
//! again within a slice costs next to nothing, and other threads get it within Python's switch interval.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use lfn_scenario::Part;
use lfn_sim::{Sim, Summary, Tables};
use lfn_units::Time;
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors;
use crate::memory::Share;
use crate::prototype::{self, Fault};
use crate::scenario::Scenario;

/// Interval between progress reports to the caller.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Target duration of a slice of a run; a cancelled run ends within about this time.
const SLICE: Duration = Duration::from_millis(30);

/// Measuring the memory of a run takes at most this part of its time while the memory grows slowly.
const LOOK_PART: u32 = 50;
/// The part of the memory that is left which a run may take between two looks at it, if it goes on growing as fast.
const ROOM_PART: f64 = 0.25;
/// Shortest slice of a run whose memory grows fast.
const LEAST_SLICE: Duration = Duration::from_millis(1);

/// A finished run.
pub(crate) struct Finished {
    /// The JSON of its result.
    pub(crate) summary: String,
    pub(crate) tables: Tables,
    /// Their memory, until they are dropped.
    pub(crate) share: Share,
    /// Wall-clock time of the run, in seconds.
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
}

/// A finished run, or why there is none.
type Done = Result<Finished, Failure>;

/// Why a run has no result.
pub(crate) struct Failure {
    /// The run, and what happened.
    pub(crate) message: String,
    /// Exception of a law in Python.
    raised: Option<PyErr>,
    /// It would have exceeded its memory.
    is_over_memory: bool,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure { message, raised: None, is_over_memory: false }
    }
}

impl Failure {
    /// Failure of a run from the payload of its panic.
    pub(crate) fn of(panic: Box<dyn Any + Send>) -> Failure {
        match panic.downcast::<Fault>() {
            Ok(fault) => Failure { raised: Some(fault.error), ..fault.place.into() },
            Err(panic) => match panic.downcast::<lfn_controller::Fault>() {
                Ok(fault) => fault.to_string().into(),
                Err(_) => format!("a defect in the simulator: {}", PANIC.take()).into(),
            },
        }
    }

    /// As Python raises it.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        let Some(raised) = self.raised else {
            return match self.is_over_memory {
                true => errors::OverMemory::new_err(self.message),
                false => errors::LabError::new_err(self.message),
            };
        };
        // A hint that raises is omitted.
        let hint: String = (py.import("lfnlab.control_laws.checks"))
            .and_then(|module| module.call_method1("hint", (raised.value(py),))?.extract())
            .unwrap_or_default();
        let error = errors::PrototypeError::new_err(format!("{}: {raised}{hint}", self.message));
        error.set_cause(py, Some(raised));
        error
    }
}

/// A law that is not in the registry, as results describe it.
#[derive(Serialize)]
struct Stamp<'a> {
    law: String,
    source: String,
    probes: Vec<&'a str>,
}

/// The result object of a run (docs/results.md).
#[derive(Serialize)]
struct Report<'a> {
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prototypes: Vec<Stamp<'a>>,
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

/// Number of threads, at most `wanted`, for which the limit allows the largest runs at the same time.
pub(crate) fn threads_in_memory(jobs: &[&Scenario], threads: usize, limit_bytes: u64) -> usize {
    let mut needs: Vec<u64> = jobs.iter().map(|job| job.parsed.predict().memory_bytes).collect();
    needs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum: u64 = 0;
    let fit = needs.iter().take_while(|&&need| {
        sum = sum.saturating_add(need);
        sum <= limit_bytes
    });
    fit.count().min(threads).max(1)
}

/// Runs all jobs, with rows of the sampled tables or without; one ends with an error where runs hold more than they may.
/// `tell` gets index and fraction on this thread and answers whether to go on; `None` is the result of a run that was
/// cancelled.
pub(crate) fn run(
    py: Python<'_>,
    jobs: &[&Scenario],
    threads: usize,
    are_sampled: bool,
    mut tell: impl FnMut(usize, f64) -> PyResult<bool>,
) -> PyResult<Vec<Option<Done>>> {
    let cancel = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let fractions: Vec<AtomicU64> = jobs.iter().map(|_| AtomicU64::new(0)).collect();
    let mut results: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    let (sender, mut receiver) = channel();
    let workers: Vec<AtomicU64> = (0..threads.min(jobs.len())).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for worker in &workers {
            let (sender, cancel, next, fractions) = (sender.clone(), &cancel, &next, &fractions);
            scope.spawn(move || {
                worker.store(prototype::this_thread(), Relaxed);
                while let Some(index) = Some(next.fetch_add(1, Relaxed)).filter(|&i| i < jobs.len()) {
                    let done = guarded(jobs[index], are_sampled, cancel, &fractions[index]);
                    // The receiver outlives the scope.
                    let _ = sender.send((index, done));
                }
                // The number may soon be another thread's.
                worker.store(0, Relaxed);
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
                // A law in Python may be in a loop without end.
                workers.iter().for_each(|worker| prototype::interrupt(py, worker.load(Relaxed)));
                continue;
            }
            let go_on = py.check_signals().and_then(|()| {
                for (index, fraction) in fractions.iter().enumerate().take(next.load(Relaxed)) {
                    let fraction = f64::from_bits(fraction.load(Relaxed));
                    // Report also when a run makes no progress, so that the caller can cancel it.
                    if fraction > told[index] || results[index].is_none() {
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
fn guarded(job: &Scenario, are_sampled: bool, cancel: &AtomicBool, fraction: &AtomicU64) -> Option<Done> {
    let run = catch_unwind(AssertUnwindSafe(|| simulate(job, are_sampled, cancel, fraction)));
    let name = job.parsed.name.as_deref().unwrap_or(&job.file);
    let done = run.unwrap_or_else(|panic: Box<dyn Any + Send>| {
        if cancel.load(Relaxed) {
            return None;
        }
        Some(Err(Failure::of(panic)))
    });
    let named = |failure: Failure| Failure {
        message: format!("{name}, seed {}: {}", job.parsed.seed, failure.message),
        ..failure
    };
    done.map(|done| done.map_err(named))
}

/// Computes, with the interpreter's lock if some law is in Python.
fn attached<T>(has_prototypes: bool, compute: impl FnOnce() -> T) -> T {
    if has_prototypes {
        Python::attach(|_| compute())
    } else {
        compute()
    }
}

/// The laws of a scenario that are not in the registry, each once.
fn stamps(scenario: &lfn_scenario::Scenario) -> Vec<Stamp<'_>> {
    let mut stamps: Vec<Stamp> = Vec::new();
    for spec in scenario.laws().filter(|spec| spec.prototype().is_some()) {
        let law = spec.label();
        if stamps.iter().all(|stamp| stamp.law != law) {
            let probes = spec.probes().iter().map(|probe| probe.name.as_ref()).collect();
            stamps.push(Stamp { law, source: spec.to_string(), probes });
        }
    }
    stamps
}

fn simulate(job: &Scenario, are_sampled: bool, cancel: &AtomicBool, fraction: &AtomicU64) -> Option<Done> {
    let (wall, cpu_s) = (now(), thread_cpu_s());
    let config = job.config();
    let prototypes = stamps(&job.parsed);
    let python = job.parsed.laws().any(|law| law.prototype().is_some());
    let mut watch = Watch { share: Share::default(), looked: wall, next: wall, held: 0, slice: SLICE };
    let mut sim = match attached(python, || Sim::new(&config)) {
        Ok(sim) if are_sampled => sim,
        Ok(sim) => sim.without_samples(),
        Err(error) => return Some(Err(error.to_string().into())),
    };
    // Slow start doubles what is in flight in a round trip. A slice is no longer, unless there were a million of them.
    let shortest =
        config.flows.iter().map(|flow| flow.rtt).chain(config.udt.iter().map(|flow| flow.rtt)).min();
    let stacks = config.stacks.iter().map(|stack| stack.rtt).min();
    let shortest = shortest.into_iter().chain(stacks).min();
    let longest =
        shortest.unwrap_or(Time(config.duration.0 / 1_000)).max(Time(config.duration.0 / 1_000_000));
    let mut step = Time(1_000);
    while sim.now() < config.duration {
        if cancel.load(Relaxed) {
            return None;
        }
        let begun = now();
        attached(python, || sim.run_until(sim.now().after(step)));
        if let Err(why) = watch.look(&sim) {
            return Some(Err(over_memory(job, &sim, &why)));
        }
        fraction.store((sim.now().as_s() / config.duration.as_s()).to_bits(), Relaxed);
        step = match begun.elapsed() {
            long if long > 2 * watch.slice => Time((step.0 / 2).max(1)),
            short if short < watch.slice / 2 => Time(step.0.saturating_mul(2)).min(longest.max(Time(1))),
            _ => step,
        };
    }
    let finished = attached(python, || sim.finish());
    let done = finished.map_err(|error| error.to_string()).and_then(|outcome| {
        watch.share.keep(outcome.tables.memory_bytes() as u64);
        let name = job.parsed.name.as_deref();
        let report = Report { name, prototypes, summary: &outcome.summary };
        Ok(Finished {
            summary: serde_json::to_string(&report).map_err(|error| error.to_string())?,
            share: watch.share,
            tables: outcome.tables,
            wall_s: wall.elapsed().as_secs_f64(),
            cpu_s: thread_cpu_s() - cpu_s,
        })
    });
    Some(done.map_err(Failure::from))
}

/// A look at the memory of a run, whenever it is due.
struct Watch {
    share: Share,
    looked: Instant,
    /// When the next look is due if the memory grows slowly.
    next: Instant,
    held: u64,
    /// Duration of a slice in which the run takes no more than a part of what is left.
    slice: Duration,
}

impl Watch {
    /// An error gives the reason why the run must end.
    fn look(&mut self, sim: &Sim) -> Result<(), String> {
        let begun = now();
        if begun < self.next {
            return Ok(());
        }
        let held = sim.memory_bytes() as u64;
        let room = self.share.hold(held)?;
        let ended = now();
        let bytes_per_s = held.saturating_sub(self.held) as f64 / (ended - self.looked).as_secs_f64();
        let lasts_s = ROOM_PART * room as f64 / bytes_per_s.max(1.0);
        let lasts = Duration::from_secs_f64(lasts_s.min(1.0));
        self.slice = lasts.clamp(LEAST_SLICE, SLICE);
        self.next = ended + lasts.min((ended - begun) * LOOK_PART);
        (self.looked, self.held) = (ended, held);
        Ok(())
    }
}

/// The end of a run that would exceed its memory: amount, key and remedy.
fn over_memory(job: &Scenario, sim: &Sim, why: &str) -> Failure {
    let held = sim.held();
    let parts = [
        (held.flows, Part::Flows),
        (held.packets, Part::Packets),
        (held.tables, Part::Tables),
        (held.recorded, Part::Capture),
    ];
    let part = parts.into_iter().max_by_key(|part| part.0).map_or(Part::Flows, |part| part.1);
    let (key, advice) = job.parsed.remedy(part);
    let ended = format!("ended at {} of {}: {why}", sim.now(), job.parsed.duration);
    let message =
        format!("{ended}, most of it for {}; {key}: {advice}; or allow more with --memory", part.name());
    Failure { is_over_memory: true, ..message.into() }
}

#[allow(clippy::disallowed_methods, reason = "measures the run; nothing simulated depends on it")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time of this thread, in seconds.
#[cfg(unix)]
fn thread_cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; the call can fail only for an unknown clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The CPU time of a thread is not measured here.
#[cfg(not(unix))]
fn thread_cpu_s() -> f64 {
    0.0
}
