//! Recovery as the RFCs and Linux have it, ACK by ACK.

mod talk;

use std::sync::{Arc, Mutex};

use lfn_law::{LawSpec, SlowStartKind};
use lfn_tcp::{AckFlags, Acknowledgement, Prr, Segment, Sender, SenderConfig, State};
use lfn_units::Time;
use talk::{config, numbers, Talk, RTT_MS};

#[test]
fn prr_of_twenty_with_one_lost() {
    // RFC 9937: entry on the third SACK, RecoverFS 18, ssthresh 10. After 17 deliveries in
    // recovery the pipe is exactly 10, and 10 segments were sent.
    let (mut prr, mut pipe, mut sent) = (Prr::new(18), 0, 0);
    for sacked in 3..=19 {
        pipe = 20 - 1 - sacked + sent;
        let may = prr.on_ack(pipe, 10, 1, false);
        prr.on_sent(may);
        sent += may;
        pipe += may;
    }
    assert_eq!((pipe, sent), (10, 10));
}

#[test]
fn limited_transmit_then_recovery_on_the_third() {
    let mut talk = Talk::new(&config());
    // Segment 20 is missing. Two duplicates let two new segments out (RFC 3042); the third proves the loss.
    assert_eq!(numbers(&talk.ack(20, &[(21, 22)])), [(41, false)]);
    assert_eq!(numbers(&talk.ack(20, &[(21, 23)])), [(42, false)]);
    assert_eq!(talk.sender.state(), State::Disorder);
    assert_eq!(numbers(&talk.ack(20, &[(21, 24)])), [(20, true)]);
    assert_eq!(talk.sender.state(), State::Recovery);
    assert_eq!(talk.sender.stats(talk.now).loss_events, 1);
}

#[test]
fn many_losses_and_an_echo_in_one_window_are_one_reduction() {
    let mut talk = Talk::new(&SenderConfig { ecn: true, ..config() });
    let before = talk.cwnd();
    let mut repaired = Vec::new();
    // 20, 23, 26 and 29 are missing.
    for (from, end) in [(21, 23), (24, 26), (27, 29), (30, 41)] {
        for high in from + 1..=end {
            let sent = talk.hear(20, &[(from, high)], |flags| flags.with(AckFlags::ECE, high > 35));
            repaired.extend(sent.iter().filter(|s| s.retransmission).map(|s| s.seq));
        }
    }
    assert_eq!(repaired, [20, 23, 26, 29]);
    let stats = *talk.sender.stats(talk.now);
    assert_eq!((stats.loss_events, stats.timeouts), (1, 0));
    talk.now = Time::from_ms(3 * RTT_MS);
    let nxt = talk.sender.nxt();
    talk.ack(nxt, &[]);
    assert_eq!((talk.sender.state(), talk.sender.control().ssthresh.floor()), (State::Open, before / 2));
}

#[test]
fn a_loss_after_an_echo_in_the_same_window_reduces_no_further() {
    let mut talk = Talk::new(&SenderConfig { ecn: true, ..config() });
    talk.hear(21, &[], |flags| flags.with(AckFlags::ECE, true));
    assert_eq!(talk.sender.state(), State::Cwr);
    let ssthresh = talk.sender.control().ssthresh;
    for high in 23..=30 {
        talk.ack(21, &[(22, high)]);
    }
    assert_eq!(talk.sender.state(), State::Recovery);
    assert_eq!((talk.sender.control().ssthresh, talk.sender.stats(talk.now).loss_events), (ssthresh, 1));
}

/// The ACK of all that was sent when the window came down still echoes the mark: the segment that says so is
/// the next one.
#[test]
fn the_echo_that_ends_a_window_of_data_reduces_no_further() {
    let mut talk = Talk::new(&SenderConfig { ecn: true, ..config() });
    let high = talk.sender.nxt();
    talk.hear(22, &[], |flags| flags.with(AckFlags::ECE, true));
    talk.hear(high, &[], |flags| flags.with(AckFlags::ECE, true));
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).loss_events), (State::Cwr, 1));
    // The first ACK beyond it ends the reduction; if it echoes, that is another mark.
    talk.hear(high + 1, &[], |flags| flags);
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).loss_events), (State::Open, 1));
    talk.hear(high + 2, &[], |flags| flags.with(AckFlags::ECE, true));
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).loss_events), (State::Cwr, 2));
}

