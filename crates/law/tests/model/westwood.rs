//! Grieco & Mascolo: one bandwidth sample a window of max(RTT, 50 ms), filtered; ssthresh =
//! bwe rtt_min.

use crate::{cases, Rig};
use lfn_law::{ACK_DUP, ACK_OPEN, ACK_PREDICTED, ACK_SACK};
use proptest::prelude::*;

const MS_NS: u64 = 1_000_000;

/// The estimator in floats; it credits what was delivered.
pub struct Bandwidth {
    pub bytes_per_s: f64,
    stage: f64,
    window_ns: u64,
    bytes: f64,
    cascade: bool,
    /// Linux: a window is too short until whole jiffies show it.
    jiffies: bool,
}

impl Bandwidth {
    pub fn new(rig: &Rig, cascade: bool) -> Self {
        Self { bytes_per_s: 0.0, stage: 0.0, window_ns: rig.ack.now_ns, bytes: 0.0, cascade, jiffies: false }
    }

    /// An ACK of `n` segments, with the clock and the RTT of the flow.
    pub fn ack(&mut self, rig: &Rig, n: u32) {
        let length_ns = rig.ack.now_ns - self.window_ns;
        let seen_ns =
            if self.jiffies { (rig.ack.now_ns / MS_NS - self.window_ns / MS_NS) * MS_NS } else { length_ns };
        if seen_ns > rig.ack.rtt_ns.max(50 * MS_NS) {
            let sample = self.bytes / (length_ns as f64 / 1e9);
            if self.bytes_per_s == 0.0 {
                (self.stage, self.bytes_per_s) = (sample, sample);
            } else if self.cascade {
                self.stage += (sample - self.stage) / 8.0;
                self.bytes_per_s += (self.stage - self.bytes_per_s) / 8.0;
            } else {
                self.bytes_per_s += (sample - self.bytes_per_s) / 10.0;
            }
            (self.bytes, self.window_ns) = (0.0, rig.ack.now_ns);
        }
        self.bytes += f64::from(n * rig.ack.mss_B);
    }
}

/// An ACK of which only the estimators learn.
fn sample(rig: &mut Rig, acked: u32, delivered: u32) {
    rig.ack.acked = acked;
    rig.ack.newly_delivered = delivered;
    rig.ack.flags = if acked == 0 { ACK_DUP | ACK_SACK } else { ACK_OPEN };
    rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
}

fn bwe(rig: &Rig) -> f64 {
    rig.probes()[0] as f64
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_estimate_strays_by_less_than_its_card_says(
        rtt_ms in 1u64..300,
        acks in prop::collection::vec((1u32..100, 1u64..20_000), 2000),
    ) {
        for (spec, cascade, below, above) in [
            ("westwood", true, 17.0, 0.0),
            ("westwood:wns2", false, 11.0, 0.0),
            ("westwood:linux", true, 17_000.0, 0.02),
        ] {
            let mut rig = Rig::new(spec, 1e6);
            rig.ack.rtt_ns = rtt_ms * MS_NS;
            let mut model = Bandwidth::new(&rig, cascade);
            if spec == "westwood:linux" {
                model.jiffies = true;
                // The ACK of the first data begins the window, where they left, and counts as a duplicate.
                rig.ack.now_ns += rig.ack.rtt_ns;
                sample(&mut rig, 1, 1);
                model.bytes = f64::from(rig.ack.mss_B);
            }
            let mut duplicates = u32::from(spec == "westwood:linux");
            for &(n, step_us) in &acks {
                rig.ack.now_ns += step_us * 1000;
                sample(&mut rig, n, n);
                let counted = if n > 1 { n - std::mem::take(&mut duplicates) } else { n };
                model.ack(&rig, counted);
                let (found, wanted) = (bwe(&rig), model.bytes_per_s);
                prop_assert!(found > wanted - below && found <= wanted * (1.0 + above) + 1e-3,
                    "{spec}: {found}, not {wanted}");
            }
        }
    }

    /// A full pipe with a queue of `queue` BDP.
    #[test]
    fn a_loss_keeps_rtt_min_over_rtt_max(
        rtt_ms in 10u64..300,
        queue in 0f64..2.0,
        bdp in (1000f64.log2()..21.0).prop_map(f64::exp2),
    ) {
        for spec in ["westwood", "westwood:paper", "westwood:linux", "htcp-be"] {
            let mut rig = Rig::new(spec, bdp * (1.0 + queue));
            rig.ack.rtt_ns = rtt_ms * MS_NS;
            sample(&mut rig, 1, 1);
            rig.ack.rtt_ns = (rtt_ms as f64 * 1e6 * (1.0 + queue)) as u64;
            // A hundred ACKs an empty round trip.
            let n = (bdp / 100.0).ceil() as u32;
            let step_ns = (f64::from(n) / bdp * rtt_ms as f64 * 1e6) as u64;
            // Linux's first sample is of a part of a round trip.
            let round_trips = if spec == "westwood:linux" { 500.0 } else { 100.0 };
            for _ in 0..(100.0 * round_trips * (1.0 + queue)) as u32 {
                rig.ack.now_ns += step_ns;
                sample(&mut rig, n, n);
            }
            let kept = rig.lose();
            let wanted = 1.0 / (1.0 + queue);
            // Whole jiffies of at least 50 ms and an rtt_min of at least 10 ms, in Linux.
            let bound = if spec == "westwood:linux" { 0.025 } else { 0.004 } + 2.0 / bdp;
            prop_assert!((kept / wanted - 1.0).abs() < bound, "{spec}: {kept}, not {wanted}");
        }
    }
}

