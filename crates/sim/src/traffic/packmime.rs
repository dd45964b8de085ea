//! Web traffic seen on a link, as connections that come in time: PackMime-HTTP (Cao, Cleveland, Gao,
//! Jeffay, Smith, Weigle 2004), its parameters as in ns-2.35. One parameter, new connections per second.
//!
//! Simplified: gaps are independent (the model drives them by fractional Gaussian noise), and so are
//! sizes (the model alternates runs of cache validations and of downloads with the same shares).

use super::{open, Direction, PathConfig};
use crate::rng::{Distribution, Mixture};

/// Sizes of answers that carry a file: (p, bytes). Beyond the last entry sizes stay at 25 MB.
const DOWNLOAD_BYTES: &[(f64, f64)] = &[
    (0.0, 276.0),
    (0.01, 284.0),
    (0.05, 324.0),
    (0.1, 386.0),
    (0.25, 691.0),
    (0.5, 2_258.0),
    (0.75, 8_895.0),
    (0.9, 20_311.0),
    (0.95, 35_871.0),
    (0.99, 93_108.0),
    (0.999, 604_295.0),
    (0.9999, 3_922_187.0),
    (0.99999, 25_456_296.0),
];

/// Sizes of answers in bytes: 27.5 % cache validations, uniform on 22 to 272; 72.5 % downloads.
pub fn response_bytes() -> Mixture {
    Mixture(vec![(0.275, Distribution::Uniform(22.0, 272.0)), (0.725, Distribution::Table(DOWNLOAD_BYTES))])
}

/// Gaps in seconds at this many new connections per second: Weibull, the less bursty the more there are.
pub fn gap_s(connections_per_second: f64) -> Distribution {
    let x = 0.352 + 0.388 * libm::log2(connections_per_second);
    let shape = 1.0 / (1.0 + libm::exp(-x));
    let scale = 1.0 / (connections_per_second * libm::tgamma(1.0 + 1.0 / shape));
    Distribution::Weibull(scale, shape)
}

/// This many new connections per second, their answers in `direction`. Requests are left out.
pub fn flows(direction: Direction, connections_per_second: f64, path: PathConfig) -> open::Config {
    open::Config { direction, gap_s: gap_s(connections_per_second), bytes: response_bytes(), path }
}
