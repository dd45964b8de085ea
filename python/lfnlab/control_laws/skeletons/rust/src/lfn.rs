//! `controller.h`, version 1, in Rust. Nothing here is to be changed.

#![allow(dead_code, reason = "a controller uses a part of the interface")]

use std::ffi::{c_char, c_void, CStr};

/// A new connection.
#[repr(C)]
pub struct Config {
    pub now_ns: u64,
    /// From the handshake; 0 without one.
    pub srtt_ns: u64,
    pub initial_window_bytes: u64,
    /// Payload of a full packet.
    pub packet_bytes: u32,
    /// For random decisions.
    pub seed: u32,
}

/// One transmission of a packet. A retransmission is a packet of its own.
#[repr(C)]
pub struct Packet {
    /// Transmissions of the connection before it.
    pub number: u64,
    pub sent_ns: u64,
    pub bytes: u32,
    pub flags: u32,
}

/// The packet left when the sender had no more data.
pub const PACKET_APP_LIMITED: u32 = 1;

/// An ACK, after its packets.
#[repr(C)]
pub struct Ack {
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
    pub flags: u32,
}

/// The last flight used the whole window.
pub const ACK_WINDOW_LIMITED: u32 = 1;
/// The first of a new round trip, counted by packets.
pub const ACK_ROUND_START: u32 = 2;
/// The sender repairs losses of an episode, or has been told of a mark in this window.
pub const ACK_RECOVERY: u32 = 4;
/// The sample's packet left when the sender had no more data.
pub const ACK_RATE_APP_LIMITED: u32 = 8;
/// Data above a hole, or nothing: TCP's windows do not grow by it.
pub const ACK_DUPLICATE: u32 = 16;

/// An event of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First loss of a window of data; its packets were told by `lost`.
    Loss,
    /// The retransmission timeout: all that was in flight is taken for lost.
    Timeout,
    /// First mark of a window of data.
    Ce,
    /// The last loss or timeout was none.
    Spurious,
    /// The episode of losses or marks is over.
    Recovered,
    /// A packet leaves when nothing was in flight, for want of data.
    Restart,
    /// A timeout within an episode of losses, or another in a row.
    TimeoutAgain,
}

/// Decisions of the controller; the fields keep their values.
#[repr(C)]
pub struct Control {
    /// At least one packet.
    pub window_bytes: u64,
    /// Bytes per second; 0: no pacing.
    pub pacing_bytes_per_s: u64,
    /// When `tick` is wanted; 0: never.
    pub next_tick_ns: u64,
}

/// A controller of one connection.
pub trait Controller: Send + Sized {
    /// In results: a letter, then letters, digits, . _ : -
    const NAME: &'static CStr;

    /// Whether `sent`, `acked` and `lost` are called.
    const WATCHES_PACKETS: bool = false;

    fn new(config: &Config, control: &mut Control) -> Self;
    fn sent(&mut self, _now_ns: u64, _packet: &Packet, _in_flight_bytes: u64, _control: &mut Control) {}
    fn acked(&mut self, _now_ns: u64, _packet: &Packet, _control: &mut Control) {}
    fn lost(&mut self, _now_ns: u64, _packet: &Packet, _control: &mut Control) {}
    fn ack(&mut self, ack: &Ack, control: &mut Control);
    fn event(&mut self, now_ns: u64, event: Event, in_flight_bytes: u64, control: &mut Control);
    fn tick(&mut self, _now_ns: u64, _control: &mut Control) {}
}

#[repr(C)]
pub struct Table {
    version: u32,
    value_count: u32,
    name: *const c_char,
    values: *const *const c_char,
    create: unsafe extern "C" fn(*const Config, *mut Control) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    sent: Option<unsafe extern "C" fn(*mut c_void, u64, *const Packet, u64, *mut Control)>,
    acked: Option<unsafe extern "C" fn(*mut c_void, u64, *const Packet, *mut Control)>,
    lost: Option<unsafe extern "C" fn(*mut c_void, u64, *const Packet, *mut Control)>,
    ack: unsafe extern "C" fn(*mut c_void, *const Ack, *mut Control),
    event: unsafe extern "C" fn(*mut c_void, u64, u32, u64, *mut Control),
    tick: unsafe extern "C" fn(*mut c_void, u64, *mut Control),
    probe: Option<unsafe extern "C" fn(*const c_void, *mut f64)>,
}

/// The table of functions of a controller; it lives as long as the process.
pub fn table<C: Controller>() -> *const Table {
    Box::leak(Box::new(Table {
        version: 1,
        value_count: 0,
        name: C::NAME.as_ptr(),
        values: std::ptr::null(),
        create: create::<C>,
        destroy: destroy::<C>,
        sent: if C::WATCHES_PACKETS { Some(sent::<C>) } else { None },
        acked: if C::WATCHES_PACKETS { Some(acked::<C>) } else { None },
        lost: if C::WATCHES_PACKETS { Some(lost::<C>) } else { None },
        ack: ack::<C>,
        event: event::<C>,
        tick: tick::<C>,
        probe: None,
    }))
}

// SAFETY of all: the simulator passes what `create` returned, and pointers that live through the call.

unsafe extern "C" fn create<C: Controller>(config: *const Config, control: *mut Control) -> *mut c_void {
    Box::into_raw(Box::new(unsafe { C::new(&*config, &mut *control) })).cast()
}

unsafe extern "C" fn destroy<C: Controller>(state: *mut c_void) {
    drop(unsafe { Box::from_raw(state.cast::<C>()) });
}

unsafe fn of<'a, C>(state: *mut c_void) -> &'a mut C {
    unsafe { &mut *state.cast() }
}

unsafe extern "C" fn sent<C: Controller>(
    state: *mut c_void,
    now_ns: u64,
    packet: *const Packet,
    in_flight_bytes: u64,
    control: *mut Control,
) {
    unsafe { of::<C>(state).sent(now_ns, &*packet, in_flight_bytes, &mut *control) }
}

unsafe extern "C" fn acked<C: Controller>(
    state: *mut c_void,
    now_ns: u64,
    packet: *const Packet,
    control: *mut Control,
) {
    unsafe { of::<C>(state).acked(now_ns, &*packet, &mut *control) }
}

unsafe extern "C" fn lost<C: Controller>(
    state: *mut c_void,
    now_ns: u64,
    packet: *const Packet,
    control: *mut Control,
) {
    unsafe { of::<C>(state).lost(now_ns, &*packet, &mut *control) }
}

unsafe extern "C" fn ack<C: Controller>(state: *mut c_void, ack: *const Ack, control: *mut Control) {
    unsafe { of::<C>(state).ack(&*ack, &mut *control) }
}

unsafe extern "C" fn event<C: Controller>(
    state: *mut c_void,
    now_ns: u64,
    event: u32,
    in_flight_bytes: u64,
    control: *mut Control,
) {
    use Event::{Ce, Loss, Recovered, Restart, Spurious, Timeout, TimeoutAgain};
    const EVENTS: [Event; 7] = [Loss, Timeout, Ce, Spurious, Recovered, Restart, TimeoutAgain];
    // An event that a later version may have is left out.
    if let Some(&event) = EVENTS.get(event as usize) {
        unsafe { of::<C>(state).event(now_ns, event, in_flight_bytes, &mut *control) }
    }
}

unsafe extern "C" fn tick<C: Controller>(state: *mut c_void, now_ns: u64, control: *mut Control) {
    unsafe { of::<C>(state).tick(now_ns, &mut *control) }
}
