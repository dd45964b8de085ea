//! UDT's own control against the arithmetic of its specification.

use lfn_udt::{CongestionControl, ControlSpec, Native, NativeConfig, Path, SYN};
use lfn_units::Time;

const MSS: u32 = 1500;

fn variant(name: &str) -> NativeConfig {
    format!("udt:{name}").parse::<ControlSpec>().unwrap().native().unwrap()
}

fn native(name: &str) -> Native {
    Native::new(variant(name), 7, Time::ZERO)
}

fn path(now: Time, rate_bps: f64) -> Path {
    Path {
        now,
        mss_bytes: MSS,
        max_window_packets: 25_600,
        rtt: Time::from_ms(100),
        arrival_pps: 0,
        capacity_pps: (rate_bps / 8.0 / f64::from(MSS)).round() as u32,
        next: 0,
        acked: 0,
    }
}

fn rate_bps(native: &Native) -> f64 {
    f64::from(MSS) * 8.0 / native.period().as_s()
}

/// Ends slow start at packet 10 with an arrival speed of `pps`; 1,000 packets are in flight.
fn leave_slow_start(native: &mut Native, pps: u32) {
    native.on_loss(10, 1, &Path { arrival_pps: pps, next: 1_000, ..path(Time::from_ms(1), 1e9) });
}

#[test]
fn increase_table() {
    let table = |name, mss: u32, spare_bps: &[f64]| -> Vec<f64> {
        let packets = |bps: &f64| (bps / 8.0 / f64::from(mss)).floor() as i64;
        spare_bps.iter().map(|bps| native(name).increase(packets(bps), mss)).collect()
    };
    let close = |got: Vec<f64>, expected: &[f64]| {
        assert!(
            got.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-9),
            "{got:?}, not {expected:?}"
        );
    };
    let spare = [1e10, 1e9, 1e8, 1e7, 1e6, 0.0, -1e9];
    close(table("4.11", 1500, &spare), &[10.0, 1.0, 0.1, 0.01, 0.01, 0.01, 0.01]);
    let jumbo = [15e-6 / 9.0 * 1e6, 1.5 / 9.0, 0.15 / 9.0, 0.01, 0.01, 0.01, 0.01];
    close(table("4.11", 9000, &spare), &jumbo);
    let floor = 1.0 / 1500.0;
    close(table("4.10", 1500, &spare), &[10.0, 1.0, 0.1, 0.01, 0.001, floor, floor]);
    // A decade ends at its power of ten: one packet a second more is in the next.
    let b = (1e9 / 8.0 / 1500.0) as i64 + 1;
    close(vec![native("4.11").increase(b, 1500)], &[10.0]);
}

/// Seconds from almost nothing to 90 % of the capacity, without loss.
fn ramp_s(capacity_bps: f64) -> f64 {
    let mut native = native("4.11");
    leave_slow_start(&mut native, 1);
    let begin = Time::from_ms(10);
    let mut now = begin;
    while rate_bps(&native) < 0.9 * capacity_bps {
        now = now + SYN;
        native.on_ack(false, &path(now, capacity_bps));
    }
    (now - begin).as_s()
}

#[test]
fn ramp_to_90_percent_takes_7_5_s_at_powers_of_ten_and_a_minute_at_800_mbit() {
    for capacity_bps in [1e8, 1e9, 1e10] {
        let s = ramp_s(capacity_bps);
        assert!((s - 7.5).abs() < 0.03, "{s} s at {capacity_bps} bit/s");
    }
    // A ninth of it lies in a lower decade.
    let s = ramp_s(8e8);
    assert!((s - 59.9).abs() < 0.2, "{s} s");
}

#[test]
fn slow_start_counts_one_more_than_acknowledged_and_ends_beyond_the_peers_window() {
    let mut native = native("4.11");
    assert_eq!((native.window_packets(), native.period()), (16, Time::from_us(1)));
    let at = |ms, acked, pps| Path { acked, arrival_pps: pps, ..path(Time::from_ms(ms), 1e9) };
    native.on_ack(false, &at(10, 16, 0));
    assert_eq!(native.window_packets(), 33);
    // Within 10 ms of the last one, and light ones: no.
    native.on_ack(false, &at(19, 30, 0));
    native.on_ack(true, &at(30, 30, 0));
    assert_eq!(native.window_packets(), 33);
    native.on_ack(false, &at(40, 25_582, 50_000));
    assert_eq!(native.window_packets(), 33 + 25_567);
    assert_eq!(native.period(), Time::from_us(1));
    native.on_ack(false, &at(50, 25_583, 50_000));
    // 20 µs by the speed of arrival, then one increase at once (83,333 - 50,000 packets/s spare; a ninth
    // counts, since the period grew).
    let inc = 1.0;
    let period_us = 20.0 * 1e4 / (20.0 * inc + 1e4);
    assert_eq!(native.period(), Time((period_us * 1e6) as u64));
    native.on_ack(false, &at(60, 30_000, 50_000));
    assert_eq!(native.window_packets(), 50_000 * 110 / 1000 + 16);
}

#[test]
fn without_a_speed_slow_start_ends_at_a_window_a_round_trip_and_libudt_has_it_upside_down() {
    let after = |name| {
        let mut native = native(name);
        native.on_timeout(&path(Time::from_ms(5), 1e9));
        native.period()
    };
    assert_eq!(after("4.11"), Time(110_000_000_000 / 16));
    assert_eq!(after("compat"), Time((16.0 / 110_000.0 * 1e6) as u64));
}

#[test]
fn a_timeout_after_slow_start_cuts_nothing() {
    let mut native = native("4.11");
    leave_slow_start(&mut native, 10_000);
    native.on_timeout(&path(Time::from_ms(5), 1e9));
    assert_eq!(native.period(), Time::from_us(100));
}

