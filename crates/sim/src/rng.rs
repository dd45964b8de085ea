//! Named random streams and the distributions drawn from them.
//!
//! Every purpose has a stream of its own, named in full (`flow[3].start`), so that a new flow or
//! draw does not change other numbers, and every law has the same traffic (common random numbers).
//! All functions beyond `+ - * /` come from the `libm` crate: the same bits on every machine.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

mod distribution;

pub use distribution::{Distribution, Mixture};

/// 2^64 divided by the golden ratio: the increment of SplitMix64 (Steele, Lea, Flood 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64: a bijection in which every input bit reaches every output bit.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key of a stream: absorbs the seed, a zero, the length of the name and its bytes eight at a time
/// (little-endian, zero padded), each by `h = mix(h ^ word)`. The length keeps a name apart from
/// the same name followed by zero bytes. Results depend on this for ever: see the golden values.
fn key(seed: u64, name: &str) -> u64 {
    let name = name.as_bytes();
    let head = [seed, 0, name.len() as u64];
    let words = name.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    head.into_iter().chain(words).fold(0, |h, word| mix(h ^ word))
}

/// A reproducible sequence of random numbers: xoshiro256++ (Blackman and Vigna 2019), its state
/// expanded by SplitMix64 from a 64-bit hash of seed and name.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of this name in a run of this seed.
    pub fn new(seed: u64, name: &str) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(key(seed, name)))
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

    /// Weibull: P(X > x) = exp(-(x/scale)^shape).
    pub fn weibull(&mut self, scale: f64, shape: f64) -> f64 {
        scale * libm::pow(-libm::log(self.open()), 1.0 / shape)
    }

    /// Pareto of tail index `a` conditioned on lying in \[k, m), by its inverse distribution function;
    /// `m` may be infinite.
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

    /// Draws from a table of quantiles `(p, x)`: p rising from 0, x > 0. Between entries log x is
    /// linear in log(1-p), a piecewise Pareto law; beyond the last entry x stays at its value.
    pub fn quantile(&mut self, table: &[(f64, f64)]) -> f64 {
        quantile(table, self.f64())
    }
}

/// The stream of a part that may draw.
#[derive(Clone, Debug)]
pub(crate) struct Draws(pub Option<Stream>);

impl Draws {
    /// Uniform on \[0, 1).
    pub fn f64(&mut self) -> f64 {
        self.0.as_mut().expect("what draws has a stream").f64()
    }
}

/// The streams of one owner: the name of each begins with the owner's. They know whether any was taken, so only
/// a part that may draw takes one.
#[derive(Clone, Debug)]
pub struct Streams {
    seed: u64,
    owner: String,
    /// Whether a stream was taken, by any owner of the run.
    taken: Arc<AtomicBool>,
}

impl Streams {
    /// The streams of `owner` (`traffic[2]`) in a run of this seed.
    pub fn new(seed: u64, owner: impl Into<String>) -> Streams {
        Streams { seed, owner: owner.into(), taken: Arc::default() }
    }

    /// All streams of a run, for the owners that [`Streams::of`] names.
    pub fn of_run(seed: u64) -> Streams {
        Streams::new(seed, "")
    }

    /// The streams of another owner in the same run.
    pub fn of(&self, owner: impl Into<String>) -> Streams {
        Streams { owner: owner.into(), ..self.clone() }
    }

    /// The owner's stream for one purpose: `traffic[2].size`.
    pub fn stream(&self, purpose: &str) -> Stream {
        self.taken.store(true, Relaxed);
        Stream::new(self.seed, &format!("{}.{purpose}", self.owner))
    }

    /// The streams of the owner's part number `i`: `traffic[2].source[5]`.
    pub fn part(&self, what: &str, i: usize) -> Streams {
        self.of(format!("{}.{what}[{i}]", self.owner))
    }

    /// Whether a stream of the run was taken. If not, runs with other seeds are the same.
    pub fn are_taken(&self) -> bool {
        self.taken.load(Relaxed)
    }
}

