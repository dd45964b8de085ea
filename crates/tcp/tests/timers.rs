//! Timeouts, tail loss probes and RTTs as the RFCs and Linux have them, ACK by ACK.

mod talk;

use lfn_law::{LawSpec, SlowStartKind};
use lfn_tcp::{wheel, AckFlags, EventKind, Sender, SenderConfig, State};
use lfn_units::Time;
use talk::{config, numbers, Talk, RTT_MS};

#[test]
fn a_lost_tail_is_probed_before_the_timeout() {
    let mut talk = Talk::new(&config());
    talk.sender.stop();
    // All but the last segment arrive; twice the RTT and the slack later it is sent again.
    talk.ack(40, &[]);
    let probe = talk.wait_for_timer();
    assert_eq!(numbers(&probe), [(40, true)]);
    // 2 srtt, and 200 ms for a delayed ACK of the only segment; but no later than a timeout that begins with the
    // ACK, as in Linux, since nothing new left: srtt + 200 ms.
    assert_eq!(talk.now, wheel::fires(wheel::clock_ms(Time::ZERO), Time::from_ms(2 * RTT_MS), RTT_MS + 200));
    assert_eq!(talk.sender.stats(talk.now).timeouts, 0);
    // Only the copy arrived: that was a loss, and it counts.
    talk.now = Time::from_ms(7 * RTT_MS);
    talk.hear(41, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
    assert_eq!(talk.sender.stats(talk.now).loss_events, 1);
}

/// A sender with data for `size_segments`, its first window sent, an RTT of 20 ms later.
fn opened(window_segments: u32, size_segments: u64) -> Talk {
    let law: LawSpec = "reno:linux".parse().expect("a law");
    let config = SenderConfig {
        initial_window_segments: window_segments,
        initial_ssthresh_segments: Some(2),
        ..config()
    };
    let sender = Sender::new(&config.into(), &law, 0, Time::ZERO, size_segments, 1514);
    let mut talk = Talk { sender, now: Time::ZERO };
    assert_eq!(talk.send().len(), size_segments.min(window_segments.into()) as usize);
    talk.now = Time::from_ms(20);
    talk
}

/// Linux 6.12 with an RTT of 17.8 ms sends a probe 38 ms after the second segment left, not 218 ms.
#[test]
fn a_second_segment_ends_the_allowance_for_a_delayed_ack() {
    let mut talk = opened(2, u64::MAX);
    // One segment is outstanding as the timer restarts, then two are.
    assert_eq!(numbers(&talk.ack(1, &[])), [(2, false)]);
    assert_eq!(talk.sender.deadline(), Time::from_ms(20 + 2 * 20 + 2));
    // Without new data one segment stays, and a timeout that begins now comes first.
    let mut talk = opened(2, 2);
    assert_eq!(talk.ack(1, &[]), []);
    assert_eq!(numbers(&talk.wait_for_timer()), [(1, true)]);
    assert_eq!(talk.now, wheel::fires(wheel::clock_ms(Time::ZERO), Time::from_ms(20), 20 + 200));
}

#[test]
fn a_probe_waits_for_the_data_sent_last() {
    let mut talk = opened(20, 3);
    assert_eq!(talk.ack(1, &[]), []);
    // The application writes once more, 30 ms later.
    talk.sender.offer(1);
    talk.now = Time::from_ms(50);
    assert_eq!(numbers(&talk.send()), [(3, false)]);
    assert_eq!(numbers(&talk.wait_for_timer()), [(3, true)]);
    assert_eq!(talk.now, Time::from_ms(50 + 2 * 20 + 2 + 1));
}

/// Linux 6.12 at 64 kbit/s with an RTT of 10 ms: ten segments leave at once, a probe follows, and the ACK of the first
/// segment comes after 200 ms. The timeout counts from the second segment, not from that ACK.
#[test]
fn while_a_probe_is_under_way_the_timeout_counts_from_the_first_segment() {
    let mut talk = opened(10, u64::MAX);
    talk.ack(1, &[]);
    let nxt = talk.sender.nxt();
    assert_eq!(numbers(&talk.wait_for_timer()), [(nxt, false)]);
    talk.now = Time::from_ms(210);
    assert_eq!(talk.ack(3, &[]).len(), 1);
    let rto = Time::from_ms(talk.sender.rtt().rto_ms(0));
    while talk.sender.stats(talk.now).timeouts == 0 {
        talk.now = talk.sender.deadline();
        talk.sender.on_timer(talk.now);
    }
    assert!((rto..rto + Time::from_ms(4)).contains(&talk.now), "{:?} after {rto:?}", talk.now);
}

/// Linux 6.12 with segments of 8948 bytes, of which the window of a SYN-ACK lets seven leave: a probe repeats the seventh, and
/// is not in flight. As the first is acknowledged, six are, and four more leave.
#[test]
fn a_probe_that_repeats_a_segment_is_not_in_flight() {
    let law: LawSpec = "reno:linux".parse().expect("a law");
    let config = SenderConfig {
        initial_window_segments: 10,
        initial_ssthresh_segments: Some(2),
        ..SenderConfig::linux(8948, SlowStartKind::Classic)
    };
    let sender = Sender::new(&config.into(), &law, 0, Time::ZERO, u64::MAX, 9014);
    let mut talk = Talk { sender, now: Time::ZERO };
    talk.sender.on_established(Time::ZERO, Time::from_ms(20));
    assert_eq!(talk.send().len(), 7);
    assert_eq!(numbers(&talk.wait_for_timer()), [(6, true)]);
    talk.now = talk.now + Time::from_ms(100);
    assert_eq!(numbers(&talk.ack(1, &[])), [(7, false), (8, false), (9, false), (10, false)]);
}

/// Linux's DCTCP ends a window of data when all that had left at its beginning is acknowledged, also after a timeout without
/// SACK, where duplicate ACKs counted as deliveries before: alpha falls by a sixteenth, as often as that.
#[test]
fn a_flight_ends_where_the_one_before_began() {
    let law: LawSpec = "dctcp:linux".parse().expect("a law");
    let config = SenderConfig { sack: false, ecn: true, initial_ssthresh_segments: Some(2), ..config() };
    let sender = Sender::new(&config.into(), &law, 0, Time::ZERO, u64::MAX, 1514);
    let mut talk = Talk { sender, now: Time::ZERO };
    let alpha = |talk: &Talk| talk.sender.probe()[0] >> 10;
    assert_eq!(talk.send().len(), 20);
    talk.now = Time::from_ms(RTT_MS);
    // The first ACK ends a window in which nothing was sent.
    talk.ack(1, &[]);
    assert_eq!((alpha(&talk), talk.sender.nxt()), (960, 21));
    // The second segment is lost, six duplicate ACKs tell of it, its repetition is lost too, and time runs out.
    for _ in 0..6 {
        talk.ack(1, &[]);
    }
    while talk.sender.stats(talk.now).timeouts == 0 {
        talk.now = talk.sender.deadline();
        talk.sender.on_timer(talk.now);
    }
    talk.send();
    assert_eq!(alpha(&talk), 960);
    let mut ends = Vec::new();
    for cumulative in 2..60 {
        let before = alpha(&talk);
        let left = talk.sender.nxt();
        talk.now = talk.now + Time::from_ms(10);
        talk.ack(cumulative.min(left), &[]);
        if alpha(&talk) < before {
            ends.push((cumulative.min(left), left));
        }
    }
    // Each window ends with the number that had left when the one before ended.
    assert!(ends.len() > 2 && ends[0].0 == 20, "{ends:?}");
    assert!(ends.windows(2).all(|pair| pair[1].0 == pair[0].1), "{ends:?}");
}

#[test]
fn an_ack_gives_the_rtt_of_the_transmission_that_it_echoes() {
    for copy in 0..2 {
        let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
        let mut left = [Time::ZERO; 2];
        for at in &mut left {
            assert_eq!(numbers(&talk.wait_for_timer()), [(20, true)]);
            *at = talk.now;
        }
        talk.now = talk.now + Time::from_ms(RTT_MS + 1);
        talk.hear(21, &[], |flags| flags.echoing(copy));
        let ms = (talk.now.as_ns() - left[usize::from(copy)].as_ns()) / 1_000_000;
        assert_eq!(talk.sender.rtt().latest_ns(), ms * 1_000_000, "retransmission {copy}");
    }
}

/// F-RTO sends new data after a timeout; those that pacing holds back are no test, and repair goes on.
#[test]
fn once_pacing_holds_new_data_back_after_a_timeout_repair_goes_on() {
    let config = SenderConfig {
        pacing: true,
        tail_loss_probe: false,
        initial_ssthresh_segments: Some(20),
        ..config()
    };
    let law: LawSpec = "reno:linux".parse().expect("a law");
    let mut talk =
        Talk { sender: Sender::new(&config.into(), &law, 0, Time::ZERO, u64::MAX, 1514), now: Time::ZERO };
    assert_eq!(talk.send().len(), 20);
    talk.now = Time::from_ms(RTT_MS);
    for segment in 1..=20 {
        talk.ack(segment, &[]);
    }
    // Segments that pacing lets go, until the timeout repeats the first of them.
    let wait = |talk: &mut Talk| loop {
        talk.now = talk.sender.deadline();
        talk.sender.on_timer(talk.now);
        let sent = numbers(&talk.send());
        if !sent.is_empty() {
            break sent;
        }
    };
    while wait(&mut talk) != [(20, true)] {}
    let nxt = talk.sender.nxt();
    talk.now = talk.now + Time::from_ms(RTT_MS);
    assert_eq!(
        numbers(&talk.hear(21, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false))),
        [(nxt, false)]
    );
    assert_eq!(wait(&mut talk), [(21, true)]);
}

