//! Observed behaviour of Linux 6.12 on 100 Mbit/s x 100 ms (and 1 Gbit/s x 40 ms), line by line: its own
//! TCP over a drop-tail queue, one flow unless noted. Windows are in segments. A band is the range of the
//! kernel's episodes; if ours lies outside, the test names place and reason.

use crate::common::{
    drop_tail, dumbbell, events, linux_flow, rate, run, Event, BDP_PACKETS, FAST_RETRANSMIT, RECOVERY_END,
    UNDO,
};
use lfn_sim::Outcome;
use lfn_tcp::SendBuffer;
use lfn_units::Time;

const RTT: Time = Time::from_ms(100);
/// A buffer of one BDP and of a quarter, as the kernel ran with: the packet in service is not counted.
const FULL: u64 = 832;
const QUARTER: u64 = 207;

/// One flow over 100 Mbit/s x 100 ms.
fn alone(name: &str, buffer_packets: u64, seconds: u64) -> Outcome {
    let link = drop_tail(rate("100Mbit/s"), buffer_packets);
    run(&dumbbell(link, vec![linux_flow(name, RTT)], Time::from_s(seconds)))
}

/// Packets that pipe and buffer hold.
fn capacity(buffer_packets: u64) -> f64 {
    BDP_PACKETS + buffer_packets as f64 + 1.0
}

/// Reductions after a loss.
fn reductions(outcome: &Outcome) -> Vec<Event> {
    events(&outcome.tables, 0).into_iter().filter(|event| event.kind == FAST_RETRANSMIT).collect()
}

/// Those of the settled sawtooth: more than `from_s` into the run.
fn settled(outcome: &Outcome, from_s: f64) -> Vec<Event> {
    reductions(outcome).into_iter().filter(|event| event.t_s > from_s).collect()
}

