//! Queue disciplines against the closed forms that are known of them.

mod common;

use common::{data, Driver};
use lfn_path::{
    AqmConfig, AqmError, CodelConfig, DropHead, DropTail, Ecn, FqCodelConfig, Limit, Packet, PacketKind,
    PieConfig, PieError, QueuedLink, RedConfig, RedError,
};
use lfn_units::{Bytes, Rate, Time};

/// 10 us for a packet of 1500 bytes.
const RATE: Rate = Rate(1_200_000_000);
const PACKET: Time = Time::from_us(10);

fn link(rate: Rate, aqm: AqmConfig, limit_packets: u64, limit_bytes: u64) -> Driver {
    let aqm = aqm.build(rate, Time::ZERO, 7).expect("valid");
    Driver::new(QueuedLink::new(rate, aqm, Limit { packets: limit_packets, bytes: limit_bytes }, 1500))
}

fn driver(aqm: AqmConfig, limit_packets: u64) -> Driver {
    link(RATE, aqm, limit_packets, u64::MAX)
}

fn codel(ecn: bool) -> AqmConfig {
    AqmConfig::Codel(CodelConfig { ecn, ..CodelConfig::default() })
}

/// Twice what the link can send, from `from` to `to`, by a source that takes no notice.
fn overload(driver: &mut Driver, from: Time, to: Time, ecn: Ecn) {
    for now in (from.0..to.0).step_by(PACKET.0 as usize / 2) {
        driver.arrive(Time(now), Packet { ecn, ..data(now, 1500) });
    }
}

/// Times from the first to each, in ps.
fn offsets(times: impl Iterator<Item = Time>) -> Vec<u64> {
    let times: Vec<Time> = times.collect();
    times.iter().map(|&at| (at - times[0]).0).collect()
}

/// The n-th interval of CoDel's control law by Linux's roots, in ps, to the 16 bits that they have. (Linux 6.12,
/// HSTCP at 20 Mbit/s: drops 100.5, 49.7, 56.3, 49.1, 44.2, 39.9, 37.6 and 35.1 ms apart, each as a packet of 0.6 ms
/// leaves.)
fn control_law(n: usize) -> u64 {
    let root = (2..=n).fold(1.0, |root: f64, count| root * (3.0 - count as f64 * root * root) / 2.0);
    (1e11 * root) as u64
}

/// As far as 16 bits of a root may move the time of a drop.
const ROUNDING: u64 = 20_000_000;

#[test]
fn drop_tail_keeps_the_limit_and_the_one_in_service() {
    let mut driver = driver(AqmConfig::DropTail(DropTail {}), 10);
    (0..20).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    assert_eq!(driver.dropped_words(), (11..20).collect::<Vec<_>>());
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words(), (0..11).collect::<Vec<_>>());
    assert_eq!(driver.link.counters().max_waiting, 10);
}

#[test]
fn an_idle_link_takes_any_packet() {
    let all = [
        AqmConfig::DropTail(DropTail {}),
        AqmConfig::DropHead(DropHead {}),
        AqmConfig::Red(RedConfig::classic(1500)),
        codel(false),
        AqmConfig::FqCodel(FqCodelConfig::default()),
        AqmConfig::Pie(PieConfig::default()),
    ];
    for aqm in all {
        let mut driver = link(RATE, aqm, 0, 0);
        for n in 0..3 {
            driver.arrive(PACKET, data(n, 1500));
        }
        driver.arrive(PACKET + PACKET, data(3, 1500));
        driver.run_to(Time::from_s(1));
        assert_eq!((driver.words(), driver.dropped_words()), (vec![0, 3], vec![1, 2]));
        assert_eq!(driver.link.counters().drops_full, 2);
    }
}

#[test]
fn drop_head_keeps_the_newest() {
    let mut driver = driver(AqmConfig::DropHead(DropHead {}), 10);
    (0..20).for_each(|word| driver.arrive(Time::ZERO, data(word, 1500)));
    assert_eq!(driver.dropped_words(), (1..10).collect::<Vec<_>>());
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words()[..3], [0, 10, 11]);
    assert_eq!(driver.link.counters().drops_full, 9);
    assert_eq!(driver.link.data_totals().dropped, 9);
}

#[test]
fn drop_head_makes_room_in_bytes() {
    let mut driver = link(RATE, AqmConfig::DropHead(DropHead {}), 100, 1000);
    for (word, bytes) in [(0, 1500), (1, 400), (2, 400), (3, 900), (4, 1001), (5, 1000)] {
        driver.arrive(Time::ZERO, data(word, bytes));
    }
    // The fifth does not fit even alone.
    assert_eq!(driver.dropped_words(), [1, 2, 3, 4]);
}

