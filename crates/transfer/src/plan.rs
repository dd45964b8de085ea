//! How large buffers must be: from the path's rate and round-trip time, with the arithmetic shown.

use std::net::{IpAddr, Ipv4Addr};

use lfn_udt::{Config, HEADER_BYTES, IP_UDP_BYTES};
use lfn_units::{Rate, Time};

use crate::address::resolve;
use crate::secure::SEAL_BYTES;
use crate::{ControlSpec, Key, TransferError};

/// The kernel must hold what comes while the receiving process does not run.
const STALL: Time = Time::from_ms(50);
/// libudt's window; smaller ones save no memory worth having.
const MIN_WINDOW: u64 = 8192;
/// 1.5 GB of packets.
const MAX_WINDOW: u64 = 1 << 20;
/// Range of [`Plan::mss_bytes`]: what every host of IPv4 must receive, and the largest packet of IP.
const MSS_BYTES: std::ops::RangeInclusive<u32> = 576..=65_535;
/// A sender leaves at least a packet in this time, so that its connection does not look idle.
const SLOWEST_PACKET: Time = Time::from_s(10);
/// An IPv6 header is longer than the one of IPv4, which UDT's packet sizes count.
const IPV6_EXTRA_BYTES: u32 = 20;

/// Whether packets to this address have headers of IPv6.
pub(crate) fn is_ipv6(peer: IpAddr) -> bool {
    peer.to_canonical().is_ipv6()
}

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
    /// Checks the numbers of a user.
    ///
    /// # Errors
    /// The option, its value, and what is allowed.
    pub fn check(&self) -> Result<(), TransferError> {
        let usage = |why: String| Err(TransferError::Usage(why));
        if !MSS_BYTES.contains(&self.mss_bytes) {
            return usage(format!("--mss: {} is not from 576 to 65535", self.mss_bytes));
        }
        if self.rate.0 == 0 {
            return usage("--rate: 0bit/s carries nothing; allowed: more than 0".to_owned());
        }
        let least = Rate((u64::from(self.mss_bytes) * 8).div_ceil(SLOWEST_PACKET.as_ns() / 1_000_000_000));
        match self.max_rate {
            Some(rate) if rate < least => usage(format!(
                "--max-rate: at {rate} a packet of {} bytes takes more than {SLOWEST_PACKET}; allowed: from {least}",
                self.mss_bytes
            )),
            _ => Ok(()),
        }
    }

    /// The plan on a path that carries packets of up to `mtu_bytes`.
    pub(crate) fn within(&self, mtu_bytes: u32) -> Plan {
        Plan { mss_bytes: self.mss_bytes.min(mtu_bytes), ..self.clone() }
    }

    /// Bytes of a packet that UDT's sizes do not count: of a longer IP header, and of a seal.
    pub(crate) fn extra_bytes(&self, peer: IpAddr) -> u32 {
        let ip = if is_ipv6(peer) { IPV6_EXTRA_BYTES } else { 0 };
        ip + if self.key.is_some() { SEAL_BYTES as u32 } else { 0 }
    }

    /// Bytes of the largest packet of UDT, as its handshake has it.
    pub(crate) fn packet_bytes(&self, peer: IpAddr) -> u32 {
        self.mss_bytes - self.extra_bytes(peer)
    }

    /// The sizes: twice the path's content, since what is in flight and what the application has not taken
    /// share the window.
    pub fn sizes(&self, peer: IpAddr) -> Sizes {
        let payload_bytes = self.packet_bytes(peer) as usize - HEADER_BYTES - IP_UDP_BYTES as usize;
        let packets = 2 * self.rate.bdp(self.rtt).0.div_ceil(payload_bytes as u64);
        let window_packets = packets.clamp(MIN_WINDOW, MAX_WINDOW) as u32;
        let window_packets = window_packets.min(self.window_packets.unwrap_or(u32::MAX));
        Sizes { payload_bytes, window_packets, socket_bytes: self.socket_bytes() }
    }

    pub(crate) fn socket_bytes(&self) -> usize {
        self.rate.bdp(STALL).0.clamp(1 << 20, 1 << 29) as usize
    }

    /// The arithmetic for a peer at `address`, a line for each size.
    pub fn explain(&self, address: &str) -> String {
        let peer = resolve(address, "").map_or(Ipv4Addr::UNSPECIFIED.into(), |address| address.ip());
        let Sizes { payload_bytes, window_packets, socket_bytes } = self.sizes(peer);
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

    pub(crate) fn config(&self, peer: IpAddr) -> Config {
        Config {
            mss_bytes: self.packet_bytes(peer),
            extra_bytes: self.extra_bytes(peer),
            window_packets: self.sizes(peer).window_packets,
            max_bits_per_s: self.max_rate.map(|rate| rate.0),
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
        let sizes = plan.sizes(Ipv4Addr::LOCALHOST.into());
        assert_eq!(sizes.window_packets, 2 * 125_000_000u32.div_ceil(1456));
        assert_eq!(sizes.socket_bytes, 62_500_000);
        assert_eq!(
            plan.explain("127.0.0.1:9000"),
            "window: 2 x 10Gbit/s x 100ms = 2 x 125000000 B, in packets of 1456 B: 171704; used: 171704 \
             (257 MB)\nsocket: 10Gbit/s x 50ms = 62500000 B; asked of the kernel: 62500000 B"
        );
    }

    #[test]
    fn sizes_have_bounds() {
        let sizes = |plan: &Plan| plan.sizes(Ipv4Addr::LOCALHOST.into());
        let small = sizes(&Plan { rate: Rate(1), rtt: Time(1), ..Plan::default() });
        assert_eq!((small.window_packets, small.socket_bytes), (8192, 1 << 20));
        let large = sizes(&Plan { rate: Rate(u64::MAX), rtt: Time::from_s(1), ..Plan::default() });
        assert_eq!((large.window_packets, large.socket_bytes), (1 << 20, 1 << 29));
    }

    /// A packet of `mss_bytes` holds its headers of IP and UDP, of either family.
    #[test]
    fn packets_of_ipv6_have_longer_headers() {
        let plan = Plan::default();
        for (address, payload_bytes) in
            [("127.0.0.1", 1456), ("::ffff:127.0.0.1", 1456), ("::1", 1436), ("fd71::1", 1436)]
        {
            let ip = address.parse().unwrap();
            assert_eq!(plan.sizes(ip).payload_bytes, payload_bytes, "{address}");
            assert_eq!(plan.within(1400).sizes(ip).payload_bytes, payload_bytes - 100, "{address}");
            assert_eq!(plan.within(9000).sizes(ip).payload_bytes, payload_bytes, "{address}");
            let config = plan.config(ip);
            assert_eq!(config.mss_bytes + config.extra_bytes, 1500);
        }
    }

    #[test]
    fn numbers_of_a_user_are_checked() {
        let said = |plan: Plan| plan.check().map_err(|error| error.to_string());
        assert_eq!(said(Plan::default()), Ok(()));
        for (mss_bytes, good) in [(0, false), (575, false), (576, true), (65_535, true), (65_536, false)] {
            assert_eq!(said(Plan { mss_bytes, ..Plan::default() }).is_ok(), good, "{mss_bytes}");
        }
        let limited = |bps: u64| said(Plan { max_rate: Some(Rate(bps)), ..Plan::default() });
        assert_eq!(
            limited(1).unwrap_err(),
            "--max-rate: at 1bit/s a packet of 1500 bytes takes more than 10s; allowed: from 1.2kbit/s"
        );
        assert!(limited(0).is_err() && limited(1199).is_err() && limited(1200).is_ok());
        assert!(said(Plan { rate: Rate(0), ..Plan::default() }).is_err());
    }
}