#[test]
fn newreno_repairs_one_hole_per_round_trip() {
    let newreno = SenderConfig { sack: false, initial_window_segments: 20, ..SenderConfig::ns2(1460) };
    let mut talk = Talk::new(&newreno);
    // 20, 24 and 28 are missing: eighteen duplicates.
    let mut repaired = Vec::new();
    for _ in 0..18 {
        repaired.extend(talk.ack(20, &[]).iter().filter(|s| s.retransmission).map(|s| s.seq));
    }
    assert_eq!(repaired, [20]);
    // All that was sent before the last hole was filled has arrived.
    for (round, hole) in [Some(24), Some(28), None].into_iter().enumerate() {
        talk.now = Time::from_ms((3 + round as u64) * RTT_MS);
        let cumulative = hole.unwrap_or(talk.sender.nxt());
        let sent = talk.hear(cumulative, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
        let repaired: Vec<u64> = sent.iter().filter(|s| s.retransmission).map(|s| s.seq).collect();
        assert_eq!(repaired, Vec::from_iter(hole));
    }
    assert_eq!(talk.sender.stats(talk.now).loss_events, 1);
}

#[test]
fn a_lost_retransmission_is_found_by_time() {
    let mut talk = Talk::new(&config());
    for high in 22..=41 {
        talk.ack(20, &[(21, high)]);
    }
    // The copy of 20 is lost; what was sent after it is delivered one round trip later.
    talk.now = Time::from_ms(3 * RTT_MS + 1);
    let nxt = talk.sender.nxt();
    assert!(nxt > 42);
    let again = talk.ack(20, &[(21, nxt)]);
    assert_eq!(numbers(&again)[0], (20, true));
    assert_eq!(talk.sender.stats(talk.now).timeouts, 0);
}

/// An ACK of the last of several retransmissions proves that segments sent before it are lost; an ACK of one before does
/// not (`tcp_skb_spurious_retrans` of Linux).
#[test]
fn only_an_ack_of_the_last_retransmission_proves_losses_before_it() {
    for (echoed, found) in [(0, None), (1, Some((30, true)))] {
        let mut talk = Talk::new(&config());
        for high in 22..=30 {
            talk.ack(20, &[(21, high)]);
        }
        talk.now = talk.now + Time::from_ms(10);
        let first: Vec<Segment> = (32..=41).flat_map(|high| talk.ack(20, &[(31, high), (21, 30)])).collect();
        assert!(numbers(&first).contains(&(30, true)));
        // The first two segments that followed the first copy of 20 arrive; it does not.
        talk.now = Time::from_ms(3 * RTT_MS + 1);
        assert_eq!(numbers(&talk.ack(20, &[(31, 43), (21, 30)]))[0], (20, true));
        talk.now = Time::from_ms(4 * RTT_MS + 2);
        let sent = talk.hear(30, &[(31, 43)], |flags| flags.echoing(echoed));
        let again = numbers(&sent).into_iter().find(|&(_, again)| again);
        assert_eq!(again, found, "the ACK echoes retransmission {echoed}");
    }
}

#[test]
fn an_echo_of_the_original_does_not_time_the_copy() {
    for echoes_original in [true, false] {
        let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
        assert_eq!(numbers(&talk.wait_for_timer()), [(20, true)]);
        talk.now = talk.now + Time::from_ms(5);
        talk.hear(21, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, echoes_original));
        let min_ms = if echoes_original { RTT_MS } else { 5 };
        assert_eq!(talk.sender.rtt().min_ns(), min_ms * 1_000_000);
    }
}

#[test]
fn reordering_within_a_quarter_round_trip_is_no_loss() {
    let mut talk = Talk::new(&config());
    talk.ack(20, &[(21, 22)]);
    talk.ack(20, &[(21, 23)]);
    talk.now = talk.now + Time::from_ms(10);
    talk.ack(23, &[]);
    assert_eq!(talk.sender.state(), State::Open);
    let stats = *talk.sender.stats(talk.now);
    assert_eq!((stats.retransmits, stats.loss_events), (0, 0));
}

