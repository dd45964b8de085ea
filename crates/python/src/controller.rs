//! Controllers, of shared objects and in Python, behind [`lfn_controller::Controller`].
//!
//! python/lfnlab/control_laws/controller.py describes a class in Python. An exception ends the run, as any fault of a
//! controller does.

use std::path::PathBuf;

use lfn_controller::{
    fail, law, Ack, Config, Control, Controller, Event, Packet, ACK_DUPLICATE, ACK_RATE_APP_LIMITED,
    ACK_RECOVERY, ACK_ROUND_START, ACK_WINDOW_LIMITED, PACKET_APP_LIMITED, VALUES,
};
use lfn_law::{LawSpec, Probe, Prototype, SlowStartKind};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::errors;
use crate::prototype::{number, told, PROBE_SCALE};

fn some(ns: u64) -> Option<u64> {
    (ns != 0).then_some(ns)
}

told! {
    /// A new connection.
    PyControllerConfig("ControllerConfig") of Config {
        /// RTT of the handshake in ns; None without one.
        srtt_ns: Option<u64> = |told| some(told.srtt_ns);
        /// The window that the sender would begin with, in bytes.
        initial_window_bytes: u64 = |told| told.initial_window_bytes;
        /// Payload of a full packet in bytes.
        packet_bytes: u32 = |told| told.packet_bytes;
        /// For random decisions.
        seed: u32 = |told| told.seed;
    }
}

told! {
    /// One transmission of a packet. A retransmission is a packet of its own.
    PyControllerPacket("ControllerPacket") of Packet {
        /// Transmissions of the connection before it.
        number: u64 = |told| told.number;
        /// When it left, in ns.
        sent_ns: u64 = |told| told.sent_ns;
        /// Payload in bytes.
        bytes: u32 = |told| told.bytes;
        /// It left when the sender had no more data.
        app_limited: bool = |told| told.flags & PACKET_APP_LIMITED != 0;
    }
}

told! {
    /// An ACK, after its packets and events.
    PyControllerAck("ControllerAck") of Ack {
        /// RTT of the newest packet that it delivered, in ns; None: no valid sample.
        rtt_ns: Option<u64> = |told| some(told.rtt_ns);
        /// Smoothed RTT (RFC 6298) in ns; None before the first sample.
        srtt_ns: Option<u64> = |told| some(told.srtt_ns);
        /// Smallest RTT sample so far in ns; None before the first.
        min_rtt_ns: Option<u64> = |told| some(told.min_rtt_ns);
        /// Bytes in flight after it.
        in_flight_bytes: u64 = |told| told.in_flight_bytes;
        /// Bytes delivered since the start of the connection.
        delivered_bytes: u64 = |told| told.delivered_bytes;
        /// Delivery-rate sample: bytes delivered in rate_interval_ns.
        rate_bytes: u64 = |told| told.rate_bytes;
        /// Time of the delivery-rate sample in ns; None: no valid sample.
        rate_interval_ns: Option<u64> = |told| some(told.rate_interval_ns);
        /// Bytes that it delivered.
        acked_bytes: u32 = |told| told.acked_bytes;
        /// Bytes that it showed to be lost.
        lost_bytes: u32 = |told| told.lost_bytes;
        /// Packets whose CE mark it echoes.
        ce_packets: u32 = |told| told.ce_packets;
        /// The last flight used the whole window.
        window_limited: bool = |told| told.flags & ACK_WINDOW_LIMITED != 0;
        /// It is the first of a new round trip, counted by packets.
        round_start: bool = |told| told.flags & ACK_ROUND_START != 0;
        /// The sender repairs losses of an episode, or has been told of a mark in this window.
        recovery: bool = |told| told.flags & ACK_RECOVERY != 0;
        /// Data above a hole, or nothing: TCP's windows do not grow by it.
        duplicate: bool = |told| told.flags & ACK_DUPLICATE != 0;
        /// The sample's packet left when the sender had no more data.
        rate_app_limited: bool = |told| told.flags & ACK_RATE_APP_LIMITED != 0;
    }
}

/// Window, pacing rate and clock of a controller in Python, which its class inherits.
#[pyclass(subclass, module = "lfnlab._core")]
pub(crate) struct ControllerState {
    /// With a fraction, so that growth by less than a byte adds up.
    window_bytes: f64,
    pacing_bytes_per_s: f64,
    next_tick_ns: u64,
    now_ns: u64,
}

#[pymethods]
impl ControllerState {
    #[new]
    #[pyo3(signature = (*_arguments))]
    fn new(_arguments: &Bound<'_, PyTuple>) -> ControllerState {
        ControllerState { window_bytes: 14_480.0, pacing_bytes_per_s: 0.0, next_tick_ns: 0, now_ns: 0 }
    }

