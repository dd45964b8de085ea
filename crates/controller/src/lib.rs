//! Congestion controllers that own window and pacing rate in every state, as laws of the simulator.
//!
//! `controller.h` describes the calls. [`Controller`] has them in Rust, and [`law`] makes a law of it; [`load`] makes one
//! of a shared object, or a whole stack, whose calls `stack.h` describes. A shared object is code: it can end the process
//! that loads it. The Python package loads it in a process of its own.

mod interface;
mod shared;
mod stack;

use std::fmt;
use std::panic::resume_unwind;

use lfn_law::{
    BoxedLaw, Build, Law, Loss, LossKind, PacketLaw, Probe, Prototype, Rate, SlowStartKind, Window,
    ACK_CWND_LIMITED, ACK_DUP, ACK_LOSS, PROBES, RATE_APP_LIMITED,
};

pub use interface::{
    Ack, Config, Control, Event, Packet, ACK_DUPLICATE, ACK_RATE_APP_LIMITED, ACK_RECOVERY, ACK_ROUND_START,
    ACK_WINDOW_LIMITED, PACKET_APP_LIMITED,
};
pub use shared::{linked, linked_stack, load, Error};

/// Most values that a controller shows beside its window.
pub const VALUES: usize = PROBES;

/// A value of `probe` is the controller's number times 2 to this.
const PROBE_SCALE: u32 = 20;

/// Congestion control of one connection. Times are ns of simulated time, sizes bytes of payload.
///
/// A controller must not read a clock, or draw from the operating system: runs are repeated, and must be equal.
pub trait Controller: Send {
    /// A packet leaves; `in_flight_bytes` counts it.
    fn sent(&mut self, _now_ns: u64, _packet: &Packet, _in_flight_bytes: u64, _control: &mut Control) {}

    /// An ACK delivered a packet; each packet once.
    fn acked(&mut self, _now_ns: u64, _packet: &Packet, _control: &mut Control) {}

    /// A packet is found lost; each packet once.
    fn lost(&mut self, _now_ns: u64, _packet: &Packet, _control: &mut Control) {}

    /// An ACK, after its packets and events.
    fn ack(&mut self, ack: &Ack, control: &mut Control);

    /// An event, after its packets.
    fn event(&mut self, _now_ns: u64, _event: Event, _in_flight_bytes: u64, _control: &mut Control) {}

    /// The time that it asked for has come.
    fn tick(&mut self, _now_ns: u64, _control: &mut Control) {}

    /// Whether [`Controller::sent`], `acked` and `lost` are to be called.
    fn watches_packets(&self) -> bool {
        true
    }

    /// The values that it shows beside its window: numbers of at least 0, below 1e12.
    fn values(&self, _out: &mut [f64; VALUES]) {}
}

/// Reason for which a controller ended its run: it unwinds from the callback, since no callback of a law returns an error.
#[derive(Debug)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ends the run of a controller by unwinding with a [`Fault`] that names the call and its time.
pub fn fail(law: &str, call: &str, now_ns: u64, wrong: &str) -> ! {
    let place = format!("{law}.{call} at {} s", now_ns as f64 / 1e9);
    resume_unwind(Box::new(Fault(format!("{place}: {wrong}"))))
}

/// Refuses a name that results cannot have.
fn check_name(name: &str) -> Result<(), String> {
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || "._:-".contains(one));
    match fits {
        true => Ok(()),
        false => Err(format!("name {name:?}; allowed: a letter, then letters, digits, . _ : -")),
    }
}

/// The law of a controller that `build` makes for each connection; the [`Control`] that it gets holds the initial window.
///
/// `source` is the hash of its source in hexadecimal digits, `values` names what [`Controller::values`] writes.
///
/// # Errors
///
/// If the name is none, or there are too many values.
pub fn law<C: Controller + 'static>(
    name: String,
    source: String,
    values: Vec<String>,
    build: impl Fn(&Config, &mut Control) -> C + Send + Sync + 'static,
) -> Result<Prototype, String> {
    check_name(&name)?;
    if values.len() > VALUES {
        return Err(format!("{} values; allowed: at most {VALUES}", values.len()));
    }
    let shown = values.len();
    let probes = values.into_iter().map(|name| Probe { name: name.into(), scale: PROBE_SCALE }).collect();
    let own_name: std::sync::Arc<str> = name.as_str().into();
    let build = move |config: &lfn_law::Config, control: &mut lfn_law::Control| {
        let packet_bytes = config.mss_B;
        let window_bytes = bytes(control.cwnd, packet_bytes);
        let mut decided = Control { window_bytes, pacing_bytes_per_s: 0, next_tick_ns: 0 };
        let told = Config {
            now_ns: config.now_ns,
            srtt_ns: config.srtt_ns,
            initial_window_bytes: window_bytes,
            packet_bytes,
            seed: config.seed,
        };
        let controller = build(&told, &mut decided);
        let mut adapter = Adapter {
            watches: controller.watches_packets(),
            controller,
            name: own_name.clone(),
            shown,
            control: decided,
            packet_bytes,
            asked: (0, Window::ONE),
            tick_ns: 0,
            now_ns: config.now_ns,
            repairs: false,
        };
        adapter.decide("create", control);
        BoxedLaw::Controller(Box::new(adapter)).into()
    };
    let (slow_start, build) = (SlowStartKind::None, Some(Build::Law(Box::new(build))));
    Ok(Prototype { name, source, slow_start, probes, build, is_stack: false })
}

