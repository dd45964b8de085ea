//! Drives a queueing link as an engine does.
#![allow(dead_code, reason = "each test binary uses its part")]

use lfn_path::{Ecn, Packet, PacketKind, QueuedLink};
use lfn_units::Time;

/// Uniform numbers on \[0, 1): Knuth's MMIX generator.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 9_007_199_254_740_992.0
    }
}

pub fn no_draw() -> f64 {
    panic!("chance has no say here")
}

pub fn data(word: u64, bytes: u32) -> Packet {
    Packet { word, more: 0, flow: 0, bytes, kind: PacketKind::Data, ecn: Ecn::NotEct }
}

pub struct Driver {
    pub link: QueuedLink,
    pub draws: Draws,
    /// When and what.
    pub departed: Vec<(Time, Packet)>,
    pub dropped: Vec<(Time, Packet)>,
    lost: Vec<Packet>,
}

impl Driver {
    pub fn new(link: QueuedLink) -> Driver {
        Driver { link, draws: Draws(1), departed: Vec::new(), dropped: Vec::new(), lost: Vec::new() }
    }

    /// Departures up to and including `now`.
    pub fn run_to(&mut self, now: Time) {
        while self.link.free_at() <= now && self.link.free_at() < Time::NEVER {
            let at = self.link.free_at();
            let (packet, next) = self.link.depart(at, &mut self.lost);
            assert_eq!(next.unwrap_or(Time::NEVER), self.link.free_at());
            self.departed.extend(packet.map(|packet| (at, packet)));
            self.note_lost(at);
        }
    }

    /// Departures come before an arrival at the same time.
    pub fn arrive(&mut self, now: Time, packet: Packet) {
        self.run_to(now);
        let due = self.link.enqueue(now, packet, || self.draws.next(), &mut self.lost);
        assert!(due.is_none_or(|due| due == self.link.free_at()));
        self.note_lost(now);
    }

    fn note_lost(&mut self, now: Time) {
        self.dropped.extend(self.lost.drain(..).map(|packet| (now, packet)));
    }

    pub fn departures(&self) -> Vec<Time> {
        self.departed.iter().map(|&(at, _)| at).collect()
    }

    pub fn words(&self) -> Vec<u64> {
        self.departed.iter().map(|(_, packet)| packet.word).collect()
    }

    pub fn dropped_words(&self) -> Vec<u64> {
        self.dropped.iter().map(|(_, packet)| packet.word).collect()
    }
}
