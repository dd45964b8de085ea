//! RFC 3649 sections 5 and 7: b(w) linear in log w, a(w) = w^2 p(w) 2b(w)/(2 - b(w)).

use crate::{assert_close, cases, window, Rig, Sawtooth};
use lfn_law::{Config, Control, Loss, LossKind, Window};
use proptest::prelude::*;

const VARIANTS: [&str; 4] = ["hstcp:loglog", "hstcp:rfc", "hstcp:ns2", "hstcp:converge"];

/// p(w) of a variant.
fn p(spec: &str, w: f64) -> f64 {
    let line = |low_p: f64| {
        let slope = (1e-7f64.ln() - low_p.ln()) / (83000f64.ln() - 38f64.ln());
        (low_p.ln() + (w.ln() - 38f64.ln()) * slope).exp()
    };
    match spec {
        "hstcp:loglog" | "hstcp:converge" => line(1e-3),
        "hstcp:rfc" => 1.0 / (12.8 * w.powf(1.2)),
        "hstcp:ns2" => line(1.5 / (38.0 * 38.0)),
        _ => unreachable!(),
    }
}

fn b_unclamped(w: f64) -> f64 {
    0.5 - 0.4 * (w / 38.0).ln() / (83000f64 / 38.0).ln()
}

fn b(w: f64) -> f64 {
    b_unclamped(w).clamp(0.05, 0.5)
}

pub fn a(spec: &str, w: f64) -> f64 {
    if w <= 38.0 {
        return 1.0;
    }
    (w * w * p(spec, w) * 2.0 * b(w) / (2.0 - b(w))).max(1.0)
}

/// a and b that the law uses at a window of `w`.
fn probe(spec: &str, w: f64) -> (f64, f64) {
    let [a, b, ..] = Rig::new(spec, w).probes();
    (a as f64 / 65536.0, b as f64 / 65536.0)
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_strays_by_less_than_1e_4_of_itself(w in window(1.0)) {
        for spec in VARIANTS {
            let mut rig = Rig::new(spec, w);
            let before = rig.cwnd();
            rig.ack(1000);
            let found = (rig.cwnd() - before) / 1000.0 * before;
            // The resolution of a Q32 increment in a(w).
            let bound = 1e-4 * a(spec, w) + w * 2e-10;
            prop_assert!((found - a(spec, w)).abs() < bound, "{}({}): {}", spec, w, found);
        }
    }

    #[test]
    fn b_strays_by_less_than_1e_5(w in window(4.0)) {
        let found = 1.0 - Rig::new("hstcp", w).lose();
        prop_assert!((found - b(w)).abs() < 1e-5, "b({}) = {}", w, found);
    }
}

#[test]
fn round_trips_follow_the_model() {
    for spec in VARIANTS {
        for (start, rounds) in
            [(2.0, 50), (30.0, 50), (100.0, 50), (5_000.0, 50), (80_000.0, 5), (300_000.0, 1)]
        {
            let (mut rig, mut w) = (Rig::new(spec, start), start);
            for _ in 0..rounds {
                for _ in 0..rig.round() {
                    w += a(spec, w) / w;
                }
            }
            assert_close(rig.cwnd() - start, w - start, 4e-4);
        }
    }
}

