//! HTCP-BE: w += abar(D)/w a segment, and bwe rtt_min at a loss.

use crate::htcp::{abar, follow};
use crate::westwood::Bandwidth;
use crate::{cases, Rig};
use lfn_law::LossKind;
use proptest::prelude::*;

const MS_NS: u64 = 1_000_000;

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_window_strays_by_less_than_1_3_percent(
        w in (100f64.log2()..17.0).prop_map(f64::exp2),
        rtt_ms in 10u64..300,
        epoch_s in 0f64..30.0,
    ) {
        let mut rig = Rig::new("htcp-be", w);
        rig.ack.rtt_ns = rtt_ms * MS_NS;
        let (found, wanted) = follow(&mut rig, 1.0, epoch_s, 50);
        prop_assert!((found / wanted - 1.0).abs() < 0.013, "{found}, not {wanted}");
    }

    /// Any stream of ACKs, then a loss; what it keeps, and what `scaled` and `floor` make of it.
    #[test]
    fn a_loss_follows_equation_18(
        w in (10f64.log2()..20.0).prop_map(f64::exp2),
        rtt_ms in 10u64..300,
        acks in prop::collection::vec((1u32..100, 1u64..20_000), 100..1000),
        d_ms in 0u64..20_000,
    ) {
        for spec in ["htcp-be", "htcp-be:literal", "htcp-be:scaled", "htcp-be:floor"] {
            let mut rig = Rig::new(spec, w);
            rig.ack.rtt_ns = rtt_ms * MS_NS;
            let mut model = Bandwidth::new(&rig, false);
            for &(n, step_us) in &acks {
                rig.ack.now_ns += step_us * 1000;
                model.ack(&rig, n);
                rig.ack.newly_delivered = n;
                rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
            }
            let before = rig.cwnd();
            let kept = match model.bytes_per_s {
                0.0 => before / 2.0,
                bytes_per_s => bytes_per_s * rtt_ms as f64 / 1e3 / 1448.0,
            };
            let wanted = match spec {
                "htcp-be:literal" => kept,
                "htcp-be:floor" => kept.clamp(before / 2.0, before),
                _ => kept.min(before),
            }
            .max(2.0);
            rig.lose();
            // 11 bytes/s for up to 300 ms and a byte, in segments.
            prop_assert!((rig.cwnd() - wanted).abs() < 4.5 / 1448.0, "{spec}: {}, not {wanted}", rig.cwnd());

            rig.ack.now_ns += d_ms * MS_NS;
            rig.ack(1);
            let share = match spec {
                "htcp-be:scaled" => 2.0 * (1.0 - (wanted / before).clamp(0.5, 0.8)),
                _ => 1.0,
            };
            let d_s = d_ms as f64 / 1e3;
            let (found, wanted) = (rig.probes()[0] as f64 / 65536.0, share * abar(d_s));
            let low = wanted - 0.013 - 0.0011 * (d_s - 1.0).max(0.0);
            prop_assert!(found > low && found < wanted * 1.01, "{spec}: alpha {found}, not {wanted}");
        }
    }
}

/// ACKs of `count` windows of 1000 segments, in which one segment of `every` is lost; how often the law cut.
fn cuts(every: u32, count: u32) -> u32 {
    // Twice the BDP, so that a cut shows.
    let mut rig = Rig::new("htcp-be:hold", 2000.0);
    rig.ack.rtt_ns = 40 * MS_NS;
    let mut cuts = 0;
    let mut lost = 0;
    for i in 0..count * 1000 {
        rig.ack.now_ns += 40_000;
        rig.ack.newly_lost = u32::from(i % every == 0);
        lost += rig.ack.newly_lost;
        rig.ack(1);
        // Losses of a window of data are one event.
        if i % 1000 == 999 && lost > 0 {
            cuts += u32::from(rig.lose() < 0.999);
            rig.control.cwnd = lfn_law::Window::whole(2000);
            rig.control.ssthresh = rig.control.cwnd;
            lost = 0;
        }
    }
    cuts
}

#[test]
fn hold_holds_below_one_loss_in_a_thousand() {
    assert_eq!(cuts(10_000, 500), 0);
    assert_eq!(cuts(1_100, 500), 0);
    // At one in 900 the bucket gains 100 for each, and holds 16,000 after 160.
    assert!(cuts(900, 500) >= 2);
    // At one in 100 it is full after some 1,800 segments.
    assert!(cuts(100, 500) >= 200);
}

/// A burst that comes during the episode is answered at its end.
#[test]
fn hold_answers_a_burst_at_the_end_of_its_episode() {
    for (lost, kept) in [(5, 1000.0), (40, 500.0)] {
        let mut rig = Rig::new("htcp-be:hold", 1000.0);
        rig.ack.rtt_ns = 40 * MS_NS;
        // 12,500 segments/s: a BDP of 500.
        for _ in 0..100_000 {
            rig.ack.now_ns += 80_000;
            rig.ack.newly_delivered = 1;
            rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
        }
        let loss = rig.loss(LossKind::Fast);
        rig.law.on_loss(&loss, &mut rig.control);
        assert_eq!(rig.control.ssthresh, lfn_law::Window::whole(1000));
        rig.ack.newly_lost = lost;
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
        rig.law.on_open(&rig.ack, &mut rig.control);
        crate::assert_close(rig.cwnd(), kept, 0.01);
    }
}