/// The value below which a share `p` of a tabled distribution lies.
fn quantile(table: &[(f64, f64)], p: f64) -> f64 {
    let above = table.partition_point(|&(entry, _)| entry <= p);
    let (p0, x0) = table[above - 1];
    match table.get(above) {
        Some(&(p1, x1)) => x0 * libm::pow((1.0 - p) / (1.0 - p0), exponent((p0, x0), (p1, x1))),
        None => x0,
    }
}

/// The power of 1-p that x follows between two entries of a table of quantiles.
fn exponent((p0, x0): (f64, f64), (p1, x1): (f64, f64)) -> f64 {
    libm::log(x1 / x0) / libm::log((1.0 - p1) / (1.0 - p0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 100_000;

    fn stream(name: &str) -> Stream {
        Stream::new(1, name)
    }

    fn sample(name: &str, mut draw: impl FnMut(&mut Stream) -> f64) -> Vec<f64> {
        let mut stream = stream(name);
        (0..N).map(|_| draw(&mut stream)).collect()
    }

    /// Kolmogorov-Smirnov against a distribution function, at a significance of 1 %.
    fn assert_follows(mut values: Vec<f64>, below: impl Fn(f64) -> f64) {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let distance = values
            .iter()
            .enumerate()
            .map(|(i, &x)| (below(x) - i as f64 / n).max((i + 1) as f64 / n - below(x)))
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / n.sqrt(), "largest distance {distance}");
    }

    fn assert_mean(values: &[f64], want: f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean / want - 1.0).abs() < 0.01, "mean {mean}, want {want}");
    }

    #[test]
    fn golden_values() {
        // Results already published depend on these. They never change.
        let first = |seed, name| Stream::new(seed, name).u64();
        assert_eq!(first(0, ""), 0xbabb_761a_c830_fe4a);
        assert_eq!(first(1, "flow[3].start"), 0xd9f8_3d0c_5a3e_0e4f);
        assert_eq!(first(1, "background.forward.http.arrival"), 0xa9cf_212e_617f_56c3);
        let mut stream = stream("golden");
        assert_eq!(
            [
                stream.f64(),
                stream.exp(1.0),
                stream.bounded_pareto(1.0, 100.0, 1.2),
                stream.lognormal(1.0, 1.0)
            ]
            .map(f64::to_bits),
            [4604858594794013351, 4608503693404881750, 4608633846585635255, 4615163830493742971]
        );
    }

    #[test]
    fn seed_and_the_whole_name_select_the_stream() {
        let base = Stream::new(1, "flow[3].start").u64();
        let others = [
            (2, "flow[3].start"),
            (0, "flow[3].start"),
            (1, "flow[4].start"),
            (1, "flow[3].stars"),
            (1, "flow[3].start\0"),
            (1, "flow[3].star"),
            (1, "[3].startflow"),
        ];
        for (seed, name) in others {
            assert_ne!(Stream::new(seed, name).u64(), base, "{seed} {name:?}");
        }
    }

    #[test]
    fn another_stream_shifts_no_draw() {
        let alone: Vec<u64> = std::iter::repeat_with({
            let mut flow = stream("flow[0].loss");
            move || flow.u64()
        })
        .take(100)
        .collect();
        let (mut flow, mut other) = (stream("flow[0].loss"), stream("flow[1].loss"));
        let beside: Vec<u64> = (0..100)
            .map(|_| {
                other.exp(1.0);
                flow.u64()
            })
            .collect();
        assert_eq!(alone, beside);
    }

    #[test]
    fn streams_of_neighbouring_names_are_independent() {
        let first: Vec<f64> = (0..N).map(|i| stream(&format!("flow[{i}].start")).f64()).collect();
        let mean = first.iter().sum::<f64>() / N as f64;
        let covariance = first.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let correlation = covariance / N as f64 * 12.0;
        // Three standard errors.
        assert!(correlation.abs() < 3.0 / (N as f64).sqrt(), "{correlation}");
        assert_follows(first, |x| x);
    }

    #[test]
    fn unit_interval() {
        assert_follows(sample("unit", Stream::f64), |x| x);
        assert_follows(sample("open", Stream::open), |x| x);
        let values = sample("uniform", |s| s.uniform(10.0, 200.0));
        assert!(values.iter().all(|x| (10.0..200.0).contains(x)));
        assert_mean(&values, 105.0);
        assert_follows(values, |x| (x - 10.0) / 190.0);
    }

    #[test]
    fn exponential() {
        let values = sample("exp", |s| s.exp(0.5));
        assert_mean(&values, 0.5);
        assert_follows(values, |x| 1.0 - libm::exp(-x / 0.5));
    }

    #[test]
    fn weibull() {
        let values = sample("weibull", |s| s.weibull(2.0, 0.7));
        assert_follows(values, |x| 1.0 - libm::exp(-libm::pow(x / 2.0, 0.7)));
    }

    #[test]
    fn streams_of_an_owner_are_named_in_full() {
        let owner = Streams::new(1, "traffic[2]");
        assert_eq!(owner.stream("size").u64(), Stream::new(1, "traffic[2].size").u64());
        let part = owner.part("source", 5);
        assert_eq!(part.stream("on").u64(), Stream::new(1, "traffic[2].source[5].on").u64());
    }

    #[test]
    fn bounded_pareto() {
        let (k, m, a) = (50e3, 10e6, 1.2);
        let values = sample("bounded", |s| s.bounded_pareto(k, m, a));
        assert!(values.iter().all(|x| (k..=m).contains(x)));
        assert_follows(values, |x| (1.0 - libm::pow(k / x, a)) / (1.0 - libm::pow(k / m, a)));
        // A short tail, so that 1 % is three standard errors of the sampled mean.
        let values = sample("bounded", |s| s.bounded_pareto(1.0, 100.0, 1.8));
        assert_mean(&values, Distribution::BoundedPareto(1.0, 100.0, 1.8).mean());
        let values = sample("unbounded", |s| s.bounded_pareto(2.0, f64::INFINITY, 3.0));
        assert_follows(values, |x| 1.0 - libm::pow(2.0 / x, 3.0));
    }

    #[test]
    fn lognormal() {
        let values = sample("lognormal", |s| s.lognormal(4000.0, 1.0));
        assert_mean(&values, Distribution::Lognormal(4000.0, 1.0).mean());
        assert_follows(values, |x| 0.5 * (1.0 + libm::erf(libm::log(x / 4000.0) / std::f64::consts::SQRT_2)));
    }

    #[test]
    fn table_of_quantiles() {
        const TABLE: &[(f64, f64)] = &[(0.0, 10.0), (0.5, 20.0), (0.9, 100.0), (0.99, 1000.0)];
        for &(p, x) in TABLE {
            assert!((quantile(TABLE, p) / x - 1.0).abs() < 1e-12);
        }
        // Halfway in log(1-p) is halfway in log x.
        assert!((quantile(TABLE, 1.0 - (0.5f64 * 0.1).sqrt()) / 2000f64.sqrt() - 1.0).abs() < 1e-12);
        assert_eq!(quantile(TABLE, 0.995), 1000.0);
        let mean = Distribution::Table(TABLE).mean();
        let strata = (0..N).map(|i| quantile(TABLE, (i as f64 + 0.5) / N as f64)).sum::<f64>() / N as f64;
        assert!((mean / strata - 1.0).abs() < 1e-5, "{mean} {strata}");
        let values = sample("table", |s| s.quantile(TABLE));
        assert_mean(&values, mean);
        let body = values.iter().filter(|&&x| x < 1000.0).count() as f64 / N as f64;
        assert!((body - 0.99).abs() < 0.001, "{body}");
        assert_follows(values.into_iter().filter(|&x| x < 1000.0).collect(), |x| {
            let i = TABLE.partition_point(|&(_, entry)| entry <= x).min(TABLE.len() - 1);
            let ((p0, x0), (p1, x1)) = (TABLE[i - 1], TABLE[i]);
            let share = (x / x0).ln() / (x1 / x0).ln();
            (1.0 - ((1.0 - p0).ln() * (1.0 - share) + (1.0 - p1).ln() * share).exp()) / 0.99
        });
    }
}
