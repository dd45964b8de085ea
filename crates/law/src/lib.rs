#![doc = include_str!("../README.md")]

mod c;
pub mod card;
mod end_host;
pub mod fluid;
mod placed;
mod prototype;
mod registry;
mod slow_start;
mod window;

use lfn_header::Header;
pub use placed::{BoxedLaw, PlacedLaw, PlacedWindowLaw};
pub use prototype::{Build, Prototype, STAMP};
pub use registry::{registry, LawError, LawInfo, LawSpec, Parameter, Probe, PARAMETERS};
pub use slow_start::{Saved, SlowStart, SlowStartKind};
pub use window::Window;

/// One, as a parameter in C.
pub const PARAMETER_ONE: u64 = 1 << 20;
/// Values that [`Law::probe`] may write.
pub const PROBES: usize = 8;

/// In [`Config::flags`]: the connection has no selective acknowledgements.
pub const CONFIG_NO_SACK: u32 = 1;
/// The sender is in state Open or Disorder: no reduction is under way.
pub const ACK_OPEN: u32 = 1;
/// First ACK of a new packet-timed round trip.
pub const ACK_ROUND_START: u32 = 2;
/// The last flight used the whole window.
pub const ACK_CWND_LIMITED: u32 = 4;
/// The ACK covers nothing new cumulatively.
pub const ACK_DUP: u32 = 8;
/// For [`Controller::on_control`]: the ACK leaves the sender in state Recovery.
pub const ACK_RECOVERY: u32 = 16;
/// For [`Controller::on_control`]: it leaves the sender in state Loss.
pub const ACK_LOSS: u32 = 32;
/// The ACK finds the sender in state Disorder.
pub const ACK_DISORDER: u32 = 64;
/// The ACK carries SACK blocks.
pub const ACK_SACK: u32 = 128;
/// The ACK is the first since a retransmission left with nothing in flight.
pub const ACK_RESTART: u32 = 256;
/// Header prediction takes the ACK, since it brings no SACK blocks, no echo and no other receive window; for a law that
/// asks for it ([`LawSpec::asks_for_prediction`]).
pub const ACK_PREDICTED: u32 = 512;
/// The sender spreads its segments, at Linux's own rate if the law sets none.
pub const ACK_PACED: u32 = 1024;
/// The segment was sent when there was too little to send.
pub const RATE_APP_LIMITED: u32 = 1;
/// [`Controller::on_control`] asks that what leaves from now on counts as app-limited.
pub const CONTROL_APP_LIMITED: u32 = 1;

/// An ACK as the sender saw it. Segments unless a suffix says otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The sender's clock.
    pub now_ns: u64,
    /// RTT of the newest segment that this ACK delivered; 0: no valid sample (Karn).
    pub rtt_ns: u64,
    /// Smoothed RTT (RFC 6298); 0 before the first sample.
    pub srtt_ns: u64,
    /// Smallest RTT sample so far; 0 before the first.
    pub min_rtt_ns: u64,
    /// Delivered since the start of the connection, each segment once.
    pub delivered: u64,
    /// Newly covered by the cumulative ACK.
    pub acked: u32,
    /// Newly covered or newly SACKed, each segment once.
    pub newly_delivered: u32,
    /// Newly marked lost while this ACK was processed.
    pub newly_lost: u32,
    /// In flight after this ACK.
    pub inflight: u32,
    /// Segments whose CE mark this ACK echoes.
    pub ce: u32,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// `ACK_*`.
    pub flags: u32,
    /// For a [`Controller`]: pacing delays the next segment by this time from now.
    pub hold_us: u32,
}

/// A delivery-rate sample, between two deliveries. P is the newest segment that the ACK delivered, or the
/// segment that is lost. Segments.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Delivered since the start of the connection.
    pub delivered: u64,
    /// The same when P was sent.
    pub prior_delivered: u64,
    /// Marked lost since the start of the connection.
    pub lost: u64,
    /// The same when P was sent.
    pub prior_lost: u64,
    /// The interval in which `delivered - prior_delivered` were; 0: no valid sample.
    pub interval_ns: u64,
    /// In flight when P was sent, P included.
    pub tx_in_flight: u32,
    /// In flight before this ACK.
    pub prior_inflight: u32,
    /// `RATE_*`.
    pub flags: u32,
    /// Zero.
    pub pad: u32,
}

/// How a loss showed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossKind {
    /// By SACK, duplicate ACKs or RACK.
    #[default]
    Fast = 0,
    /// By the retransmission timeout; the sender then sets cwnd to 1.
    Rto = 1,
    /// An echoed CE mark; nothing is lost.
    Ecn = 2,
}

/// A congestion event: one per window of data, whatever was lost in it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The sender's clock.
    pub now_ns: u64,
    /// Last valid RTT sample; 0: none yet.
    pub rtt_ns: u64,
    /// Smoothed RTT; 0 before the first sample.
    pub srtt_ns: u64,
    /// Smallest RTT sample so far; 0 before the first.
    pub min_rtt_ns: u64,
    /// How it showed.
    pub kind: LossKind,
    /// Segments in flight.
    pub inflight: u32,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// Zero.
    pub pad: u32,
}

/// The decisions of a law.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Congestion window; at least [`Window::ONE`].
    pub cwnd: Window,
    /// Slow-start threshold; [`Window::INFINITE`] at the start.
    pub ssthresh: Window,
    /// Pacing rate; 0: the ACK clock alone.
    pub pacing_bytes_per_s: u64,
    /// When [`Law::on_tick`] is wanted next; 0: never.
    pub next_tick_ns: u64,
    /// Segments of new data that may leave back to back; 0: any number.
    pub block: u32,
    /// Blocks in a round trip: the next may begin srtt/`blocks` after this one did.
    pub blocks: u32,
}

impl Control {
    /// A new connection: `cwnd` of `initial_window` segments, `ssthresh` infinite.
    pub fn new(initial_window: u32) -> Self {
        Self {
            cwnd: Window::whole(initial_window.into()),
            ssthresh: Window::INFINITE,
            pacing_bytes_per_s: 0,
            next_tick_ns: 0,
            block: 0,
            blocks: 0,
        }
    }
}

/// Parameters of a new connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The sender's clock.
    pub now_ns: u64,
    /// The RTT of the handshake; 0: there was none.
    pub srtt_ns: u64,
    /// Index in the law's list of variants; [`LawSpec::build`] sets it.
    pub variant: u32,
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// The connection's own, for a law that draws.
    pub seed: u32,
    /// `CONFIG_*`.
    pub flags: u32,
    /// Values of the law's parameters, each times [`PARAMETER_ONE`]; [`LawSpec::build`] sets them.
    pub parameters: [u64; PARAMETERS],
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

    /// A segment is marked lost, before [`Law::on_loss`].
    fn on_lost(&mut self, _now_ns: u64, _lost: &Rate, _control: &Control) {}

    /// A segment leaves when nothing was in flight, for want of data.
    fn on_restart(&mut self, _now_ns: u64, _control: &mut Control) {}
}
