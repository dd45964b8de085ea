//! Simulations whose sender someone steers from outside: many of them advance in one call, with the interpreter's lock
//! free.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;

use lfn_law::{Hand, LawSpec, Window};
use lfn_scenario::Outside;
use lfn_sim::{Seen, Sim};
use lfn_units::Time;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::batch::Failure;
use crate::errors::{LabError, LawError, UsageError};
use crate::{memory, outside};

/// Of each environment, in this order; python/lfnlab/env has names and units.
const OBSERVED: usize = 15;
/// The longest step that ends with ACKs, if they do not come.
const MOST_WAIT: Time = Time(1_000_000_000_000);
/// Of a sender before its first action.
const FIRST_WINDOW: u64 = 10;

/// How a step ends.
#[derive(Clone, Copy)]
enum Every {
    /// After a time.
    Time(Time),
    /// After so many smoothed RTTs; base RTTs before there is one.
    Rtts(f64),
    /// When so many segments more are delivered.
    Segments(u64),
}

/// A simulation under way, and the sender in it that is steered.
struct Environment {
    sim: Sim,
    hand: Arc<Hand>,
    /// Its number among the flows.
    flow: usize,
    base_rtt: Time,
    seen: Seen,
    cwnd: f64,
    pacing_bps: f64,
    /// The reason why it ended before its time.
    failed: Option<String>,
    _share: memory::Share,
}

/// Gives the law of the steered flow to the reader of a scenario.
struct Steerable<'a>(&'a Arc<Hand>);

impl Outside for Steerable<'_> {
    fn find_law(&self, text: &str, _: &Path) -> Option<Result<LawSpec, String>> {
        (text == Hand::NAME).then(|| Ok(self.0.law().into()))
    }
}

impl Environment {
    /// The simulation of a scenario whose last flow has the law [`Hand::NAME`].
    fn new(text: &str) -> PyResult<Environment> {
        let hand = Arc::new(Hand::new(Window::whole(FIRST_WINDOW)));
        let limit_bytes = memory::limit_bytes();
        let parsed =
            lfn_scenario::Scenario::parse_with(text, "scenario", Some(limit_bytes), &Steerable(&hand))
                .map_err(outside::scenario_error)?;
        let foreign = |law: &&LawSpec| law.prototype().is_some_and(|known| known.build.is_none());
        if let Some(law) = parsed.laws().find(foreign) {
            return Err(LawError::new_err(format!("{law}; allowed as cross traffic: laws of the registry")));
        }
        let config = parsed.config(parsed.seed);
        let flow = config.flows.len() + config.udt.len() + config.stacks.len() - 1;
        let base_rtt = config.flows.last().map_or(Time::ZERO, |flow| flow.rtt);
        let mut share = memory::Share::default();
        share.hold(parsed.predict().memory_bytes).map_err(UsageError::new_err)?;
        let sim = catch_unwind(AssertUnwindSafe(|| Sim::new(&config)))
            .map_err(|panic| LabError::new_err(Failure::of(panic).message))?
            .map_err(|error| LabError::new_err(error.to_string()))?;
        Ok(Environment {
            sim: sim.without_samples(),
            hand,
            flow,
            base_rtt,
            seen: Seen::default(),
            cwnd: FIRST_WINDOW as f64,
            pacing_bps: 0.0,
            failed: None,
            _share: share,
        })
    }

    fn is_over(&self) -> bool {
        self.failed.is_some() || self.sim.now() >= self.sim.duration()
    }

    /// Advances by a step. Writes what the sender then knows.
    fn step(&mut self, cwnd: f64, pacing_bps: f64, every: Every, out: &mut [f64]) {
        let (window, pacing) = (Window::nearest(cwnd).min(Window::MAX), bytes_per_s(pacing_bps));
        (self.cwnd, self.pacing_bps) = (cwnd, pacing_bps);
        self.hand.set(window, pacing);
        let before = self.sim.now();
        let sim = &mut self.sim;
        let srtt = Time::from_ns(self.seen.srtt_ns);
        let advanced = catch_unwind(AssertUnwindSafe(|| {
            sim.steer(self.flow, window, pacing);
            match every {
                Every::Time(step) => sim.run_until(before.after(step)),
                Every::Rtts(rtts) => {
                    let rtt = if srtt == Time::ZERO { self.base_rtt } else { srtt };
                    sim.run_until(before.after(Time(((rtt.0 as f64 * rtts) as u64).max(1))));
                }
                Every::Segments(segments) => {
                    sim.run_until_delivered(
                        self.flow,
                        self.seen.delivered + segments,
                        before.after(MOST_WAIT),
                    );
                }
            }
            sim.seen(self.flow).unwrap_or_default()
        }));
        match advanced {
            Ok(seen) => self.observe(before, seen, out),
            Err(panic) => self.failed = Some(Failure::of(panic).message),
        }
    }

