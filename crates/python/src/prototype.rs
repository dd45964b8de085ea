//! Laws written in Python, behind the trait [`Law`].
//!
//! python/lfnlab/control_laws/prototype.py describes such a class. A window that cannot be, or an exception,
//! ends the run: [`Fault`] unwinds to `batch`, since no callback of a law returns an error.

use std::ffi::c_long;
use std::panic::resume_unwind;

use lfn_law::{
    Ack, BoxedLaw, Build, Config, Control, Law, LawSpec, Loss, LossKind, PlacedLaw, Probe, Prototype,
    SlowStartKind, Window, WindowLaw, ACK_CWND_LIMITED, ACK_DUP, ACK_OPEN, ACK_ROUND_START, PROBES,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::errors;

/// A probe is what Python says, times 2 to this.
pub(crate) const PROBE_SCALE: u32 = 20;

/// Reason for which a law in Python ended its run.
pub(crate) struct Fault {
    /// Law, callback and simulated time.
    pub(crate) place: String,
    /// The exception.
    pub(crate) error: PyErr,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// An optional time; 0 means `None`.
fn some_seconds(ns: u64) -> Option<f64> {
    (ns != 0).then(|| seconds(ns))
}

/// A number that someone set as a law's `name`, if it is one that `fits`.
pub(crate) fn number(
    name: &str,
    value: &Bound<'_, PyAny>,
    allowed: &str,
    fits: impl Fn(f64) -> bool,
) -> PyResult<f64> {
    let Ok(number) = value.extract::<f64>() else {
        let found = value.repr().map_or_else(|_| "something".into(), |text| text.to_string());
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{name}: found {found} of type {kind}; allowed: {allowed}"
        )));
    };
    if fits(number) {
        return Ok(number);
    }
    Err(PyValueError::new_err(format!("{name}: found {number}; allowed: {allowed}")))
}

/// Window, threshold, pacing and clock of a law in Python, which its class inherits.
#[pyclass(subclass, module = "lfnlab._core")]
pub(crate) struct LawState {
    control: Control,
    now_ns: u64,
    mss_bytes: u32,
    in_loss: bool,
    has_set_ssthresh: bool,
}

#[pymethods]
impl LawState {
    #[new]
    fn new() -> LawState {
        LawState {
            control: Control::new(10),
            now_ns: 0,
            mss_bytes: 1448,
            in_loss: false,
            has_set_ssthresh: false,
        }
    }

    /// Congestion window in segments, at least 1. None grows past 2**26.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.control.cwnd.segments()
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.in_loss {
            let hint = "on_loss sets ssthresh, and the sender brings cwnd down to it";
            return Err(PyValueError::new_err(format!("cwnd cannot be set in on_loss; {hint}")));
        }
        let fits = |cwnd: f64| cwnd.is_finite() && cwnd >= 1.0;
        let cwnd = number("cwnd", value, "a number of segments from 1 on, finite", fits)?;
        self.control.cwnd = Window::nearest(cwnd).min(Window::MAX);
        Ok(())
    }

    /// Slow-start threshold in segments, at least 2 (RFC 5681 eq. 4); infinite at first.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.control.ssthresh.segments()
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let least = Window::MIN_SSTHRESH.segments();
        let in_loss = self.in_loss;
        let fits = |ssthresh: f64| ssthresh >= least && !(in_loss && ssthresh.is_infinite());
        let allowed = "a number of segments from 2 on, in on_loss a finite one";
        let ssthresh = number("ssthresh", value, allowed, fits)?;
        self.control.ssthresh = match ssthresh {
            f64::INFINITY => Window::INFINITE,
            _ => Window::nearest(ssthresh).min(Window::from_q32(u64::MAX - 1)),
        };
        self.has_set_ssthresh = true;
        Ok(())
    }

    /// Pacing rate in bit/s of payload; None for the ACK clock alone.
    #[getter]
    fn pacing_bps(&self) -> Option<f64> {
        let rate = self.control.pacing_Bps;
        (rate != 0).then_some(rate as f64 * 8.0)
    }

    #[setter]
    fn set_pacing_bps(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fits = |rate: f64| rate.is_finite() && rate > 0.0;
        self.control.pacing_Bps = if value.is_none() {
            0
        } else {
            let rate = number("pacing_bps", value, "a finite rate above 0, or None", fits)?;
            (rate / 8.0).round().max(1.0) as u64
        };
        Ok(())
    }

    /// When on_tick is wanted next, in seconds of simulated time; None for never.
    #[getter]
    fn next_tick_s(&self) -> Option<f64> {
        some_seconds(self.control.next_tick_ns)
    }

    #[setter]
    fn set_next_tick_s(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = |at_s: f64| (at_s * 1e9).round() as u64;
        let fits = |at_s: f64| at_s.is_finite() && ns(at_s) > self.now_ns;
        let allowed = "a time after now_s, or None";
        self.control.next_tick_ns =
            if value.is_none() { 0 } else { ns(number("next_tick_s", value, allowed, fits)?) };
        Ok(())
    }

    /// Simulated time in seconds.
    #[getter]
    fn now_s(&self) -> f64 {
        seconds(self.now_ns)
    }

    /// Payload of a full segment in bytes.
    #[getter]
    fn mss_bytes(&self) -> u32 {
        self.mss_bytes
    }
}