/// The rate after `naks` NAKs of one epoch, as a part of that before.
fn epoch(native: &mut Native, naks: u64) -> f64 {
    let before = rate_bps(native);
    for nak in 0..naks {
        // The first lies beyond what was sent; nothing new is sent meanwhile.
        native.on_loss(2_000 - nak, 1, &Path { next: 2_001, ..path(Time::from_ms(20), 1e9) });
    }
    rate_bps(native) / before
}

#[test]
fn an_epoch_cuts_at_most_five_times() {
    let mut native = native("4.11");
    leave_slow_start(&mut native, 10_000);
    // The first epoch has no history, so every NAK counts until the fifth.
    let part = epoch(&mut native, 1_000);
    assert!((part - (8.0f64 / 9.0).powi(5)).abs() < 1e-6, "{part}");
}

#[test]
fn cuts_spread_over_the_naks_of_the_epoch_before() {
    let mut cuts = Vec::new();
    for seed in 0..200 {
        let mut native = Native::new(variant("4.11"), seed, Time::ZERO);
        leave_slow_start(&mut native, 10_000);
        for round in 0..20u64 {
            let sent = 2_001 + 1_000 * round;
            let before = rate_bps(&native);
            for nak in 0..50 {
                let path = Path { next: sent, ..path(Time::from_ms(20 + round), 1e9) };
                native.on_loss(sent - 1 - nak, 1, &path);
            }
            let part = rate_bps(&native) / before;
            cuts.push((part.ln() / (8.0f64 / 9.0).ln()).round() as u32);
        }
    }
    // Of four NAKs after the first, every one cuts, or one in 2, 3, 4 or 5 counted with the first.
    assert_eq!((cuts.iter().min(), cuts.iter().max()), (Some(&2), Some(&5)));
}

#[test]
fn a_loss_suppresses_the_next_increase() {
    let mut native = native("4.11");
    leave_slow_start(&mut native, 10_000);
    native.on_loss(2_000, 1, &Path { next: 2_001, ..path(Time::from_ms(5), 1e9) });
    let cut = native.period();
    assert_eq!(cut, Time((112.5 * 1e6) as u64));
    native.on_ack(false, &path(Time::from_ms(20), 1e9));
    assert_eq!(native.period(), cut);
    native.on_ack(false, &path(Time::from_ms(30), 1e9));
    assert!(native.period() < cut);
}

/// Seconds after one cut from full rate at 1 Gbit/s until `part` of it is back.
fn recovery_s(name: &str, part: f64) -> f64 {
    let mut native = native(name);
    leave_slow_start(&mut native, 83_333);
    native.on_loss(2_000, 1, &Path { next: 2_001, ..path(Time::from_ms(5), 1e9) });
    let mut now = Time::from_ms(10);
    native.on_ack(false, &path(now, 1e9));
    let begin = now;
    while rate_bps(&native) < part * 1e9 {
        now = now + SYN;
        native.on_ack(false, &path(now, 1e9));
    }
    (now - begin).as_s()
}

#[test]
fn libudts_whole_microseconds_cost_time() {
    // 12 µs becomes 14.
    let (most, nearly) = (recovery_s("compat", 0.95), recovery_s("compat", 0.99));
    assert!((most - 4.5).abs() < 0.2, "{most}");
    assert!((nearly - 7.8).abs() < 0.2, "{nearly}");
    // At 10 Gbit/s, 1.2 µs becomes 2.
    let mut native = native("compat");
    leave_slow_start(&mut native, 833_333);
    native.on_loss(2_000, 1, &Path { next: 2_001, ..path(Time::from_ms(5), 1e10) });
    assert_eq!(native.period(), Time::from_us(2));
}

#[test]
fn a_warning_stretches_the_period_by_an_eighth() {
    let mut native = native("4.11");
    leave_slow_start(&mut native, 10_000);
    native.on_warning(&path(Time::from_ms(5), 1e9));
    assert_eq!(native.period(), Time((112.5 * 1e6) as u64));
}

#[test]
fn older_versions_freeze() {
    for (name, period_us) in [("4.10", 112.5), ("3.0", 100.0), ("2", 112.5)] {
        let mut native = native(name);
        leave_slow_start(&mut native, 10_000);
        native.on_loss(2_000, 1, &Path { next: 2_001, ..path(Time::from_ms(5), 1e9) });
        assert_eq!(native.period(), Time((period_us * 1e6) as u64), "{name}");
        let silent = if name == "4.10" { Time::ZERO } else { Time::from_ms(15) };
        assert_eq!(native.silent_until(), silent, "{name}");
    }
}

#[test]
fn udt_2_smooths_the_window_and_holds_back_under_loss_and_an_idle_application() {
    let mut native = native("2");
    leave_slow_start(&mut native, 10_000);
    let at = |ms| Path { arrival_pps: 10_000, ..path(Time::from_ms(ms), 1e9) };
    let sent = |native: &mut Native, packets: u64| (0..packets).for_each(|i| native.on_sent(i, &at(0)));
    sent(&mut native, 100);
    native.on_ack(false, &at(10));
    // 7/8 of 16 and 1/8 of what arrives in RTT + SYN; the loss that ended slow start forbids an increase.
    assert_eq!(native.window_packets(), (0.875f64 * 16.0 + 0.125 * 1_100.0).ceil() as u64);
    assert_eq!(native.period(), Time::from_us(100));
    sent(&mut native, 100);
    native.on_ack(false, &at(20));
    assert!(native.period() < Time::from_us(100));
    // Ten packets in 10 ms: half their period is the least.
    sent(&mut native, 10);
    native.on_ack(false, &at(30));
    assert_eq!(native.period(), Time::from_us(500));
}