    fn observe(&mut self, before: Time, seen: Seen, out: &mut [f64]) {
        let was = std::mem::replace(&mut self.seen, seen);
        let now = self.sim.now();
        let step_s = (now - before).as_s();
        let mss = f64::from(seen.mss_bytes);
        let delivered = (seen.delivered - was.delivered) as f64;
        let rate_bps = if step_s > 0.0 { delivered * mss * 8.0 / step_s } else { 0.0 };
        let found: [f64; OBSERVED] = [
            now.as_s(),
            step_s,
            seen.rtt_ns as f64 * 1e-9,
            seen.srtt_ns as f64 * 1e-9,
            seen.min_rtt_ns as f64 * 1e-9,
            rate_bps,
            delivered,
            (seen.sent - was.sent) as f64,
            (seen.retransmits - was.retransmits) as f64,
            (seen.timeouts - was.timeouts) as f64,
            (seen.loss_events - was.loss_events) as f64,
            (seen.marks - was.marks) as f64,
            seen.in_flight as f64,
            self.cwnd,
            self.pacing_bps,
        ];
        out.copy_from_slice(&found);
    }
}

/// A pacing rate in whole bytes a second, at least one where it is given.
fn bytes_per_s(bps: f64) -> u64 {
    if bps > 0.0 {
        (bps / 8.0).round().max(1.0) as u64
    } else {
        0
    }
}

/// Environments by their place.
#[pyclass(frozen, module = "lfnlab._core")]
pub(crate) struct Environments(Mutex<Vec<Option<Environment>>>);

#[pymethods]
impl Environments {
    #[new]
    fn new(count: usize) -> Environments {
        Environments(Mutex::new((0..count).map(|_| None).collect()))
    }

    /// Begins an episode of a place.
    fn begin(&self, place: usize, text: &str) -> PyResult<()> {
        let mut all = self.lock()?;
        let slot =
            all.get_mut(place).ok_or_else(|| UsageError::new_err(format!("no environment {place}")))?;
        // The memory of the old one is free for the new one.
        *slot = None;
        *slot = Some(Environment::new(text)?);
        Ok(())
    }

