//! ABBA against a model in floating point: when it takes the queue for empty, how much faster the window then grows,
//! and when slow start begins again.

use crate::{cases, Rig};
use lfn_law::{LossKind, Window, ACK_CWND_LIMITED, ACK_DUP, ACK_OPEN};
use proptest::prelude::*;

const FULL: usize = 0;
const DRAINED: usize = 2;
const REFILL: usize = 5;

/// A connection at `cwnd` segments after its first recovery, on an idle RTT of `idle_us` and one of `full_us` with a full queue.
fn recovered(cwnd: f64, idle_us: u64, full_us: u64) -> Rig {
    let mut rig = Rig::new("abba", cwnd / 0.7);
    rig.control.ssthresh = Window::INFINITE;
    rtt(&mut rig, idle_us, ACK_OPEN | ACK_CWND_LIMITED);
    let loss = rig.loss(LossKind::Fast);
    rig.law.on_loss(&loss, &mut rig.control);
    rig.control.cwnd = Window::of(cwnd);
    rig.control.ssthresh = rig.control.cwnd;
    rtt(&mut rig, full_us, ACK_DUP);
    rig.law.on_open(&rig.ack, &mut rig.control);
    rig
}

/// An ACK with this RTT, which the smoothed one follows at once.
fn rtt(rig: &mut Rig, rtt_us: u64, flags: u32) {
    rig.ack.rtt_ns = rtt_us * 1000;
    rig.ack.srtt_ns = rig.ack.rtt_ns;
    rig.ack.min_rtt_ns = rig.ack.min_rtt_ns.min(rig.ack.rtt_ns);
    rig.ack.flags = flags;
    rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
}

/// min(K, reno), and with the cube root of full over idle; in s.
fn interval_s(cwnd: f64, idle_us: u64, full_us: u64) -> (f64, f64) {
    let more = cwnd / 0.7 - cwnd;
    let k = (more / 0.4).cbrt();
    let reno = more / (9.0 / 17.0) * full_us as f64 / 1e6;
    (k.min(reno), k.min(reno) * (full_us as f64 / idle_us as f64).cbrt())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn growth_and_intervals_are_the_drafts(
        cwnd in 10.0f64..1e6,
        idle_us in 1000u64..100_000,
        queue_us in 11_000u64..200_000,
    ) {
        let mut rig = recovered(cwnd, idle_us, idle_us + queue_us);
        prop_assert_eq!(rig.probes()[FULL], idle_us + queue_us);
        prop_assert_eq!(rig.probes()[DRAINED], idle_us.saturating_sub(2500).max(idle_us + 2000));
        rtt(&mut rig, idle_us, ACK_OPEN | ACK_CWND_LIMITED);
        let before = rig.cwnd();
        rig.ack(10);
        let ratio = (0.002 / ((idle_us + 2000) as f64 / 1e6)).clamp(0.025, 3.0 / 14.0);
        // CUBIC's own growth may be more.
        prop_assert!(rig.cwnd() - before >= 10.0 * ratio - 1e-3, "{} {before}", rig.cwnd());
        prop_assert!(rig.cwnd() - before <= 10.0 * ratio.max(1.0 / before) + 0.1);

        let (base_s, wait_s) = interval_s(before, idle_us, idle_us + queue_us);
        let found_s = rig.probes()[REFILL] as f64 / 1e6;
        prop_assert!((found_s / base_s - 1.0).abs() < 0.001 || (found_s - base_s).abs() < 1e-5, "{found_s} {base_s}");
        let start_ns = rig.ack.now_ns;
        rig.ack.now_ns = start_ns + (1.99 * wait_s * 1e9) as u64;
        rtt(&mut rig, idle_us, ACK_OPEN | ACK_CWND_LIMITED);
        prop_assert!(rig.control.ssthresh != Window::INFINITE);
        rig.ack.now_ns = start_ns + (2.01 * wait_s * 1e9) as u64 + 1_000_000;
        rtt(&mut rig, idle_us, ACK_OPEN);
        prop_assert!(rig.control.ssthresh != Window::INFINITE, "the window was not in use");
        let cwnd = rig.cwnd();
        rtt(&mut rig, idle_us, ACK_OPEN | ACK_CWND_LIMITED);
        prop_assert_eq!(rig.control.ssthresh, Window::INFINITE);
        prop_assert_eq!(rig.cwnd(), cwnd);
    }

    /// Where a queue cannot be told from an empty one, the law is CUBIC.
    #[test]
    fn without_a_queue_of_ten_milliseconds_it_is_cubic(cwnd in 10.0f64..1e5, idle_us in 1000u64..100_000, queue_us in 0u64..10_000) {
        let mut rig = recovered(cwnd, idle_us, idle_us + queue_us);
        let mut cubic = Rig::new("cubic:rfc", cwnd / 0.7);
        cubic.lose();
        cubic.control.cwnd = rig.control.cwnd;
        cubic.control.ssthresh = rig.control.cwnd;
        for _ in 0..10 {
            rtt(&mut rig, idle_us, ACK_OPEN | ACK_CWND_LIMITED);
            rig.ack(10);
            (cubic.ack.rtt_ns, cubic.ack.srtt_ns) = (rig.ack.rtt_ns, rig.ack.srtt_ns);
            cubic.ack(10);
            prop_assert!((rig.cwnd() - cubic.cwnd()).abs() < 1e-6 * cwnd);
        }
    }
}

/// A CE mark says that the queue was deep; a loss does not.
#[test]
fn a_mark_restarts_the_interval_and_a_loss_does_not() {
    for (marks, wanted) in [(1, false), (0, true)] {
        let mut rig = recovered(100.0, 20_000, 100_000);
        rtt(&mut rig, 20_000, ACK_OPEN | ACK_CWND_LIMITED);
        rig.ack(1);
        let (_, wait_s) = interval_s(100.0, 20_000, 100_000);
        rig.ack.now_ns += (1.5 * wait_s * 1e9) as u64;
        rig.ack.ce = marks;
        rtt(&mut rig, 20_000, ACK_OPEN | ACK_CWND_LIMITED);
        rig.ack.ce = 0;
        rig.ack.now_ns += (wait_s * 1e9) as u64;
        rtt(&mut rig, 20_000, ACK_OPEN | ACK_CWND_LIMITED);
        assert_eq!(rig.control.ssthresh == Window::INFINITE, wanted);
    }
}