/// `Ack(rtt_s=0.02, ...)`: all that an argument tells.
pub(crate) fn shown(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = argument.get_type();
    let mut fields = Vec::new();
    for name in class.dir()?.iter().map(|name| name.to_string()).filter(|name| !name.starts_with('_')) {
        fields.push(format!("{name}={}", argument.getattr(&*name)?.repr()?));
    }
    Ok(format!("{}({})", class.name()?, fields.join(", ")))
}

/// An argument of callbacks: a class of Python, and a getter for each field.
macro_rules! told {
    ($(#[$about:meta])* $class:ident($name:literal) of $inner:ty {
        $($(#[$meaning:meta])* $field:ident: $kind:ty = $of:expr;)*
    }) => {
        $(#[$about])*
        #[pyclass(frozen, name = $name, module = "lfnlab")]
        pub(crate) struct $class(pub(crate) $inner);

        #[pymethods]
        impl $class {
            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                $crate::prototype::shown(slf)
            }

            $($(#[$meaning])*
            #[getter]
            fn $field(&self) -> $kind {
                let of: fn(&$inner) -> $kind = $of;
                of(&self.0)
            })*
        }
    };
}

pub(crate) use told;

told! {
    /// An ACK, as the sender saw it.
    PyAck("Ack") of Ack {
        /// RTT of the newest segment that it delivered, in seconds; None: no valid sample (Karn).
        rtt_s: Option<f64> = |told| some_seconds(told.rtt_ns);
        /// Smoothed RTT (RFC 6298) in seconds; None before the first sample.
        srtt_s: Option<f64> = |told| some_seconds(told.srtt_ns);
        /// Smallest RTT sample so far in seconds; None before the first.
        min_rtt_s: Option<f64> = |told| some_seconds(told.min_rtt_ns);
        /// Segments delivered since the start of the connection, each once.
        delivered: u64 = |told| told.delivered;
        /// Segments newly covered by the cumulative ACK.
        acked: u32 = |told| told.acked;
        /// Segments newly covered or newly SACKed.
        newly_delivered: u32 = |told| told.newly_delivered;
        /// Segments newly marked lost.
        newly_lost: u32 = |told| told.newly_lost;
        /// Segments in flight after it.
        inflight: u32 = |told| told.inflight;
        /// Segments whose CE mark it echoes.
        ce: u32 = |told| told.ce;
        /// No reduction is in progress.
        open: bool = |told| told.flags & ACK_OPEN != 0;
        /// It is the first of a new packet-timed round trip.
        round_start: bool = |told| told.flags & ACK_ROUND_START != 0;
        /// The last flight used the whole window.
        cwnd_limited: bool = |told| told.flags & ACK_CWND_LIMITED != 0;
        /// It covers nothing new cumulatively.
        duplicate: bool = |told| told.flags & ACK_DUP != 0;
    }
}

told! {
    /// A congestion event: one per window of data, whatever was lost in it.
    PyLoss("Loss") of Loss {
        /// "fast" (SACK, duplicate ACKs or RACK), "rto" (timeout) or "ecn" (a mark, nothing lost).
        kind: &'static str = |told| match told.kind {
            LossKind::Fast => "fast",
            LossKind::Rto => "rto",
            LossKind::Ecn => "ecn",
        };
        /// Last valid RTT sample in seconds; None before the first.
        rtt_s: Option<f64> = |told| some_seconds(told.rtt_ns);
        /// Smoothed RTT in seconds; None before the first sample.
        srtt_s: Option<f64> = |told| some_seconds(told.srtt_ns);
        /// Smallest RTT sample so far in seconds; None before the first.
        min_rtt_s: Option<f64> = |told| some_seconds(told.min_rtt_ns);
        /// Segments in flight.
        inflight: u32 = |told| told.inflight;
    }
}

/// A connection's law in Python. Its methods are bound once; those that its class leaves out are `None`.
struct PythonLaw {
    name: String,
    object: Py<LawState>,
    on_sample: Option<Py<PyAny>>,
    on_ack: Option<Py<PyAny>>,
    on_loss: Option<Py<PyAny>>,
    on_open: Option<Py<PyAny>>,
    on_tick: Option<Py<PyAny>>,
    on_undo: Option<Py<PyAny>>,
    probes: Vec<Probe>,
}

impl PythonLaw {
    /// Creates an object of the class for a new connection.
    fn new(
        py: Python<'_>,
        class: &Bound<'_, PyType>,
        name: &str,
        probes: &[Probe],
        config: &Config,
        control: &mut Control,
    ) -> PyResult<PythonLaw> {
        let object = class.call_method1("__new__", (class,))?.cast_into::<LawState>()?;
        {
            let mut state = object.borrow_mut();
            (state.control, state.now_ns, state.mss_bytes) = (*control, config.now_ns, config.mss_B);
        }
        object.call_method0("__init__")?;
        *control = object.borrow().control;
        let base = py.import("lfnlab.control_laws.prototype")?.getattr("Law")?;
        let bound = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            if class.getattr(name)?.is(&base.getattr(name)?) {
                return Ok(None);
            }
            Ok(Some(object.getattr(name)?.unbind()))
        };
        Ok(PythonLaw {
            name: name.into(),
            on_sample: bound("on_sample")?,
            on_ack: bound("on_ack")?,
            on_loss: bound("on_loss")?,
            on_open: bound("on_open")?,
            on_tick: bound("on_tick")?,
            on_undo: bound("on_undo")?,
            probes: probes.to_vec(),
            object: object.unbind(),
        })
    }

    /// Ends the run.
    fn fail(&self, callback: &str, now_ns: u64, error: PyErr) -> ! {
        fail(&self.name, callback, now_ns, error)
    }

    /// Calls a method, if the class has it. `now_ns` is `None` where the sender tells no time.
    fn call<'a>(
        &'a self,
        callback: &str,
        method: &'a Option<Py<PyAny>>,
        now_ns: Option<u64>,
        control: &mut Control,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
    ) {
        let Some(method) = method else { return };
        Python::attach(|py| {
            let object = self.object.bind(py);
            let is_loss = callback == "on_loss";
            let now_ns = {
                let mut state = object.borrow_mut();
                state.now_ns = now_ns.unwrap_or(state.now_ns);
                (state.control, state.in_loss, state.has_set_ssthresh) = (*control, is_loss, false);
                state.now_ns
            };
            let done = arguments(py).and_then(|arguments| method.bind(py).call1(arguments));
            let mut state = object.borrow_mut();
            state.in_loss = false;
            match done {
                Err(error) => self.fail(callback, now_ns, error),
                Ok(_) if is_loss && !state.has_set_ssthresh => {
                    let error =
                        PyValueError::new_err("on_loss did not set ssthresh; it must, at every event");
                    self.fail(callback, now_ns, error)
                }
                Ok(_) => *control = state.control,
            }
        });
    }
}

