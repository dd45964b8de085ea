//! Laws on a fluid path, for lfnlab.theory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use lfn_law::fluid::{course, sawtooth, Course, Detail, Epoch, FluidError, Path, Sawtooth};
use lfn_law::{
    Ack, BoxedLaw, Build, Config, Control, Controller, Law, LawInfo, LawSpec, Loss, Prototype, Rate,
    SlowStartKind, Window,
};
use lfn_udt::{CongestionControl, ControlSpec, Native, NativeConfig, SYN};
use lfn_units::Time;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::numbers;
use crate::errors;

/// The arguments are those of [`Path`]; the result has the fields of [`Course`], epochs as columns.
#[pyfunction]
#[pyo3(signature = (laws, base_rtts_s, windows, losses, *, rate_pps, buffer_packets, least_rtt,
    packets_to_loss, window_at_loss))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn fluid<'py>(
    py: Python<'py>,
    laws: Vec<String>,
    base_rtts_s: Vec<f64>,
    windows: Vec<f64>,
    losses: usize,
    rate_pps: f64,
    buffer_packets: f64,
    least_rtt: f64,
    packets_to_loss: f64,
    window_at_loss: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let flows = laws.len();
    if flows == 0 {
        return Err(errors::UsageError::new_err("laws: there is none; allowed: at least one"));
    }
    let lists = [("base_rtts_s", &base_rtts_s[..]), ("windows", &windows)];
    if let Some((name, list)) = lists.iter().find(|(_, list)| list.len() != flows) {
        let wrong = format!("{name}: found {} for {flows} laws; allowed: one for each law", list.len());
        return Err(errors::UsageError::new_err(wrong));
    }
    let single = [("rate_pps", &[rate_pps][..]), ("least_rtt", &[least_rtt])];
    for (name, list) in lists.iter().chain(&single) {
        if let Some(found) = list.iter().find(|&&x| x.is_nan() || x <= 0.0) {
            return Err(errors::UsageError::new_err(format!("{name}: found {found}; allowed: above 0")));
        }
    }
    let specs = laws.iter().map(|law| parse(law, rate_pps)).collect::<PyResult<Vec<LawSpec>>>()?;
    let path = Path {
        rate_per_s: rate_pps,
        buffer: buffer_packets,
        base_rtts_s,
        least_rtt,
        segments_to_loss: packets_to_loss,
        window_at_loss,
        detail: Detail::FINE,
    };
    let mut signal = Ok(());
    let found = py.detach(|| {
        course(&specs, &path, &windows, losses, || {
            signal = Python::attach(|py| py.check_signals());
            signal.is_ok()
        })
    });
    signal?;
    let course = found.map_err(|error| match error {
        FluidError::Unbounded(flow) => errors::LawError::new_err(format!("{}: {error}", laws[flow])),
        _ => errors::UsageError::new_err(format!("{}: {error}", laws.join(", "))),
    })?;
    columns(py, flows, course)
}

/// Points that a thread takes at a time.
const SHARE: usize = 16;

