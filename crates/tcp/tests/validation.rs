//! A sender whose application is slow: a pause lowers its window.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_tcp::{AckFlags, Acknowledgement, Sender, SenderConfig, SACK_BLOCKS};
use lfn_units::Time;

const RTT: Time = Time::from_ms(40);

struct Ends {
    sender: Sender,
    now: Time,
    /// Segments on their way, by when their ACK comes.
    acks: Vec<(Time, u64)>,
}

impl Ends {
    fn new(validation: bool) -> Ends {
        let law: LawSpec = "reno".parse().unwrap();
        let linux = SenderConfig::linux(1448, SlowStartKind::Classic);
        let config = SenderConfig { handshake: false, validation, ..linux };
        Ends {
            sender: Sender::new(&config.into(), &law, 0, Time::ZERO, 0, 1514),
            now: Time::ZERO,
            acks: Vec::new(),
        }
    }

    /// The application writes.
    fn write(&mut self, segments: u64) {
        self.sender.write_now(self.now, segments);
        self.send();
    }

    fn send(&mut self) {
        while let Some(segment) = self.sender.next_segment(self.now) {
            self.acks.push((self.now + RTT, segment.seq + 1));
        }
    }

    /// ACKs come until `until`.
    fn go_on(&mut self, until: Time) {
        while let Some(&(at, cumulative)) = self.acks.first().filter(|ack| ack.0 <= until) {
            self.acks.remove(0);
            self.now = at;
            let sack = [lfn_tcp::Range::default(); SACK_BLOCKS];
            let flags = AckFlags::ECHOES_ORIGINAL;
            self.sender.on_ack(at, &Acknowledgement { at, cumulative, flags, sack });
            self.send();
        }
        self.now = until;
    }

    fn window(&self) -> u64 {
        self.sender.control().cwnd.floor()
    }
}

/// A window of 100 segments and more, all used.
fn grown(validation: bool) -> Ends {
    let mut ends = Ends::new(validation);
    ends.write(200);
    ends.go_on(Time::from_ms(200));
    assert!(ends.window() >= 100, "{}", ends.window());
    ends
}

#[test]
fn after_a_pause_it_is_halved_for_each_timeout() {
    for (pause_ms, timeouts) in [(100, 0), (300, 1), (600, 2), (1000, 4), (60_000, 9)] {
        let mut ends = grown(true);
        let before = ends.window();
        ends.go_on(Time::from_ms(160 + pause_ms));
        ends.write(1);
        assert_eq!(ends.window(), (before >> timeouts).max(10), "{pause_ms} ms");
        // It is remembered: slow start leads back to three quarters of it, at least.
        assert!(ends.sender.control().ssthresh.floor() >= before / 2 + before / 4, "{pause_ms} ms");
    }
}

/// Linux 6.12 and 6.18 keep a window that is not full.
#[test]
fn while_acks_come_a_slow_application_keeps_its_window() {
    let mut ends = grown(true);
    let before = ends.window();
    for _ in 0..60 {
        ends.write(1);
        ends.go_on(ends.now + Time::from_ms(10));
        assert_eq!(ends.window(), before);
    }
}

#[test]
fn without_validation_it_stays() {
    let mut ends = grown(false);
    let before = ends.window();
    ends.go_on(Time::from_s(60));
    for _ in 0..60 {
        ends.write(1);
        ends.go_on(ends.now + Time::from_ms(10));
    }
    assert_eq!(ends.window(), before);
}