/// Ends the run of a law.
fn fail(law: &str, callback: &str, now_ns: u64, error: PyErr) -> ! {
    let place = format!("{law}.{callback} at {} s", seconds(now_ns));
    resume_unwind(Box::new(Fault { place, error }))
}

impl WindowLaw for PythonLaw {
    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        self.call("on_sample", &self.on_sample, Some(ack.now_ns), control, |py| {
            (PyAck(*ack),).into_pyobject(py)
        });
    }

    fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control) {
        self.call("on_ack", &self.on_ack, Some(ack.now_ns), control, |py| (n, PyAck(*ack)).into_pyobject(py));
    }
}

impl Law for PythonLaw {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.call("on_loss", &self.on_loss, Some(loss.now_ns), control, |py| {
            (PyLoss(*loss),).into_pyobject(py)
        });
    }

    fn on_open(&mut self, ack: &Ack, control: &mut Control) {
        self.call("on_open", &self.on_open, Some(ack.now_ns), control, |py| (PyAck(*ack),).into_pyobject(py));
    }

    fn on_tick(&mut self, now_ns: u64, control: &mut Control) {
        self.call("on_tick", &self.on_tick, Some(now_ns), control, |py| Ok(PyTuple::empty(py)));
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.call("on_undo", &self.on_undo, None, control, |py| Ok(PyTuple::empty(py)));
    }

    fn probe(&self, _control: &Control, out: &mut [u64; PROBES]) {
        if self.probes.is_empty() {
            return;
        }
        Python::attach(|py| {
            let object = self.object.bind(py);
            for (out, probe) in out.iter_mut().zip(&self.probes) {
                let name = probe.name.as_ref();
                let fits = |value: f64| (0.0..1e12).contains(&value);
                let value = object
                    .getattr(name)
                    .and_then(|value| number(name, &value, "for a probe, a number of at least 0", fits));
                match value {
                    Ok(value) => *out = (value * f64::from(1 << PROBE_SCALE)).round() as u64,
                    Err(error) => self.fail("probes", object.borrow().now_ns, error),
                }
            }
        });
    }
}

