//! Named random streams and the distributions drawn from them.
//!
//! Every purpose has a stream of its own, named in full ("flow[3].start"), so that adding a flow or
//! a draw shifts nobody else's numbers and every law meets the same traffic (common random numbers).
//! All functions beyond `+ - * /` come from the `libm` crate: the same bits on every machine.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// 2^64 divided by the golden ratio: the increment of SplitMix64 (Steele, Lea, Flood 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64: a bijection in which every input bit reaches every output bit.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key of a stream: absorbs seed, run, the length of the name and its bytes eight at a time
/// (little-endian, zero padded), each by `h = mix(h ^ word)`. The length keeps a name apart from
/// the same name followed by zero bytes. Results depend on this for ever: see the golden values.
fn key(seed: u64, run: u64, name: &str) -> u64 {
    let name = name.as_bytes();
    let head = [seed, run, name.len() as u64];
    let words = name.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    head.into_iter().chain(words).fold(0, |h, word| mix(h ^ word))
}

/// A reproducible sequence of random numbers: xoshiro256++ (Blackman and Vigna 2019), its state
/// expanded by SplitMix64 from a 64-bit hash of seed, run and name.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of this name in run `run` of a study seeded with `seed`.
    pub fn new(seed: u64, run: u64, name: &str) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(key(seed, run, name)))
    }

    /// 64 random bits.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform on \[0, 1), in steps of 2^-53.
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * f64::EPSILON / 2.0
    }

    /// Uniform on (0, 1], in steps of 2^-53: safe to take the logarithm of.
    pub fn open(&mut self) -> f64 {
        1.0 - self.f64()
    }

    /// Uniform on \[low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.f64()
    }

    /// Exponential of this mean.
    pub fn exp(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.open())
    }

    /// Pareto with least value `k` and tail index `a`: P(X > x) = (k/x)^a.
    pub fn pareto(&mut self, k: f64, a: f64) -> f64 {
        k * libm::pow(self.open(), -1.0 / a)
    }

    /// Pareto of tail index `a` conditioned on lying in \[k, m), by its inverse distribution function.
    pub fn bounded_pareto(&mut self, k: f64, m: f64, a: f64) -> f64 {
        let above_m = libm::pow(k / m, a);
        k * libm::pow(1.0 - self.f64() * (1.0 - above_m), -1.0 / a)
    }

    /// Lognormal: `median` times e to a normal variable of standard deviation `sigma` (Box-Muller,
    /// two draws, no state kept).
    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.open()));
        let normal = radius * libm::cos(2.0 * std::f64::consts::PI * self.f64());
        median * libm::exp(sigma * normal)
    }

    /// How many packets pass before one is lost, each lost with probability `p` on its own:
    /// P(N >= n) = (1-p)^n. One draw per loss instead of one per packet. `u64::MAX` when `p <= 0`.
    pub fn geometric(&mut self, p: f64) -> u64 {
        if p >= 1.0 {
            return 0;
        }
        if p <= 0.0 {
            return u64::MAX;
        }
        (libm::log(self.open()) / libm::log1p(-p)) as u64
    }

    /// Draws from a table of quantiles `(p, x)`: p rising from 0, x > 0. Between entries log x is
    /// linear in log(1-p), a piecewise Pareto law; beyond the last entry x stays at its value.
    pub fn quantile(&mut self, table: &[(f64, f64)]) -> f64 {
        let p = self.f64();
        let above = table.partition_point(|&(entry, _)| entry <= p);
        let (p0, x0) = table[above - 1];
        match table.get(above) {
            Some(&(p1, x1)) => x0 * libm::pow((1.0 - p) / (1.0 - p0), exponent((p0, x0), (p1, x1))),
            None => x0,
        }
    }
}

/// The power of 1-p that x follows between two entries of a table of quantiles.
fn exponent((p0, x0): (f64, f64), (p1, x1): (f64, f64)) -> f64 {
    libm::log(x1 / x0) / libm::log((1.0 - p1) / (1.0 - p0))
}

/// A distribution with its analytic mean, so that a rate can be set to give an exact load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform on \[low, high).
    Uniform(f64, f64),
    /// Median and sigma: see [`Stream::lognormal`].
    Lognormal(f64, f64),
    /// Least value, greatest value, tail index (not 1): see [`Stream::bounded_pareto`].
    BoundedPareto(f64, f64, f64),
    /// Quantiles: see [`Stream::quantile`].
    Table(&'static [(f64, f64)]),
}

impl Distribution {
    /// One value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Distribution::Uniform(low, high) => stream.uniform(low, high),
            Distribution::Lognormal(median, sigma) => stream.lognormal(median, sigma),
            Distribution::BoundedPareto(k, m, a) => stream.bounded_pareto(k, m, a),
            Distribution::Table(table) => stream.quantile(table),
        }
    }

    /// The mean, in closed form.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Uniform(low, high) => (low + high) / 2.0,
            Distribution::Lognormal(median, sigma) => median * libm::exp(sigma * sigma / 2.0),
            Distribution::BoundedPareto(k, m, a) => {
                let ratio = k / m;
                a / (a - 1.0) * k * (1.0 - libm::pow(ratio, a - 1.0)) / (1.0 - libm::pow(ratio, a))
            }
            Distribution::Table(table) => {
                let pieces = table.windows(2).map(|pair| {
                    // x = x0 (s/s0)^b integrated over s = 1-p from s1 to s0.
                    let ((p0, x0), (p1, _)) = (pair[0], pair[1]);
                    let (s0, s1, power) = (1.0 - p0, 1.0 - p1, exponent(pair[0], pair[1]) + 1.0);
                    x0 * s0 * (1.0 - libm::pow(s1 / s0, power)) / power
                });
                let (last_p, last_x) = table[table.len() - 1];
                pieces.sum::<f64>() + (1.0 - last_p) * last_x
            }
        }
    }
}
