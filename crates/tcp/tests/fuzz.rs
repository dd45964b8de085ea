//! No script of losses, copies, delays, lost ACKs and old ACKs breaks a connection: it never panics,
//! never loses a byte, and its idea of what is in flight stays possible.

use lfn_law::{registry, LawInfo, LawSpec, Saved, SlowStartKind};
use lfn_tcp::{Acknowledgement, Receiver, ReceiverConfig, SegmentIn, Sender, SenderConfig};
use lfn_units::Time;
use proptest::prelude::*;

/// Treatment of one packet by the network.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// Later than those behind it.
    Late(u8),
    Marked,
}

#[derive(Clone, Debug)]
struct Script {
    law: LawSpec,
    sender: SenderConfig,
    receiver: ReceiverConfig,
    segments: u64,
    data: Vec<Fate>,
    acks: Vec<Fate>,
    rtt: Time,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => (1..20_u8).prop_map(Fate::Late),
        1 => Just(Fate::Marked),
    ]
}

prop_compose! {
    fn script()(
        law in prop::sample::select(registry().iter().flat_map(LawInfo::specs).collect::<Vec<_>>()),
        slow_start in prop::sample::select(SlowStartKind::ALL.to_vec()),
        (ns2, sack, ecn, echo_each_mark, pacing, delayed_ack) in any::<(bool, bool, bool, bool, bool, bool)>(),
        receive_window in prop_oneof![Just(u64::MAX), 1..40_u64],
        segments in 1..400_u64,
        data in prop::collection::vec(fate(), 1..300),
        acks in prop::collection::vec(fate(), 1..300),
        rtt_ms in 1..300_u64,
    ) -> Script {
        let rtt = Time::from_ms(rtt_ms);
        let sender =
            if ns2 { SenderConfig::ns2(1460) } else { SenderConfig::linux(1448, slow_start) };
        let saved = Some(Saved { window_segments: 3 * segments as u32, rtt_us: 500 * rtt_ms as u32 + 100_000 });
        let receiver = if ns2 { ReceiverConfig::ns2(rtt) } else { ReceiverConfig::linux(rtt, 1448) };
        Script {
            law,
            sender: SenderConfig { slow_start, saved, sack, ecn, pacing, receive_window_segments: receive_window, ..sender },
            receiver: ReceiverConfig {
                sack,
                ecn,
                echo_each_mark,
                delayed_ack,
                sack_compression: receiver.sack_compression.filter(|_| sack),
                ..receiver
            },
            segments,
            data,
            acks,
            rtt,
        }
    }
}

/// Both ends, and what is on the way between them.
struct Path {
    sender: Sender,
    receiver: Receiver,
    data: Vec<(Time, SegmentIn)>,
    acks: Vec<(Time, Acknowledgement)>,
    now: Time,
    sent: usize,
    acked: usize,
}

/// The fate of the `n`-th packet; behind the script all is well.
fn fate_of(script: &[Fate], n: usize) -> Fate {
    script.get(n).copied().unwrap_or(Fate::Arrives)
}

/// When copies of a packet sent at `now` arrive.
fn arrivals(fate: Fate, now: Time, delay: Time) -> Vec<Time> {
    match fate {
        Fate::Lost => vec![],
        Fate::Twice => vec![now + delay, now + delay + delay],
        Fate::Late(tenths) => vec![now + delay + Time(delay.0 / 10 * u64::from(tenths))],
        Fate::Arrives | Fate::Marked => vec![now + delay],
    }
}

impl Path {
    fn send(&mut self, script: &Script) {
        while let Some(segment) = self.sender.next_segment(self.now) {
            assert!(segment.seq < script.segments);
            assert!(segment.seq < self.sender.una().saturating_add(script.sender.receive_window_segments));
            let fate = fate_of(&script.data, self.sent);
            self.sent += 1;
            let ce = script.sender.ecn && matches!(fate, Fate::Marked);
            let segment = SegmentIn {
                seq: segment.seq,
                retransmission: segment.retransmission,
                copy: segment.copy,
                ce,
                cwr: segment.cwr,
            };
            for at in arrivals(fate, self.now, Time(script.rtt.0 / 2)) {
                self.data.push((at, segment));
            }
        }
        self.check();
    }

    /// Checks the invariants.
    fn check(&self) {
        let outstanding = self.sender.nxt() - self.sender.una();
        // Each segment counts at most twice: its original and one copy.
        assert!(self.sender.in_flight() <= 2 * outstanding);
        assert!(self.sender.una() <= self.receiver.next_expected());
        assert!(self.sender.control().cwnd >= lfn_law::Window::ONE);
        if outstanding > 0 {
            assert!(self.sender.deadline() < Time::NEVER, "somebody must act if all ACKs are lost");
        }
    }

    fn receive(&mut self, script: &Script, at: Time, segment: Option<SegmentIn>) {
        let mut out = Vec::new();
        match segment {
            Some(segment) => self.receiver.on_segment(at, segment, &mut |ack| out.push(*ack)),
            None => self.receiver.on_deadline(at, &mut |ack| out.push(*ack)),
        }
        for ack in out {
            let fate = fate_of(&script.acks, self.acked);
            self.acked += 1;
            for arrives in arrivals(fate, ack.at, Time(script.rtt.0 - script.rtt.0 / 2)) {
                self.acks.push((arrives, ack));
            }
        }
    }
}

/// Takes the earliest of `queue`, in order of insertion at one instant.
fn take_first<T>(queue: &mut Vec<(Time, T)>) -> (Time, T) {
    let first = (0..queue.len()).min_by_key(|&i| queue[i].0).expect("not empty");
    queue.remove(first)
}

fn earliest<T>(queue: &[(Time, T)]) -> Time {
    queue.iter().map(|entry| entry.0).min().unwrap_or(Time::NEVER)
}

fn play(script: &Script) {
    let mut path = Path {
        sender: Sender::new(&script.sender.into(), &script.law, 0, Time::ZERO, script.segments, 1514),
        receiver: Receiver::new(&script.receiver),
        data: Vec::new(),
        acks: Vec::new(),
        now: Time::ZERO,
        sent: 0,
        acked: 0,
    };
    path.send(script);
    let mut una = 0;
    for step in 0.. {
        if path.sender.is_done() {
            break;
        }
        assert!(step < 200_000, "it comes to an end");
        let (data, ack) = (earliest(&path.data), earliest(&path.acks));
        let (hold, timer) = (path.receiver.deadline(), path.sender.deadline());
        let next = data.min(ack).min(hold).min(timer);
        assert!(next < Time::NEVER, "it does not stall");
        path.now = path.now.max(next);
        if data == next {
            let (at, segment) = take_first(&mut path.data);
            path.receive(script, at, Some(segment));
        } else if hold == next {
            path.receive(script, next, None);
        } else if ack == next {
            let (_, ack) = take_first(&mut path.acks);
            path.sender.on_ack(path.now, &ack);
            assert!(path.sender.una() >= una);
            una = path.sender.una();
            path.send(script);
        } else {
            path.sender.on_timer(path.now);
            path.send(script);
        }
    }
    assert_eq!(path.receiver.next_expected(), script.segments);
    assert_eq!((path.sender.una(), path.sender.in_flight()), (script.segments, 0));
    let stats = *path.sender.stats(path.now);
    assert_eq!(stats.sent, script.segments + stats.retransmits);
    assert_eq!(stats.sent, path.sent as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_shrink_iters: 5000, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_whatever_the_path_does(script in script()) {
        play(&script);
    }
}
