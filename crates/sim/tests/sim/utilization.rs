//! No link sends more than it can, however short the interval and wherever it begins within a packet.

use crate::common::{datagrams, drop_tail, dumbbell, linux_flow, ms, run};
use lfn_path::{AqmConfig, CodelConfig, Policer, Service, Shaper};
use lfn_sim::config::{Change, Changed, LinkConfig, LinkId};
use lfn_sim::LinkSummary;
use lfn_units::{Bytes, Rate, Time};

/// Rates at which a packet takes from 120 ms to 1.2 us.
const RATES_BPS: [u64; 5] = [100_000, 1_000_000, 33_333_333, 1_000_000_000, 10_000_000_000];

#[test]
fn no_interval_has_more_bits_than_the_link_can_send() {
    let mut busy = 0;
    for rate_bps in RATES_BPS {
        let packet_s = 1514.0 * 8.0 / rate_bps as f64;
        for (case, packets) in [1.5, 3.3, 10.7, 40.2, 100.9].into_iter().enumerate() {
            let rtt = Time::from_s_f64(packet_s * 4.0);
            let mut config =
                dumbbell(drop_tail(Rate(rate_bps), 50), vec![linux_flow("reno", rtt); 2], Time::ZERO);
            config.warmup = Time::from_s_f64(packet_s * (30.0 + 0.37 * case as f64));
            config.duration = config.warmup.after(Time::from_s_f64(packet_s * packets));
            config.sample = Some(Time::from_s_f64(packet_s * 0.7));
            config.links[0].event_mode = case % 2 == 0;
            if case == 3 {
                let change = |packets: f64, rate_bps: u64| Change {
                    at: config.warmup.after(Time::from_s_f64(packet_s * packets)),
                    what: Changed::Rate(LinkId(0), Rate(rate_bps)),
                };
                config.changes = vec![change(5.5, 0), change(9.1, rate_bps / 3), change(20.2, rate_bps)];
            }
            let outcome = run(&config);
            let link = &outcome.summary.links[0];
            assert!(
                link.utilization <= 1.0 + 1e-9,
                "{rate_bps} bit/s, {packets} packets: {}",
                link.utilization
            );
            busy += u32::from(link.utilization > 0.9999);
            let queues = &outcome.tables.queues;
            let own: Vec<usize> = (0..queues.t_s.len()).filter(|&row| queues.link[row] == 0).collect();
            for pair in own.windows(2).filter(|pair| queues.t_s[pair[0]] >= config.warmup.as_s()) {
                let sent = queues.sent_bytes[pair[1]] - queues.sent_bytes[pair[0]];
                let most = rate_bps as f64 / 8.0 * (queues.t_s[pair[1]] - queues.t_s[pair[0]]);
                assert!(sent as f64 <= most + 1.001, "{sent} bytes of {most}");
            }
        }
    }
    assert!(busy > 10, "only {busy} of 25 links were busy all the time");
}

/// The links of a busy dumbbell with windows that begin and end anywhere.
fn windows(service: &Service, limit_packets: u64, check: impl Fn(&LinkSummary, &[QueueRow])) {
    for (warmup_us, length_us) in [(0, 3_000_000), (1_234_567, 777_777), (2_000_000, 13_000), (999_999, 1)] {
        let link = LinkConfig { service: service.clone(), ..drop_tail(Rate(1), limit_packets) };
        let mut config = dumbbell(link, vec![linux_flow("cubic", ms(20)); 2], Time::ZERO);
        config.links[1] = LinkConfig { name: "reverse".into(), ..drop_tail(Rate(1_000_000_000), 1000) };
        config.warmup = Time::from_us(warmup_us);
        config.duration = Time::from_us(warmup_us + length_us);
        config.sample = Some(ms(3));
        let outcome = run(&config);
        let queues = &outcome.tables.queues;
        let rows: Vec<QueueRow> = (0..queues.t_s.len())
            .filter(|&row| queues.link[row] == 0 && queues.t_s[row] >= config.warmup.as_s())
            .map(|row| QueueRow {
                t_s: queues.t_s[row],
                sent_bytes: queues.sent_bytes[row] as f64,
                capacity_bytes: queues.capacity_bytes[row],
                drain_s: queues.drain_s[row],
            })
            .collect();
        check(&outcome.summary.links[0], &rows);
    }
}

/// Part of a row of table queues.
struct QueueRow {
    t_s: f64,
    sent_bytes: f64,
    capacity_bytes: f64,
    drain_s: f64,
}

