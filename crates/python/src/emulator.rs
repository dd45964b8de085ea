//! A command behind the path of a scenario, and the traffic of both ends of a test bed.

use std::ffi::CString;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use lfn_emulator::{
    send_background, send_udp, shell, take_tcp, BackgroundEnd, EmulatorError, Ends, Plan, Shell, Span,
};
use lfn_sim::config::{Config, Direction, UdtConfig};
use lfn_sim::rng::Streams;
use lfn_transfer::{drain, send_zeros, Bulk, Listener};
use lfn_udt::IP_UDP_BYTES;
use lfn_units::{Time, UnitError};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::{LabError, ScenarioError, Unavailable, UsageError};
use crate::scenario::Scenario;

fn words(words: Vec<String>) -> PyResult<Vec<CString>> {
    let word = |word: String| {
        let wrong = |_| UsageError::new_err(format!("command: {word:?} has a zero byte; allowed: any other"));
        CString::new(word.as_str()).map_err(wrong)
    };
    words.into_iter().map(word).collect()
}

/// A scenario in this file that cannot be emulated, or a right that is missing.
fn refused(file: &str, error: EmulatorError) -> PyErr {
    match error {
        EmulatorError::Scenario { key, found, hint } => {
            ScenarioError::new_err((found, hint, key, file.to_string()))
        }
        error => Unavailable::new_err(error.to_string()),
    }
}

#[pyfunction]
pub(crate) fn plan_testbed(scenario: &Scenario) -> PyResult<String> {
    let plan = Plan::of(&scenario.config());
    let plan = plan.map_err(|error| refused(&scenario.file, error))?;
    serde_json::to_string(&plan).map_err(|error| LabError::new_err(error.to_string()))
}

/// `lead_s`: time from the creation of the path to the start of the scenario; links are sampled, and their counters
/// restart at the end of its warm-up.
#[pyfunction]
#[pyo3(signature = (scenario, command, serve, here, coalesce, lead_s=None, live=false, offload=true))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn run_shell(
    py: Python<'_>,
    scenario: &Scenario,
    command: Vec<String>,
    serve: Option<String>,
    here: bool,
    coalesce: &str,
    lead_s: Option<f64>,
    live: bool,
    offload: bool,
) -> PyResult<(i32, String)> {
    let serve = serve.map(|line| words(vec![line])).transpose()?.and_then(|mut line| line.pop());
    let together: Time =
        coalesce.parse().map_err(|error: UnitError| UsageError::new_err(format!("--coalesce: {error}")))?;
    let config = scenario.config();
    let (sample, warmup) = (config.sample, config.warmup);
    let framing_bytes = scenario.parsed.framing_bytes();
    let ends = Ends { command: words(command)?, serve, here };
    let Some(mut plan) = Shell::behind(config, framing_bytes, ends, together) else {
        let hint = "write a [[flow]]; its path is emulated";
        return Err(ScenarioError::new_err(("there is none", hint, "flow", scenario.file.clone())));
    };
    (plan.live, plan.offload) = (live, offload);
    if let Some(lead_s) = lead_s {
        plan.sample = sample.unwrap_or(Time::NEVER);
        let zero = Time::from_s_f64(lead_s);
        plan.network.begin_at(zero);
        plan.warm_at = zero.after(warmup);
    }
    let ended = py.detach(|| shell(&plan)).map_err(|error| refused(&scenario.file, error))?;
    let report = serde_json::to_string(&ended.report);
    Ok((ended.code, report.map_err(|error| LabError::new_err(error.to_string()))?))
}

/// A scenario at one end of a test bed.
#[pyclass(frozen, module = "lfnlab._core")]
pub(crate) struct TestbedEnd {
    config: Config,
    framing_bytes: u32,
    /// The other end.
    to: Ipv4Addr,
    span: Span,
}

/// The error of an operation of a test bed.
fn failed<E: Display>(what: impl Display) -> impl FnOnce(E) -> PyErr {
    move |error| LabError::new_err(format!("test bed: {what}: {error}"))
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| LabError::new_err(error.to_string()))
}