    /// Congestion window in bytes, at least one packet.
    #[getter]
    fn window_bytes(&self) -> f64 {
        self.window_bytes
    }

    #[setter]
    fn set_window_bytes(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fits = |window: f64| window.is_finite() && window >= 0.0;
        self.window_bytes = number("window_bytes", value, "a finite number of bytes", fits)?;
        Ok(())
    }

    /// Pacing rate in bytes of payload per second; None for the ACK clock alone.
    #[getter]
    fn pacing_bytes_per_s(&self) -> Option<f64> {
        (self.pacing_bytes_per_s != 0.0).then_some(self.pacing_bytes_per_s)
    }

    #[setter]
    fn set_pacing_bytes_per_s(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fits = |rate: f64| rate.is_finite() && rate > 0.0;
        self.pacing_bytes_per_s = match value.is_none() {
            true => 0.0,
            false => number("pacing_bytes_per_s", value, "a finite rate above 0, or None", fits)?,
        };
        Ok(())
    }

    /// When tick is wanted next, in ns of simulated time; None for never.
    #[getter]
    fn next_tick_ns(&self) -> Option<u64> {
        some(self.next_tick_ns)
    }

    #[setter]
    fn set_next_tick_ns(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fits = |at: f64| at.is_finite() && at > self.now_ns as f64;
        self.next_tick_ns = match value.is_none() {
            true => 0,
            false => number("next_tick_ns", value, "a time after now_ns, or None", fits)?.round() as u64,
        };
        Ok(())
    }

    /// Simulated time in ns.
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

/// Name of an event, as `controller.py` lists them.
fn name_of(event: Event) -> &'static str {
    match event {
        Event::Loss => "loss",
        Event::Timeout => "timeout",
        Event::Ce => "ce",
        Event::Spurious => "spurious",
        Event::Recovered => "recovered",
        Event::Restart => "restart",
        Event::TimeoutAgain => "timeout_again",
    }
}

/// A connection's controller in Python. Methods that its class leaves out are `None`.
struct PythonController {
    name: String,
    values: Vec<String>,
    object: Py<ControllerState>,
    sent: Option<Py<PyAny>>,
    acked: Option<Py<PyAny>>,
    lost: Option<Py<PyAny>>,
    ack: Option<Py<PyAny>>,
    event: Option<Py<PyAny>>,
    tick: Option<Py<PyAny>>,
}

impl PythonController {
    fn new(
        class: &Bound<'_, PyType>,
        name: &str,
        values: &[String],
        config: &Config,
        control: &mut Control,
    ) -> PyResult<PythonController> {
        let object = class.call_method1("__new__", (class,))?.cast_into::<ControllerState>()?;
        {
            let mut state = object.borrow_mut();
            (state.window_bytes, state.now_ns) = (config.initial_window_bytes as f64, config.now_ns);
        }
        object.call_method1("__init__", (PyControllerConfig(*config),))?;
        object.borrow().decide(control);
        let base = class.py().import("lfnlab.control_laws.controller")?.getattr("Controller")?;
        let bound = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            if class.getattr(name)?.is(&base.getattr(name)?) {
                return Ok(None);
            }
            Ok(Some(object.getattr(name)?.unbind()))
        };
        Ok(PythonController {
            name: name.into(),
            values: values.to_vec(),
            sent: bound("sent")?,
            acked: bound("acked")?,
            lost: bound("lost")?,
            ack: bound("ack")?,
            event: bound("event")?,
            tick: bound("tick")?,
            object: object.unbind(),
        })
    }

    /// Calls a method, if the class has it.
    fn call<'a>(
        &'a self,
        call: &str,
        method: &'a Option<Py<PyAny>>,
        now_ns: u64,
        control: &mut Control,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyTuple>>,
    ) {
        let Some(method) = method else { return };
        Python::attach(|py| {
            let object = self.object.bind(py);
            {
                let mut state = object.borrow_mut();
                (state.now_ns, state.next_tick_ns) = (now_ns, control.next_tick_ns);
            }
            match arguments(py).and_then(|arguments| method.bind(py).call1(arguments)) {
                Ok(_) => object.borrow().decide(control),
                Err(error) => raised(py, &self.name, call, now_ns, error),
            }
        });
    }
}

impl ControllerState {
    fn decide(&self, control: &mut Control) {
        *control = Control {
            window_bytes: self.window_bytes as u64,
            pacing_bytes_per_s: self.pacing_bytes_per_s.ceil() as u64,
            next_tick_ns: self.next_tick_ns,
        };
    }
}

