//! Congestion controllers from shared objects, as laws of the simulator: `controller.h` behind the traits
//! [`Controller`] and [`PacketLaw`].
//!
//! A shared object is code: it can end the process that loads it. The Python package loads it in a process of its own.

mod interface;

use std::ffi::{c_void, CStr};
use std::fmt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interface as c;
use lfn_law::{
    Ack, BoxedLaw, Config, Control, Controller, Law, Loss, LossKind, Packet, PacketLaw, Probe, Prototype,
    Rate, SlowStartKind, Window, ACK_CWND_LIMITED, ACK_DUP, ACK_LOSS, ACK_ROUND_START, PROBES,
    RATE_APP_LIMITED,
};
use libloading::Library;

/// A value of `probe` is the controller's number times 2 to this.
const PROBE_SCALE: u32 = 20;

/// Why a shared object is no controller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The loader refuses it.
    #[error("{}: {reason}", path.display())]
    Load {
        /// The shared object.
        path: PathBuf,
        /// The loader's reason.
        reason: String,
    },
    /// It does not have the interface.
    #[error("{}: {wrong}; controller.h, version {}", path.display(), c::VERSION)]
    Interface {
        /// The shared object.
        path: PathBuf,
        /// The part that it lacks.
        wrong: String,
    },
}

/// Reason for which a controller ended its run: it unwinds from the callback, since no callback of a law returns an error.
#[derive(Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

type Create = unsafe extern "C" fn(*const c::Config, *mut c::Control) -> *mut c_void;
type Destroy = unsafe extern "C" fn(*mut c_void);
type OnAck = unsafe extern "C" fn(*mut c_void, *const c::Ack, *mut c::Control);

/// A loaded shared object. Its functions live as long as the library does.
struct Loaded {
    functions: &'static c::Controller,
    create: Create,
    destroy: Destroy,
    ack: OnAck,
    name: String,
    _library: Library,
}

// SAFETY: the table of functions is constant, and controller.h asks that connections run at the same time.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Loads a shared object as a law. `source` is the hash of its content, in hexadecimal digits.
///
/// # Errors
///
/// If the loader refuses the file, or it does not have the interface of `controller.h`.
pub fn load(path: &Path, source: String) -> Result<Prototype, Error> {
    let failed = |reason: libloading::Error| Error::Load { path: path.into(), reason: reason.to_string() };
    let refused = |wrong: String| Error::Interface { path: path.into(), wrong };
    // SAFETY: the caller asks to run the file's code; it runs in a process of its own where that matters.
    let library = unsafe { Library::new(path) }.map_err(failed)?;
    // SAFETY: the symbol has the type of controller.h, as far as its name says.
    let table = unsafe { library.get::<unsafe extern "C" fn() -> *const c::Controller>(b"lfn_controller\0") }
        .map_err(|_| refused("no function lfn_controller".into()))?;
    // SAFETY: controller.h says that the function may be called and returns a constant table.
    let functions =
        unsafe { table().as_ref::<'static>() }.ok_or_else(|| refused("lfn_controller() is NULL".into()))?;
    if functions.version != c::VERSION {
        return Err(refused(format!("version {}", functions.version)));
    }
    // SAFETY: controller.h says that names end with a NUL.
    let text = |text: *const std::ffi::c_char| unsafe { CStr::from_ptr(text) }.to_str().map(String::from);
    let count = functions.value_count as usize;
    if functions.name.is_null() {
        return Err(refused("it has no name".into()));
    }
    if count > PROBES || count > 0 && (functions.values.is_null() || functions.probe.is_none()) {
        return Err(refused(format!(
            "value_count {count}; allowed: at most {PROBES}, with values and probe"
        )));
    }
    let name = text(functions.name).map_err(|_| refused("its name is not UTF-8".into()))?;
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || "._-".contains(one));
    if !fits {
        return Err(refused(format!("name {name:?}; allowed: a letter, then letters, digits, . _ -")));
    }
    let mut probes = Vec::new();
    for place in 0..count {
        // SAFETY: `values` has value_count entries.
        let one = unsafe { *functions.values.add(place) };
        let one = (!one.is_null()).then(|| text(one)).and_then(Result::ok);
        let one = one.ok_or_else(|| refused(format!("values[{place}] is no text")))?;
        probes.push(Probe { name: one.into(), scale: PROBE_SCALE });
    }
    let (Some(create), Some(destroy), Some(ack)) = (functions.create, functions.destroy, functions.ack)
    else {
        return Err(refused("create, destroy or ack is NULL".into()));
    };
    let loaded = Arc::new(Loaded { functions, create, destroy, ack, name: name.clone(), _library: library });
    let build = move |config: &Config, control: &mut Control| {
        BoxedLaw::Controller(Box::new(Foreign::new(Arc::clone(&loaded), config, control))).into()
    };
    Ok(Prototype { name, source, slow_start: SlowStartKind::None, probes, build: Some(Box::new(build)) })
}

