//! Any law of the registry as the control of a UDT sender.
//!
//! The law sees ACKs and loss episodes as under TCP: this adapter measures RTT by packet (Karn), counts
//! rounds, runs slow start, and reduces the window once per window of data. Packets are spaced over the
//! round trip, since a UDT receiver acknowledges 64 packets, or 10 ms of them, at once.

use std::collections::VecDeque;

use lfn_law::{
    Ack, Config, Control, LawSpec, Loss, LossKind, PlacedLaw, SlowStart, SlowStartKind, Window,
    ACK_CWND_LIMITED, ACK_FLIGHT, ACK_OPEN, ACK_PACED, ACK_ROUND_START,
};
use lfn_units::Time;

use super::{CongestionControl, Path};
use crate::packet::{HEADER_BYTES, IP_UDP_BYTES};

/// As TCP begins (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
const PS_PER_S: u128 = 1_000_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Episode {
    Open,
    /// The window was reduced, and data sent before that are not acknowledged.
    Recovery,
    /// The same after a timeout: the window grows again.
    Timeout,
}

/// A law in charge of a UDT sender.
pub struct LawControl {
    law: PlacedLaw,
    slow_start: SlowStart,
    control: Control,
    mss_bytes: u32,
    episode: Episode,
    /// One past what was sent when the episode began.
    episode_end: u64,
    round_end: u64,
    acked: u64,
    /// Packets reported lost since the last ACK.
    newly_lost: u32,
    /// When each packet in flight left; `NEVER`: it left twice.
    sent: VecDeque<Time>,
    latest_rtt_ns: u64,
    srtt_ns: u64,
    min_rtt_ns: u64,
}

impl LawControl {
    /// A sender that begins at `now` with packets of `mss_bytes`, IP and UDP headers included. Not for a law
    /// that is a [`lfn_law::Controller`]: it needs delivery rates, which ACKs of UDT do not sample.
    pub fn new(law: &LawSpec, slow_start: SlowStartKind, mss_bytes: u32, now: Time) -> LawControl {
        let mut control = Control::new(INITIAL_WINDOW);
        let config = Config { now_ns: now.as_ns(), mss_B: payload_bytes(mss_bytes), ..Config::default() };
        LawControl {
            law: law.build(&config, &mut control),
            slow_start: SlowStart::new(slow_start),
            control,
            mss_bytes,
            episode: Episode::Open,
            episode_end: 0,
            round_end: 0,
            acked: 0,
            newly_lost: 0,
            sent: VecDeque::new(),
            latest_rtt_ns: 0,
            srtt_ns: 0,
            min_rtt_ns: 0,
        }
    }

    /// Round-trip time of the newest acknowledged packet; none in an episode, where it may have waited at the
    /// receiver for others to be repaired.
    fn sample(&mut self, path: &Path) -> u64 {
        let newest =
            self.sent.drain(..(path.acked - self.acked).min(self.sent.len() as u64) as usize).next_back();
        let timed = newest.filter(|&sent| sent != Time::NEVER && self.episode == Episode::Open);
        let Some(sent) = timed else { return 0 };
        let rtt_ns = (path.now - sent).as_ns().max(1);
        self.latest_rtt_ns = rtt_ns;
        self.srtt_ns = if self.srtt_ns == 0 { rtt_ns } else { (7 * self.srtt_ns + rtt_ns) / 8 };
        self.min_rtt_ns = if self.min_rtt_ns == 0 { rtt_ns } else { self.min_rtt_ns.min(rtt_ns) };
        rtt_ns
    }

    fn reduce(&mut self, kind: LossKind, path: &Path) {
        let loss = Loss {
            now_ns: path.now.as_ns(),
            rtt_ns: self.latest_rtt_ns,
            srtt_ns: self.srtt_ns,
            min_rtt_ns: self.min_rtt_ns,
            kind,
            inflight: (path.next - path.acked) as u32,
            mss_B: payload_bytes(self.mss_bytes),
            pad: 0,
        };
        let ssthresh = self.control.ssthresh;
        self.law.on_loss(&loss, &mut self.control);
        self.slow_start.on_loss(&loss, ssthresh, &mut self.control);
        self.episode_end = path.next;
    }
}

fn payload_bytes(mss_bytes: u32) -> u32 {
    mss_bytes - IP_UDP_BYTES - HEADER_BYTES as u32
}