#[test]
fn timeouts_back_off_and_count_once() {
    let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
    let start = talk.now;
    let first = talk.sender.deadline();
    let mut gaps = Vec::new();
    for _ in 0..4 {
        let before = talk.now.max(first);
        assert_eq!(numbers(&talk.wait_for_timer()), [(20, true)]);
        gaps.push(talk.sender.deadline() - talk.now);
        assert!(talk.now >= before);
    }
    assert!(start < first);
    for pair in gaps.windows(2) {
        assert_eq!(pair[1].0, 2 * pair[0].0);
    }
    let stats = *talk.sender.stats(talk.now);
    assert_eq!((stats.timeouts, stats.loss_events, talk.cwnd()), (4, 1, 1));
}

#[test]
fn a_delay_spike_is_no_loss() {
    let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
    let before = *talk.sender.control();
    talk.wait_for_timer();
    assert_eq!((talk.cwnd(), talk.sender.state()), (1, State::Loss));
    // The ACKs were late: they echo the timestamps of the originals.
    talk.now = talk.now + Time::from_ms(5);
    talk.ack(22, &[]);
    let after = *talk.sender.control();
    assert_eq!(talk.sender.state(), State::Open);
    assert!(after.cwnd >= before.cwnd && after.ssthresh >= before.ssthresh);
    assert_eq!(talk.sender.stats(talk.now).undos, 1);
    let kinds: Vec<EventKind> = talk.sender.take_events().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Timeout, EventKind::Undo]);
    // Nothing but the one copy was repeated.
    assert_eq!(talk.sender.stats(talk.now).retransmits, 1);
}

