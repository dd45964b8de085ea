//! Pan, Su, Lü & Ping 2006: HSTCP's a(w) times c RTT, and k = floor(c RTT) + 1 blocks a round trip.

use crate::{assert_close, cases, hstcp, window, Rig};
use proptest::prelude::*;

const LOW_WINDOW: f64 = 38.0;

fn eta(spec: &str, w: f64, rtt_s: f64) -> f64 {
    match spec {
        "cw-hstcp:c5" => 5.0 * rtt_s,
        "cw-hstcp:c20" => 20.0 * rtt_s,
        "cw-hstcp:c=7.5" => 7.5 * rtt_s,
        "cw-hstcp:floor:c=2" => (2.0 * rtt_s).max(1.0),
        "cw-hstcp:floor" => (10.0 * rtt_s).max(1.0),
        "cw-hstcp:above" if w <= LOW_WINDOW => 1.0,
        _ => 10.0 * rtt_s,
    }
}

const VARIANTS: [&str; 8] = [
    "cw-hstcp",
    "cw-hstcp:c5",
    "cw-hstcp:c20",
    "cw-hstcp:c=7.5",
    "cw-hstcp:floor:c=2",
    "cw-hstcp:floor",
    "cw-hstcp:above",
    "cw-hstcp:unpaced",
];

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn growth_strays_by_less_than_its_card_says(w in window(1.0), rtt_ms in 1u64..10_000) {
        for spec in VARIANTS {
            let mut rig = Rig::new(spec, w);
            rig.ack.srtt_ns = rtt_ms * 1_000_000;
            let before = rig.cwnd();
            rig.ack(1);
            let eta = eta(spec, before, rtt_ms as f64 / 1000.0);
            let wanted = (eta * hstcp::a("hstcp:ns2", before) / before).min(1.0);
            // The resolution of a(w)/w, times eta, and that of the window.
            let bound = 1e-4 * wanted + (eta + 2.0) * 2.5e-10 + 4e-9;
            prop_assert!((rig.cwnd() - before - wanted).abs() < bound, "{spec}: {} of {wanted}", rig.cwnd() - before);
        }
    }

    #[test]
    fn a_loss_takes_what_hstcp_would(w in window(4.0)) {
        prop_assert!((Rig::new("cw-hstcp", w).lose() - Rig::new("hstcp", w).lose()).abs() < 1e-12);
    }

    #[test]
    fn blocks_hold_a_window_and_no_more(w in window(1.0), rtt_ms in 1u64..10_000) {
        let mut rig = Rig::new("cw-hstcp", w);
        rig.ack.srtt_ns = rtt_ms * 1_000_000;
        rig.ack(1);
        let (segments, blocks) = (rig.cwnd() as u32, rig.control.blocks);
        prop_assert_eq!(blocks, ((rtt_ms / 100 + 1) as u32).min(segments));
        let block = if blocks > 1 { segments.div_ceil(blocks) } else { 0 };
        prop_assert_eq!(rig.control.block, block);
    }
}

/// Flows that lose together, without a queue: shares of the link at the end of a long time.
fn shares(spec: &str, rtts_s: &[f64], rate_pps: f64) -> Vec<f64> {
    let mut flows: Vec<Rig> = rtts_s.iter().map(|_| Rig::new(spec, 500.0)).collect();
    let (mut next_s, mut sent) = (vec![0.0; flows.len()], vec![0.0; flows.len()]);
    loop {
        let i = (0..flows.len()).min_by(|&a, &b| f64::total_cmp(&next_s[a], &next_s[b])).unwrap();
        if next_s[i] > 3000.0 {
            return sent.iter().map(|x| x / sent.iter().sum::<f64>()).collect();
        }
        flows[i].ack.rtt_ns = (rtts_s[i] * 1e9) as u64;
        flows[i].ack.srtt_ns = flows[i].ack.rtt_ns;
        // The ACKs of a tenth of a round trip in one.
        let w = flows[i].cwnd() / 10.0;
        flows[i].ack(w as u32);
        next_s[i] += rtts_s[i] / 10.0;
        if next_s[i] > 1500.0 {
            sent[i] += w;
        }
        if flows.iter().zip(rtts_s).map(|(flow, rtt_s)| flow.cwnd() / rtt_s).sum::<f64>() > rate_pps {
            flows.iter_mut().for_each(|flow| _ = flow.lose());
        }
    }
}

#[test]
fn windows_become_equal_when_losses_come_together() {
    let two = shares("cw-hstcp", &[0.06, 0.12], 125_000.0);
    assert_close(two[0] / two[1], 2.0, 0.03);
    // At RTTs of 80, 140, 200 ms the windows are equal: shares are proportional to 1/RTT.
    let three = shares("cw-hstcp", &[0.08, 0.14, 0.2], 125_000.0);
    for (share, wanted) in three.iter().zip([0.507, 0.290, 0.203]) {
        assert_close(*share, wanted, 0.03);
    }
    for (share, rtt_s) in three.iter().zip([0.08, 0.14, 0.2]) {
        assert_close(share * rtt_s, three[0] * 0.08, 0.03);
    }
}
