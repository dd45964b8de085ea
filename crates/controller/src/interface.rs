//! The structs of `controller.h` and `stack.h`; `tests/layout.rs` compares their layouts.

use std::ffi::{c_char, c_int, c_void};

use lfn_law::{Progress, StackSetup};

/// `LFN_CONTROLLER_VERSION`.
pub(crate) const VERSION: u32 = 1;

/// It left when the sender had no more data.
pub const PACKET_APP_LIMITED: u32 = 1;
/// The last flight used the whole window.
pub const ACK_WINDOW_LIMITED: u32 = 1;
/// The first of a new round trip, counted by packets.
pub const ACK_ROUND_START: u32 = 2;
/// The sender repairs losses of an episode, or has been told of a mark in this window.
pub const ACK_RECOVERY: u32 = 4;
/// Data above a hole, or nothing: TCP's windows do not grow by it.
pub const ACK_DUPLICATE: u32 = 16;
/// The sample's packet left when the sender had no more data.
pub const ACK_RATE_APP_LIMITED: u32 = 8;

/// A new connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// Simulated time.
    pub now_ns: u64,
    /// From the handshake; 0 without one.
    pub srtt_ns: u64,
    /// The window that the sender would begin with.
    pub initial_window_bytes: u64,
    /// Payload of a full packet.
    pub packet_bytes: u32,
    /// For random decisions.
    pub seed: u32,
}

/// One transmission of a packet. A retransmission is a packet of its own.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Transmissions of the connection before it.
    pub number: u64,
    /// When it left.
    pub sent_ns: u64,
    /// Payload.
    pub bytes: u32,
    /// [`PACKET_APP_LIMITED`], or 0.
    pub flags: u32,
}

/// An ACK, after its packets.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ack {
    /// Simulated time.
    pub now_ns: u64,
    /// Of the newest packet that it delivered; 0: no valid sample.
    pub rtt_ns: u64,
    /// Smoothed (RFC 6298); 0 before the first sample.
    pub srtt_ns: u64,
    /// Smallest sample so far; 0 before the first.
    pub min_rtt_ns: u64,
    /// After it.
    pub in_flight_bytes: u64,
    /// Since the start of the connection.
    pub delivered_bytes: u64,
    /// Delivery-rate sample: bytes delivered in `rate_interval_ns`.
    pub rate_bytes: u64,
    /// 0: no valid sample.
    pub rate_interval_ns: u64,
    /// That it delivered.
    pub acked_bytes: u32,
    /// That it showed to be lost.
    pub lost_bytes: u32,
    /// Whose CE mark it echoes.
    pub ce_packets: u32,
    /// [`ACK_WINDOW_LIMITED`] and the others.
    pub flags: u32,
}

/// Decisions of a controller; the fields keep their values.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Control {
    /// At least one packet.
    pub window_bytes: u64,
    /// `pacing_Bps`: bytes of payload per second; 0: no pacing.
    pub pacing_bytes_per_s: u64,
    /// When a tick is wanted; 0: never. It becomes 0 before the call.
    pub next_tick_ns: u64,
}

/// An event of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// First loss of a window of data; its packets were told before.
    Loss = 0,
    /// The retransmission timeout: all that was in flight is taken for lost.
    Timeout = 1,
    /// First mark of a window of data.
    Ce = 2,
    /// The last loss or timeout was none.
    Spurious = 3,
    /// The episode of losses or marks is over.
    Recovered = 4,
    /// A packet leaves when nothing was in flight, for want of data.
    Restart = 5,
    /// A timeout within an episode of losses, or another in a row.
    TimeoutAgain = 6,
}

type OfPacket = unsafe extern "C" fn(*mut c_void, u64, *const Packet, *mut Control);

#[repr(C)]
pub(crate) struct Table {
    pub(crate) version: u32,
    pub(crate) value_count: u32,
    pub(crate) name: *const c_char,
    pub(crate) values: *const *const c_char,
    pub(crate) create: Option<unsafe extern "C" fn(*const Config, *mut Control) -> *mut c_void>,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) sent: Option<unsafe extern "C" fn(*mut c_void, u64, *const Packet, u64, *mut Control)>,
    pub(crate) acked: Option<OfPacket>,
    pub(crate) lost: Option<OfPacket>,
    pub(crate) ack: Option<unsafe extern "C" fn(*mut c_void, *const Ack, *mut Control)>,
    pub(crate) event: Option<unsafe extern "C" fn(*mut c_void, u64, u32, u64, *mut Control)>,
    pub(crate) tick: Option<unsafe extern "C" fn(*mut c_void, u64, *mut Control)>,
    pub(crate) probe: Option<unsafe extern "C" fn(*const c_void, *mut f64)>,
}

/// `LFN_STACK_VERSION`.
pub(crate) const STACK_VERSION: u32 = 1;

#[repr(C)]
pub(crate) struct StackDatagram {
    pub(crate) id: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: u32,
}

#[repr(C)]
pub(crate) struct StackTable {
    pub(crate) version: u32,
    pub(crate) name: *const c_char,
    pub(crate) create: Option<unsafe extern "C" fn(*const StackSetup) -> *mut c_void>,
    pub(crate) destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) transmit: Option<unsafe extern "C" fn(*mut c_void, u32, u64, *mut StackDatagram) -> c_int>,
    pub(crate) receive: Option<unsafe extern "C" fn(*mut c_void, u32, u64, u64, u32)>,
    pub(crate) timeout: Option<unsafe extern "C" fn(*mut c_void, u32) -> u64>,
    pub(crate) timer: Option<unsafe extern "C" fn(*mut c_void, u32, u64)>,
    pub(crate) stop: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub(crate) forget: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub(crate) progress: Option<unsafe extern "C" fn(*mut c_void, *mut Progress)>,
}
