//! `controller.h` for congestion controllers of QUIC stacks: those are told of a whole ACK, its round-trip time first.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::marker::PhantomData;

#[path = "../../../python/lfnlab/control_laws/skeletons/rust/src/lfn.rs"]
pub mod lfn;

pub mod whole;

pub use lfn::{Config, Control, Packet};

/// Factor of RFC 9002, section 7.7, between the pacing rate and window / smoothed RTT.
pub const PACING_GAIN: f64 = 1.25;

/// A packet that is neither acknowledged nor lost, with the controller's own state of it.
pub struct Sent<T> {
    pub number: u64,
    pub sent_ns: u64,
    pub bytes: u64,
    pub own: T,
}

/// Round-trip times, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    /// Of the newest packet; 0 if it has no sample.
    pub latest_ns: u64,
    /// Smoothed (RFC 6298).
    pub smoothed_ns: u64,
    pub min_ns: u64,
}

/// Packets whose fate one ACK or timeout told.
pub struct Batch<'a, T> {
    pub now_ns: u64,
    pub rtt: Rtt,
    pub in_flight_bytes: u64,
    pub acked: &'a [Sent<T>],
    pub lost: &'a [Sent<T>],
    /// The sender stopped for want of data, not for its window or pacing.
    pub app_limited: bool,
    /// Timeouts in a row (RFC 9002, section 7.6).
    pub persistent_congestion: bool,
    pub ce_packets: u32,
}

/// A controller as its stack calls it.
pub trait Stack: Send + Sized {
    /// State of the controller for each packet.
    type Own: Send;
    /// STACK:CONTROLLER
    const NAME: &'static CStr;

    fn new(config: &Config, rtt: Rtt) -> Self;
    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, app_limited: bool) -> Self::Own;
    fn told(&mut self, batch: &Batch<Self::Own>);
    fn window_bytes(&self) -> u64;
    /// Payload per second; 0: not paced. By default RFC 9002's.
    fn pacing_bytes_per_s(&self, rtt: Rtt) -> u64 {
        paced(self.window_bytes(), rtt, PACING_GAIN)
    }
}

/// `gain` windows in a smoothed RTT; 0 before there is one.
pub fn paced(window_bytes: u64, rtt: Rtt, gain: f64) -> u64 {
    if rtt.smoothed_ns == 0 {
        return 0;
    }
    ((window_bytes as f64 * gain * 1e9 / rtt.smoothed_ns as f64) as u64).max(1)
}

/// A stack's controller behind `controller.h`.
pub struct Adapter<S: Stack> {
    stack: S,
    packet_bytes: u64,
    open: VecDeque<Option<Sent<S::Own>>>,
    /// Number of the first of `open`.
    first: u64,
    acked: Vec<Sent<S::Own>>,
    lost: Vec<Sent<S::Own>>,
    in_flight_bytes: u64,
    rtt: Rtt,
    app_limited: bool,
}

impl<S: Stack> Adapter<S> {
    fn take(&mut self, number: u64) -> Option<Sent<S::Own>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let taken = self.open.get_mut(place)?.take();
        while matches!(self.open.front(), Some(None)) {
            self.open.pop_front();
            self.first += 1;
        }
        taken
    }

    fn flush(&mut self, now_ns: u64, persistent_congestion: bool, ce_packets: u32) {
        if self.acked.is_empty() && self.lost.is_empty() && ce_packets == 0 {
            return;
        }
        self.stack.told(&Batch {
            now_ns,
            rtt: self.rtt,
            in_flight_bytes: self.in_flight_bytes,
            acked: &self.acked,
            lost: &self.lost,
            app_limited: self.app_limited,
            persistent_congestion,
            ce_packets,
        });
        self.acked.clear();
        self.lost.clear();
    }

    fn decide(&self, control: &mut Control) {
        control.window_bytes = self.stack.window_bytes().max(self.packet_bytes);
        control.pacing_bytes_per_s = self.stack.pacing_bytes_per_s(self.rtt);
    }
}

impl<S: Stack> lfn::Controller for Adapter<S> {
    const NAME: &'static CStr = S::NAME;
    const WATCHES_PACKETS: bool = true;

    fn new(config: &Config, control: &mut Control) -> Self {
        let rtt = Rtt { latest_ns: config.srtt_ns, smoothed_ns: config.srtt_ns, min_ns: config.srtt_ns };
        let adapter = Adapter {
            stack: S::new(config, rtt),
            packet_bytes: config.packet_bytes.into(),
            open: VecDeque::new(),
            first: 0,
            acked: Vec::new(),
            lost: Vec::new(),
            in_flight_bytes: 0,
            rtt,
            app_limited: false,
        };
        adapter.decide(control);
        adapter
    }

    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, control: &mut Control) {
        // Losses that a timer found, without an ACK.
        self.flush(now_ns, false, 0);
        self.app_limited = packet.flags & lfn::PACKET_APP_LIMITED != 0;
        self.in_flight_bytes = in_flight_bytes;
        let own = self.stack.sent(now_ns, packet, in_flight_bytes, self.app_limited);
        if self.open.is_empty() {
            self.first = packet.number;
        }
        while self.first + (self.open.len() as u64) < packet.number {
            self.open.push_back(None);
        }
        let bytes = packet.bytes.into();
        self.open.push_back(Some(Sent { number: packet.number, sent_ns: packet.sent_ns, bytes, own }));
        self.decide(control);
    }

    fn acked(&mut self, _now_ns: u64, packet: &Packet, _control: &mut Control) {
        // A packet that was taken for lost is none that QUIC would count.
        if let Some(sent) = self.take(packet.number) {
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(sent.bytes);
            self.acked.push(sent);
        }
    }

    fn lost(&mut self, _now_ns: u64, packet: &Packet, _control: &mut Control) {
        if let Some(sent) = self.take(packet.number) {
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(sent.bytes);
            self.lost.push(sent);
        }
    }

    fn ack(&mut self, ack: &lfn::Ack, control: &mut Control) {
        if ack.srtt_ns > 0 {
            self.rtt = Rtt { latest_ns: ack.rtt_ns, smoothed_ns: ack.srtt_ns, min_ns: ack.min_rtt_ns };
        }
        self.flush(ack.now_ns, false, ack.ce_packets);
        self.decide(control);
    }

    fn event(&mut self, now_ns: u64, event: lfn::Event, _in_flight_bytes: u64, control: &mut Control) {
        // Controllers of QUIC decide by packets where an episode begins and ends, so the others say nothing new.
        if matches!(event, lfn::Event::Timeout | lfn::Event::TimeoutAgain) {
            self.flush(now_ns, event == lfn::Event::TimeoutAgain, 0);
            self.decide(control);
        }
    }
}

/// The table of functions of a stack's controller.
pub fn table<S: Stack>(_: PhantomData<S>) -> *const lfn::Table {
    lfn::table::<Adapter<S>>()
}

/// Exports the controller of the feature that the build has: `controllers! { "cubic" => Type, ... }`.
#[macro_export]
macro_rules! controllers {
    ($($feature:literal => $stack:ty),+ $(,)?) => {
        $(
            /// The simulator asks for this table.
            #[cfg(feature = $feature)]
            #[no_mangle]
            pub extern "C" fn lfn_controller() -> *const $crate::lfn::Table {
                $crate::table(std::marker::PhantomData::<$stack>)
            }
        )+
    };
}
