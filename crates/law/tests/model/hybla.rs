//! Caini & Firrincieli: rho = RTT/25 ms; 2^rho - 1 a segment in slow start, rho^2/w after.

use crate::{assert_close, cases, window, Rig};
use lfn_law::Window;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_strays_by_less_than_its_card_says(w in window(1.0), rtt_ms in 1u64..2000, n in 1u32..100) {
        let mut rig = Rig::new("hybla", w);
        rig.ack.srtt_ns = rtt_ms * 1_000_000;
        let before = rig.cwnd();
        rig.ack(n);
        let rho = (rtt_ms as f64 / 25.0).max(1.0);
        let wanted = f64::from(n) * (rho * rho / before).min(1.0);
        let bound = wanted * (5e-5 + 1.6e-5 / before) + f64::from(n) * 3e-10 + 4e-9;
        prop_assert!((rig.cwnd() - before - wanted).abs() < bound, "{} of {wanted}", rig.cwnd() - before);
    }

    #[test]
    fn slow_start_strays_by_less_than_a_third_of_a_percent(rtt_ms in 1u64..390, n in 1u32..100) {
        let rho = (rtt_ms as f64 / 25.0).max(1.0);
        let wanted = f64::from(n) * (rho.exp2() - 1.0);
        prop_assert!((slow_start("hybla", rtt_ms, n, 1) - wanted).abs() < 0.003 * f64::from(n) * rho.exp2());
    }

    /// Linux counts ACKs, rho in eighths, and the power of an eighth in 128ths, rounded down; of them it keeps what is
    /// not a whole segment yet.
    #[test]
    fn linux_slow_start_is_exact(rtt_ms in 1u64..200, n in 1u32..100, acks in 1u32..50) {
        let eighths = (rtt_ms as f64 / 25.0).max(1.0) * 8.0;
        let (rho, eighth) = (eighths.floor() / 8.0, eighths.floor() % 8.0);
        let wanted = rho.floor().exp2() * (128.0 * (eighth / 8.0).exp2()).floor() / 128.0 - 1.0;
        prop_assert_eq!(slow_start("hybla:linux", rtt_ms, n, acks), (f64::from(acks) * wanted).floor());
    }
}

/// The growth of a window in slow start by ACKs of `n` segments, the sender's own slow start included.
fn slow_start(spec: &str, rtt_ms: u64, n: u32, acks: u32) -> f64 {
    let mut rig = Rig::new(spec, 200.0);
    rig.control.ssthresh = Window::INFINITE;
    rig.ack.srtt_ns = rtt_ms * 1_000_000;
    rig.ack.acked = n;
    rig.ack.newly_delivered = n;
    for _ in 0..acks {
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
        rig.control.cwnd = Window::of(rig.cwnd() + f64::from(n));
    }
    rig.cwnd() - 200.0
}

/// The rate grows by as much per second on every path longer than 25 ms: 1600 segments/s^2.
#[test]
fn the_rate_grows_as_that_of_a_short_path() {
    for rtt_ms in [25u64, 100, 500] {
        let mut rig = Rig::new("hybla", 2000.0);
        rig.ack.rtt_ns = rtt_ms * 1_000_000;
        rig.ack.srtt_ns = rig.ack.rtt_ns;
        let rounds = 10;
        for _ in 0..rounds {
            rig.round();
        }
        let rtt_s = rtt_ms as f64 / 1000.0;
        let growth = (rig.cwnd() - 2000.0) / rtt_s / (f64::from(rounds) * rtt_s);
        // A round ends where its window began, so growth lags as the window grows.
        assert_close(growth, 1600.0, if rtt_ms == 500 { 0.6 } else { 0.05 });
    }
}

/// As measured on Linux 6.12, 100 Mbit/s x 100 ms with delayed ACKs: 128ths of a segment an ACK.
#[test]
fn linux_counts_in_128ths_an_ack() {
    for (w, acks_a_segment) in [(900.0, 64), (1500.0, 128), (2047.0, 128), (3000.0, 3000)] {
        let mut rig = Rig::new("hybla:linux", w);
        for _ in 0..acks_a_segment {
            assert_eq!(rig.cwnd(), w);
            rig.ack(2);
        }
        assert_eq!(rig.cwnd(), w + 1.0);
    }
}
