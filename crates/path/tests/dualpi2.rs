//! DualPI2, PI2 and `ce_threshold` under load, against their closed forms.

mod common;

use common::{data, Driver};
use lfn_path::{AqmConfig, CodelConfig, DualPi2Config, Ecn, FqCodelConfig, Limit, Packet, Pi2Config};
use lfn_path::{ClassCounts, QueuedLink};
use lfn_units::{Rate, Time};

/// A packet of 1500 bytes takes 120 us.
const RATE: Rate = Rate(100_000_000);
const PACKET: Time = Time::from_us(120);

fn driver(aqm: AqmConfig) -> Driver {
    let aqm = aqm.for_packets(1500).build(RATE, Time::ZERO, 7).expect("valid");
    Driver::new(QueuedLink::new(RATE, aqm, Limit::packets(1 << 30), 1500))
}

/// Classic packets that take no notice, so many times what is left of the link by L4S packets at a tenth of its rate.
fn mixed(driver: &mut Driver, from: Time, load: f64, packets: u64) -> Time {
    let gap = Time((PACKET.0 as f64 / (0.9 * load)) as u64);
    let (mut now, mut l4s) = (from, from);
    for word in 0..packets {
        now = now + gap;
        while l4s < now {
            driver.arrive(l4s, Packet { ecn: Ecn::Ect1, ..data(word, 1500) });
            l4s = l4s + Time(10 * PACKET.0);
        }
        driver.arrive(now, data(word, 1500));
    }
    driver.run_to(now);
    driver.departed.clear();
    driver.dropped.clear();
    now
}

/// Of the L4S and the Classic packets.
fn counts(driver: &Driver) -> [ClassCounts; 2] {
    let classes = driver.link.classes(Time::ZERO).expect("DualPI2");
    [classes.l4s, classes.classic].map(|class| class.counts.clone())
}

/// RFC 9332 equation 1 over 100,000 L4S packets: p_C = p'^2, p_CL = 2 p'. The controller has to drop the excess of Classic
/// packets.
#[test]
fn l4s_packets_are_marked_with_twice_the_root_of_the_classic_probability() {
    for base in [0.025_f64, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45] {
        let wanted = base * base;
        let load = 1.0 / (1.0 - wanted);
        let mut driver = driver(AqmConfig::DualPi2(DualPi2Config::default()));
        let settled = mixed(&mut driver, Time::ZERO, load, 1_000_000);
        driver.link.reset_counters(settled);
        mixed(&mut driver, settled, load, 1_200_000);
        let [l, c] = counts(&driver);
        let p_c = c.drops as f64 / (c.packets + c.drops) as f64;
        let p_cl = l.marks as f64 / l.packets as f64;
        assert!(l.packets > 100_000 && l.drops == 0, "{l:?}");
        assert!((p_c / wanted - 1.0).abs() < 0.03, "{base}: dropped {p_c}, wanted {wanted}");
        assert!((p_cl / (2.0 * base) - 1.0).abs() < 0.03, "{base}: marked {p_cl}");
        let delay = c.delays.mean_s().expect("some left");
        assert!((delay - 0.015).abs() < 0.0015, "{base}: {delay}");
        assert!(l.delays.quantile_s(0.99).expect("some left") < 0.001, "{base}");
    }
}

/// L4S packets that take no notice: as much is dropped as of Classic packets, and these are not starved.
#[test]
fn an_overload_of_l4s_packets_is_dropped() {
    let mut driver = driver(AqmConfig::DualPi2(DualPi2Config::default()));
    let (mut now, mut classic) = (Time::ZERO, Time::ZERO);
    for word in 0..2_000_000 {
        now = now + Time(PACKET.0 / 2);
        driver.arrive(now, Packet { ecn: Ecn::Ect1, ..data(word, 1500) });
        if classic < now {
            classic = classic + Time(20 * PACKET.0);
            driver.arrive(now, Packet { ecn: Ecn::Ect0, ..data(word, 1500) });
        }
        if word == 1_000_000 {
            driver.run_to(now);
            driver.link.reset_counters(now);
        }
    }
    driver.run_to(now);
    let [l, c] = counts(&driver);
    let share = |of: &ClassCounts| of.drops as f64 / (of.drops + of.packets) as f64;
    // 2.05 times what the link can send: p_C = 1 - 1 / 2.05.
    assert!((share(&l) - 0.512).abs() < 0.005, "{}", share(&l));
    assert!((share(&c) - 0.512).abs() < 0.015, "{}", share(&c));
    assert!(l.marks > l.packets * 999 / 1000, "{} of {}", l.marks, l.packets);
}

