//! How large buffers must be: from the path's rate and round-trip time, with the arithmetic shown.

use lfn_udt::{Config, HEADER_BYTES, IP_UDP_BYTES};
use lfn_units::{Rate, Time};

use crate::secure::SEAL_BYTES;
use crate::{ControlSpec, Key};

/// The kernel must hold what comes while the receiving process does not run.
const STALL: Time = Time::from_ms(50);
/// libudt's window; smaller ones save no memory worth having.
const MIN_WINDOW: u64 = 8192;
/// 1.5 GB of packets.
const MAX_WINDOW: u64 = 1 << 20;

/// Path and settings from the user.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rate of the path.
    pub rate: Rate,
    /// Largest round-trip time.
    pub rtt: Time,
    /// The sender stays below, headers of IP and UDP included.
    pub max_rate: Option<Rate>,
    /// Largest packet, with IP and UDP headers.
    pub mss_bytes: u32,
    /// Congestion control of the sender.
    pub control: ControlSpec,
    /// Packets in flight at most, if that is less than what follows from rate and round-trip time.
    pub window_packets: Option<u32>,
    /// Key that encrypts and authenticates packets.
    pub key: Option<Key>,
    /// Allows a listener beyond loopback without a key, so without authentication.
    pub insecure: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            rate: Rate(1_000_000_000),
            rtt: Time::from_ms(100),
            max_rate: None,
            mss_bytes: 1500,
            control: ControlSpec::default(),
            window_packets: None,
            key: None,
            insecure: false,
        }
    }
}

/// Sizes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of payload in a packet.
    pub payload_bytes: usize,
    /// Packets in each ring, and in flight at most.
    pub window_packets: u32,
    /// Bytes that the kernel should hold for the socket.
    pub socket_bytes: usize,
}

impl Plan {
    /// Bytes of the largest packet of UDT, headers of IP and UDP included: a seal takes some.
    pub(crate) fn packet_bytes(&self) -> u32 {
        self.mss_bytes - if self.key.is_some() { SEAL_BYTES as u32 } else { 0 }
    }

    /// The sizes: twice the path's content, since what is in flight and what the application has not taken
    /// share the window.
    pub fn sizes(&self) -> Sizes {
        let payload_bytes = self.packet_bytes() as usize - HEADER_BYTES - IP_UDP_BYTES as usize;
        let packets = 2 * self.rate.bdp(self.rtt).0.div_ceil(payload_bytes as u64);
        let socket_bytes = self.rate.bdp(STALL).0.clamp(1 << 20, 1 << 29) as usize;
        let window_packets = packets.clamp(MIN_WINDOW, MAX_WINDOW) as u32;
        let window_packets = window_packets.min(self.window_packets.unwrap_or(u32::MAX));
        Sizes { payload_bytes, window_packets, socket_bytes }
    }

    /// The arithmetic, a line for each size.
    pub fn explain(&self) -> String {
        let Sizes { payload_bytes, window_packets, socket_bytes } = self.sizes();
        let bdp = self.rate.bdp(self.rtt).0;
        format!(
            "window: 2 x {} x {} = 2 x {bdp} B, in packets of {payload_bytes} B: {}; used: {window_packets} \
             ({} MB)\nsocket: {} x {STALL} = {} B; asked of the kernel: {socket_bytes} B",
            self.rate,
            self.rtt,
            2 * bdp.div_ceil(payload_bytes as u64),
            u64::from(window_packets) * u64::from(self.mss_bytes) / 1_000_000,
            self.rate,
            self.rate.bdp(STALL).0,
        )
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            mss_bytes: self.packet_bytes(),
            window_packets: self.sizes().window_packets,
            max_bytes_per_s: self.max_rate.map(|rate| rate.0 / 8),
            // The kernel wakes a process that late; the packets of that time leave together.
            catch_up: Time::from_ms(1),
            trains: true,
            ..Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_gigabit_over_100_ms() {
        let plan = Plan { rate: Rate(10_000_000_000), ..Plan::default() };
        let sizes = plan.sizes();
        assert_eq!(sizes.window_packets, 2 * 125_000_000u32.div_ceil(1456));
        assert_eq!(sizes.socket_bytes, 62_500_000);
        assert_eq!(
            plan.explain(),
            "window: 2 x 10Gbit/s x 100ms = 2 x 125000000 B, in packets of 1456 B: 171704; used: 171704 \
             (257 MB)\nsocket: 10Gbit/s x 50ms = 62500000 B; asked of the kernel: 62500000 B"
        );
    }

    #[test]
    fn sizes_have_bounds() {
        let small = Plan { rate: Rate(1), rtt: Time(1), ..Plan::default() };
        assert_eq!((small.sizes().window_packets, small.sizes().socket_bytes), (8192, 1 << 20));
        let large = Plan { rate: Rate(u64::MAX), rtt: Time::from_s(1), ..Plan::default() };
        assert_eq!((large.sizes().window_packets, large.sizes().socket_bytes), (1 << 20, 1 << 29));
    }
}