#[test]
fn codel_drops_at_the_times_of_its_control_law() {
    let mut driver = driver(codel(false), u64::MAX >> 8);
    overload(&mut driver, Time::ZERO, Time::from_ms(600), Ecn::NotEct);
    // The k-th packet comes at 5k us and is due at 10k us: the first that has waited 5 ms is due at
    // 10 ms, and the first one due more than an interval later may be dropped.
    let (at, packet) = driver.dropped[0];
    assert_eq!((at, Time(packet.word)), (Time::from_us(110_010), Time::from_us(55_005)));
    // Then after 100, 150, 206 ms and so on, or as soon afterwards as a packet leaves.
    let mut expected = 0;
    for (n, offset) in (1..).zip(offsets(driver.dropped.iter().map(|&(at, _)| at))) {
        assert!(
            (expected - ROUNDING.min(expected)..=expected + PACKET.0).contains(&offset),
            "{offset} {expected}"
        );
        expected += control_law(n);
    }
    assert_eq!(driver.link.counters().drops_early, 11);
    assert_eq!(driver.link.counters().drops_full, 0);
}

#[test]
fn codels_clock_counts_units_of_1024_ns() {
    // A wait of 5 ms and a target of 5.0009 ms are both 4,883 units, so the packet due at 10 ms is above it. (Linux 6.12,
    // DCTCP at 2.5 Gbit/s, 160 ms: the first mark comes three packets before that of an exact clock.)
    let config = CodelConfig { target: Time::from_ns(5_000_900), ..CodelConfig::default() };
    let mut driver = driver(AqmConfig::Codel(config), u64::MAX >> 8);
    overload(&mut driver, Time::ZERO, Time::from_ms(200), Ecn::NotEct);
    assert_eq!(driver.dropped[0].0, Time::from_us(110_010));
}

#[test]
fn codel_marks_at_the_times_of_its_control_law() {
    let mut driver = driver(codel(true), u64::MAX >> 8);
    overload(&mut driver, Time::ZERO, Time::from_ms(400), Ecn::Ect0);
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.dropped.len(), 0);
    let marked = driver.departed.iter().filter(|(_, packet)| packet.ecn == Ecn::Ce).map(|&(at, _)| at);
    let marked = offsets(marked);
    assert_eq!(driver.link.counters().marks, marked.len() as u64);
    assert!(marked.len() > 5);
    let mut expected = 0;
    for (n, offset) in (1..).zip(marked) {
        assert!(
            (expected - ROUNDING.min(expected)..=expected + PACKET.0).contains(&offset),
            "{offset} {expected}"
        );
        expected += control_law(n);
    }
}

#[test]
fn codel_drops_packets_that_cannot_carry_a_mark() {
    let mut driver = driver(codel(true), u64::MAX >> 8);
    overload(&mut driver, Time::ZERO, Time::from_ms(300), Ecn::NotEct);
    assert_eq!(driver.link.counters().drops_early, 3);
    assert_eq!(driver.link.counters().marks, 0);
}

#[test]
fn codel_resumes_where_it_stopped_if_that_was_not_long_ago() {
    // An overload in which the interval falls below 33 ms, a pause in which the queue drains, and
    // another overload: the interval between its first two drops.
    let resumed = |pause: Time| {
        let mut driver = driver(codel(false), u64::MAX >> 8);
        overload(&mut driver, Time::ZERO, Time::from_ms(600), Ecn::NotEct);
        let begin = Time::from_ms(1200) + pause;
        driver.run_to(begin);
        driver.dropped.clear();
        overload(&mut driver, begin, begin + Time::from_ms(300), Ecn::NotEct);
        offsets(driver.dropped.iter().map(|&(at, _)| at))[1]
    };
    assert!(resumed(Time::ZERO) < Time::from_ms(33).0);
    // 16 intervals later it restarts.
    assert!(resumed(Time::from_ms(1600)).abs_diff(control_law(1)) <= PACKET.0);
}

#[test]
fn codel_leaves_a_delay_below_the_target_alone() {
    let mut driver = driver(codel(false), u64::MAX >> 8);
    // 4.9 ms of packets, over and over.
    for round in 0..200 {
        for word in 0..490 {
            driver.arrive(Time::from_us(4900 * round), data(word, 1500));
        }
    }
    assert_eq!(driver.dropped.len(), 0);
}

#[test]
fn codel_never_takes_the_last_packet() {
    // At 1 Mbit/s two packets stand for longer than the target, but less than an MTU waits behind.
    let mut driver = link(Rate(1_000_000), codel(false), 100, u64::MAX);
    for n in 0..1000 {
        driver.arrive(Time::from_ms(12 * n), data(n, 1499));
        driver.arrive(Time::from_ms(12 * n), data(n, 1));
    }
    assert_eq!(driver.dropped.len(), 0);
    assert!(driver.link.counters().mean_wait() > Time::from_ms(5));
}