/// [`sawtooth`] for each point, on `threads` threads; the lists have an entry a point. Columns are the fields of
/// [`Sawtooth`], NaN where there is none, and `wrong` says why.
#[pyfunction]
pub(crate) fn sawteeth<'py>(
    py: Python<'py>,
    laws: Vec<String>,
    rates_pps: Vec<f64>,
    rtts_s: Vec<f64>,
    buffers_packets: Vec<f64>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let points = laws.len();
    for (name, list) in
        [("rates_pps", &rates_pps), ("rtts_s", &rtts_s), ("buffers_packets", &buffers_packets)]
    {
        if list.len() != points {
            let wrong = format!("{name}: found {} for {points} laws; allowed: one for each law", list.len());
            return Err(errors::UsageError::new_err(wrong));
        }
        let may_be_0 = name == "buffers_packets";
        let is_wrong = |&&x: &&f64| !x.is_finite() || x < 0.0 || x == 0.0 && !may_be_0;
        if let Some(found) = list.iter().find(is_wrong) {
            let allowed = if may_be_0 { "finite, at least 0" } else { "finite, above 0" };
            return Err(errors::UsageError::new_err(format!("{name}: found {found}; allowed: {allowed}")));
        }
    }
    // UDT's own control knows the link's rate; others are the same law everywhere.
    let mut known: BTreeMap<&str, LawSpec> = BTreeMap::new();
    let mut specs = Vec::with_capacity(points);
    for (law, &rate_pps) in laws.iter().zip(&rates_pps) {
        if !known.contains_key(law.as_str()) || law.split(':').next() == Some("udt") {
            known.insert(law, parse(law, rate_pps)?);
        }
        specs.push(known[law.as_str()].clone());
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let found: Vec<OnceLock<Result<Sawtooth, FluidError>>> = (0..points).map(|_| OnceLock::new()).collect();
    let work = || loop {
        let first = next.fetch_add(SHARE, Relaxed);
        if first >= points || stop.load(Relaxed) {
            return;
        }
        for at in first..points.min(first + SHARE) {
            let (rate, rtt_s, buffer) = (rates_pps[at], rtts_s[at], buffers_packets[at]);
            let one = sawtooth(&specs[at], rate, rtt_s, buffer, || !stop.load(Relaxed));
            let _ = found[at].set(one);
        }
    };
    let signal = py.detach(|| {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
                thread::sleep(Duration::from_millis(5));
                let signal = Python::attach(|py| py.check_signals());
                if signal.is_err() {
                    stop.store(true, Relaxed);
                    return signal;
                }
            }
            Ok(())
        })
    });
    signal?;
    let found: Vec<_> = found.into_iter().map(|one| one.into_inner().expect("all points are done")).collect();
    let columns = PyDict::new(py);
    for (name, of) in [
        ("period_s", (|tooth| tooth.period_s) as fn(&Sawtooth) -> f64),
        ("window_before", |tooth| tooth.window_before),
        ("window_after", |tooth| tooth.window_after),
        ("mean_window", |tooth| tooth.mean_window),
        ("mean_rtt_s", |tooth| tooth.mean_rtt_s),
        ("utilization", |tooth| tooth.utilization),
        ("loss_events_per_packet", |tooth| tooth.loss_events_per_packet),
        ("growth", |tooth| tooth.growth),
    ] {
        let column: Vec<f64> = found.iter().map(|one| one.as_ref().map_or(f64::NAN, of)).collect();
        columns.set_item(name, floats(py, &column)?)?;
    }
    let wrong: Vec<Option<String>> =
        found.iter().map(|one| one.as_ref().err().map(FluidError::to_string)).collect();
    columns.set_item("wrong", wrong)?;
    Ok(columns)
}

/// Seconds from loss to loss of [`sawtooth`], as [`sawteeth`] has them; None where there is none.
#[pyfunction]
pub(crate) fn period_s(law: &str, rate_pps: f64, rtt_s: f64, buffer_packets: f64) -> PyResult<Option<f64>> {
    for (name, x, least) in [
        ("rate_pps", rate_pps, f64::MIN_POSITIVE),
        ("rtt_s", rtt_s, f64::MIN_POSITIVE),
        ("buffer_packets", buffer_packets, 0.0),
    ] {
        if !x.is_finite() || x < least {
            let allowed = if least > 0.0 { "above 0" } else { "at least 0" };
            return Err(errors::UsageError::new_err(format!(
                "{name}: found {x}; allowed: finite, {allowed}"
            )));
        }
    }
    let spec = parse(law, rate_pps)?;
    Ok(sawtooth(&spec, rate_pps, rtt_s, buffer_packets, || true).ok().map(|tooth| tooth.period_s))
}

/// A law, or UDT's own control with the link's rate in packets a second.
fn parse(name: &str, rate_pps: f64) -> PyResult<LawSpec> {
    let wrong = |message: String| errors::LawError::new_err(message);
    let (law, _) = LawInfo::named(name).map_err(|error| wrong(error.to_string()))?;
    if !law.is_udt() {
        return name.parse().map_err(|error: lfn_law::LawError| wrong(error.to_string()));
    }
    let spec = name.parse().map_err(|error: lfn_udt::ControlError| wrong(error.to_string()))?;
    let native = ControlSpec::native(&spec).expect("the law drives UDT alone");
    if rate_pps.is_infinite() {
        return Err(wrong(format!("{name} grows by what is left of a link's capacity: it needs a link")));
    }
    let build = move |config: &Config, control: &mut Control| {
        BoxedLaw::Controller(Box::new(Udt::new(native, rate_pps as u32, config, control))).into()
    };
    Ok(LawSpec::from(Prototype {
        name: "udt".into(),
        source: String::new(),
        slow_start: SlowStartKind::None,
        probes: Vec::new(),
        build: Some(Build::Law(Box::new(build))),
        is_stack: false,
    }))
}