/// A controller as a law: segments become bytes, and decisions that cannot be end the run.
struct Adapter<C> {
    controller: C,
    name: std::sync::Arc<str>,
    /// Number of values that it shows.
    shown: usize,
    /// Whether it is told of packets.
    watches: bool,
    control: Control,
    packet_bytes: u32,
    /// The window that the controller last asked for, in bytes and in segments.
    asked: (u64, Window),
    /// The tick that it last asked for.
    tick_ns: u64,
    now_ns: u64,
    /// An episode of losses or marks is under way.
    repairs: bool,
}

impl<C: Controller> Adapter<C> {
    /// Takes over what the controller decided in a call, if it can be.
    fn decide(&mut self, call: &str, control: &mut lfn_law::Control) {
        let Control { window_bytes, pacing_bytes_per_s, next_tick_ns } = self.control;
        if window_bytes != self.asked.0 {
            let most = bytes(Window::MAX, self.packet_bytes);
            if window_bytes < u64::from(self.packet_bytes) || window_bytes > most {
                let allowed = format!("{} to {most}", self.packet_bytes);
                self.fail(call, &format!("window_bytes {window_bytes}; allowed: {allowed}"));
            }
            self.asked = (window_bytes, Window::from_q32(quotient(window_bytes, self.packet_bytes)));
        }
        // A call may come in the nanosecond for which a tick is due, before it.
        if next_tick_ns != self.tick_ns {
            if next_tick_ns != 0 && next_tick_ns <= self.now_ns {
                self.fail(
                    call,
                    &format!("next_tick_ns {next_tick_ns}; allowed: 0, or after {}", self.now_ns),
                );
            }
            self.tick_ns = next_tick_ns;
        }
        control.cwnd = self.asked.1;
        control.pacing_Bps = pacing_bytes_per_s;
        control.next_tick_ns = next_tick_ns;
    }

    fn fail(&self, call: &str, wrong: &str) -> ! {
        fail(&self.name, call, self.now_ns, wrong)
    }

    fn told(&self, packet: &lfn_law::Packet) -> Packet {
        Packet {
            number: packet.number,
            sent_ns: packet.sent_ns,
            bytes: self.packet_bytes,
            flags: if packet.app_limited { PACKET_APP_LIMITED } else { 0 },
        }
    }

    fn event(&mut self, now_ns: u64, event: Event, in_flight: u64, control: &mut lfn_law::Control) {
        self.now_ns = now_ns;
        self.controller.event(now_ns, event, self.bytes_of(in_flight), &mut self.control);
        self.decide("event", control);
    }

    fn bytes_of(&self, segments: u64) -> u64 {
        segments * u64::from(self.packet_bytes)
    }
}

/// A window in bytes, rounded down.
fn bytes(window: Window, packet_bytes: u32) -> u64 {
    ((u128::from(window.q32()) * u128::from(packet_bytes)) >> 32) as u64
}

/// Bytes in segments, Q32.32, rounded up: a window of whole packets stays whole.
fn quotient(window_bytes: u64, packet_bytes: u32) -> u64 {
    (u128::from(window_bytes) << 32).div_ceil(u128::from(packet_bytes)) as u64
}

impl<C: Controller> Law for Adapter<C> {
    fn on_loss(&mut self, loss: &Loss, control: &mut lfn_law::Control) {
        let event = match loss.kind {
            LossKind::Fast => Event::Loss,
            LossKind::Rto => Event::Timeout,
            LossKind::Ecn => Event::Ce,
        };
        self.repairs = loss.kind != LossKind::Rto;
        self.event(loss.now_ns, event, loss.inflight.into(), control);
    }

