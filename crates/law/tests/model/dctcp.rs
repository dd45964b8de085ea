//! RFC 8257: alpha = (1 - 1/16) alpha + F/16; a mark takes alpha/2.

use crate::{assert_close, cases, Rig};
use lfn_law::{LossKind, ACK_FLIGHT, ACK_OPEN, ACK_ROUND_START};
use proptest::prelude::*;

fn alpha(rig: &Rig) -> f64 {
    rig.probes()[0] as f64 / f64::from(1 << 20)
}

/// A window of data, of `count` segments of which `marked` are echoed.
fn window_of(rig: &mut Rig, count: u32, marked: u32) {
    for i in 0..count {
        rig.ack.newly_delivered = 1;
        rig.ack.ce = u32::from(i < marked);
        rig.ack.flags = ACK_OPEN | if i + 1 == count { ACK_ROUND_START } else { 0 };
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn alpha_strays_by_less_than_its_card_says(windows in prop::collection::vec((1u32..200, 0f64..1.0), 1..100)) {
        let mut rig = Rig::new("dctcp", 100.0);
        let mut model = 1.0;
        for (count, share) in windows {
            let marked = (f64::from(count) * share) as u32;
            window_of(&mut rig, count, marked);
            model += (f64::from(marked) / f64::from(count) - model) / 16.0;
            prop_assert!((alpha(&rig) - model).abs() < 2e-5, "{}, not {model}", alpha(&rig));
            prop_assert!((rig.lose_by(LossKind::Ecn) - (1.0 - model / 2.0)).abs() < 2e-5);
            rig.control.cwnd = lfn_law::Window::whole(100);
        }
    }
}

/// One flow at a router that marks while more than `threshold` segments are in flight settles with
/// alpha = sqrt(2/W), and swings by W alpha/2.
#[test]
fn a_sawtooth_of_one_flow() {
    // A period within the memory of alpha, 16 windows.
    let threshold = 100.0;
    let mut rig = Rig::new("dctcp", 80.0);
    let mut least = f64::MAX;
    for round in 0..20_000 {
        let w = rig.cwnd();
        rig.ack.ce = u32::from(w > threshold);
        rig.ack.flags = ACK_OPEN | ACK_ROUND_START;
        rig.ack(w as u32);
        if w > threshold {
            rig.lose_by(LossKind::Ecn);
            if round > 10_000 {
                least = least.min(rig.cwnd());
            }
        }
    }
    let wanted = f64::sqrt(2.0 / threshold);
    assert_close(threshold - least, threshold * wanted / 2.0, 0.1);
}

/// Linux 6.12: the ACK that ends a window of data counts in it. Alphas from the ACKs that Linux's sender saw give the
/// threshold of each of 981 reductions on five paths; without that ACK, of 906.
#[test]
fn the_ack_that_ends_a_window_counts_in_it() {
    let mut rig = Rig::new("dctcp:linux", 10.0);
    let alpha_1024 = |rig: &Rig| rig.probes()[0] >> 10;
    // The first ACK ends a window, and is marked: 1024 - 64 + 64.
    (rig.ack.newly_delivered, rig.ack.ce, rig.ack.flags) = (1, 1, ACK_OPEN | ACK_FLIGHT);
    rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    assert_eq!(alpha_1024(&rig), 1024);
    // One of four is marked, the last: 1024 - 64 + 64/4. A round trip's beginning means nothing to this variant.
    for (ce, flag) in [(0, 0), (0, ACK_ROUND_START), (0, 0), (1, ACK_FLIGHT)] {
        (rig.ack.ce, rig.ack.flags) = (ce, ACK_OPEN | flag);
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
    }
    assert_eq!(alpha_1024(&rig), 976);
}
