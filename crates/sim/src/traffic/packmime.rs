//! Web traffic seen on a link, as connections that come in time: PackMime-HTTP (Cao, Cleveland, Gao,
//! Jeffay, Smith, Weigle 2004), its parameters as in ns-2.35. One parameter, new connections per second.
//!
//! Simplified: gaps are independent (the model drives them by fractional Gaussian noise), and so are
//! sizes (the model alternates runs of cache validations and of downloads with the same shares).

use lfn_keys::{keys, Span};

use super::keys::Keys;
use super::COUNT_MAX;
use super::{open, requests, Direction, PathConfig};
use crate::rng::{Distribution, Mixture};

keys! {
    /// PackMime-HTTP.
    #[derive(Copy)]
    pub struct Packmime {
        /// New connections per second.
        connections: f64, in Span::above(0.0).at_most(COUNT_MAX as f64), like "connections = 100";
        /// Whether requests are sent, and answers wait for them.
        requests: bool = true;
    }
}

/// Generators that packmime can be.
pub enum Config {
    /// With requests.
    Requests(requests::Config),
    /// Answers alone.
    Flows(open::Config),
}

impl Keys for Packmime {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        match self.requests {
            true => Config::Requests(requests(direction, self.connections, path)),
            false => Config::Flows(flows(direction, self.connections, path)),
        }
    }
}

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

/// Sizes of requests: (p, bytes). The least is ours; beyond the last entry sizes stay at 14 kB.
const REQUEST_BYTES: &[(f64, f64)] = &[
    (0.0, 100.0),
    (0.01, 123.0),
    (0.1, 280.0),
    (0.25, 351.0),
    (0.5, 422.0),
    (0.75, 514.0),
    (0.9, 869.0),
    (0.99, 3_062.0),
    (0.999, 14_449.0),
];

/// Time that a server takes: quantiles of 1/X s, X Weibull of shape 0.63 and scale 305, 0.1 s at most.
const SERVER_DELAY_S: &[(f64, f64)] = &[
    (0.0, 0.000_152_55),
    (0.01, 0.000_290_35),
    (0.05, 0.000_574_57),
    (0.1, 0.000_872_48),
    (0.25, 0.001_952_24),
    (0.5, 0.005_866_22),
    (0.75, 0.023_690_2),
    (0.890_372_16, 0.1),
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

/// This many new connections per second with requests and answers, the answers in `direction`: 9 % of
/// them persistent, with 0.6 exchanges after the first on average and 56 ms, the median of the model,
/// between an answer and the next request.
///
/// The model has pages of 1 object (69 %) or 1 plus an exponential number of mean 1.578, and 1 page
/// (82 %) or 1 plus one of mean 0.417 per persistent connection: 1.6 exchanges. Their order is left out.
pub fn requests(direction: Direction, connections_per_second: f64, path: PathConfig) -> requests::Config {
    requests::Config {
        direction,
        gap_s: gap_s(connections_per_second),
        more_exchanges: Mixture(vec![
            (0.91, Distribution::Constant(0.0)),
            (0.09, Distribution::Exponential(0.6)),
        ]),
        request_bytes: Distribution::Table(REQUEST_BYTES).into(),
        server_delay_s: Distribution::Table(SERVER_DELAY_S),
        response_bytes: response_bytes(),
        think_s: Distribution::Constant(0.056),
        persistent: true,
        path,
    }
}
