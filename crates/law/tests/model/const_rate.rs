//! Floyd 1991: c RTT^2 a round trip, c = 4; or c RTT.

use crate::{assert_close, cases, window, Rig};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn growth_strays_by_less_than_its_card_says(w in window(1.0), rtt_ms in 1u64..10_000) {
        let rtt_s = rtt_ms as f64 / 1000.0;
        for (spec, gain) in [("const-rate", 4.0 * rtt_s * rtt_s), ("const-rate:window", 4.0 * rtt_s)] {
            let mut rig = Rig::new(spec, w);
            rig.ack.srtt_ns = rtt_ms * 1_000_000;
            let before = rig.cwnd();
            rig.ack(1);
            let wanted = (gain / before).min(1.0);
            let bound = wanted * 2e-5 + 2f64.powi(-16) / before + 4e-9;
            prop_assert!((rig.cwnd() - before - wanted).abs() < bound, "{spec}: {} of {wanted}", rig.cwnd() - before);
            prop_assert!((rig.lose() - 0.5f64.max(2.0 / rig.cwnd().max(4.0))).abs() < 1e-6 || w < 4.0);
        }
    }
}

/// Two flows that lose together, RTTs of 60 and 120 ms: rates 1 : 1 (`rate`) and 2 : 1 (`window`).
#[test]
fn rtt_unfairness_has_the_exponents_of_the_vector_model() {
    for (spec, ratio) in [("const-rate", 1.0), ("const-rate:window", 2.0)] {
        let rtts = [0.06, 0.12];
        let mut flows = [Rig::new(spec, 900.0), Rig::new(spec, 300.0)];
        let mut next_s = [0.0; 2];
        let mut sent = [0.0; 2];
        let rate = |flows: &[Rig; 2], i: usize| flows[i].cwnd() / rtts[i];
        while next_s[0] < 40_000.0 {
            let i = usize::from(next_s[1] < next_s[0]);
            flows[i].ack.rtt_ns = (rtts[i] * 1e9) as u64;
            flows[i].ack.srtt_ns = flows[i].ack.rtt_ns;
            // The ACKs of a round trip in one: growth is the same to the second order.
            let w = flows[i].cwnd();
            flows[i].ack(w as u32);
            next_s[i] += rtts[i];
            if next_s[i] > 20_000.0 {
                sent[i] += w;
            }
            if rate(&flows, 0) + rate(&flows, 1) > 12_500.0 {
                flows.iter_mut().for_each(|flow| _ = flow.lose());
            }
        }
        assert_close(sent[0] / sent[1], ratio, 0.03);
    }
}