/// A connection's controller.
struct Foreign {
    loaded: Arc<Loaded>,
    state: *mut c_void,
    control: c::Control,
    packet_bytes: u32,
    /// The window that the controller last asked for, in bytes and in segments.
    asked: (u64, Window),
    now_ns: u64,
    /// An episode of losses or marks is under way.
    repairs: bool,
}

// SAFETY: controller.h says that calls come from any thread.
unsafe impl Send for Foreign {}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: `state` came from `create`, and is not used again.
        unsafe { (self.loaded.destroy)(self.state) }
    }
}

impl Foreign {
    fn new(loaded: Arc<Loaded>, config: &Config, control: &mut Control) -> Foreign {
        let packet_bytes = config.mss_B;
        let mut decided = c::Control {
            window_bytes: bytes(control.cwnd, packet_bytes),
            pacing_bytes_per_s: 0,
            next_tick_ns: 0,
        };
        let told = c::Config {
            now_ns: config.now_ns,
            srtt_ns: config.srtt_ns,
            initial_window_bytes: decided.window_bytes,
            packet_bytes,
            seed: config.seed,
        };
        // SAFETY: the arguments live through the call and have the layout of controller.h, which a test compares; so
        // for every call below.
        let state = unsafe { (loaded.create)(&told, &mut decided) };
        if state.is_null() {
            fail(&loaded.name, "create", config.now_ns, "returned NULL");
        }
        let mut foreign = Foreign {
            loaded,
            state,
            control: decided,
            packet_bytes,
            asked: (0, Window::ONE),
            now_ns: config.now_ns,
            repairs: false,
        };
        foreign.decide("create", control);
        foreign
    }

    /// Takes over what the controller decided in a callback, if it can be.
    fn decide(&mut self, callback: &str, control: &mut Control) {
        let c::Control { window_bytes, pacing_bytes_per_s, next_tick_ns } = self.control;
        if window_bytes != self.asked.0 {
            let most = bytes(Window::MAX, self.packet_bytes);
            if window_bytes < u64::from(self.packet_bytes) || window_bytes > most {
                let allowed = format!("{} to {most}", self.packet_bytes);
                self.fail(callback, &format!("window_bytes {window_bytes}; allowed: {allowed}"));
            }
            self.asked = (window_bytes, Window::from_q32(quotient(window_bytes, self.packet_bytes)));
        }
        if next_tick_ns != 0 && next_tick_ns <= self.now_ns {
            self.fail(
                callback,
                &format!("next_tick_ns {next_tick_ns}; allowed: 0, or after {}", self.now_ns),
            );
        }
        control.cwnd = self.asked.1;
        control.pacing_Bps = pacing_bytes_per_s;
        control.next_tick_ns = next_tick_ns;
    }

    fn fail(&self, callback: &str, wrong: &str) -> ! {
        fail(&self.loaded.name, callback, self.now_ns, wrong)
    }

    fn told(&self, packet: &Packet) -> c::Packet {
        c::Packet {
            number: packet.number,
            sent_ns: packet.sent_ns,
            bytes: self.packet_bytes,
            flags: u32::from(packet.app_limited),
        }
    }

    fn event(&mut self, now_ns: u64, event: u32, in_flight_bytes: u64, control: &mut Control) {
        self.now_ns = now_ns;
        if let Some(call) = self.loaded.functions.event {
            // SAFETY: see `new`.
            unsafe { call(self.state, now_ns, event, in_flight_bytes, &mut self.control) };
            self.decide("event", control);
        }
    }

    fn in_flight_bytes(&self, segments: u64) -> u64 {
        segments * u64::from(self.packet_bytes)
    }
}

fn fail(law: &str, callback: &str, now_ns: u64, wrong: &str) -> ! {
    let place = format!("{law}.{callback} at {} s", now_ns as f64 / 1e9);
    resume_unwind(Box::new(Fault(format!("{place}: {wrong}"))))
}

/// A window in bytes, rounded down.
fn bytes(window: Window, packet_bytes: u32) -> u64 {
    ((u128::from(window.q32()) * u128::from(packet_bytes)) >> 32) as u64
}

/// Bytes in segments, Q32.32, rounded up: a window of whole packets stays whole.
fn quotient(window_bytes: u64, packet_bytes: u32) -> u64 {
    (u128::from(window_bytes) << 32).div_ceil(u128::from(packet_bytes)) as u64
}