#[test]
fn known_values() {
    // w, b, then a for the rfc, loglog and ns2 forms of p(w), and p loglog.
    const TABLE: [(f64, f64, f64, f64, f64, f64); 13] = [
        (38.0, 0.5, 1.0, 1.0, 1.0, 1.0000e-3),
        (50.0, 0.485723, 1.14599, 1.15448, 1.19762, 7.1983e-4),
        (118.0, 0.441054, 2.00903, 2.02764, 2.09449, 2.5736e-4),
        (221.0, 0.408411, 3.01023, 3.04220, 3.13277, 1.2137e-4),
        (347.0, 0.384940, 4.01133, 4.05785, 4.16934, 7.0697e-5),
        (495.0, 0.366460, 5.01651, 5.07855, 5.20892, 4.6196e-5),
        (663.0, 0.351258, 6.01873, 6.09699, 6.24446, 3.2552e-5),
        (851.0, 0.338272, 7.02214, 7.11724, 7.28039, 2.4139e-5),
        (1058.0, 0.326945, 8.02368, 8.13614, 8.31369, 1.8597e-5),
        (1284.0, 0.316874, 9.02488, 9.15518, 9.34600, 1.4748e-5),
        (10661.0, 0.206763, 30.05334, 30.62578, 30.93838, 1.1685e-6),
        (83000.0, 0.1, 70.84821, 72.51579, 72.51579, 1.0000e-7),
        (84035.0, 0.099355, 71.06869, 72.74338, 72.73892, 9.8526e-8),
    ];
    for (w, b_known, rfc, loglog, ns2, p_known) in TABLE {
        assert_close(p("hstcp:loglog", w), p_known, 1e-4);
        for (spec, a_known) in VARIANTS.into_iter().zip([loglog, rfc, ns2]) {
            assert_close(a(spec, w), a_known, 1e-5);
            let (a_law, b_law) = probe(spec, w);
            assert_close(a_law, a_known, 1e-4);
            assert!((b_law - b_known).abs() < 3e-5, "{spec}: b({w}) = {b_law}");
            // Q16
        }
    }
}

/// RFC 3649 appendix B: a row wherever a(w) has grown by more than 1 since the last.
fn table() -> Vec<(f64, f64)> {
    let (mut rows, mut last) = (vec![(38.0, b(38.0))], 1.0);
    for w in (38..=94_717).map(f64::from) {
        let a = w * w * p("hstcp:rfc", w) * 2.0 * b_unclamped(w) / (2.0 - b_unclamped(w));
        if a > last + 1.0 {
            rows.push((w, b(w)));
            last = a;
        }
    }
    rows
}

#[test]
fn the_table_is_the_rfcs_and_linux_has_all_rows_but_the_last() {
    let rows = table();
    assert_eq!(rows.len(), 73);
    assert_eq!((rows[1].0, rows[72].0), (118.0, 94_717.0));
    for (i, &(w, b)) in rows[..72].iter().enumerate() {
        let at = |w: f64| {
            let mut rig = Rig::new("hstcp:linux", w);
            rig.ack(1);
            let [a, b, ..] = rig.probes();
            (a >> 16, b >> 8)
        };
        let md = (256.0 * b).floor() as u64;
        assert_eq!(at(w), (i as u64 + 1, md), "row of {w}");
        if i < 71 {
            assert_eq!(at(w + 1.0).0, i as u64 + 2, "row above {w}");
        }
    }
}

#[test]
fn growth_from_one_segment_is_that_of_rfc_3649_table_6() {
    const KNOWN: [(u32, f64); 6] =
        [(100, 131.0), (200, 475.0), (500, 3601.0), (1000, 17409.0), (1500, 41336.0), (2000, 72754.0)];
    // One step of a(w) a round trip: in the model from a window of 1 in round trip 1; in the law,
    // carrying fractions of a segment, from 38, where it leaves Reno.
    let (mut w, mut rig, mut segments) = (1.0, Rig::new("hstcp:rfc", 38.0), 0.0);
    for rtt in 2..=2000 {
        w += a("hstcp:rfc", w);
        if rtt > 38 {
            segments += rig.cwnd();
            rig.ack(segments as u32);
            segments = segments.fract();
        }
        if let Some((_, known)) = KNOWN.iter().find(|(at, _)| *at == rtt) {
            assert!((w - known).abs() <= 1.0, "model: {w} after {rtt} round trips");
            // The fraction carried delays at most one segment, worth 1/38 at the start.
            assert!((rig.cwnd() - w).abs() <= known * 1e-4 + 0.03, "{} after {rtt}, model {w}", rig.cwnd());
        }
    }
}

#[test]
fn sawtooth_of_the_formula() {
    // Peak, round trips, loss rate, mean window, simulated in whole round trips.
    const KNOWN: [(f64, f64, f64, f64); 3] = [
        (1_000.0, 48.0, 2.525e-5, 825.0),
        (10_000.0, 77.0, 1.457e-6, 8_916.0),
        (90_000.0, 121.0, 9.65e-8, 85_645.0),
    ];
    for (peak, rtts, loss_rate, mean) in KNOWN {
        let saw = Sawtooth::measure("hstcp:rfc", peak);
        assert_close(saw.mean, mean, 0.01);
        assert!((0.0..=1.0).contains(&(rtts - saw.rtts)), "{peak}: {} round trips", saw.rtts);
        assert_close(1.0 / saw.segments, loss_rate, 1.0 / rtts);
    }
}