#[test]
fn fq_codel_gives_flows_of_large_and_small_packets_equal_bytes() {
    let mut driver = driver(AqmConfig::FqCodel(FqCodelConfig::new(1500)), 10_240);
    for n in 0..1000 {
        driver.arrive(Time::ZERO, Packet { flow: 1, ..data(n, 1500) });
        for _ in 0..5 {
            driver.arrive(Time::ZERO, Packet { flow: 2, ..data(n, 300) });
        }
    }
    // While both have packets: 3 MB take 20 ms.
    driver.run_to(Time::from_ms(19));
    let mut sent = [0i64; 2];
    for (_, packet) in &driver.departed {
        sent[packet.flow as usize - 1] += i64::from(packet.bytes);
        assert!((sent[0] - sent[1]).abs() <= 1500, "{sent:?}");
    }
    assert!(sent[0] > 1_400_000);
    assert_eq!(driver.dropped.len(), 0);
}

#[test]
fn fq_codel_turns_are_of_a_quantum() {
    let config = FqCodelConfig { quantum: Some(Bytes(2500)), ..FqCodelConfig::new(1500) };
    let mut driver = driver(AqmConfig::FqCodel(config), 10_240);
    for flow in [1, 2] {
        for n in 0..10 {
            driver.arrive(Time::ZERO, Packet { flow, ..data(n, 1000) });
        }
    }
    driver.run_to(Time::from_s(1));
    let flows: Vec<u32> = driver.departed.iter().map(|(_, packet)| packet.flow).collect();
    // Three packets, which leave a debt of 500 bytes; then 2000 bytes are two packets.
    assert_eq!(flows[..11], [1, 1, 1, 2, 2, 2, 1, 1, 2, 2, 1]);
}

#[test]
fn fq_codel_serves_a_sparse_flow_first() {
    let mut driver = driver(AqmConfig::FqCodel(FqCodelConfig::new(1500)), 10_240);
    for n in 0..100 {
        driver.arrive(Time::ZERO, Packet { flow: 10 + n as u32 % 4, ..data(n, 1500) });
    }
    driver.arrive(Time::from_us(205), Packet { flow: 2, ..data(1000, 100) });
    driver.run_to(Time::from_s(1));
    // It waits for the packet in service and nothing else.
    assert_eq!(driver.words().iter().position(|&word| word == 1000), Some(21));
}

#[test]
fn fq_codel_drops_half_of_the_longest_queue_from_its_head() {
    let mut driver = driver(AqmConfig::FqCodel(FqCodelConfig::new(1500)), 10);
    for n in 0..9 {
        driver.arrive(Time::ZERO, Packet { flow: 1, ..data(n, 1500) });
    }
    for n in 100..104 {
        driver.arrive(Time::ZERO, Packet { flow: 2, ..data(n, 1500) });
    }
    // 0 is in service, 1 to 8 wait when 102 comes; Linux 6.12 drops half of what waits. Now 103 has room.
    assert_eq!(driver.dropped_words(), [1, 2, 3, 4]);
    assert_eq!(driver.link.counters().drops_full, 4);
    assert_eq!(driver.link.packets(), 9);
    assert_eq!(driver.link.bytes(), 13_500);
}

#[test]
fn fq_codel_keeps_the_delay_of_a_sparse_flow_off_an_overload() {
    let config = FqCodelConfig { ecn: false, ..FqCodelConfig::new(1500) };
    let mut driver = driver(AqmConfig::FqCodel(config), 100_000);
    for n in 0..60_000 {
        let now = Time::from_us(5 * n);
        driver.arrive(now, Packet { flow: 1, ..data(now.0, 1500) });
        if n % 100 == 0 {
            driver.arrive(now, Packet { flow: 2, ..data(now.0, 100) });
        }
    }
    let sparse = driver.departed.iter().filter(|(_, packet)| packet.flow == 2);
    let waits: Vec<u64> = sparse.map(|&(at, packet)| at.0 - packet.word).collect();
    assert!(waits.len() > 500);
    // The packet in service, and its own time.
    assert!(waits.iter().all(|&wait| wait < 2 * PACKET.0));
    let (first, packet) = driver.dropped[0];
    assert_eq!(packet.flow, 1);
    // The overloading flow's own CoDel acts as a link's does.
    assert!((first.as_s() - 0.110).abs() < 0.001, "{first:?}");
}