impl Law for Foreign {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        let event = match loss.kind {
            LossKind::Fast => c::EVENT_LOSS,
            LossKind::Rto => c::EVENT_TIMEOUT,
            LossKind::Ecn => c::EVENT_CE,
        };
        self.repairs = loss.kind != LossKind::Rto;
        self.event(loss.now_ns, event, self.in_flight_bytes(loss.inflight.into()), control);
    }

    fn on_open(&mut self, ack: &Ack, control: &mut Control) {
        self.repairs = false;
        let in_flight = self.in_flight_bytes(ack.inflight.into());
        self.event(ack.now_ns, c::EVENT_RECOVERED, in_flight, control);
    }

    fn on_tick(&mut self, now_ns: u64, control: &mut Control) {
        self.now_ns = now_ns;
        self.control.next_tick_ns = 0;
        if let Some(call) = self.loaded.functions.tick {
            // SAFETY: see `new`.
            unsafe { call(self.state, now_ns, &mut self.control) };
            self.decide("tick", control);
        }
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.repairs = false;
        self.event(self.now_ns, c::EVENT_SPURIOUS, 0, control);
    }

    fn probe(&self, _control: &Control, out: &mut [u64; PROBES]) {
        let Some(call) = self.loaded.functions.probe else { return };
        let mut values = [0.0; PROBES];
        // SAFETY: see `new`; `values` holds LFN_CONTROLLER_VALUES numbers.
        unsafe { call(self.state, values.as_mut_ptr()) };
        for (out, value) in out.iter_mut().zip(values).take(self.loaded.functions.value_count as usize) {
            if !(0.0..1e12).contains(&value) {
                self.fail("probe", &format!("{value}; allowed: a number of at least 0, below 1e12"));
            }
            *out = (value * f64::from(1 << PROBE_SCALE)).round() as u64;
        }
    }
}

impl Controller for Foreign {
    fn on_control(&mut self, ack: &Ack, rate: &Rate, control: &mut Control) -> u32 {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let of = |segments: u64| segments * u64::from(self.packet_bytes);
        let told = c::Ack {
            now_ns: ack.now_ns,
            rtt_ns: ack.rtt_ns,
            srtt_ns: ack.srtt_ns,
            min_rtt_ns: ack.min_rtt_ns,
            in_flight_bytes: of(ack.inflight.into()),
            delivered_bytes: of(ack.delivered),
            rate_bytes: of(rate.delivered.saturating_sub(rate.prior_delivered)),
            rate_interval_ns: rate.interval_ns,
            acked_bytes: ack.newly_delivered.saturating_mul(self.packet_bytes),
            lost_bytes: ack.newly_lost.saturating_mul(self.packet_bytes),
            ce_packets: ack.ce,
            flags: flag(ack.flags & ACK_CWND_LIMITED != 0, c::ACK_WINDOW_LIMITED)
                | flag(ack.flags & ACK_ROUND_START != 0, c::ACK_ROUND_START)
                | flag(self.repairs && ack.flags & ACK_LOSS == 0, c::ACK_RECOVERY)
                | flag(ack.flags & ACK_DUP != 0, c::ACK_DUPLICATE)
                | flag(rate.flags & RATE_APP_LIMITED != 0, c::ACK_RATE_APP_LIMITED),
        };
        self.now_ns = ack.now_ns;
        // SAFETY: see `new`.
        unsafe { (self.loaded.ack)(self.state, &told, &mut self.control) };
        self.decide("ack", control);
        0
    }

    fn on_restart(&mut self, now_ns: u64, control: &mut Control) {
        self.event(now_ns, c::EVENT_RESTART, 0, control);
    }

    fn on_timeout_again(&mut self, now_ns: u64, control: &mut Control) {
        self.event(now_ns, c::EVENT_TIMEOUT_AGAIN, 0, control);
    }

    fn packets(&mut self) -> Option<&mut dyn PacketLaw> {
        Some(self)
    }
}

impl PacketLaw for Foreign {
    fn on_sent(&mut self, now_ns: u64, packet: &Packet, in_flight: u64, control: &mut Control) {
        self.now_ns = now_ns;
        if let Some(call) = self.loaded.functions.sent {
            let (told, in_flight) = (self.told(packet), self.in_flight_bytes(in_flight));
            // SAFETY: see `new`.
            unsafe { call(self.state, now_ns, &told, in_flight, &mut self.control) };
            self.decide("sent", control);
        }
    }

    fn on_delivered(&mut self, ack: &Ack, packet: &Packet, control: &mut Control) {
        self.now_ns = ack.now_ns;
        if let Some(call) = self.loaded.functions.acked {
            let told = self.told(packet);
            // SAFETY: see `new`.
            unsafe { call(self.state, ack.now_ns, &told, &mut self.control) };
            self.decide("acked", control);
        }
    }

    fn on_packet_lost(&mut self, now_ns: u64, packet: &Packet, control: &mut Control) {
        self.now_ns = now_ns;
        if let Some(call) = self.loaded.functions.lost {
            let told = self.told(packet);
            // SAFETY: see `new`.
            unsafe { call(self.state, now_ns, &told, &mut self.control) };
            self.decide("lost", control);
        }
    }
}