/// Linux initialises congestion control when the handshake is over, with its RTT and after a lost SYN's smaller
/// window; what a law measures from its start must not include the handshake.
#[test]
fn a_law_begins_at_the_end_of_the_handshake() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let build: lfn_law::BuildLaw = {
        let seen = Arc::clone(&seen);
        Box::new(move |config, control| {
            seen.lock().unwrap().push((config.now_ns, config.srtt_ns, config.seed, control.cwnd.floor()));
            "reno".parse::<LawSpec>().expect("a law").build(config, control)
        })
    };
    let law = lfn_law::Prototype {
        name: "Own".into(),
        source: "0123456789ab".into(),
        slow_start: SlowStartKind::Classic,
        probes: Vec::new(),
        build: Some(lfn_law::Build::Law(build)),
        is_stack: false,
    };
    let mut sender = Sender::new(&config().into(), &law.into(), 0, Time::from_ms(7), u64::MAX, 1514);
    sender.on_syns_lost(Time::from_ms(2107));
    sender.on_established(Time::from_ms(2107), Time::from_ms(RTT_MS));
    let seen = seen.lock().unwrap();
    let [(.., first_seed, _), (now_ns, srtt_ns, seed, cwnd)] = seen[..] else { panic!("{seen:?}") };
    assert_eq!((now_ns, srtt_ns, cwnd), (2_107_000_000, 100_000_000, 1));
    assert_eq!(seed, first_seed, "a connection has one seed");
    assert_eq!(sender.control().cwnd.floor(), 1);
}

#[test]
fn connections_that_share_settings_change_only_their_own() {
    let shared = Arc::new(SenderConfig { ecn: true, initial_window_segments: 10, ..config() });
    let law: LawSpec = "reno".parse().expect("a law");
    let [mut unlucky, mut other] =
        [(); 2].map(|()| Sender::new(&shared, &law, 0, Time::ZERO, u64::MAX, 1514));
    unlucky.on_syns_lost(Time::from_ms(1));
    unlucky.on_ecn_refused();
    let after_a_mark = |sender: &mut Sender| {
        let now = Time::from_ms(RTT_MS);
        sender.on_established(now, now);
        let window = sender.control().cwnd.floor();
        while sender.next_segment(now).is_some() {}
        let flags = AckFlags::ECHOES_ORIGINAL.with(AckFlags::ECE, true);
        sender.on_ack(now + now, &Acknowledgement { cumulative: 1, flags, ..Acknowledgement::default() });
        (window, sender.state())
    };
    assert_eq!(after_a_mark(&mut unlucky), (1, State::Open));
    assert_eq!(after_a_mark(&mut other), (10, State::Cwr));
}

/// As observed in Linux, the first ten segments are sent at once. Further segments of the initial window are
/// paced one by one at 2/ln 2 windows a millisecond, less 1 %, whatever the handshake took; the rate counts payload
/// without headers.
#[test]
fn a_law_that_paces_spreads_the_initial_window_behind_ten_segments() {
    let law: LawSpec = "bbr".parse().expect("a law");
    let config =
        SenderConfig { initial_window_segments: 20, ..SenderConfig::linux(1448, SlowStartKind::None) };
    let mut sender = Sender::new(&config.into(), &law, 0, Time::ZERO, u64::MAX, 1514);
    let mut now = Time::from_ms(RTT_MS);
    sender.on_established(now, now);
    for _ in 0..9 {
        assert!(sender.next_segment(now).is_some());
    }
    let mut sent = Vec::new();
    while sent.len() < 11 {
        assert!(sender.next_segment(now).is_some());
        sent.push(now.as_s());
        assert!(sender.next_segment(now).is_none(), "a burst at {now}");
        let next = sender.deadline();
        assert!(next > now);
        now = next;
        sender.on_timer(now);
    }
    let gap_s = 0.001 / (20.0 * 739.0 / 256.0 * 0.99);
    for pair in sent.windows(2) {
        assert!((pair[1] - pair[0] - gap_s).abs() < 1e-3 * gap_s, "{pair:?}");
    }
}

/// Two segments are found lost although they were only late, and their copies are reported as duplicates.
#[test]
fn a_recovery_whose_copies_were_all_duplicates_is_taken_back() {
    let mut talk = Talk::new(&config());
    let before = *talk.sender.control();
    for high in 26..=38 {
        talk.ack(20, &[(25, high), (21, 24)]);
    }
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).retransmits), (State::Recovery, 2));
    // The first original comes; a copy is still in flight, and nothing is decided.
    talk.ack(24, &[(25, 39)]);
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).undos), (State::Recovery, 0));
    talk.hear(24, &[(20, 21), (25, 39)], |flags| flags.with(AckFlags::DUPLICATE, true));
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).undos), (State::Recovery, 0));
    // The second copy was first, and the original behind it is the duplicate.
    talk.hear(39, &[(24, 25)], |flags| {
        flags.with(AckFlags::DUPLICATE, true).with(AckFlags::ECHOES_ORIGINAL, false)
    });
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).undos), (State::Open, 1));
    assert!(talk.sender.control().cwnd >= before.cwnd && talk.sender.control().ssthresh >= before.ssthresh);
    // A duplicate made by the network does not mean a spurious retransmission.
    talk.hear(39, &[(30, 31)], |flags| flags.with(AckFlags::DUPLICATE, true));
    assert_eq!(talk.sender.stats(talk.now).undos, 1);
}