/// Ends a run by an exception, in one line.
fn raised(py: Python<'_>, name: &str, call: &str, now_ns: u64, error: PyErr) -> ! {
    let said = (py.import("lfnlab.control_laws.controller")).and_then(|module| {
        module.call_method1("said", (error.value(py), error.traceback(py)))?.extract::<String>()
    });
    fail(name, call, now_ns, &said.unwrap_or_else(|_| error.to_string()))
}

impl Controller for PythonController {
    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, control: &mut Control) {
        self.call("sent", &self.sent, now_ns, control, |py| {
            (PyControllerPacket(*packet), in_flight_bytes).into_pyobject(py)
        });
    }

    fn acked(&mut self, now_ns: u64, packet: &Packet, control: &mut Control) {
        self.call("acked", &self.acked, now_ns, control, |py| {
            (PyControllerPacket(*packet),).into_pyobject(py)
        });
    }

    fn lost(&mut self, now_ns: u64, packet: &Packet, control: &mut Control) {
        self.call("lost", &self.lost, now_ns, control, |py| (PyControllerPacket(*packet),).into_pyobject(py));
    }

    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        self.call("ack", &self.ack, ack.now_ns, control, |py| (PyControllerAck(*ack),).into_pyobject(py));
    }

    fn event(&mut self, now_ns: u64, event: Event, in_flight_bytes: u64, control: &mut Control) {
        self.call("event", &self.event, now_ns, control, |py| {
            (name_of(event), in_flight_bytes).into_pyobject(py)
        });
    }

    fn tick(&mut self, now_ns: u64, control: &mut Control) {
        self.call("tick", &self.tick, now_ns, control, |py| Ok(PyTuple::empty(py)));
    }

    fn watches_packets(&self) -> bool {
        self.sent.is_some() || self.acked.is_some() || self.lost.is_some()
    }

    fn values(&self, out: &mut [f64; VALUES]) {
        Python::attach(|py| {
            let object = self.object.bind(py);
            for (out, name) in out.iter_mut().zip(&self.values) {
                let fits = |value: f64| (0.0..1e12).contains(&value);
                let allowed = "for a probe, a number of at least 0, below 1e12";
                let value =
                    object.getattr(name.as_str()).and_then(|value| number(name, &value, allowed, fits));
                match value {
                    Ok(value) => *out = value,
                    Err(error) => raised(py, &self.name, "probes", object.borrow().now_ns, error),
                }
            }
        });
    }
}

/// The law of a `lfnlab.control_laws.foreign.Library`: one that can be run only where this process may load it.
pub(crate) fn spec_of(library: &Bound<'_, PyAny>) -> PyResult<LawSpec> {
    let source: String = library.getattr("digest")?.extract()?;
    let name: String = library.getattr("name")?.extract()?;
    let values: Vec<String> = library.getattr("values")?.extract()?;
    let is_stack: bool = library.getattr("is_stack")?.extract()?;
    if !library.getattr("loads")?.extract()? {
        let probes = values.into_iter().map(|name| Probe { name: name.into(), scale: PROBE_SCALE }).collect();
        let slow_start = SlowStartKind::None;
        return Ok(Prototype { name, source, slow_start, probes, build: None, is_stack }.into());
    }
    let wrong = |error: String| errors::LawError::new_err(error);
    let (path, class) = (library.getattr("path")?, library.getattr("class_name")?);
    if class.is_empty()? {
        let path: PathBuf = path.extract()?;
        let found = lfn_controller::load(&path, source).map_err(|error| wrong(error.to_string()))?;
        return Ok(found.into());
    }
    let module = library.py().import("lfnlab.control_laws.prototype")?;
    let class = module.call_method1("load", (path, class))?.cast_into::<PyType>()?;
    let (class, own_name, own_values) = (class.unbind(), name.clone(), values.clone());
    let build = move |config: &Config, control: &mut Control| {
        Python::attach(|py| {
            PythonController::new(class.bind(py), &own_name, &own_values, config, control)
                .unwrap_or_else(|error| raised(py, &own_name, "__init__", config.now_ns, error))
        })
    };
    Ok(law(name, source, values, build).map_err(wrong)?.into())
}

/// Name and values of a shared object's controller, and whether it is a whole stack.
#[pyfunction]
pub(crate) fn describe_controller(path: PathBuf) -> PyResult<(String, Vec<String>, bool)> {
    let found = lfn_controller::load(&path, String::new())
        .map_err(|error| errors::LawError::new_err(error.to_string()))?;
    let values = found.probes.into_iter().map(|probe| probe.name.into_owned()).collect();
    Ok((found.name, values, found.is_stack))
}
