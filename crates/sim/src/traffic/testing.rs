//! For tests: a network in which every transfer takes as long as the test says, and statistics.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lfn_units::Time;

use super::{Flows, Model, Transfer};
use crate::rng::Streams;

/// The transfers of `model` up to `until`, each done `duration` after its beginning.
pub fn carried(model: &Model, seed: u64, until: Time, duration: impl Fn(&Transfer) -> Time) -> Vec<Transfer> {
    let mut flows = Flows::new(model, &Streams::new(seed, "traffic")).expect("valid");
    let mut under_way: BinaryHeap<Reverse<(Time, u64)>> = BinaryHeap::new();
    let mut transfers = Vec::new();
    loop {
        let done_at = under_way.peek().map_or(Time::NEVER, |next| next.0 .0);
        let begins_at = flows.next_at();
        if done_at.min(begins_at) >= until {
            return transfers;
        }
        if done_at <= begins_at {
            let Reverse((now, session)) = under_way.pop().expect("it was there");
            flows.on_done(session, now);
        } else {
            let transfer = flows.next_transfer().expect("it was announced");
            assert_eq!(transfer.at, begins_at);
            under_way.push(Reverse((transfer.at + duration(&transfer), transfer.session)));
            transfers.push(transfer);
        }
    }
}

/// Payload in bits per second in each direction from `from` to `until`, over 10 runs whose transfers take
/// 100 ms each.
pub fn load_bps(model: &Model, from: Time, until: Time) -> [f64; 2] {
    let mut bytes = [0; 2];
    for seed in 0..10 {
        for transfer in carried(model, seed, until, |_| Time::from_ms(100)) {
            if transfer.at >= from {
                bytes[transfer.direction as usize] += transfer.bytes;
            }
        }
    }
    bytes.map(|bytes| bytes as f64 * 8.0 / (10.0 * (until - from).as_s()))
}

pub fn assert_close(got: f64, want: f64, relative: f64) {
    assert!((got / want - 1.0).abs() <= relative, "got {got}, want {want}");
}

/// H from the variance of the mean of m bins, which falls as m^(2H-2), m from 1 s to 50 s.
pub fn hurst(bytes_per_100_ms: &[f64]) -> f64 {
    let points: Vec<(f64, f64)> = [10, 20, 40, 80, 160, 320, 500]
        .map(|m| {
            let means: Vec<f64> =
                bytes_per_100_ms.chunks_exact(m).map(|bins| bins.iter().sum::<f64>() / m as f64).collect();
            let n = means.len() as f64;
            let mean = means.iter().sum::<f64>() / n;
            let variance = means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            ((m as f64).ln(), variance.ln())
        })
        .to_vec();
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    1.0 + covariance / variance / 2.0
}
