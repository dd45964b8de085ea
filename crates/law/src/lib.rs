#![doc = include_str!("../README.md")]

mod c;
pub mod card;
mod end_host;
pub mod fluid;
mod interface;
mod placed;
mod prototype;
mod registry;
mod slow_start;
mod stack;
mod steered;
mod window;

pub use interface::{
    Ack, Config, Control, Loss, LossKind, Rate, ACK_CWND_LIMITED, ACK_DISORDER, ACK_DUP, ACK_FLIGHT,
    ACK_LOSS, ACK_OPEN, ACK_PACED, ACK_PREDICTED, ACK_RECOVERY, ACK_RESTART, ACK_ROUND_START, ACK_SACK,
    CONFIG_NO_SACK, CONTROL_APP_LIMITED, PARAMETERS, PARAMETER_ONE, PROBES, RATE_APP_LIMITED,
};
use lfn_header::Header;
pub use placed::{BoxedLaw, PlacedLaw, PlacedWindowLaw};
pub use prototype::{Build, BuildLaw, BuildStack, Prototype, STAMP};
pub use registry::{registry, LawError, LawInfo, LawSpec, Parameter, Probe};
pub use slow_start::{Saved, SlowStart, SlowStartKind};
pub use stack::{Datagram, Progress, Stack, StackSetup};
pub use steered::Hand;
pub use window::Window;

impl Control {
    /// A new connection: `cwnd` of `initial_window` segments, `ssthresh` infinite.
    pub fn new(initial_window: u32) -> Self {
        Self {
            cwnd: Window::whole(initial_window.into()),
            ssthresh: Window::INFINITE,
            pacing_Bps: 0,
            next_tick_ns: 0,
            block: 0,
            blocks: 0,
        }
    }
}

/// The calls that all congestion-control laws take. A law owns its window and its rate, and nothing else. It is
/// a [`WindowLaw`], a [`RouterLaw`] or a [`Controller`] besides.
///
/// The sender owns recovery, RTT, counting and slow start. It clamps nothing; a law keeps `cwnd`
/// at one segment or more.
pub trait Law: Send {
    /// A congestion event: sets `ssthresh`, of at least two segments, and leaves `cwnd`. A [`Controller`] need
    /// not set anything.
    fn on_loss(&mut self, loss: &Loss, control: &mut Control);

    /// The episode ended; the sender has just set `cwnd = ssthresh` (after a timeout, `cwnd` is
    /// where slow start left it; a [`Controller`]'s is its own).
    fn on_open(&mut self, _ack: &Ack, _control: &mut Control) {}

    /// `control.next_tick_ns` has come.
    fn on_tick(&mut self, _now_ns: u64, _control: &mut Control) {}

    /// The last event was spurious; the sender has restored `cwnd` and `ssthresh`.
    fn on_undo(&mut self, _control: &mut Control) {}

    /// Writes the law's own variables, in the order and with the scale of [`LawInfo::probes`].
    fn probe(&self, _control: &Control, _out: &mut [u64; PROBES]) {}
}

/// A law that enlarges the window in congestion avoidance; slow start and the reduction are the sender's.
pub trait WindowLaw: Law {
    /// Every ACK, duplicates and recovery included, before [`WindowLaw::on_ack`]: estimators only.
    fn on_sample(&mut self, _ack: &Ack, _control: &mut Control) {}

    /// Congestion avoidance: `n` segments newly delivered, with `cwnd >= ssthresh`.
    fn on_ack(&mut self, n: u32, ack: &Ack, control: &mut Control);
}

/// The end host of a router protocol: its packets carry a header, which routers change and ACKs bring back. It
/// has no slow start.
pub trait RouterLaw: Law {
    /// The header of a segment that leaves now, so large on the wire.
    fn header(&mut self, control: &Control, wire_bytes: u32) -> Header;

    /// An ACK, or the handshake, brought back a header; of an ACK [`RouterLaw::on_sample`] follows.
    fn on_header(&mut self, header: Header, control: &mut Control);

    /// Every ACK, duplicates and recovery included: may set `cwnd`.
    fn on_sample(&mut self, ack: &Ack, control: &mut Control);
}

/// A law such as BBR that owns window and pacing rate in every state of the sender, from delivery-rate samples.
/// Slow start and the reduction do not exist for it, and `ssthresh` means nothing.
pub trait Controller: Law {
    /// Every ACK, last of all, and once when the handshake gave an RTT: sets `cwnd` and the pacing rate. Returns
    /// `CONTROL_*`.
    fn on_control(&mut self, ack: &Ack, rate: &Rate, control: &mut Control) -> u32;

    /// Whether it takes delivery-rate samples. If not, it sets window and rate at events alone, and
    /// [`Controller::on_control`] is not called.
    fn samples_rates(&self) -> bool {
        true
    }

    /// A segment is marked lost, before [`Law::on_loss`].
    fn on_lost(&mut self, _now_ns: u64, _lost: &Rate, _control: &Control) {}

    /// A segment leaves when nothing was in flight, for want of data.
    fn on_restart(&mut self, _now_ns: u64, _control: &mut Control) {}

    /// A retransmission timeout that is no congestion event of its own: within an episode of losses, or another in a row.
    fn on_timeout_again(&mut self, _now_ns: u64, _control: &mut Control) {}

    /// The law's view of single packets, if it has one. Its calls come before those of the batch: sent packets as they
    /// leave; delivered ones before lost ones, and both before [`Law::on_loss`] and [`Controller::on_control`].
    fn packets(&mut self) -> Option<&mut dyn PacketLaw> {
        None
    }
}

/// A [`Controller`] that is told of each packet, as those of QUIC stacks are (RFC 9002 appendix B).
pub trait PacketLaw {
    /// A packet leaves; `in_flight` segments with it.
    fn on_sent(&mut self, now_ns: u64, packet: &Packet, in_flight: u64, control: &mut Control);

    /// An ACK delivered a packet, each once.
    fn on_delivered(&mut self, ack: &Ack, packet: &Packet, control: &mut Control);

    /// A packet is found lost.
    fn on_packet_lost(&mut self, now_ns: u64, packet: &Packet, control: &mut Control);
}

/// One transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Transmissions of the connection before it: a retransmission has a number of its own, as in QUIC.
    pub number: u64,
    /// Departure.
    pub sent_ns: u64,
    /// The sender had no more data to send then.
    pub app_limited: bool,
}
