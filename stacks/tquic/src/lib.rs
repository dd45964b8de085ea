//! tquic's controllers, unmodified, called as its recovery calls them. Its module is private, so their files are compiled here,
//! beside the few types of tquic that they use.

use std::ffi::CStr;
use std::time::{Duration, Instant};

use lfn_stack_adapter::{controllers, Batch, Config, Packet, Rtt, Sent, Stack};

use congestion_control::{build_congestion_controller, CongestionControlAlgorithm, CongestionController};
use connection::rtt::RttEstimator;
use connection::space::SentPacket;

#[allow(warnings)]
mod tquic {
    include!(concat!(env!("OUT_DIR"), "/control.rs"));
}
use tquic::congestion_control;

#[allow(warnings)]
mod connection {
    include!(concat!(env!("OUT_DIR"), "/rtt.rs"));

    pub mod space {
        use std::time::{Duration, Instant};

        #[derive(Clone, Debug, Default)]
        pub struct RateSamplePacketState {
            pub delivered: u64,
            pub delivered_time: Option<Instant>,
            pub first_sent_time: Option<Instant>,
            pub is_app_limited: bool,
            pub tx_in_flight: u64,
            pub lost: u64,
        }

        #[derive(Clone, Debug)]
        pub struct SentPacket {
            pub pkt_num: u64,
            pub time_sent: Instant,
            pub time_acked: Option<Instant>,
            pub time_lost: Option<Instant>,
            pub sent_size: usize,
            pub rate_sample_state: RateSamplePacketState,
        }

        #[derive(Clone, Debug)]
        pub struct AckedPacket {
            pub pkt_num: u64,
            pub time_sent: Instant,
            pub rtt: Duration,
        }
    }
}

pub const DEFAULT_SEND_UDP_PAYLOAD_SIZE: usize = 1200;
pub const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq)]
pub enum Error {
    InvalidConfig(String),
}
pub type Result<T> = std::result::Result<T, Error>;

/// Defaults of tquic 1.6.0 (lib.rs, `impl Default for RecoveryConfig`).
pub struct RecoveryConfig {
    pub max_datagram_size: usize,
    pub congestion_control_algorithm: CongestionControlAlgorithm,
    pub min_congestion_window: u64,
    pub initial_congestion_window: u64,
    pub slow_start_thresh: u64,
    pub bbr_probe_rtt_duration: Duration,
    pub bbr_probe_rtt_based_on_bdp: bool,
    pub bbr_probe_rtt_cwnd_gain: f64,
    pub bbr_rtprop_filter_len: Duration,
    pub bbr_probe_bw_cwnd_gain: f64,
    pub copa_slow_start_delta: f64,
    pub copa_steady_delta: f64,
    pub copa_use_standing_rtt: bool,
    pub initial_rtt: Duration,
    pub enable_pacing: bool,
    pub pacing_granularity: Duration,
}

/// tquic's initial RTT without a handshake.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// A connection's controller.
pub struct Tquic<const WHICH: u8> {
    controller: Box<dyn CongestionController>,
    rtt: RttEstimator,
    begin: Instant,
    begin_ns: u64,
}

// SAFETY: a connection's calls come one after the other; its controllers share nothing.
unsafe impl<const WHICH: u8> Send for Tquic<WHICH> {}

impl<const WHICH: u8> Tquic<WHICH> {
    fn at(&self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns - self.begin_ns)
    }
}

// A build has one of them.
#[allow(dead_code)]
const CUBIC: u8 = 0;
#[allow(dead_code)]
const BBR: u8 = 1;
#[allow(dead_code)]
const BBR3: u8 = 2;
#[allow(dead_code)]
const COPA: u8 = 3;

impl<const WHICH: u8> Stack for Tquic<WHICH> {
    type Own = SentPacket;
    const NAME: &'static CStr = [c"tquic:cubic", c"tquic:bbr", c"tquic:bbr3", c"tquic:copa"][WHICH as usize];