#[test]
fn pi2_drops_the_excess_at_its_target() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut driver = driver(AqmConfig::Pi2(Pi2Config::default()));
        let mut now = Time::ZERO;
        for word in 0..1_000_000 {
            if word == 500_000 {
                driver.run_to(now);
                driver.link.reset_counters(now);
            }
            now = now + Time::from_us(100);
            driver.arrive(now, Packet { ecn, ..data(word, 1500) });
        }
        let counters = driver.link.counters();
        let dropped = counters.drops_early as f64 / counters.arrivals as f64;
        // Without `ecn` it drops what could be marked.
        assert!((dropped - 1.0 / 6.0).abs() < 0.002, "{dropped}");
        assert!((counters.mean_wait().as_s() - 0.015).abs() < 0.0015, "{}", counters.mean_wait());
        assert_eq!(counters.marks, 0);
    }
}

/// Marks do not end an overload: from a probability of a quarter on PI2 drops.
#[test]
fn pi2_marks_up_to_a_quarter() {
    let config = Pi2Config { ecn: true, ..Pi2Config::default() };
    let mut driver = driver(AqmConfig::Pi2(config));
    let mut now = Time::ZERO;
    for word in 0..500_000 {
        now = now + Time::from_us(60);
        driver.arrive(now, Packet { ecn: Ecn::Ect0, ..data(word, 1500) });
    }
    let marked = driver.departed.iter().position(|(_, packet)| packet.ecn == Ecn::Ce).expect("marks");
    let (dropped, _) = *driver.dropped.first().expect("drops");
    assert!(driver.departed[marked].0 < dropped);
    // Twice what the link can send.
    let dropped = driver.dropped.len() as f64 / 500_000.0;
    assert!((dropped - 0.5).abs() < 0.02, "{dropped}");
}

/// Packets that wait 0, 0.12, 0.24, ... ms at the threshold of 1 ms of the change's example, ECT(1) alone.
#[test]
fn ce_threshold_marks_what_waited_longer_and_the_selector_names() {
    let codel = CodelConfig { ce_threshold: Some(Time::from_ms(1)), ..CodelConfig::default() };
    let only = CodelConfig { ce_threshold_selector: 1, ce_threshold_mask: 3, ..codel };
    let fair = FqCodelConfig {
        ce_threshold: Some(Time::from_ms(1)),
        ce_threshold_selector: 1,
        ce_threshold_mask: 3,
        ecn: false,
        ..FqCodelConfig::default()
    };
    let late: Vec<u64> = (9..16).collect();
    let before = |ecn: Ecn| if ecn == Ecn::Ce { (0..16).collect() } else { Vec::new() };
    for (aqm, ecn, marked) in [
        (AqmConfig::Codel(codel), Ecn::Ect1, late.clone()),
        (AqmConfig::Codel(codel), Ecn::Ect0, late.clone()),
        (AqmConfig::Codel(codel), Ecn::NotEct, Vec::new()),
        (AqmConfig::Codel(only), Ecn::Ect1, late.clone()),
        (AqmConfig::Codel(only), Ecn::Ect0, Vec::new()),
        (AqmConfig::Codel(only), Ecn::Ce, before(Ecn::Ce)),
        (AqmConfig::FqCodel(fair), Ecn::Ect1, late),
        (AqmConfig::FqCodel(fair), Ecn::Ect0, Vec::new()),
        (AqmConfig::Codel(CodelConfig::default()), Ecn::Ect1, Vec::new()),
    ] {
        let mut driver = driver(aqm);
        for word in 0..16 {
            driver.arrive(Time::ZERO, Packet { ecn, ..data(word, 1500) });
        }
        driver.run_to(Time::from_s(1));
        let ce = driver.departed.iter().filter(|(_, packet)| packet.ecn == Ecn::Ce);
        assert_eq!(ce.map(|(_, packet)| packet.word).collect::<Vec<_>>(), marked, "{aqm:?} {ecn:?}");
        assert_eq!(driver.link.counters().marks, (marked.len() % 16) as u64);
    }
}
