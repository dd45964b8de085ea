//! `stack.h`, version 1, for whole stacks in Rust.

use std::ffi::{c_char, c_int, c_void, CStr};

/// A new connection.
#[repr(C)]
pub struct Setup {
    pub now_ns: u64,
    /// For random decisions.
    pub seed: u64,
    /// Data to deliver; `u64::MAX`: no end.
    pub size_bytes: u64,
    /// Largest IP packet.
    pub packet_bytes: u64,
}

#[repr(C)]
pub struct Datagram {
    /// Where the stack keeps its payload; the other end gets this number.
    pub id: u64,
    /// Of the IP packet.
    pub bytes: u32,
    /// The two bits of its IP header.
    pub ecn: u32,
}

/// The connection as the sending end knows it, except `read_bytes`. A value that is not told is 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Progress {
    /// Data that the application at end 1 has read.
    pub read_bytes: u64,
    pub window_bytes: u64,
    pub ssthresh_bytes: u64,
    pub in_flight_bytes: u64,
    pub pacing_bytes_per_s: u64,
    pub srtt_ns: u64,
    pub rtt_ns: u64,
    pub min_rtt_ns: u64,
    /// Found lost, or sent again.
    pub lost_packets: u64,
    /// Of the window.
    pub reductions: u64,
    pub timeouts: u64,
    /// A full packet as the window counts it.
    pub segment_bytes: u64,
}

/// Both ends of a connection; end 0 sends data.
pub trait Whole: Send + Sized {
    /// In results: a letter, then letters, digits, . _ : -
    const NAME: &'static CStr;

    /// `None`: it cannot be had with such packets.
    fn new(setup: &Setup) -> Option<Self>;
    /// The next datagram of an end.
    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram>;
    /// A datagram of the other end reaches this one with these bits of its IP header.
    fn receive(&mut self, end: usize, now_ns: u64, id: u64, ecn: u32);
    /// `u64::MAX`: never.
    fn timeout_ns(&mut self, end: usize) -> u64;
    fn timer(&mut self, end: usize, now_ns: u64);
    /// The application at end 0 writes nothing more.
    fn stop(&mut self, now_ns: u64);
    /// A datagram is under way no more.
    fn forget(&mut self, id: u64);
    fn progress(&mut self) -> Progress;
}

/// Payloads of the datagrams that are under way, by their numbers.
pub struct Payloads<T> {
    kept: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Payloads<T> {
    fn default() -> Payloads<T> {
        Payloads { kept: Vec::new(), free: Vec::new() }
    }
}

impl<T> Payloads<T> {
    pub fn keep(&mut self, payload: T) -> u64 {
        let place = self.free.pop().unwrap_or(self.kept.len());
        match self.kept.get_mut(place) {
            Some(slot) => *slot = Some(payload),
            None => self.kept.push(Some(payload)),
        }
        place as u64
    }

    pub fn get(&self, id: u64) -> Option<&T> {
        self.kept.get(usize::try_from(id).ok()?)?.as_ref()
    }

    pub fn forget(&mut self, id: u64) {
        self.kept[id as usize] = None;
        self.free.push(id as usize);
    }
}

#[repr(C)]
pub struct Table {
    version: u32,
    name: *const c_char,
    create: unsafe extern "C" fn(*const Setup) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    transmit: unsafe extern "C" fn(*mut c_void, u32, u64, *mut Datagram) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, u32, u64, u64, u32),
    timeout: unsafe extern "C" fn(*mut c_void, u32) -> u64,
    timer: unsafe extern "C" fn(*mut c_void, u32, u64),
    stop: unsafe extern "C" fn(*mut c_void, u64),
    forget: unsafe extern "C" fn(*mut c_void, u64),
    progress: unsafe extern "C" fn(*mut c_void, *mut Progress),
}

/// The table of functions of a whole stack; it lives as long as the process.
pub fn table<W: Whole>() -> *const Table {
    Box::leak(Box::new(Table {
        version: 1,
        name: W::NAME.as_ptr(),
        create: create::<W>,
        destroy: destroy::<W>,
        transmit: transmit::<W>,
        receive: receive::<W>,
        timeout: timeout::<W>,
        timer: timer::<W>,
        stop: stop::<W>,
        forget: forget::<W>,
        progress: progress::<W>,
    }))
}

// SAFETY of all: the simulator passes what `create` returned, and pointers that live through the call.

unsafe extern "C" fn create<W: Whole>(setup: *const Setup) -> *mut c_void {
    W::new(unsafe { &*setup }).map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)).cast())
}

unsafe extern "C" fn destroy<W: Whole>(state: *mut c_void) {
    drop(unsafe { Box::from_raw(state.cast::<W>()) });
}

unsafe fn of<'a, W>(state: *mut c_void) -> &'a mut W {
    unsafe { &mut *state.cast() }
}

unsafe extern "C" fn transmit<W: Whole>(state: *mut c_void, end: u32, now_ns: u64, out: *mut Datagram) -> c_int {
    match unsafe { of::<W>(state) }.transmit(end as usize, now_ns) {
        Some(datagram) => {
            unsafe { *out = datagram };
            1
        }
        None => 0,
    }
}

unsafe extern "C" fn receive<W: Whole>(state: *mut c_void, end: u32, now_ns: u64, id: u64, ecn: u32) {
    unsafe { of::<W>(state) }.receive(end as usize, now_ns, id, ecn);
}

unsafe extern "C" fn timeout<W: Whole>(state: *mut c_void, end: u32) -> u64 {
    unsafe { of::<W>(state) }.timeout_ns(end as usize)
}

unsafe extern "C" fn timer<W: Whole>(state: *mut c_void, end: u32, now_ns: u64) {
    unsafe { of::<W>(state) }.timer(end as usize, now_ns);
}

unsafe extern "C" fn stop<W: Whole>(state: *mut c_void, now_ns: u64) {
    unsafe { of::<W>(state) }.stop(now_ns);
}

unsafe extern "C" fn forget<W: Whole>(state: *mut c_void, id: u64) {
    unsafe { of::<W>(state) }.forget(id);
}

unsafe extern "C" fn progress<W: Whole>(state: *mut c_void, out: *mut Progress) {
    unsafe { *out = of::<W>(state).progress() };
}

/// Exports the whole stack of the feature that the build has: `wholes! { "cubic" => Type, ... }`.
#[macro_export]
macro_rules! wholes {
    ($($feature:literal => $stack:ty),+ $(,)?) => {
        $(
            /// The simulator asks for this table.
            #[cfg(feature = $feature)]
            #[no_mangle]
            pub extern "C" fn lfn_stack() -> *const $crate::whole::Table {
                $crate::whole::table::<$stack>()
            }
        )+
    };
}