/// Five duplicate ACKs, a partial ACK of three, then the rest: seven segments were delivered.
#[test]
fn ack_counting_of_the_three_sources() {
    for (spec, credited) in [
        ("westwood", 7),
        ("westwood:wns2", 7),
        ("westwood:paper", 8),
        ("westwood:linux", 8),
        ("westwood:ns2", 8),
    ] {
        let mut rig = Rig::new(spec, 100.0);
        for _ in 0..5 {
            sample(&mut rig, 0, 1);
        }
        sample(&mut rig, 3, 1);
        sample(&mut rig, 4, 1);
        assert_eq!(rig.probes()[2], credited, "{spec}");
    }
}

/// Five duplicate ACKs, then one of seven segments. Linux 6.12 credits all of them if its header prediction takes that ACK.
#[test]
fn header_prediction_credits_all_that_an_ack_covers() {
    for (spec, predicted, credited) in [
        ("westwood:linux", ACK_PREDICTED, 7),
        ("westwood:linux", 0, 1),
        ("westwood:ns2", ACK_PREDICTED, 2),
        ("westwood-s:linux", ACK_PREDICTED, 7),
    ] {
        let mut rig = Rig::new(spec, 100.0);
        sample(&mut rig, 1, 1); // in Linux it counts as a duplicate, too
        for _ in 0..5 {
            sample(&mut rig, 0, 1);
        }
        let earlier = rig.probes()[2];
        (rig.ack.acked, rig.ack.flags) = (7, ACK_OPEN | predicted);
        rig.law.window().unwrap().on_sample(&rig.ack, &mut rig.control);
        assert_eq!(rig.probes()[2] - earlier, credited, "{spec}, {predicted}");
    }
}

#[test]
fn a_step_reaches_63_90_99_percent_after_the_known_counts() {
    for (spec, counts) in
        [("westwood", [16, 29, 50]), ("westwood:linux", [16, 29, 50]), ("westwood:wns2", [10, 22, 44])]
    {
        let mut rig = Rig::new(spec, 1e6);
        // An ACK a window: each closes the window of the one before.
        let ack = |rig: &mut Rig, n| {
            rig.ack.now_ns += 101 * MS_NS;
            sample(rig, n, n);
        };
        // The first window is empty, and does not count as a sample; Linux's has a duplicate.
        for _ in 0..if spec == "westwood:linux" { 200 } else { 2 } {
            ack(&mut rig, 10_000);
        }
        let before = bwe(&rig);
        ack(&mut rig, 20_000);
        let mut reached = Vec::new();
        for count in 1..=60 {
            ack(&mut rig, 20_000);
            let level = [0.63, 0.90, 0.99].get(reached.len());
            if level.is_some_and(|level| bwe(&rig) >= before * (1.0 + level)) {
                reached.push(count);
            }
        }
        assert_eq!(reached, counts, "{spec}");
    }
}

#[test]
fn a_short_rtt_gives_at_most_20_samples_a_second() {
    let mut rig = Rig::new("westwood", 1000.0);
    rig.ack.rtt_ns = 10 * MS_NS;
    let (mut samples, mut last) = (0, 0.0);
    for i in 0..100_000 {
        rig.ack.now_ns += 100_000;
        // A rate that never settles, so that every sample shows.
        let n = 1 + i / 500 % 7;
        sample(&mut rig, n, n);
        samples += u32::from(bwe(&rig) != last);
        last = bwe(&rig);
    }
    assert!((190..=200).contains(&samples), "{samples} samples in 10 s");
}