/// `flows` flows over 1 Mbit/s, each with one packet on the way at all times: how many are dropped of 1000.
fn dropped_of_lone_packets(flows: u32) -> usize {
    let config = FqCodelConfig { ecn: false, ..FqCodelConfig::new(1500) };
    let mut driver = link(Rate(1_000_000), AqmConfig::FqCodel(config), 10_240, u64::MAX);
    (0..flows).for_each(|flow| driver.arrive(Time::ZERO, Packet { flow, ..data(0, 1500) }));
    for n in 1..1000 {
        // One packet leaves in 12 ms; its flow sends the next.
        let now = Time::from_ms(12 * n + 1);
        driver.run_to(now);
        let last = driver.departed.last().map_or(0, |(_, packet)| packet.flow);
        driver.arrive(now, Packet { flow: last, ..data(n, 1500) });
    }
    driver.dropped.len()
}

#[test]
fn fq_codel_takes_the_last_packet_of_a_flow_while_others_wait() {
    // Beside the packet that is taken and the one in service, two packets wait with four flows, and one with three.
    assert!(dropped_of_lone_packets(4) > 0);
    assert_eq!(dropped_of_lone_packets(3), 0);
}

#[test]
fn fq_codel_keeps_the_data_and_the_acks_of_a_flow_apart() {
    let mut driver = driver(AqmConfig::FqCodel(FqCodelConfig::new(1500)), 10_240);
    for n in 0..10 {
        driver.arrive(Time::ZERO, data(n, 1500));
    }
    driver.arrive(Time::ZERO, Packet { kind: PacketKind::Ack, ..data(99, 40) });
    driver.run_to(Time::from_s(1));
    assert_eq!(driver.words()[..3], [0, 99, 1]);
}

#[test]
fn impossible_parameters_are_refused() {
    let error = |config: AqmConfig| config.build(RATE, Time::ZERO, 0).map(|_| ()).expect_err("invalid");
    for (config, name) in [
        (FqCodelConfig { queues: 0, ..FqCodelConfig::default() }, "queues"),
        (FqCodelConfig { quantum: Some(Bytes(0)), ..FqCodelConfig::default() }, "quantum"),
    ] {
        let got = error(AqmConfig::FqCodel(config));
        assert_eq!(got.to_string(), format!("FQ-CoDel needs {name} above 0"));
    }
    let pie = PieConfig { update: Time::ZERO, ..PieConfig::default() };
    assert_eq!(error(AqmConfig::Pie(pie)), AqmError::Pie(PieError::Zero { name: "update" }));
    let zero = RedError::Zero { name: "mean_packet_bytes" };
    assert_eq!(error(AqmConfig::Red(RedConfig::classic(0))), AqmError::Red(zero));
}

/// A source of 1.25 times the link's rate for `seconds`: what PIE drops and marks of it, and the mean
/// delay, both after half of the time.
fn pie_equilibrium(config: PieConfig, ecn: Ecn, seconds: u64) -> (f64, f64, f64) {
    let mut driver = driver(AqmConfig::Pie(config), u64::MAX >> 8);
    for n in 0..seconds * 125_000 {
        if n == seconds * 125_000 / 2 {
            driver.run_to(Time::from_us(8 * n));
            driver.link.reset_counters(Time::ZERO);
        }
        driver.arrive(Time::from_us(8 * n), Packet { ecn, ..data(n, 1500) });
    }
    let counters = driver.link.counters();
    let arrivals = counters.arrivals as f64;
    (counters.drops_early as f64 / arrivals, counters.marks as f64 / arrivals, counters.mean_wait().as_s())
}

#[test]
fn pie_settles_where_the_load_left_is_what_the_link_can_send() {
    let (dropped, marked, delay_s) = pie_equilibrium(PieConfig::default(), Ecn::NotEct, 40);
    assert!((dropped - 0.2).abs() < 0.002, "{dropped}");
    assert_eq!(marked, 0.0);
    assert!((delay_s - 0.015).abs() < 0.0015, "{delay_s}");
}

#[test]
fn pie_never_drops_in_the_first_burst() {
    let mut driver = driver(AqmConfig::Pie(PieConfig::default()), 1 << 40);
    overload(&mut driver, Time::ZERO, Time::from_ms(149), Ecn::NotEct);
    assert_eq!(driver.dropped.len(), 0);
    overload(&mut driver, Time::from_ms(150), Time::from_ms(250), Ecn::NotEct);
    assert!(!driver.dropped.is_empty());
}

/// As in Linux: a queue that is full and drops every second packet marks none of the others.
#[test]
fn pie_marks_nothing_while_a_full_queue_drops() {
    let mut driver = driver(AqmConfig::Pie(PieConfig { ecn: true, ..PieConfig::default() }), 2_000);
    overload(&mut driver, Time::ZERO, Time::from_s(1), Ecn::Ect0);
    assert!(driver.dropped.len() > 90_000, "{}", driver.dropped.len());
    assert_eq!(driver.link.counters().marks, 0);
}