impl CongestionControl for LawControl {
    fn memory_bytes(&self) -> usize {
        size_of_val(self) + self.law.memory_bytes() + self.sent.capacity() * size_of::<Time>()
    }

    fn on_ack(&mut self, _light: bool, path: &Path) {
        let n = (path.acked - self.acked) as u32;
        if n == 0 {
            return;
        }
        // The data in flight until now, compared with its window.
        let flight = path.next - self.acked;
        let window = self.window_packets();
        let limited = flight >= window
            || (self.control.cwnd < self.control.ssthresh && window < flight.saturating_mul(2));
        let rtt_ns = self.sample(path);
        self.acked = path.acked;
        let mut flags = ACK_PACED;
        if self.episode == Episode::Open {
            flags |= ACK_OPEN;
        }
        if limited {
            flags |= ACK_CWND_LIMITED;
        }
        if path.acked > self.round_end {
            self.round_end = path.next;
            flags |= ACK_ROUND_START | ACK_FLIGHT;
        }
        let seen = Ack {
            now_ns: path.now.as_ns(),
            rtt_ns,
            srtt_ns: self.srtt_ns,
            min_rtt_ns: self.min_rtt_ns,
            delivered: path.acked,
            acked: n,
            newly_delivered: n,
            newly_lost: std::mem::take(&mut self.newly_lost),
            inflight: (path.next - path.acked) as u32,
            ce: 0,
            mss_B: payload_bytes(self.mss_bytes),
            flags,
            hold_us: 0,
        };
        if self.episode != Episode::Open && path.acked >= self.episode_end {
            self.episode = Episode::Open;
            self.law.on_open(&seen, &mut self.control);
            self.slow_start.on_open(&mut self.control);
        }
        let Some(mut law) = self.law.window() else { return };
        law.on_sample(&seen, &mut self.control);
        if self.control.cwnd < self.control.ssthresh {
            self.slow_start.on_sample(&seen, &mut self.control);
        }
        if self.episode == Episode::Recovery {
            self.slow_start.on_recovery(&seen, &mut self.control);
            return;
        }
        if !limited {
            return;
        }
        let mut n = n;
        if self.control.cwnd < self.control.ssthresh {
            n = self.slow_start.on_ack(n, &seen, &mut self.control);
        }
        if n > 0 {
            law.on_ack(n, &seen, &mut self.control);
        }
    }

    fn on_loss(&mut self, _first: u64, packets: u64, path: &Path) {
        self.newly_lost = self.newly_lost.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
        if self.episode != Episode::Open {
            return;
        }
        self.reduce(LossKind::Fast, path);
        self.episode = Episode::Recovery;
        if self.control.ssthresh != Window::INFINITE {
            self.control.cwnd = self.control.cwnd.min(self.control.ssthresh);
        }
    }

    fn on_timeout(&mut self, path: &Path) {
        if self.episode != Episode::Timeout {
            self.reduce(LossKind::Rto, path);
        }
        self.episode = Episode::Timeout;
        self.control.cwnd = Window::ONE;
    }

    fn on_sent(&mut self, index: u64, path: &Path) {
        match index.checked_sub(self.acked).map(|ahead| self.sent.get_mut(ahead as usize)) {
            Some(Some(sent)) => *sent = Time::NEVER,
            Some(None) => self.sent.push_back(path.now),
            None => {}
        }
    }

    fn on_tick(&mut self, path: &Path) {
        self.control.next_tick_ns = 0;
        self.law.on_tick(path.now.as_ns(), &mut self.control);
    }

    fn deadline(&self) -> Time {
        match self.control.next_tick_ns {
            0 => Time::NEVER,
            at_ns => Time::from_ns(at_ns),
        }
    }

    fn period(&self) -> Time {
        let mss = u128::from(payload_bytes(self.mss_bytes));
        let ps = if self.control.pacing_Bps != 0 {
            mss * PS_PER_S / u128::from(self.control.pacing_Bps)
        } else {
            // As Linux paces: twice the window a round trip in slow start, 1.2 times after.
            let gain = if self.control.cwnd < self.control.ssthresh / 2 { 200 } else { 120 };
            u128::from(self.srtt_ns) * 100_000 / (u128::from(self.window_packets()) * gain)
        };
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    fn window_packets(&self) -> u64 {
        self.control.cwnd.floor().max(1)
    }
}