impl TestbedEnd {
    fn udt_plan(&self, flow: &UdtConfig) -> lfn_transfer::Plan {
        let links = &self.config.routes[flow.route.index()];
        let rates = links.iter().map(|link| self.config.links[link.index()].service.mean_rate());
        lfn_transfer::Plan {
            rate: rates.min().unwrap_or_default(),
            rtt: flow.rtt,
            max_rate: None,
            mss_bytes: flow.mss_bytes,
            control: flow.control.clone(),
            window_packets: Some(flow.window_packets),
            key: None,
            // In a network namespace of its own.
            insecure: true,
        }
    }
}

#[pymethods]
impl TestbedEnd {
    #[new]
    fn new(scenario: &Scenario, to: &str, zero_ns: u64) -> PyResult<TestbedEnd> {
        let to = to
            .parse()
            .map_err(|error| UsageError::new_err(format!("{to:?}: {error}; write for example 10.0.0.1")))?;
        let config = scenario.config();
        let span = Span { zero_ns, duration: config.duration };
        Ok(TestbedEnd { framing_bytes: scenario.parsed.framing_bytes(), config, to, span })
    }

    #[staticmethod]
    #[pyo3(signature = (port, window_bytes=None))]
    fn take_tcp(py: Python<'_>, port: u16, window_bytes: Option<u32>) -> PyResult<()> {
        py.detach(|| take_tcp(port, window_bytes)).map_err(failed(format!("TCP port {port}")))
    }

    fn send_udp(&self, py: Python<'_>, number: usize, port: u16) -> PyResult<String> {
        let source = &self.config.udp[number];
        let streams = Streams::new(self.config.seed, format!("udp.{}", source.name));
        let (overhead_bytes, to) = (self.framing_bytes + IP_UDP_BYTES, SocketAddrV4::new(self.to, port));
        let sent = py.detach(|| send_udp(&source.traffic, &streams, overhead_bytes, to, self.span));
        json(&sent.map_err(failed(format!("UDP source {:?} to {to}", source.name)))?)
    }

    fn send_background(
        &self,
        py: Python<'_>,
        reverse: bool,
        short_port: u16,
        long_port: u16,
        law: String,
    ) -> PyResult<String> {
        let Some(background) = &self.config.background else { return json(&()) };
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let end = BackgroundEnd { to: self.to, short_port, long_port, law };
        let (traffic, seed) = (background.traffic, self.config.seed);
        let sent = py.detach(|| send_background(traffic, seed, direction, &end, self.span));
        json(&sent.map_err(failed(format!("background to {}", self.to)))?)
    }

    /// Connects now, and stops `duration_s` later.
    fn send_udt(&self, py: Python<'_>, number: u32, port: u16, duration_s: f64) -> PyResult<String> {
        let flow = self.config.udt.iter().find(|flow| flow.number == number);
        let flow = flow.ok_or_else(|| UsageError::new_err(format!("flow {number} is not over UDT")))?;
        let bulk = Bulk {
            to: SocketAddrV4::new(self.to, port).to_string(),
            plan: self.udt_plan(flow),
            size_bytes: (flow.size_packets < u64::MAX)
                .then(|| flow.size_packets.saturating_mul(flow.payload_bytes().into())),
            duration: Time::from_s_f64(duration_s),
            every: self.config.sample.unwrap_or(Time::NEVER),
        };
        let sent = py.detach(|| send_zeros(&bulk)).map_err(failed(format!("flow {number} over UDT")))?;
        json(&sent)
    }

    fn take_udt(&self, py: Python<'_>, port: u16) -> PyResult<()> {
        let widest = self.config.udt.iter().max_by_key(|flow| flow.window_packets);
        let Some(flow) = widest else { return Ok(()) };
        let plan = self.udt_plan(flow);
        let place = format!("UDT port {port}");
        let listener = Listener::bind(&format!("0.0.0.0:{port}"), plan).map_err(failed(&place))?;
        py.detach(|| drain(listener, &Arc::new(AtomicBool::new(false)))).map_err(failed(&place))
    }
}
