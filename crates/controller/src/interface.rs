//! The structs of `controller.h`; `tests/layout.rs` compares their layouts.

use std::ffi::{c_char, c_void};

/// `LFN_CONTROLLER_VERSION`.
pub(crate) const VERSION: u32 = 1;

pub(crate) const ACK_WINDOW_LIMITED: u32 = 1;
pub(crate) const ACK_ROUND_START: u32 = 2;
pub(crate) const ACK_RECOVERY: u32 = 4;
pub(crate) const ACK_DUPLICATE: u32 = 16;
pub(crate) const ACK_RATE_APP_LIMITED: u32 = 8;

pub(crate) const EVENT_LOSS: u32 = 0;
pub(crate) const EVENT_TIMEOUT: u32 = 1;
pub(crate) const EVENT_CE: u32 = 2;
pub(crate) const EVENT_SPURIOUS: u32 = 3;
pub(crate) const EVENT_RECOVERED: u32 = 4;
pub(crate) const EVENT_RESTART: u32 = 5;
pub(crate) const EVENT_TIMEOUT_AGAIN: u32 = 6;

#[repr(C)]
pub(crate) struct Config {
    pub(crate) now_ns: u64,
    pub(crate) srtt_ns: u64,
    pub(crate) initial_window_bytes: u64,
    pub(crate) packet_bytes: u32,
    pub(crate) seed: u32,
}

#[repr(C)]
pub(crate) struct Packet {
    pub(crate) number: u64,
    pub(crate) sent_ns: u64,
    pub(crate) bytes: u32,
    pub(crate) flags: u32,
}

#[repr(C)]
pub(crate) struct Ack {
    pub(crate) now_ns: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) srtt_ns: u64,
    pub(crate) min_rtt_ns: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) rate_bytes: u64,
    pub(crate) rate_interval_ns: u64,
    pub(crate) acked_bytes: u32,
    pub(crate) lost_bytes: u32,
    pub(crate) ce_packets: u32,
    pub(crate) flags: u32,
}

/// `pacing_bytes_per_s` is `pacing_Bps`.
#[repr(C)]
pub(crate) struct Control {
    pub(crate) window_bytes: u64,
    pub(crate) pacing_bytes_per_s: u64,
    pub(crate) next_tick_ns: u64,
}

type OfPacket = unsafe extern "C" fn(*mut c_void, u64, *const Packet, *mut Control);

#[repr(C)]
pub(crate) struct Controller {
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
