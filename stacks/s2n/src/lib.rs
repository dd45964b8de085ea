//! s2n-quic-core's controllers, unmodified, called as s2n-quic-transport calls them.

use std::ffi::CStr;
use std::time::Duration;

use lfn_stack_adapter::{controllers, Batch, Config, Packet, Rtt, Stack};
use num_rational::Ratio;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::random;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::bbr::BbrCongestionController;
use s2n_quic_core::recovery::congestion_controller::Publisher;
use s2n_quic_core::recovery::{CongestionController, CubicCongestionController, RttEstimator};
use s2n_quic_core::time::Timestamp;

/// RFC 9002's initial RTT (section 6.2.2), for a connection without a handshake.
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Which of them.
pub trait Kind: CongestionController {
    const NAME: &'static CStr;
    fn new(datagram_bytes: u16) -> Self;
}

impl Kind for CubicCongestionController {
    const NAME: &'static CStr = c"s2n:cubic";
    fn new(datagram_bytes: u16) -> Self {
        CubicCongestionController::new(datagram_bytes, Default::default())
    }
}

impl Kind for BbrCongestionController {
    const NAME: &'static CStr = c"s2n:bbr";
    fn new(datagram_bytes: u16) -> Self {
        BbrCongestionController::new(datagram_bytes, Default::default())
    }
}

/// The pacing rate, which a controller tells to its publisher alone.
#[derive(Default)]
struct Pace {
    bytes_per_s: u64,
}

impl Publisher for Pace {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}
    fn on_delivery_rate_sampled(&mut self, _rate_sample: RateSample) {}
    fn on_pacing_rate_updated(&mut self, pacing_rate: Bandwidth, _burst_size: u32, _pacing_gain: Ratio<u64>) {
        self.bytes_per_s = pacing_rate.as_bytes_per_second();
    }
    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

/// Draws of a connection, from its seed (xorshift64*, Vigna 2016).
struct Draws(u64);

impl random::Generator for Draws {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        for byte in dest {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            *byte = (self.0.wrapping_mul(2_685_821_657_736_338_717) >> 56) as u8;
        }
    }

    fn private_random_fill(&mut self, dest: &mut [u8]) {
        self.public_random_fill(dest);
    }
}

/// A connection's controller.
pub struct S2n<C> {
    controller: C,
    rtt: RttEstimator,
    draws: Draws,
    pace: Pace,
}

fn at(ns: u64) -> Timestamp {
    // SAFETY: it asks that time sources alone call it; simulated time is one. It must not be 0.
    unsafe { Timestamp::from_duration(Duration::from_secs(1) + Duration::from_nanos(ns)) }
}

impl<C: Kind> S2n<C> {
    fn sample(&mut self, now_ns: u64, sample_ns: u64) {
        let (sample, space) = (Duration::from_nanos(sample_ns), PacketNumberSpace::ApplicationData);
        self.rtt.update_rtt(Duration::ZERO, sample, at(now_ns), true, space);
    }
}

impl<C: Kind> Stack for S2n<C>
where
    C::PacketInfo: Send,
{
    type Own = C::PacketInfo;
    const NAME: &'static CStr = C::NAME;

    fn new(config: &Config, rtt: Rtt) -> Self {
        let mut made = S2n {
            controller: C::new(u16::try_from(config.packet_bytes).unwrap_or(u16::MAX)),
            rtt: RttEstimator::new(INITIAL_RTT),
            draws: Draws(u64::from(config.seed) + 1),
            pace: Pace::default(),
        };
        if rtt.latest_ns > 0 {
            made.sample(config.now_ns, rtt.latest_ns);
        }
        made
    }

    fn sent(
        &mut self,
        now_ns: u64,
        packet: &Packet,
        _in_flight_bytes: u64,
        app_limited: bool,
    ) -> C::PacketInfo {
        let (bytes, limited) = (packet.bytes as usize, Some(app_limited));
        self.controller.on_packet_sent(at(now_ns), bytes, limited, &self.rtt, &mut self.pace)
    }

    fn told(&mut self, batch: &Batch<C::PacketInfo>) {
        let now = at(batch.now_ns);
        if let Some(newest) = batch.acked.iter().max_by_key(|packet| packet.number) {
            let sent = at(newest.sent_ns);
            if batch.rtt.latest_ns > 0 {
                self.sample(batch.now_ns, batch.rtt.latest_ns);
                self.controller.on_rtt_update(sent, now, &self.rtt, &mut self.pace);
            }
            let bytes = batch.acked.iter().map(|packet| packet.bytes as usize).sum();
            let (own, draws, pace) = (newest.own, &mut self.draws, &mut self.pace);
            self.controller.on_ack(sent, bytes, own, &self.rtt, draws, now, pace);
        }
        let mut before = None;
        for packet in batch.lost {
            let bytes = packet.bytes as u32;
            let begins = before.is_none_or(|before| before + 1 != packet.number);
            before = Some(packet.number);
            let (persistent, draws, pace) = (batch.persistent_congestion, &mut self.draws, &mut self.pace);
            self.controller.on_packet_lost(bytes, packet.own, persistent, begins, draws, now, pace);
            if persistent {
                self.rtt.on_persistent_congestion();
            }
        }
        if batch.ce_packets > 0 {
            self.controller.on_explicit_congestion(batch.ce_packets.into(), now, &mut self.pace);
        }
    }

    fn window_bytes(&self) -> u64 {
        self.controller.congestion_window().into()
    }

    fn pacing_bytes_per_s(&self, _rtt: Rtt) -> u64 {
        self.pace.bytes_per_s
    }
}

controllers! {
    "bbr" => S2n<BbrCongestionController>,
    "cubic" => S2n<CubicCongestionController>,
}