#[test]
fn a_trace_offers_its_opportunities_and_no_interval_uses_more() {
    // 1 Mbit/s for 600 ms, then three opportunities a millisecond, which the flows fill.
    let slow = (1..=50).map(|n| n * 12);
    let fast = (601..=1200).flat_map(|at| [at, at, at]);
    let text: Vec<String> = slow.chain(fast).map(|at: u64| at.to_string()).collect();
    let trace = Service::Trace(text.join("\n").parse().expect("valid"), 14);
    windows(&trace, 100, |link, rows| {
        assert!((0.0..=1.0).contains(&link.utilization), "{link:?}");
        let offered = link.opportunities.expect("of a trace");
        for pair in rows.windows(2) {
            let [sent, most] =
                [pair[1].sent_bytes - pair[0].sent_bytes, pair[1].capacity_bytes - pair[0].capacity_bytes];
            assert!(sent <= most && most % 1504.0 == 0.0, "{} s: {sent} of {most}", pair[1].t_s);
        }
        // 101 packets wait no longer than 101 of the slow opportunities.
        assert!(rows.iter().all(|row| row.drain_s <= 101.0 * 0.012), "{link:?}");
        if link.arrivals > 1000 {
            assert!(link.utilization > 0.97, "{link:?}");
            let last = rows.last().expect("a row");
            assert!((last.capacity_bytes - offered as f64 * 1504.0).abs() <= 20.0 * 1504.0, "{link:?}");
            let most_s = rows.iter().map(|row| row.drain_s).fold(0.0, f64::max);
            assert!(most_s > 0.3 && link.p99_queue_s > 0.3, "{most_s}: {link:?}");
        }
    });
}

#[test]
fn a_shaper_offers_its_tokens_and_what_it_sends_by_those_of_before() {
    for burst in [3_000, 300_000, 30_000_000] {
        let shaper = Shaper { rate: Rate(10_000_000), burst: Bytes(burst) };
        windows(&Service::Shaped(Rate(100_000_000), shaper), 100, |link, rows| {
            assert!((0.0..=1.0).contains(&link.utilization), "{burst}: {link:?}");
            // While there are tokens the queue drains at the line's rate.
            assert!(rows.iter().all(|row| row.drain_s <= 101.0 * 1514.0 * 8.0 / 10e6), "{burst}: {link:?}");
            if link.arrivals > 1000 {
                assert!(link.utilization > 0.98, "{burst}: {link:?}");
                assert!((rows[1].capacity_bytes - rows[0].capacity_bytes - 3750.0).abs() < 1e-6);
            }
            if burst == 30_000_000 {
                let mut early = rows.iter().filter(|row| row.t_s < 2.0);
                assert!(early.all(|row| row.drain_s <= 101.0 * 1514.0 * 8.0 / 100e6), "{link:?}");
            }
        });
    }
}

#[test]
fn a_policer_ahead_of_it_leaves_a_link_its_rate() {
    let policer = Some(Policer { rate: Rate(10_000_000), burst: Bytes(100_000) });
    let link = LinkConfig { policer, ..drop_tail(Rate(100_000_000), 100) };
    let outcome = run(&dumbbell(link, vec![linux_flow("cubic", ms(20))], Time::from_s(10)));
    assert!((0.05..0.11).contains(&outcome.summary.links[0].utilization), "{:?}", outcome.summary.links[0]);
}

#[test]
fn a_link_that_is_down_all_the_time_uses_nothing() {
    let mut config = dumbbell(drop_tail(Rate(10_000_000), 50), vec![linux_flow("reno", ms(20))], ms(900));
    config.warmup = ms(500);
    config.sample = Some(ms(10));
    config.changes = vec![Change { at: ms(400), what: Changed::Rate(LinkId(0), Rate(0)) }];
    let outcome = run(&config);
    assert_eq!(outcome.summary.links[0].utilization, 0.0);
    let queues = &outcome.tables.queues;
    let drains = |from: f64| {
        let rows = (0..queues.t_s.len()).filter(move |&row| queues.link[row] == 0 && queues.t_s[row] >= from);
        rows.map(|row| queues.drain_s[row]).collect::<Vec<_>>()
    };
    assert!(drains(0.41).iter().all(|&drain_s| drain_s == f64::INFINITY || drain_s == 0.0));
    assert!(drains(0.0).iter().any(|&drain_s| drain_s > 0.0 && drain_s < 0.1));
}

#[test]
fn no_more_packets_are_dropped_or_marked_than_were_offered() {
    // Hundreds stand in the queue when statistics begin. CoDel drops most of them later, when they would leave.
    let queue = CodelConfig { interval: ms(5), target: Time::from_us(10), ..CodelConfig::default() };
    let link = LinkConfig { queue: AqmConfig::Codel(queue), ..drop_tail(Rate(10_000_000), 1000) };
    let mut config = dumbbell(link, Vec::new(), ms(400));
    config.warmup = ms(100);
    config.udp = vec![datagrams(0, 1500, Time::ZERO, Time::from_us(120), 833)];
    let link = &run(&config).summary.links[0];
    assert!(link.arrivals == link.held_before && link.held_before > 300, "{link:?}");
    assert!(link.drops > 300 && link.drops <= link.arrivals && link.early_drops == link.drops, "{link:?}");
}