    fn new(config: &Config, rtt: Rtt) -> Self {
        use CongestionControlAlgorithm::{Bbr, Bbr3, Copa, Cubic};
        rand::seed(config.seed.into());
        let initial_rtt =
            if rtt.smoothed_ns > 0 { Duration::from_nanos(rtt.smoothed_ns) } else { INITIAL_RTT };
        let controller = build_congestion_controller(&RecoveryConfig {
            max_datagram_size: config.packet_bytes as usize,
            congestion_control_algorithm: [Cubic, Bbr, Bbr3, Copa][WHICH as usize],
            min_congestion_window: 2,
            initial_congestion_window: 10,
            slow_start_thresh: u64::MAX,
            bbr_probe_rtt_duration: Duration::from_millis(200),
            bbr_probe_rtt_based_on_bdp: false,
            bbr_probe_rtt_cwnd_gain: 0.75,
            bbr_rtprop_filter_len: Duration::from_secs(10),
            bbr_probe_bw_cwnd_gain: 2.0,
            copa_slow_start_delta: congestion_control::COPA_DELTA,
            copa_steady_delta: congestion_control::COPA_DELTA,
            copa_use_standing_rtt: true,
            initial_rtt,
            enable_pacing: true,
            pacing_granularity: TIMER_GRANULARITY,
        });
        Tquic {
            controller,
            rtt: RttEstimator::new(initial_rtt),
            begin: Instant::now(),
            begin_ns: config.now_ns,
        }
    }

    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, _app_limited: bool) -> SentPacket {
        let now = self.at(now_ns);
        let mut sent = SentPacket {
            pkt_num: packet.number,
            time_sent: now,
            time_acked: None,
            time_lost: None,
            sent_size: packet.bytes as usize,
            rate_sample_state: Default::default(),
        };
        // tquic tells the bytes in flight before the packet.
        let before = in_flight_bytes.saturating_sub(packet.bytes.into());
        self.controller.on_sent(now, &mut sent, before);
        sent
    }

    fn told(&mut self, batch: &Batch<SentPacket>) {
        let now = self.at(batch.now_ns);
        let bytes = |packets: &[Sent<SentPacket>]| packets.iter().map(|packet| packet.bytes).sum::<u64>();
        let lost_bytes = bytes(batch.lost);
        let mut in_flight = batch.in_flight_bytes + bytes(batch.acked) + lost_bytes;
        if !batch.acked.is_empty() {
            self.controller.begin_ack(now, in_flight);
        }
        for packet in batch.acked {
            in_flight -= packet.bytes;
            let mut own = packet.own.clone();
            own.time_acked = Some(now);
            // tquic says here that the application never limits it, and updates its RTT afterwards.
            self.controller.on_ack(&mut own, now, false, &self.rtt, in_flight);
        }
        if batch.rtt.latest_ns > 0 && !batch.acked.is_empty() {
            self.rtt.update(Duration::ZERO, Duration::from_nanos(batch.rtt.latest_ns));
        }
        if let Some(newest) = batch.lost.iter().max_by_key(|packet| packet.number) {
            let mut own = newest.own.clone();
            own.time_lost = Some(now);
            // Persistent congestion is left to be done in tquic 1.6.0.
            self.controller.on_congestion_event(now, &own, false, lost_bytes, batch.in_flight_bytes);
        }
        if !batch.acked.is_empty() {
            self.controller.end_ack();
        }
    }

    fn window_bytes(&self) -> u64 {
        self.controller.congestion_window()
    }

    fn pacing_bytes_per_s(&self, _rtt: Rtt) -> u64 {
        self.controller.pacing_rate().unwrap_or(0)
    }
}

controllers! {
    "bbr" => Tquic<BBR>,
    "bbr3" => Tquic<BBR3>,
    "copa" => Tquic<COPA>,
    "cubic" => Tquic<CUBIC>,
}