#[test]
fn a_mark_on_the_ack_that_undoes_a_timeout_keeps_the_window() {
    // Linux 6.12, DCTCP behind an outage of 0.5 s and RED with marks: CWR with ssthresh 2, not with 897 from 1,280.
    let mut talk = Talk::new(&SenderConfig { ecn: true, tail_loss_probe: false, ..config() });
    let before = talk.cwnd();
    talk.wait_for_timer();
    talk.now = talk.now + Time::from_ms(5);
    talk.hear(22, &[], |flags| flags.with(AckFlags::ECE, true));
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).undos), (State::Cwr, 1));
    assert_eq!(talk.sender.control().ssthresh.floor(), 2);
    // The reduction sends twice as much as the ACK delivered.
    assert!(before > 20 && talk.cwnd() > 1, "{before}, then {}", talk.cwnd());
}

/// RFC 5682: after a timeout new data are sent in place of copies; they tell whether the old ones were lost.
#[test]
fn after_a_timeout_new_data_tell_whether_it_was_spurious() {
    for spurious in [true, false] {
        let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
        let before = *talk.sender.control();
        let nxt = talk.sender.nxt();
        assert_eq!(numbers(&talk.wait_for_timer()), [(20, true)]);
        talk.now = talk.now + Time::from_ms(RTT_MS);
        let sent = talk.hear(21, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
        assert_eq!(numbers(&sent), [(nxt, false), (nxt + 1, false)]);
        talk.now = talk.now + Time::from_ms(RTT_MS);
        if spurious {
            // An original: the next in order, late.
            talk.hear(22, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
            assert_eq!((talk.sender.state(), talk.sender.control().ssthresh), (State::Open, before.ssthresh));
        } else {
            let sent = talk.hear(21, &[(nxt, nxt + 1)], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
            assert_eq!((talk.sender.state(), numbers(&sent)[0]), (State::Loss, (21, true)));
        }
    }
}

/// Linux 6.12, BIC, 690 segments in a receive window of 690: after the second of two timeouts one new segment leaves, and
/// no retransmission with it, which RACK would find lost by the SACK of the new one.
#[test]
fn new_data_that_fill_the_receive_window_leave_alone() {
    let config = SenderConfig { tail_loss_probe: false, receive_window_segments: 21, ..config() };
    let mut talk = Talk::new(&config);
    talk.wait_for_timer();
    assert_eq!(numbers(&talk.wait_for_timer()), [(20, true)]);
    talk.now = talk.now + Time::from_ms(RTT_MS);
    let lost = |flags: AckFlags| flags.with(AckFlags::ECHOES_ORIGINAL, false);
    assert_eq!(numbers(&talk.hear(21, &[], lost)), [(41, false)]);
    talk.now = talk.now + Time::from_ms(RTT_MS);
    assert_eq!(numbers(&talk.hear(21, &[(41, 42)], lost)), [(21, true), (22, true)]);
    assert_eq!(talk.sender.state(), State::Loss);
}

#[test]
fn what_was_sent_before_a_retransmission_and_arrives_gives_it_the_whole_timeout() {
    // Linux, Reno on RED at 10 Mbit/s, 50 ms: the first segment retransmitted at 0.497 s, the last SACK of older data
    // at 0.612 s, RTO 388 ms: the timeout comes 396 ms after that SACK, not after the retransmission.
    let mut talk = Talk::new(&config());
    for end in 22..=24 {
        talk.ack(20, &[(21, end)]);
    }
    assert_eq!(talk.sender.state(), State::Recovery);
    talk.now = talk.now + Time::from_ms(90);
    talk.ack(20, &[(21, 30)]);
    let (rto_ms, heard) = (talk.sender.rtt().rto_ms(0), talk.now);
    talk.wait_for_timer();
    assert_eq!(talk.now, wheel::fires(wheel::clock_ms(Time::ZERO), heard, rto_ms));
}

#[test]
fn after_a_timeout_a_lost_retransmission_is_a_loss_of_its_own() {
    // Linux, the same run: window 8 and ssthresh 139 in Loss, then state Recovery and ssthresh 5.
    let mut talk = Talk::new(&SenderConfig { undo: false, ..config() });
    while talk.sender.state() != State::Loss {
        talk.wait_for_timer();
    }
    for segment in 21..=24 {
        talk.now = talk.now + Time::from_ms(RTT_MS);
        talk.ack(segment, &[]);
    }
    let (state, window) = (talk.sender.state(), talk.cwnd());
    assert_eq!(state, State::Loss);
    // The retransmission of the first is lost, and one that was sent later arrives.
    talk.now = talk.now + Time::from_ms(2 * RTT_MS);
    talk.ack(24, &[(25, 26)]);
    talk.now = talk.now + Time::from_ms(2 * RTT_MS);
    talk.ack(24, &[(25, 29)]);
    assert_eq!(talk.sender.state(), State::Recovery);
    assert!(talk.sender.control().ssthresh.floor() <= window / 2 + 1, "{window}");
}