/// The number by which [`interrupt`] knows this thread.
pub(crate) fn this_thread() -> u64 {
    // SAFETY: it only asks the operating system for the thread's number, of 32 bits in Windows.
    (unsafe { ffi::PyThread_get_thread_ident() }) as u64
}

/// Raises KeyboardInterrupt in what a thread runs in Python, if it does.
pub(crate) fn interrupt(_py: Python<'_>, thread: u64) {
    // SAFETY: the interpreter's lock is held; a thread without Python is left alone.
    unsafe { ffi::PyThreadState_SetAsyncExc(thread as c_long, ffi::PyExc_KeyboardInterrupt) };
}

/// The law of a class that `lfnlab.control_laws.prototype.Law` is a base of.
pub(crate) fn spec_of(class: &Bound<'_, PyType>) -> PyResult<LawSpec> {
    let described = class.py().import("lfnlab.control_laws.prototype")?.call_method1("describe", (class,))?;
    let (name, source, slow_start, names): (String, String, String, Vec<String>) = described.extract()?;
    let slow_start: SlowStartKind = slow_start
        .parse()
        .map_err(|error: lfn_law::LawError| errors::LawError::new_err(error.to_string()))?;
    if slow_start == SlowStartKind::None {
        let allowed = SlowStartKind::ALL.map(SlowStartKind::name).join(", ");
        let text = format!("{name}.slow_start: none; allowed for a law in Python: {allowed}");
        return Err(errors::LawError::new_err(text));
    }
    let probes: Vec<Probe> =
        names.into_iter().map(|name| Probe { name: name.into(), scale: PROBE_SCALE }).collect();
    let (class, own_name, own_probes) = (class.clone().unbind(), name.clone(), probes.clone());
    let build = move |config: &Config, control: &mut Control| -> PlacedLaw {
        Python::attach(|py| {
            match PythonLaw::new(py, class.bind(py), &own_name, &own_probes, config, control) {
                Ok(law) => BoxedLaw::Window(Box::new(law)).into(),
                Err(error) => fail(&own_name, "__init__", config.now_ns, error),
            }
        })
    };
    let build = Some(Build::Law(Box::new(build)));
    Ok(Prototype { name, source, slow_start, probes, build, is_stack: false }.into())
}
