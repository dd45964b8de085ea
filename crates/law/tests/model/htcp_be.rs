//! HTCP-BE: w += abar(D)/w a segment, and bwe rtt_min at a loss.

use crate::htcp::{abar, follow};
use crate::westwood::Bandwidth;
use crate::{cases, Rig};
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
                rig.law.on_sample(&rig.ack, &mut rig.control);
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