    /// Advances the places whose mask is not 0 by a step, on so many threads. Writes the observations, one row an
    /// environment, and which are over.
    #[pyo3(signature = (cwnd, pacing_bps, mask, unit, value, threads, seen, over))]
    #[allow(clippy::too_many_arguments, reason = "one call a step")]
    fn step(
        &self,
        py: Python<'_>,
        cwnd: Option<PyBuffer<f64>>,
        pacing_bps: Option<PyBuffer<f64>>,
        mask: Option<PyBuffer<u8>>,
        unit: &str,
        value: f64,
        threads: usize,
        seen: PyBuffer<f64>,
        over: PyBuffer<u8>,
    ) -> PyResult<()> {
        let every = match unit {
            "s" => Every::Time(Time((value * 1e12).round() as u64)),
            "rtts" => Every::Rtts(value),
            _ => Every::Segments(value as u64),
        };
        let mut all = self.lock()?;
        let count = all.len();
        let cwnd = actions(py, "cwnd", cwnd, count, Window::MAX.segments(), (1.0, Window::MAX.segments()))?;
        let pacing = actions(py, "rate", pacing_bps, count, 0.0, (8.0, 1e13))?;
        let mask = match mask {
            Some(mask) => mask.to_vec(py)?,
            None => vec![1; count],
        };
        if mask.len() != count {
            return Err(UsageError::new_err(format!("mask: {} values; allowed: {count}", mask.len())));
        }
        for (place, environment) in all.iter().enumerate().filter(|(place, _)| mask[*place] != 0) {
            let why = match environment {
                None => "has not begun; call reset first".to_string(),
                Some(it) if it.failed.is_some() => {
                    format!("has failed: {}", it.failed.as_deref().unwrap_or(""))
                }
                Some(it) if it.is_over() => {
                    format!("is over, at {} s; call reset first", it.sim.duration().as_s())
                }
                Some(_) => continue,
            };
            return Err(UsageError::new_err(format!("step: environment {place} {why}")));
        }
        let mut found = vec![0.0; count * OBSERVED];
        let work: Vec<_> = (all.iter_mut().zip(found.chunks_exact_mut(OBSERVED)).enumerate())
            .filter(|(place, _)| mask[*place] != 0)
            .filter_map(|(place, (it, out))| Some((it.as_mut()?, cwnd[place], pacing[place], out)))
            .collect();
        py.detach(|| advance(work, every, threads));
        if let Some((place, why)) = (all.iter().enumerate())
            .find_map(|(place, it)| Some((place, it.as_ref()?.failed.as_ref().filter(|_| mask[place] != 0)?)))
        {
            return Err(LabError::new_err(format!("environment {place}: {why}")));
        }
        let ended: Vec<u8> =
            all.iter().map(|it| it.as_ref().is_none_or(Environment::is_over).into()).collect();
        over.copy_from_slice(py, &ended)?;
        seen.copy_from_slice(py, &found)
    }

    /// The result of an episode up to now, as [`crate::Run::summary`] has it; the episode ends.
    fn finish(&self, place: usize) -> PyResult<String> {
        let taken = self.lock()?.get_mut(place).and_then(Option::take);
        let Some(environment) = taken else {
            return Err(UsageError::new_err(format!("environment {place} has not begun; call reset first")));
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| environment.sim.finish()))
            .map_err(|panic| LabError::new_err(Failure::of(panic).message))?
            .map_err(|error| LabError::new_err(error.to_string()))?;
        serde_json::to_string(&outcome.summary).map_err(|error| LabError::new_err(error.to_string()))
    }
}

impl Environments {
    /// Never waits: the thread that advances would wait for the interpreter, which this one holds. No panic happens
    /// under the lock that is not caught.
    fn lock(&self) -> PyResult<MutexGuard<'_, Vec<Option<Environment>>>> {
        match self.0.try_lock() {
            Ok(all) => Ok(all),
            Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => Err(UsageError::new_err(
                "step: another thread advances these environments; allowed: one thread",
            )),
        }
    }
}

/// An action of each environment; `otherwise` if there are none.
fn actions(
    py: Python<'_>,
    name: &str,
    given: Option<PyBuffer<f64>>,
    count: usize,
    otherwise: f64,
    (least, most): (f64, f64),
) -> PyResult<Vec<f64>> {
    let Some(given) = given else { return Ok(vec![otherwise; count]) };
    let values = given.to_vec(py)?;
    if given.dimensions() != 1 || values.len() != count {
        let shape: Vec<String> = given.shape().iter().map(usize::to_string).collect();
        return Err(UsageError::new_err(format!(
            "{name}: an array of shape ({}); allowed: ({count},), a number for each environment",
            shape.join(", ")
        )));
    }
    match values.iter().position(|value| !(least..=most).contains(value)) {
        None => Ok(values),
        Some(place) => Err(UsageError::new_err(format!(
            "{name}: {} for environment {place}; allowed: from {least} to {most}",
            values[place]
        ))),
    }
}

type Work<'a> = (&'a mut Environment, f64, f64, &'a mut [f64]);

/// Advances environments, on several threads if there are several.
fn advance(mut work: Vec<Work<'_>>, every: Every, threads: usize) {
    let each = |part: &mut [Work<'_>]| {
        for (environment, cwnd, pacing_bps, out) in part {
            environment.step(*cwnd, *pacing_bps, every, out);
        }
    };
    if threads <= 1 || work.len() <= 1 {
        return each(&mut work);
    }
    let size = work.len().div_ceil(threads);
    thread::scope(|scope| {
        for part in work.chunks_mut(size) {
            scope.spawn(move || each(part));
        }
    });
}