    fn on_open(&mut self, ack: &lfn_law::Ack, control: &mut lfn_law::Control) {
        self.repairs = false;
        self.event(ack.now_ns, Event::Recovered, ack.inflight.into(), control);
    }

    fn on_tick(&mut self, now_ns: u64, control: &mut lfn_law::Control) {
        self.now_ns = now_ns;
        (self.control.next_tick_ns, self.tick_ns) = (0, 0);
        self.controller.tick(now_ns, &mut self.control);
        self.decide("tick", control);
    }

    fn on_undo(&mut self, control: &mut lfn_law::Control) {
        self.repairs = false;
        self.event(self.now_ns, Event::Spurious, 0, control);
    }

    fn probe(&self, _control: &lfn_law::Control, out: &mut [u64; PROBES]) {
        if self.shown == 0 {
            return;
        }
        let mut values = [0.0; VALUES];
        self.controller.values(&mut values);
        for (out, value) in out.iter_mut().zip(values).take(self.shown) {
            if !(0.0..1e12).contains(&value) {
                self.fail("probe", &format!("{value}; allowed: a number of at least 0, below 1e12"));
            }
            *out = (value * f64::from(1 << PROBE_SCALE)).round() as u64;
        }
    }
}

impl<C: Controller> lfn_law::Controller for Adapter<C> {
    fn on_control(&mut self, ack: &lfn_law::Ack, rate: &Rate, control: &mut lfn_law::Control) -> u32 {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let told = Ack {
            now_ns: ack.now_ns,
            rtt_ns: ack.rtt_ns,
            srtt_ns: ack.srtt_ns,
            min_rtt_ns: ack.min_rtt_ns,
            in_flight_bytes: self.bytes_of(ack.inflight.into()),
            delivered_bytes: self.bytes_of(ack.delivered),
            rate_bytes: self.bytes_of(rate.delivered.saturating_sub(rate.prior_delivered)),
            rate_interval_ns: rate.interval_ns,
            acked_bytes: ack.newly_delivered.saturating_mul(self.packet_bytes),
            lost_bytes: ack.newly_lost.saturating_mul(self.packet_bytes),
            ce_packets: ack.ce,
            flags: flag(ack.flags & ACK_CWND_LIMITED != 0, ACK_WINDOW_LIMITED)
                | flag(ack.flags & lfn_law::ACK_ROUND_START != 0, ACK_ROUND_START)
                | flag(self.repairs && ack.flags & ACK_LOSS == 0, ACK_RECOVERY)
                | flag(ack.flags & ACK_DUP != 0, ACK_DUPLICATE)
                | flag(rate.flags & RATE_APP_LIMITED != 0, ACK_RATE_APP_LIMITED),
        };
        self.now_ns = ack.now_ns;
        self.controller.ack(&told, &mut self.control);
        self.decide("ack", control);
        0
    }

    fn on_restart(&mut self, now_ns: u64, control: &mut lfn_law::Control) {
        self.event(now_ns, Event::Restart, 0, control);
    }

    fn on_timeout_again(&mut self, now_ns: u64, control: &mut lfn_law::Control) {
        self.event(now_ns, Event::TimeoutAgain, 0, control);
    }

    fn packets(&mut self) -> Option<&mut dyn PacketLaw> {
        Some(self)
    }
}

impl<C: Controller> PacketLaw for Adapter<C> {
    fn on_sent(
        &mut self,
        now_ns: u64,
        packet: &lfn_law::Packet,
        in_flight: u64,
        control: &mut lfn_law::Control,
    ) {
        if !self.watches {
            return;
        }
        self.now_ns = now_ns;
        let (told, in_flight_bytes) = (self.told(packet), self.bytes_of(in_flight));
        self.controller.sent(now_ns, &told, in_flight_bytes, &mut self.control);
        self.decide("sent", control);
    }

    fn on_delivered(&mut self, ack: &lfn_law::Ack, packet: &lfn_law::Packet, control: &mut lfn_law::Control) {
        if !self.watches {
            return;
        }
        self.now_ns = ack.now_ns;
        let told = self.told(packet);
        self.controller.acked(ack.now_ns, &told, &mut self.control);
        self.decide("acked", control);
    }

    fn on_packet_lost(&mut self, now_ns: u64, packet: &lfn_law::Packet, control: &mut lfn_law::Control) {
        if !self.watches {
            return;
        }
        self.now_ns = now_ns;
        let told = self.told(packet);
        self.controller.lost(now_ns, &told, &mut self.control);
        self.decide("lost", control);
    }
}