/// The next SACK, not a timeout, detects segments that were lost before an undo.
#[test]
fn losses_are_found_again_after_an_undo() {
    let mut talk = Talk::new(&SenderConfig { tail_loss_probe: false, ..config() });
    talk.wait_for_timer();
    assert_eq!(talk.sender.state(), State::Loss);
    // The timeout was spurious, but 22 is lost indeed.
    talk.now = talk.now + Time::from_ms(50);
    talk.ack(22, &[]);
    assert_eq!((talk.sender.state(), talk.sender.stats(talk.now).undos), (State::Open, 1));
    let mut sent = Vec::new();
    for high in 24..=41 {
        talk.now = talk.now + Time::from_ms(1);
        sent.extend(talk.ack(22, &[(23, high)]));
    }
    assert!(numbers(&sent).contains(&(22, true)), "{sent:?}");
    assert_eq!(talk.sender.stats(talk.now).timeouts, 1);
}

/// Segments above a hole give no RTT sample when a retransmission fills the hole (Karn's algorithm), except
/// with timestamps.
#[test]
fn what_waited_above_a_hole_gives_no_rtt() {
    for timestamps in [true, false] {
        let newreno = SenderConfig { sack: false, timestamps, ..config() };
        let mut talk = Talk::new(&newreno);
        for _ in 0..10 {
            talk.ack(20, &[]);
        }
        assert_eq!(talk.sender.state(), State::Recovery);
        let (srtt, min) = (talk.sender.rtt().srtt_ns(), talk.sender.rtt().min_ns());
        talk.now = talk.now + Time::from_ms(RTT_MS);
        talk.hear(41, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, false));
        assert_eq!((talk.sender.rtt().srtt_ns(), talk.sender.rtt().min_ns()), (srtt, min));
    }
}

#[test]
fn without_sack_an_original_that_is_late_does_not_end_the_repair() {
    // Linux, BIC on CoDel at 10 Mbit/s, 198 ms, 17 duplicates: each ACK of one late original brings one retransmission.
    let mut talk = Talk::new(&SenderConfig { sack: false, ..config() });
    for _ in 0..10 {
        talk.ack(20, &[]);
    }
    assert_eq!(talk.sender.state(), State::Recovery);
    talk.now = talk.now + Time::from_ms(RTT_MS);
    for next in 21..=25 {
        let sent = talk.hear(next, &[], |flags| flags.with(AckFlags::ECHOES_ORIGINAL, true));
        assert_eq!((talk.sender.state(), numbers(&sent)), (State::Recovery, vec![(next, true)]));
    }
}

#[test]
fn a_duplicate_that_a_dsack_reports_counts_as_delivered() {
    // Linux: 2763 segments and the SYN, 15 or 51 reported by DSACK after retransmissions: TCPDelivered 2779, 2815.
    // 53 reported without a retransmission: 2764.
    let sent = |dsack: bool| {
        let mut talk = Talk::new(&config());
        for end in 22..=24 {
            talk.ack(20, &[(21, end)]);
        }
        let first = if dsack {
            talk.hear(20, &[(19, 20), (21, 24)], |flags| flags.with(AckFlags::DUPLICATE, true))
        } else {
            vec![]
        };
        first.len() + talk.ack(20, &[(21, 25)]).len()
    };
    // Of three segments delivered PRR sends two, of two one; the retransmission was the first.
    assert_eq!((sent(false), sent(true)), (0, 1));
}

/// The ACK that opens the receiver's window is no duplicate: in Linux 6.12 the fourth of a first flight without its first
/// segment starts the repair, without SACK.
#[test]
fn the_ack_that_opens_the_window_is_no_duplicate() {
    for (sack, acks) in [(false, 4), (true, 3)] {
        let law: LawSpec = "reno:linux".parse().expect("a law");
        let sender =
            Sender::new(&SenderConfig { sack, ..config() }.into(), &law, 0, Time::ZERO, u64::MAX, 1514);
        let mut talk = Talk { sender, now: Time::ZERO };
        talk.send();
        talk.now = Time::from_ms(RTT_MS);
        let repairs = (1..=5).find(|&n| {
            let blocks = [(1, 1 + n)];
            let sent = talk.ack(0, if sack { &blocks } else { &[] });
            sent.iter().any(|segment| segment.retransmission)
        });
        assert_eq!(repairs, Some(acks), "SACK {sack}");
    }
}
