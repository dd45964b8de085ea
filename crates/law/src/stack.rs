//! Whole stacks: both ends of a connection with its own recovery, pacer and acknowledgements, where a law alone would be its
//! congestion control. `stack.h` of lfn-controller has these calls in C.

use lfn_header::Ecn;

/// A datagram that an end hands over. It travels as a number; its payload stays with the stack.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Where the stack keeps its payload; the other end gets this number.
    pub id: u64,
    /// Of the IP packet; at least 1.
    pub bytes: u32,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
}

/// A new connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StackSetup {
    /// When it begins, in ns of simulated time.
    pub now_ns: u64,
    /// For random decisions.
    pub seed: u64,
    /// Data to deliver; `u64::MAX` for no end.
    pub size_bytes: u64,
    /// Largest IP packet.
    pub packet_bytes: u64,
}

/// A connection as its stack tells it, end 0 being the one that sends data. A value that it does not tell is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Progress {
    /// Data that the application at end 1 has read.
    pub read_bytes: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// Threshold of slow start.
    pub ssthresh_bytes: u64,
    /// Data or packets that are sent and neither acknowledged nor lost.
    pub in_flight_bytes: u64,
    /// Pacing rate.
    pub pacing_bytes_per_s: u64,
    /// Smoothed round-trip time.
    pub srtt_ns: u64,
    /// Its newest sample.
    pub rtt_ns: u64,
    /// Its smallest sample.
    pub min_rtt_ns: u64,
    /// Packets found lost, or sent again.
    pub lost_packets: u64,
    /// Reductions of the window.
    pub reductions: u64,
    /// Timeouts at which it sent a probe or all again.
    pub timeouts: u64,
    /// A full packet as the window counts it.
    pub segment_bytes: u64,
}

/// Both ends of a connection of a stack without I/O. End 0 sends data to end 1.
///
/// All is called in virtual time, in ns. A stack that reads a clock or draws from the operating system makes a run that
/// cannot be repeated.
pub trait Stack: Send {
    /// The next datagram that an end sends now; `None` if there is none. It is asked after each of the other calls, until then.
    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram>;

    /// A datagram of the other end reaches this one with this ECN field: as it was sent, marked, or erased.
    fn receive(&mut self, end: usize, now_ns: u64, id: u64, ecn: Ecn);

    /// When an end wants [`Stack::timer`]; `u64::MAX` if it does not.
    fn timeout_ns(&mut self, end: usize) -> u64;

    /// The time that an end asked for has come.
    fn timer(&mut self, end: usize, now_ns: u64);

    /// The application at end 0 writes nothing more.
    fn stop(&mut self, _now_ns: u64) {}

    /// A datagram is under way no more: it and its copies were delivered or lost.
    fn forget(&mut self, _id: u64) {}

    /// The connection now; it is asked after each of the other calls.
    fn progress(&self) -> Progress;
}