#[test]
fn sawtooth_of_the_linux_table() {
    // a segments a round trip in row a of the table, from what its peak's row leaves.
    for peak in [1_000.0, 10_000.0, 80_000.0] {
        let rows = table();
        let row = rows.iter().position(|&(w, _)| w >= peak).unwrap();
        let low = peak - (peak * (256.0 * rows[row].1).floor() / 256.0).floor();
        let (mut rtts, mut segments, mut from) = (0.0, 0.0, low);
        for (i, &(w, _)) in rows.iter().enumerate().filter(|(_, (w, _))| *w > low) {
            let (to, a) = (w.min(peak), i as f64 + 1.0);
            rtts += (to - from).max(0.0) / a;
            segments += (to * to - from * from).max(0.0) / (2.0 * a);
            from = to;
        }
        let saw = Sawtooth::measure("hstcp:linux", peak);
        assert_close(saw.rtts, rtts, 0.005);
        assert_close(saw.segments, segments, 0.005);
    }
}

#[test]
fn response_function_is_that_of_rfc_3649_table_3() {
    const KNOWN: [(f64, f64); 6] =
        [(1e-3, 38.0), (1e-4, 263.0), (1e-5, 1795.0), (1e-6, 12279.0), (1e-7, 83981.0), (1e-8, 574356.0)];
    for (loss_rate, w) in KNOWN {
        // The RFC's own rounding: W = 0.12/p^0.835 against the line through (83000, 1e-7).
        assert_close(p("hstcp:loglog", w), loss_rate, 0.016);
    }
}

#[test]
fn ns2_halves_first_in_slow_start_and_after_a_timeout() {
    let spec: lfn_law::LawSpec = "hstcp:ns2".parse().unwrap();
    let mut control = Control::new(10_000);
    let mut law = spec.build(&Config::default(), &mut control);
    let mut kept = |kind, ssthresh| {
        control.cwnd = Window::whole(10_000);
        control.ssthresh = ssthresh;
        law.on_loss(&Loss { kind, ..Loss::default() }, &mut control);
        control.ssthresh.segments() / control.cwnd.segments()
    };
    let full = 1.0 - b(10_000.0);
    assert_close(kept(LossKind::Fast, Window::ONE), 0.5, 1e-9); // the first decrease
    assert_close(kept(LossKind::Fast, Window::ONE), full, 1e-4);
    assert_close(kept(LossKind::Fast, Window::INFINITE), 0.5, 1e-9); // in slow start
    assert_close(kept(LossKind::Rto, Window::ONE), full, 1e-4);
    assert_close(kept(LossKind::Fast, Window::ONE), 0.5, 1e-9); // after a timeout
    assert_close(kept(LossKind::Ecn, Window::ONE), full, 1e-4);
}

/// The windows that events find, and what they keep: converge gives up half at the end of a trend.
#[test]
fn converge_finds_downward_trends() {
    // EVCP's own vectors: a trend; one too flat, which restarts after ten falls; a rise between.
    let flat: Vec<f64> =
        [8000.0, 7900.0].into_iter().chain((0..9).map(|i| 7850.0 - 10.0 * f64::from(i))).collect();
    for (windows, half_at) in [
        (vec![8000.0, 7600.0, 7400.0, 7300.0, 7000.0], Some(2)),
        (flat, None),
        (vec![8000.0, 7600.0, 7700.0, 7690.0], None),
        (vec![30.0, 20.0, 19.0, 15.0], None),
    ] {
        let mut rig = Rig::new("hstcp:converge", 8000.0);
        for (i, w) in windows.into_iter().enumerate() {
            rig.control.cwnd = Window::of(w);
            let kept = if half_at == Some(i) { 0.5 } else { 1.0 - b(w) };
            assert_close(rig.lose(), kept, 1e-4);
        }
    }
}
