//! In place of quiche's `LegacyRecovery`: its calls of the controllers, in its order.

use std::ffi::CStr;
use std::time::{Duration, Instant};

use lfn_stack_adapter::{Batch, Config, Packet, Rtt, Stack};

use super::Congestion;
use crate::recovery::rtt::RttStats;
use crate::recovery::{CongestionControlAlgorithm, RecoveryConfig, Sent};

/// As in quiche.
#[derive(Clone)]
pub struct Acked {
    pub pkt_num: u64,
    pub time_sent: Instant,
    pub size: usize,
    pub rtt: Duration,
    pub delivered: usize,
    pub delivered_time: Instant,
    pub first_sent_time: Instant,
    pub is_app_limited: bool,
}

/// A connection's controller.
pub struct Quiche<const CUBIC: bool> {
    congestion: Congestion,
    rtt: RttStats,
    lost_bytes: u64,
    begin: Instant,
    begin_ns: u64,
}

// SAFETY: a connection's calls come one after the other; its controllers share nothing.
unsafe impl<const CUBIC: bool> Send for Quiche<CUBIC> {}

impl<const CUBIC: bool> Quiche<CUBIC> {
    fn at(&self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns - self.begin_ns)
    }
}

impl<const CUBIC: bool> Stack for Quiche<CUBIC> {
    type Own = Sent;
    const NAME: &'static CStr = if CUBIC { c"quiche:cubic" } else { c"quiche:reno" };

    fn new(config: &Config, rtt: Rtt) -> Self {
        // Defaults of quiche 0.30.0 (lib.rs, `Config::with_tls_ctx`).
        let congestion = Congestion::from_config(&RecoveryConfig {
            max_send_udp_payload_size: config.packet_bytes as usize,
            cc_algorithm: if CUBIC {
                CongestionControlAlgorithm::CUBIC
            } else {
                CongestionControlAlgorithm::Reno
            },
            hystart: true,
            initial_congestion_window_packets: 10,
            enable_cubic_idle_restart_fix: true,
        });
        let begin = Instant::now();
        let mut stats = RttStats::new(crate::INITIAL_RTT, Duration::ZERO);
        if rtt.latest_ns > 0 {
            stats.update_rtt(Duration::from_nanos(rtt.latest_ns), Duration::ZERO, begin, true);
        }
        Quiche { congestion, rtt: stats, lost_bytes: 0, begin, begin_ns: config.now_ns }
    }

    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, _app_limited: bool) -> Sent {
        let (now, bytes) = (self.at(now_ns), packet.bytes as usize);
        let mut sent = Sent {
            pkt_num: packet.number,
            time_sent: now,
            size: bytes,
            delivered: 0,
            delivered_time: now,
            first_sent_time: now,
            is_app_limited: false,
            tx_in_flight: 0,
            lost: 0,
        };
        // quiche tells the bytes in flight before the packet. It would fill the rest of its window with a smaller packet, where a
        // full one no longer fits.
        let room = self.congestion.congestion_window().saturating_sub(in_flight_bytes as usize);
        let before = (in_flight_bytes as usize).saturating_sub(bytes) + if room < bytes { room } else { 0 };
        self.congestion.on_packet_sent(before, bytes, now, &mut sent, self.lost_bytes, true);
        sent
    }

    fn told(&mut self, batch: &Batch<Sent>) {
        let now = self.at(batch.now_ns);
        if batch.rtt.latest_ns > 0 && !batch.acked.is_empty() {
            let latest = Duration::from_nanos(batch.rtt.latest_ns);
            self.rtt.update_rtt(latest, Duration::ZERO, now, true);
        }
        let acked_bytes: u64 = batch.acked.iter().map(|packet| packet.bytes).sum();
        let lost_bytes: u64 = batch.lost.iter().map(|packet| packet.bytes).sum();
        let in_flight = (batch.in_flight_bytes + acked_bytes) as usize;
        if let Some(newest) = batch.lost.iter().max_by_key(|packet| packet.number) {
            if !self.congestion.in_congestion_recovery(newest.own.time_sent) {
                (self.congestion.cc_ops.checkpoint)(&mut self.congestion);
            }
            let before = in_flight + lost_bytes as usize;
            let event = self.congestion.cc_ops.congestion_event;
            event(&mut self.congestion, before, lost_bytes as usize, &newest.own, now);
        }
        self.congestion.lost_count += batch.lost.len();
        self.lost_bytes += lost_bytes;
        if batch.acked.is_empty() {
            return;
        }
        let mut acked = batch
            .acked
            .iter()
            .map(|packet| Acked {
                pkt_num: packet.number,
                time_sent: packet.own.time_sent,
                size: packet.own.size,
                rtt: now - packet.own.time_sent,
                delivered: packet.own.delivered,
                delivered_time: packet.own.delivered_time,
                first_sent_time: packet.own.first_sent_time,
                is_app_limited: packet.own.is_app_limited,
            })
            .collect();
        self.congestion.on_packets_acked(in_flight, &mut acked, &self.rtt, now);
    }

    fn window_bytes(&self) -> u64 {
        self.congestion.congestion_window() as u64
    }

    fn pacing_bytes_per_s(&self, _rtt: Rtt) -> u64 {
        0
    }
}