fn periods(reductions: &[Event]) -> Vec<f64> {
    reductions.windows(2).map(|pair| pair[1].t_s - pair[0].t_s).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Losses in each episode of the settled sawtooth, on average: every drop is repaired once.
fn losses_per_episode(name: &str, buffer_packets: u64, from_s: u64, to_s: u64) -> f64 {
    let (before, after) = (alone(name, buffer_packets, from_s), alone(name, buffer_packets, to_s));
    let drops = after.summary.links[0].drops - before.summary.links[0].drops;
    let episodes = after.summary.flows[0].loss_events - before.summary.flows[0].loss_events;
    drops as f64 / episodes as f64
}

const LAWS: [&str; 8] = [
    "reno:linux",
    "hstcp:linux",
    "scalable:linux",
    "bic:linux",
    "cubic:linux",
    "htcp:linux",
    "westwood:linux",
    "htcp-be",
];

#[test]
fn a_full_link_carries_95_64_percent_of_its_rate_as_payload() {
    let link = drop_tail(rate("100Mbit/s"), FULL);
    let mut config = dumbbell(link, vec![linux_flow("cubic:linux", RTT)], Time::from_s(60));
    config.warmup = Time::from_s(10);
    let summary = run(&config).summary;
    assert!(summary.links[0].utilization > 0.9999, "{}", summary.links[0].utilization);
    let share = summary.flows[0].goodput_bps.unwrap() / 100e6;
    assert!((share - 1448.0 / 1514.0).abs() < 1e-4, "{share}");
}

/// The first episode of losses: its start, the packets dropped until it ended, and its end.
fn start_up(name: &str, buffer_packets: u64) -> (Event, f64, Event) {
    let outcome = alone(name, buffer_packets, 5);
    let seen = events(&outcome.tables, 0);
    let end = seen.into_iter().find(|event| event.kind == RECOVERY_END).expect("recovery ends");
    let link = drop_tail(rate("100Mbit/s"), buffer_packets);
    let until_end = run(&dumbbell(link, vec![linux_flow(name, RTT)], Time::from_s_f64(end.t_s)));
    (reductions(&outcome)[0], until_end.summary.links[0].drops as f64, end)
}

#[test]
fn start_up_overshoots_to_twice_the_capacity_and_loses_once_the_capacity() {
    for name in LAWS.iter().filter(|name| !name.starts_with("cubic")) {
        let (first, drops, _) = start_up(name, FULL);
        assert!((first.cwnd_before / (2.0 * capacity(FULL)) - 1.0).abs() < 0.01, "{name}: {first:?}");
        // BIC and Scalable keep more than the path holds, and lose packets in recovery as well.
        if !name.starts_with("bic") && !name.starts_with("scalable") {
            assert!((drops / capacity(FULL) - 1.0).abs() < 0.01, "{name}: {drops}");
        }
    }
}

#[test]
fn a_small_buffer_overflows_before_the_pipe_is_full() {
    // Half of every slow-start round queues, so a quarter BDP overflows in the round before the pipe is
    // full. The kernel, with Reno and with CUBIC, whose HyStart does not help: first reduction after
    // 0.751 s at 1044 segments, 321 drops, recovered after 0.989 s (it begins to send at 0.101 s).
    // Our CUBIC leaves by ACK train at the same moment and drops 308.
    for (name, recovered_s, within) in [("reno:linux", 0.989, 0.02), ("cubic:linux", 0.997, 0.05)] {
        let (first, drops, end) = start_up(name, QUARTER);
        assert!((first.cwnd_before / 1044.0 - 1.0).abs() < 0.02, "{name}: {first:?}");
        assert!((drops / 321.0 - 1.0).abs() < within, "{name}: {drops}");
        assert!((end.t_s - first.t_s - (recovered_s - 0.751)).abs() < 0.01, "{name}: {first:?} {end:?}");
    }
}

#[test]
fn laws_that_halve_take_a_second_reduction_of_one_packet_a_round_trip_later() {
    for name in ["reno:linux", "hstcp:linux", "htcp:linux"] {
        let outcome = alone(name, FULL, 5);
        let seen = events(&outcome.tables, 0);
        let (first, end, second) = (seen[0], seen[1], seen[2]);
        // Recovery leaves the window at exactly BDP + buffer.
        assert_eq!((end.kind, end.cwnd_after), (RECOVERY_END, end.ssthresh), "{name}");
        assert!((end.cwnd_after - capacity(FULL)).abs() < 8.0, "{name}: {end:?}");
        assert_eq!((first.kind, second.kind), (FAST_RETRANSMIT, FAST_RETRANSMIT), "{name}");
        // The kernel takes one round trip of 0.2 s with HSTCP, two with H-TCP.
        assert!(second.t_s - end.t_s < 0.41, "{name}: {second:?}");
        let drops = outcome.summary.links[0].drops as f64;
        assert!((drops - capacity(FULL)).abs() < 0.02 * capacity(FULL), "{name}: {drops}");
    }
}

#[test]
fn one_recovery_repairs_everything_without_a_timeout() {
    for name in LAWS {
        for buffer in [QUARTER, FULL] {
            let outcome = alone(name, buffer, 30);
            assert_eq!(outcome.summary.flows[0].timeouts, 0, "{name} {buffer}");
            // Nothing is sent twice without need, so every drop is one retransmission; what was
            // dropped last may not have been repaired yet.
            let flow = &outcome.summary.flows[0];
            let drops = outcome.summary.links[0].drops;
            assert!(drops.abs_diff(flow.retransmits) <= 60, "{name}: {drops} {}", flow.retransmits);
            assert!(events(&outcome.tables, 0).iter().all(|event| event.kind != UNDO), "{name}");
        }
        // 1 Gbit/s x 40 ms, one BDP of buffer: thousands of losses at the start.
        let link = drop_tail(rate("1Gbit/s"), 3303);
        let outcome = run(&dumbbell(link, vec![linux_flow(name, Time::from_ms(40))], Time::from_s(10)));
        assert_eq!(outcome.summary.flows[0].timeouts, 0, "{name}");
        assert!(name.starts_with("cubic") || outcome.summary.links[0].drops > 6000, "{name}");
    }
}

#[test]
fn hystart_leaves_a_little_above_the_bdp_when_the_buffer_is_large() {
    let mut config =
        dumbbell(drop_tail(rate("100Mbit/s"), FULL), vec![linux_flow("cubic:linux", RTT)], Time::from_s(3));
    config.sample = Some(Time::from_ms(1));
    let outcome = run(&config);
    let flows = &outcome.tables.flows;
    let left = (0..flows.t_s.len()).find(|&i| flows.ssthresh_seg[i].is_finite()).expect("it leaves");
    let ratio = flows.ssthresh_seg[left] / BDP_PACKETS;
    assert!((1.15..1.35).contains(&ratio), "{ratio}");
    // Before any loss, by the ACK train.
    assert!(flows.t_s[left] < reductions(&outcome)[0].t_s);
    // With no W_max yet: one segment for 20, 5 % of the ACK rate.
    let at = |t_s: f64| flows.cwnd_seg[flows.t_s.iter().position(|&t| t >= t_s).expect("sampled")];
    let from = flows.t_s[left] + 0.2;
    let growth = (at(from + 0.8) - at(from)) / (0.8 * 100e6 / (8.0 * 1514.0));
    assert!((growth - 0.05).abs() < 0.002, "{growth}");
}

#[test]
fn cubic_and_bic_alternate_between_two_epochs() {
    for (name, from_s, ratio) in [("cubic:linux", 20.0, 2.2), ("bic:linux", 20.0, 3.4)] {
        let outcome = alone(name, FULL, 150);
        let periods = periods(&settled(&outcome, from_s));
        let odd: Vec<f64> = periods.iter().step_by(2).copied().collect();
        let even: Vec<f64> = periods.iter().skip(1).step_by(2).copied().collect();
        let (long, short) = (mean(&odd).max(mean(&even)), mean(&odd).min(mean(&even)));
        println!("{name}: {long} and {short} s, {}", long / short);
        assert!((long / short / ratio - 1.0).abs() < 0.08, "{name}: {long} and {short} s");
    }
}

#[test]
fn cubics_w_max_alternates_between_the_peak_and_0_85_of_it() {
    let mut config =
        dumbbell(drop_tail(rate("100Mbit/s"), FULL), vec![linux_flow("cubic:linux", RTT)], Time::from_s(120));
    config.sample = Some(Time::from_ms(100));
    let outcome = run(&config);
    let peaks = settled(&outcome, 20.0);
    let probes = &outcome.tables.probes;
    let w_max = |t_s: f64| {
        let at = (0..probes.t_s.len()).find(|&i| probes.probe[i] == 0 && probes.t_s[i] > t_s);
        probes.value[at.expect("sampled")]
    };
    let kept: Vec<f64> = peaks.iter().map(|peak| w_max(peak.t_s + 0.5) / peak.cwnd_before).collect();
    for pair in kept.windows(2) {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        assert!((low - 0.85).abs() < 0.01 && (high - 1.0).abs() < 0.01, "{kept:?}");
    }
}

#[test]
fn htcp_keeps_half_three_times_and_then_the_ratio_of_rtts() {
    // The path of the kernel's run in validation/reference: it kept 0.503, 0.500, 0.499, then 0.796 to 0.798.
    let flows = vec![linux_flow("htcp:linux", RTT)];
    let outcome = run(&dumbbell(drop_tail(rate("50Mbit/s"), 102), flows, Time::from_s(60)));
    let kept: Vec<f64> = reductions(&outcome).iter().map(|e| e.ssthresh / e.cwnd_before).collect();
    for (index, kept) in kept.iter().enumerate() {
        let want = if index < 3 { 0.5 } else { 0.797 };
        assert!((kept - want).abs() < 0.005, "{index}: {kept}");
    }
    assert!(kept.len() > 8);
}

#[test]
fn htcp_overshoots_by_tens_of_packets() {
    for buffer in [QUARTER, FULL] {
        for peak in settled(&alone("htcp:linux", buffer, 60), 10.0) {
            let over = peak.cwnd_before - capacity(buffer);
            assert!((10.0..100.0).contains(&over), "{buffer}: {over}");
        }
    }
}

#[test]
fn losses_per_episode_follow_the_growth_at_its_end() {
    // Drops per episode of the kernel on this path with 825 packets of buffer, from 30 to 120 s. Its Reno
    // loses one or two (1.5 to 2.0 on other paths): the growth of the next round trip falls just before or
    // just after the first loss is known, as the buffer's parity decides.
    let kernel = [
        ("hstcp:linux", 6.0),
        ("cubic:linux", 10.0),
        ("scalable:linux", 17.0),
        ("bic:linux", 22.4),
        ("htcp:linux", 54.0),
    ];
    for (name, want) in kernel {
        let losses = losses_per_episode(name, 825, 30, 120);
        assert!((losses - want).abs() <= 1.0, "{name}: {losses}, the kernel {want}");
    }
    for buffer in [QUARTER - 1, QUARTER] {
        let losses = losses_per_episode("reno:linux", buffer, 10, 200);
        assert!((1.0..=2.0).contains(&losses), "{buffer}: {losses}");
    }
}

#[test]
fn a_sawtooth_contains_two_round_trips_without_growth() {
    let mut config =
        dumbbell(drop_tail(rate("100Mbit/s"), FULL), vec![linux_flow("reno:linux", RTT)], Time::from_s(140));
    config.sample = Some(Time::from_ms(1));
    let outcome = run(&config);
    let seen = events(&outcome.tables, 0);
    let at = seen.iter().position(|event| event.t_s > 10.0).expect("a loss");
    let (found, end) = (seen[at], seen[at + 1]);
    assert_eq!((found.kind, end.kind), (FAST_RETRANSMIT, RECOVERY_END));
    let queues = &outcome.tables.queues;
    let dropped =
        |i: usize| queues.link[i] == 0 && queues.t_s[i] > 10.0 && queues.drops[i] > queues.drops[i - 2];
    let dropped = queues.t_s[(2..queues.t_s.len()).find(|&i| dropped(i)).expect("a drop")];
    // The queue is full at the drop: one round trip of 200 ms until it is known. The repair takes one
    // more, through a queue that the smaller window drains.
    let filled = 2.0 * RTT.as_s();
    println!("{} {}", found.t_s - dropped, end.t_s - found.t_s);
    assert!((found.t_s - dropped - filled).abs() < 0.005, "{}", found.t_s - dropped);
    assert!((RTT.as_s()..1.6 * filled).contains(&(end.t_s - found.t_s)), "{}", end.t_s - found.t_s);
    assert_eq!(end.cwnd_after, end.ssthresh);
    // PRR: the window is reduced gradually, never below ssthresh by more than the segments it owes.
    let flows = &outcome.tables.flows;
    let inside: Vec<f64> = (0..flows.t_s.len())
        .filter(|&i| (found.t_s..end.t_s).contains(&flows.t_s[i]))
        .map(|i| flows.cwnd_seg[i])
        .collect();
    assert!(inside.windows(2).all(|pair| pair[1] <= pair[0] + 1.0));
    assert!(inside.len() > 100 && inside[20] > 0.9 * found.cwnd_before);
}

#[test]
fn one_ack_for_two_segments_and_still_one_segment_a_round_trip() {
    let mut config =
        dumbbell(drop_tail(rate("100Mbit/s"), FULL), vec![linux_flow("reno:linux", RTT)], Time::from_s(100));
    config.warmup = Time::from_s(20);
    config.sample = Some(Time::from_s(1));
    let outcome = run(&config);
    // ACKs are the packets of the reverse link; that one is uncontended, so count at the sender: an
    // event is an ACK, a sample, or a timer.
    let data = outcome.summary.data_packets_delivered as f64;
    let acks = outcome.summary.events as f64;
    println!("{}", acks / data);
    assert!((0.50..0.53).contains(&(acks / data)), "{}", acks / data);
    let flows = &outcome.tables.flows;
    for second in 30..80 {
        let round_trips = 1.0 / flows.srtt_s[second];
        let growth = flows.cwnd_seg[second + 1] - flows.cwnd_seg[second];
        assert!((growth - round_trips).abs() <= 1.0, "{second}: {growth} in {round_trips}");
    }
}

#[test]
fn westwoods_first_threshold_is_far_too_low() {
    for (buffer, most) in [(QUARTER, 340.0), (FULL, 340.0)] {
        let outcome = alone("westwood:linux", buffer, 60);
        let first = events(&outcome.tables, 0).into_iter().find(|event| event.kind == RECOVERY_END);
        let first = first.expect("recovery ends");
        assert!(first.ssthresh < most && first.ssthresh < 0.5 * BDP_PACKETS, "{first:?}");
        let goodput = outcome.summary.flows[0].goodput_bps.unwrap();
        assert!(goodput < 0.8 * 95.6e6, "{goodput}");
    }
}

#[test]
fn westwood_keeps_bdp_over_capacity_once_settled() {
    let mut config = dumbbell(
        drop_tail(rate("100Mbit/s"), FULL),
        vec![linux_flow("westwood:linux", RTT)],
        Time::from_s(260),
    );
    // Begin with a threshold near the truth, so that the first losses come soon.
    config.flows[0].sender.initial_ssthresh_segments = Some(1200);
    let outcome = run(&config);
    let seen = events(&outcome.tables, 0);
    let at = seen.iter().rposition(|event| event.kind == RECOVERY_END).expect("a recovery");
    let kept = seen[at].cwnd_after / seen[at - 1].cwnd_before;
    println!("{seen:?}");
    assert!((kept - BDP_PACKETS / capacity(FULL)).abs() < 0.02, "{kept}");
}

/// Goodput of the flow with 40 ms as a share of both, from 30 s to 150 s, over six offsets of the other's
/// start: drop-tail locks phases, so one offset says little. 50 Mbit/s, a buffer of one BDP of 100 ms.
fn shares(name: &str) -> Vec<f64> {
    (0..6)
        .map(|offset| {
            let mut slow = linux_flow(name, Time::from_ms(160));
            slow.start = Time::from_ms(1000 + 377 * offset);
            let flows = vec![linux_flow(name, Time::from_ms(40)), slow];
            let mut config = dumbbell(drop_tail(rate("50Mbit/s"), 412), flows, Time::from_s(150));
            // The kernel's ACKs met no queue and took no time.
            config.links[1].service = rate("1Tbit/s").into();
            config.warmup = Time::from_s(30);
            let flows = run(&config).summary.flows;
            flows[0].goodput_bps.unwrap() / (flows[0].goodput_bps.unwrap() + flows[1].goodput_bps.unwrap())
        })
        .collect()
}

#[test]
fn two_flows_of_40_and_160_ms() {
    // Mean and standard error of the kernel's own six runs at the same offsets. Two means of six runs
    // from one distribution differ by less than 3.6 standard errors in 95 of 100 cases.
    let kernel = [
        ("htcp:linux", 0.5090, 0.0040),
        ("cubic:linux", 0.7351, 0.0200),
        ("reno:linux", 0.7994, 0.0099),
        ("hstcp:linux", 0.9049, 0.0076),
    ];
    for (name, share, error) in kernel {
        let shares = shares(name);
        println!("{name}: {shares:?}");
        assert!((mean(&shares) - share).abs() < 3.6 * error, "{name}: {shares:?}");
    }
}

/// One flow whose host is not tuned.
fn untuned(name: &str, rate_text: &str, rtt: Time, buffer_packets: u64) -> Outcome {
    let mut config =
        dumbbell(drop_tail(rate(rate_text), buffer_packets), vec![linux_flow(name, rtt)], Time::from_s(60));
    config.links[1] = drop_tail(rate("1Tbit/s"), 10_000);
    config.flows[0].sender.send_buffer = SendBuffer::Autotuned { first_bytes: 16 << 10, max_bytes: 4 << 20 };
    run(&config)
}

/// With tcp_wmem "4096 16384 4194304" the kernel sent trains of 614 segments, and its window stayed at 2177.
#[test]
fn a_send_buffer_of_four_mebibytes_limits_a_long_path() {
    let outcome = untuned("cubic:linux", "100Mbit/s", Time::from_ms(200), FULL);
    let flow = &outcome.summary.flows[0];
    assert!((flow.goodput_bps.unwrap() / 69.17e6 - 1.0).abs() < 0.005, "{}", flow.goodput_bps.unwrap());
    assert!((flow.max_cwnd_segments.unwrap() - 2177.0).abs() < 5.0, "{}", flow.max_cwnd_segments.unwrap());
    assert_eq!(outcome.summary.links[0].drops, 0);
}

/// Over seven RTTs of 36 to 44 ms the kernel dropped 155 to 717 packets on a queue of ten, 296 in the median, and
/// 164 with a large buffer; CUBIC 16 to 18, as with a large one.
#[test]
fn data_that_are_sacked_fill_the_send_buffer_of_an_untuned_host() {
    let drops = |law: &str| -> Vec<u64> {
        let rtts = [36_000, 37_400, 38_600, 40_000, 41_200, 42_600, 44_000].map(Time::from_us);
        let mut drops = rtts.map(|rtt| untuned(law, "50Mbit/s", rtt, 9).summary.links[0].drops);
        drops.sort_unstable();
        drops.to_vec()
    };
    let scalable = drops("scalable:linux");
    assert!(
        (140..180).contains(&scalable[0]) && scalable[4] > 220 && (400..1000).contains(&scalable[6]),
        "{scalable:?}"
    );
    let cubic = drops("cubic:linux");
    assert!(cubic[6] < 40, "{cubic:?}");
}