/// UDT's own control as a law with window and pacing period. Packet pairs give the exact capacity. Silences
/// of 10 ms in UDT 2 and 3.0 are not modelled.
struct Udt {
    control: Native,
    path: lfn_udt::Path,
    /// ACKs come every 10 ms.
    next_ack: Time,
}

impl Udt {
    fn new(native: NativeConfig, capacity_pps: u32, config: &Config, control: &Control) -> Udt {
        let now = Time::from_ns(config.now_ns);
        let path = lfn_udt::Path {
            now,
            mss_bytes: config.mss_B,
            // The first ACK ends slow start.
            max_window_packets: control.cwnd.floor(),
            rtt: Time::ZERO,
            arrival_pps: 0,
            capacity_pps,
            next: 0,
            acked: 0,
        };
        Udt { control: Native::new(native, config.seed.into(), now - SYN), path, next_ack: now }
    }

    fn set(&self, control: &mut Control) {
        control.cwnd = Window::whole(self.control.window_packets().max(1));
        let packets_per_s = 1e12 / self.control.period().0 as f64;
        control.pacing_Bps = (f64::from(self.path.mss_bytes) * packets_per_s) as u64;
    }
}

impl Controller for Udt {
    fn on_control(&mut self, ack: &Ack, rate: &Rate, control: &mut Control) -> u32 {
        self.path.acked = ack.delivered;
        if self.path.rtt == Time::ZERO {
            self.path.acked = self.path.max_window_packets;
            self.path.arrival_pps = (self.path.max_window_packets as f64 * 1e9 / ack.srtt_ns as f64) as u32;
        }
        self.path.rtt = Time::from_ns(ack.srtt_ns);
        self.path.next = ack.delivered + u64::from(ack.inflight);
        if rate.interval_ns > 0 {
            let arrived = (rate.delivered - rate.prior_delivered) as f64;
            self.path.arrival_pps = (arrived * 1e9 / rate.interval_ns as f64) as u32;
        }
        while self.next_ack <= Time::from_ns(ack.now_ns) {
            self.path.now = self.next_ack;
            self.control.on_ack(false, &self.path);
            self.next_ack = self.next_ack.after(SYN);
        }
        if ack.newly_lost > 0 {
            // A NAK of packets sent before the loss was detected.
            self.control.on_loss(ack.delivered, ack.newly_lost.into(), &self.path);
        }
        self.set(control);
        0
    }
}

impl Law for Udt {
    fn on_loss(&mut self, _loss: &Loss, control: &mut Control) {
        self.control.on_loss(self.path.next, 1, &self.path);
        self.set(control);
    }
}

fn floats<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyAny>> {
    numbers(py, "f8", values, f64::to_ne_bytes)
}

fn columns(py: Python<'_>, flows: usize, course: Course) -> PyResult<Bound<'_, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("t_s", floats(py, &course.t_s)?)?;
    let table = |rows: Vec<f64>| floats(py, &rows)?.call_method1("reshape", (-1, flows));
    found.set_item("windows", table(course.windows)?)?;
    let epochs = course.epochs;
    found.set_item("start_s", epochs.iter().map(|epoch| epoch.start_s).collect::<Vec<_>>())?;
    found.set_item("end_s", epochs.iter().map(|epoch| epoch.end_s).collect::<Vec<_>>())?;
    found.set_item("lost", epochs.iter().map(|epoch| epoch.lost).collect::<Vec<_>>())?;
    for (name, of) in [
        ("before", (|epoch| &epoch.before) as fn(&Epoch) -> &Vec<f64>),
        ("after", |epoch| &epoch.after),
        ("packets", |epoch| &epoch.packets),
        ("window_s", |epoch| &epoch.window_s),
        ("growth", |epoch| &epoch.growth),
    ] {
        found.set_item(name, table(epochs.iter().flat_map(of).copied().collect())?)?;
    }
    Ok(found)
}
