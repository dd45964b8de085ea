//! Response functions in closed form: mean window at p loss events a packet, on a path without a queue.
//!
//! The first eight laws have theirs beside their models. A law that reads the delay sees none here; the
//! laws whose window the delay alone decides (vegas, fast, copa) have no response function.

use crate::{assert_close, Rig};
use lfn_law::Window;

const RTT_S: f64 = 0.1;

/// Mean window of a law that adds `a` segments a round trip and gives up `b`.
fn aimd(a: f64, b: f64, p: f64) -> f64 {
    (a * (2.0 - b) / (2.0 * b * p)).sqrt()
}

/// Laws by default variants, a peak at which the law is itself and a cycle short, and the closed form.
type Form = fn(f64) -> f64;
const FORMS: [(&str, f64, Form); 9] = [
    // Floyd 1991, c = 4.
    ("const-rate", 60.0, |p| aimd(4.0 * RTT_S * RTT_S, 0.5, p)),
    // rho = RTT/25 ms, of which it adds the square.
    ("hybla", 5_000.0, |p| aimd((RTT_S / 0.025).powi(2), 0.5, p)),
    // Without delay its largest step and least decrease.
    ("illinois", 5_000.0, |p| aimd(10.0, 0.125, p)),
    // Fewer than three packets queued: the loss is random.
    ("veno", 1_000.0, |p| aimd(1.0, 0.2, p)),
    ("dctcp", 1_000.0, |p| aimd(1.0, 0.5, p)),
    // Fast mode: Scalable.
    ("yeah", 5_000.0, |p| 0.01 / p / (1.0 / (1.0 - 0.125f64)).ln()),
    // Many layers: K = (6 w/50)^(1/3) segments a round trip, 0.15.
    ("ltcp", 80_000.0, |p| 1.98 / p.powf(0.6)),
    // w^0.75/8 a round trip, a half.
    ("compound", 5_000.0, |p| 0.255 / p.powf(0.8)),
    ("cw-hstcp", 80_000.0, cw_hstcp),
];

/// HSTCP's with the line of ns-2 through (38, 1.5/38^2) and (83000, 1e-7), at a loss rate c RTT times less.
fn cw_hstcp(p: f64) -> f64 {
    let slope = (83_000f64 / 38.0).ln() / (1.5 / (38.0 * 38.0) / 1e-7f64).ln();
    83_000.0 * (1e-7 * 10.0 * RTT_S / p).powf(slope)
}

/// Mean window and segments of a cycle between losses at `peak` segments, when cycles repeat.
fn cycle(law: &str, peak: f64) -> (f64, f64) {
    let mut rig = Rig::new(law, peak);
    rig.round();
    let mut found = (0.0, 0.0);
    for _ in 0..2 {
        rig.control.cwnd = Window::of(peak);
        rig.lose();
        let (mut rounds, mut segments) = (0.0, 0.0);
        while rig.cwnd() < peak {
            // To the peak within a round, too.
            let before = rig.cwnd();
            let count = f64::from(rig.round());
            let part = ((peak - before) / (rig.cwnd() - before)).min(1.0);
            rounds += part;
            segments += part * count;
        }
        found = (segments / rounds, segments);
    }
    found
}

#[test]
fn mean_windows_are_within_3_percent_of_the_closed_forms() {
    for (law, peak, form) in FORMS {
        let (mean, segments) = cycle(law, peak);
        println!("{law}: {mean:.0} segments, {:+.2} %", 100.0 * (mean / form(1.0 / segments) - 1.0));
        assert_close(mean, form(1.0 / segments), 0.03);
    }
}
