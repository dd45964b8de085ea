//! A sender, and a path and a receiver that a test plays.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_tcp::{AckFlags, Acknowledgement, Range, Segment, Sender, SenderConfig};
use lfn_units::Time;

pub const RTT_MS: u64 = 100;

/// A sender at one end of a path that the test plays.
pub struct Talk {
    pub sender: Sender,
    pub now: Time,
}

pub fn config() -> SenderConfig {
    SenderConfig { initial_window_segments: 20, ..SenderConfig::linux(1448, SlowStartKind::Classic) }
}

impl Talk {
    /// Twenty segments are acknowledged and twenty more are in flight, of a window of twenty that grows
    /// no more in slow start.
    pub fn new(config: &SenderConfig) -> Talk {
        let law: LawSpec = "reno:linux".parse().expect("a law");
        let config = SenderConfig { initial_ssthresh_segments: Some(20), ..*config };
        let sender = Sender::new(&config.into(), &law, 0, Time::ZERO, u64::MAX, 1514);
        let mut talk = Talk { sender, now: Time::ZERO };
        assert_eq!(talk.send().len(), 20);
        talk.now = Time::from_ms(RTT_MS);
        for segment in 1..=20 {
            talk.ack(segment, &[]);
        }
        assert_eq!((talk.sender.una(), talk.sender.nxt()), (20, 41));
        talk.now = Time::from_ms(2 * RTT_MS);
        talk
    }

    pub fn send(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.sender.next_segment(self.now)).collect()
    }

    pub fn hear(
        &mut self,
        cumulative: u64,
        sack: &[(u64, u64)],
        change: impl FnOnce(AckFlags) -> AckFlags,
    ) -> Vec<Segment> {
        let mut ack = Acknowledgement {
            at: self.now,
            cumulative,
            flags: AckFlags::ECHOES_ORIGINAL.with_blocks(sack.len()),
            sack: [Range { start: 0, end: 0 }; 3],
        };
        for (slot, &(start, end)) in ack.sack.iter_mut().zip(sack) {
            *slot = Range { start, end };
        }
        ack.flags = change(ack.flags);
        self.sender.on_ack(self.now, &ack);
        self.send()
    }

    pub fn ack(&mut self, cumulative: u64, sack: &[(u64, u64)]) -> Vec<Segment> {
        self.hear(cumulative, sack, |flags| flags)
    }

    /// The time is over, and then the kernel's tick comes.
    pub fn wait_for_timer(&mut self) -> Vec<Segment> {
        for _ in 0..2 {
            self.now = self.sender.deadline();
            self.sender.on_timer(self.now);
        }
        self.send()
    }

    pub fn cwnd(&self) -> u64 {
        self.sender.control().cwnd.floor()
    }
}

pub fn numbers(segments: &[Segment]) -> Vec<(u64, bool)> {
    segments.iter().map(|segment| (segment.seq, segment.retransmission)).collect()
}
