//! Block pacing: what a law asks for with `block` and `blocks`, segment by segment.

use lfn_law::SlowStartKind;
use lfn_tcp::{AckFlags, Acknowledgement, Range, Segment, Sender, SenderConfig, State};
use lfn_units::Time;

/// Segments in flight when the test begins.
const FLIGHT: u64 = 60;

/// A flight of 60 segments left at time 0, in congestion avoidance from the start.
struct Talk {
    sender: Sender,
    now: Time,
}

impl Talk {
    fn new(law: &str) -> Talk {
        let config = SenderConfig {
            // Without a handshake no SYN-ACK limits the flight.
            handshake: false,
            initial_window_segments: FLIGHT as u32,
            initial_ssthresh_segments: Some(FLIGHT as u32),
            ..SenderConfig::linux(1448, SlowStartKind::Classic)
        };
        let sender = Sender::new(&config.into(), &law.parse().expect("a law"), 0, Time::ZERO, u64::MAX, 1514);
        let mut talk = Talk { sender, now: Time::ZERO };
        assert_eq!(talk.send().len() as u64, FLIGHT);
        talk
    }

    fn send(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.sender.next_segment(self.now)).collect()
    }

    fn ack(&mut self, at: Time, cumulative: u64, sack: Option<(u64, u64)>) -> Vec<Segment> {
        self.now = at;
        let original = self.sender.state() != State::Loss;
        let flags = AckFlags::default().with(AckFlags::ECHOES_ORIGINAL, original);
        let mut ack = Acknowledgement { at, cumulative, flags, ..Acknowledgement::default() };
        if let Some((start, end)) = sack {
            ack.sack[0] = Range { start, end };
            ack.flags = ack.flags.with_blocks(1);
        }
        self.sender.on_ack(at, &ack);
        self.send()
    }

    /// When segments leave after the ACK, and how many, until the window is full.
    fn bursts(&mut self, first: Vec<Segment>) -> Vec<(Time, u64)> {
        let mut bursts = vec![(self.now, first.len() as u64)];
        while self.sender.in_flight() < self.cwnd() {
            self.now = self.sender.deadline();
            self.sender.on_timer(self.now);
            bursts.push((self.now, self.send().len() as u64));
        }
        bursts
    }

    fn cwnd(&self) -> u64 {
        self.sender.control().cwnd.floor()
    }
}

/// One ACK for the whole flight, after a round trip of `rtt`.
fn compressed(law: &str, rtt: Time) -> (Talk, Vec<(Time, u64)>) {
    let mut talk = Talk::new(law);
    let first = talk.ack(rtt, FLIGHT, None);
    let bursts = talk.bursts(first);
    (talk, bursts)
}

#[test]
fn a_burst_is_a_block_and_the_next_leaves_a_part_of_the_round_trip_later() {
    for (rtt_ms, blocks) in [(100, 2), (140, 2), (200, 3), (240, 3), (300, 4)] {
        let rtt = Time::from_ms(rtt_ms);
        let (talk, bursts) = compressed("cw-hstcp", rtt);
        let block = talk.cwnd().div_ceil(blocks);
        assert_eq!(bursts.len() as u64, blocks, "{rtt_ms} ms: {bursts:?}");
        for (i, &(at, segments)) in (0..).zip(&bursts) {
            assert_eq!(at, rtt + Time::from_ns(i * (rtt.as_ns() / blocks)), "{rtt_ms} ms");
            assert_eq!(segments, block.min(talk.cwnd() - i * block), "{rtt_ms} ms");
        }
    }
}

#[test]
fn without_blocks_the_window_leaves_at_once() {
    for (law, rtt_ms) in [("cw-hstcp", 60), ("cw-hstcp:unpaced", 300), ("hstcp", 300)] {
        let (talk, bursts) = compressed(law, Time::from_ms(rtt_ms));
        assert_eq!(bursts, [(Time::from_ms(rtt_ms), talk.cwnd())], "{law}");
    }
}

#[test]
fn as_printed_a_block_has_two_segments_more_and_one_a_round_trip_stops_too() {
    let (talk, bursts) = compressed("cw-hstcp:literal", Time::from_ms(200));
    assert_eq!(bursts[0].1, talk.cwnd() / 3 + 2);
    let mut talk = Talk::new("cw-hstcp:literal");
    talk.ack(Time::from_ms(60), FLIGHT, None);
    assert_eq!(talk.sender.nxt(), FLIGHT + talk.cwnd());
    // Two segments more than the window, then the rest of the round trip.
    assert_eq!(talk.ack(Time::from_ms(61), FLIGHT + 10, None).len(), 2);
    assert_eq!(talk.sender.deadline(), Time::from_ms(120));
}

#[test]
fn even_acks_meet_no_pause_that_a_link_would_feel() {
    // A link that takes 6 ms a segment, 300 ms away: 50 segments fill it, ten and what the window grows queue.
    let (rtt, gap) = (Time::from_ms(300), Time::from_ms(6));
    let mut talk = Talk::new("cw-hstcp");
    let mut acks: Vec<Time> = (0..FLIGHT).map(|i| rtt + Time(i * gap.0)).collect();
    let mut next = 0;
    while next < 1000 {
        let sent = if talk.sender.deadline() < acks[next] {
            talk.now = talk.sender.deadline();
            talk.sender.on_timer(talk.now);
            talk.send()
        } else {
            next += 1;
            talk.ack(acks[next - 1], next as u64, None)
        };
        for _ in sent {
            acks.push((talk.now + rtt).max(*acks.last().unwrap() + gap));
        }
    }
    assert!(acks.windows(2).all(|pair| pair[1] - pair[0] == gap), "the link was idle");
    assert!(talk.sender.control().blocks >= 4);
}

#[test]
fn what_a_block_has_not_sent_in_its_time_lapses() {
    let mut talk = Talk::new("cw-hstcp");
    // The first ACK lets one segment go; the rest comes when this block's time is long over.
    assert_eq!(talk.ack(Time::from_ms(300), 1, None).len(), 1);
    let first = talk.ack(Time::from_ms(395), FLIGHT, None);
    let bursts = talk.bursts(first);
    assert!(bursts.iter().all(|&(_, segments)| segments <= talk.cwnd().div_ceil(4)), "{bursts:?}");
}

#[test]
fn nothing_waits_for_a_block_in_recovery_or_after_a_timeout() {
    let mut talk = Talk::new("cw-hstcp");
    talk.ack(Time::from_ms(300), FLIGHT, None);
    let sent = talk.sender.nxt();
    assert!(talk.sender.deadline() > Time::from_ms(301), "the next block waits");
    // Segment 60 is lost: it is repeated at once.
    let out = talk.ack(Time::from_ms(301), FLIGHT, Some((FLIGHT + 1, sent)));
    assert_eq!(talk.sender.state(), State::Recovery);
    assert_eq!((out[0].seq, out[0].retransmission), (FLIGHT, true));
    // As much as PRR allows, at one moment.
    assert!(out.len() > 1 && talk.send().is_empty());

    let mut talk = Talk::new("cw-hstcp");
    talk.ack(Time::from_ms(300), FLIGHT, None);
    while talk.sender.state() != State::Loss {
        talk.now = talk.sender.deadline();
        talk.sender.on_timer(talk.now);
        if talk.sender.state() != State::Loss {
            talk.send();
        }
    }
    assert_eq!(talk.send().len(), 1);
    let una = talk.sender.una();
    assert_eq!(talk.ack(talk.now + Time::from_ms(300), una + 1, None).len(), 2);
}
