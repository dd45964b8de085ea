//! Congestion control of a UDT sender: a period between packets, and a window.

mod law;
mod native;
mod spec;

pub use law::LawControl;
pub use native::{FirstNak, Native, NativeConfig};
pub use spec::{ControlError, ControlSpec};

use lfn_units::Time;

/// State of the path for a control, at any call.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The sender's clock.
    pub now: Time,
    /// Bytes of a full packet, with the headers of IP and UDP.
    pub mss_bytes: u32,
    /// No window is larger: the peer said so in its handshake.
    pub max_window_packets: u64,
    /// Smoothed RTT.
    pub rtt: Time,
    /// Speed of arrival that the receiver measured, smoothed, packets a second.
    pub arrival_pps: u32,
    /// Capacity that the receiver measured, smoothed, packets a second.
    pub capacity_pps: u32,
    /// The next new packet.
    pub next: u64,
    /// Every packet before this one has come.
    pub acked: u64,
}

/// All that a control allows until its next call.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// [`CongestionControl::period`].
    pub period: Time,
    /// [`CongestionControl::window_packets`].
    pub window_packets: u64,
    /// [`CongestionControl::silent_until`].
    pub silent_until: Time,
    /// [`CongestionControl::deadline`].
    pub deadline: Time,
    /// [`CongestionControl::retransmission_timeout`].
    pub retransmission_timeout: Option<Time>,
    /// [`CongestionControl::ack_interval_packets`].
    pub ack_interval_packets: u32,
}

/// A congestion control: it owns the period and the window, and nothing else. The defaults of its requests
/// are those of UDT.
pub trait CongestionControl: Send {
    /// `path.acked` moved on. `light`: by an ACK that carries the number alone.
    fn on_ack(&mut self, light: bool, path: &Path);

    /// A NAK: its first packet, and how many it names.
    fn on_loss(&mut self, first: u64, packets: u64, path: &Path);

    /// Nothing came from the peer for long, while data were in flight.
    fn on_timeout(&mut self, path: &Path);

    /// The peer asks for less (packet type 4).
    fn on_warning(&mut self, _path: &Path) {}

    /// A packet leaves; `path.next` lies beyond it. The control allows the same after it.
    fn on_sent(&mut self, _index: u64, _path: &Path) {}

    /// [`CongestionControl::deadline`] has come.
    fn on_tick(&mut self, _path: &Path) {}

    /// Bytes that it holds, its own included.
    fn memory_bytes(&self) -> usize {
        size_of_val(self)
    }

    /// When [`CongestionControl::on_tick`] is wanted.
    fn deadline(&self) -> Time {
        Time::NEVER
    }

    /// Between the starts of two packets.
    fn period(&self) -> Time;

    /// Packets in flight at most.
    fn window_packets(&self) -> u64;

    /// Nothing leaves before.
    fn silent_until(&self) -> Time {
        Time::ZERO
    }

    /// As receiver: a full ACK after this many packets, in addition to the timer's; 0: the timer's alone.
    fn ack_interval_packets(&self) -> u32 {
        0
    }

    /// In place of UDT's own timeout.
    fn retransmission_timeout(&self) -> Option<Time> {
        None
    }

    /// All that it allows now.
    fn allowed(&self) -> Allowed {
        Allowed {
            period: self.period(),
            window_packets: self.window_packets(),
            silent_until: self.silent_until(),
            deadline: self.deadline(),
            retransmission_timeout: self.retransmission_timeout(),
            ack_interval_packets: self.ack_interval_packets(),
        }
    }
}
