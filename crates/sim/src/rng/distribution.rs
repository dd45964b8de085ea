//! Distributions with their analytic means, so that a rate can be set to give an exact load.

use super::{exponent, Stream};

/// A distribution of one positive quantity, in the unit of its user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Uniform on \[low, high).
    Uniform(f64, f64),
    /// Its logarithm is uniform between those of these.
    LogUniform(f64, f64),
    /// Mean: see [`Stream::exp`].
    Exponential(f64),
    /// Scale and shape: see [`Stream::weibull`].
    Weibull(f64, f64),
    /// Median and sigma: see [`Stream::lognormal`].
    Lognormal(f64, f64),
    /// Least value, greatest value (may be infinite), tail index: see [`Stream::bounded_pareto`].
    BoundedPareto(f64, f64, f64),
    /// Scale, greatest value (may be infinite), tail index: a bounded Pareto less its least value, so
    /// that it begins at 0; ns-2's `ParetoII` where unbounded.
    ParetoII(f64, f64, f64),
    /// Quantiles: see [`Stream::quantile`].
    Table(&'static [(f64, f64)]),
}

impl Distribution {
    /// The bounded Pareto distribution of this mean whose greatest value is `ratio` (above 1, may be
    /// infinite) times its least, with tail index `a` (above 1 where `ratio` is infinite).
    pub fn pareto_of_mean(mean: f64, ratio: f64, a: f64) -> Distribution {
        let k = mean / Distribution::BoundedPareto(1.0, ratio, a).mean();
        Distribution::BoundedPareto(k, k * ratio, a)
    }

    /// The bounded Pareto distribution of the second kind of this mean whose greatest value is `ratio`
    /// (may be infinite) times its scale, with tail index `a` (above 1 where `ratio` is infinite).
    pub fn pareto_ii_of_mean(mean: f64, ratio: f64, a: f64) -> Distribution {
        let scale = mean / Distribution::ParetoII(1.0, ratio, a).mean();
        Distribution::ParetoII(scale, scale * ratio, a)
    }

    /// One value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Distribution::Constant(x) => x,
            Distribution::Uniform(low, high) => stream.uniform(low, high),
            Distribution::LogUniform(low, high) => low * libm::pow(high / low, stream.f64()),
            Distribution::Exponential(mean) => stream.exp(mean),
            Distribution::Weibull(scale, shape) => stream.weibull(scale, shape),
            Distribution::Lognormal(median, sigma) => stream.lognormal(median, sigma),
            Distribution::BoundedPareto(k, m, a) => stream.bounded_pareto(k, m, a),
            Distribution::ParetoII(scale, most, a) => stream.bounded_pareto(scale, scale + most, a) - scale,
            Distribution::Table(table) => stream.quantile(table),
        }
    }

    /// The mean, in closed form; NaN, infinite or not positive where the parameters are no distribution
    /// with a mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Constant(x) => x,
            Distribution::Uniform(low, high) => (low + high) / 2.0,
            Distribution::LogUniform(low, high) => (high - low) / libm::log(high / low),
            Distribution::Exponential(mean) => mean,
            Distribution::Weibull(scale, shape) => scale * libm::tgamma(1.0 + 1.0 / shape),
            Distribution::Lognormal(median, sigma) => median * libm::exp(sigma * sigma / 2.0),
            Distribution::BoundedPareto(k, m, 1.0) => k * libm::log(m / k) / (1.0 - k / m),
            Distribution::BoundedPareto(k, m, a) => {
                let ratio = k / m;
                a / (a - 1.0) * k * (1.0 - libm::pow(ratio, a - 1.0)) / (1.0 - libm::pow(ratio, a))
            }
            Distribution::ParetoII(scale, most, a) => {
                Distribution::BoundedPareto(scale, scale + most, a).mean() - scale
            }
            Distribution::Table(table) => {
                let pieces = table.windows(2).map(|pair| {
                    // x = x0 (s/s0)^b integrated over s = 1-p from s1 to s0.
                    let ((p0, x0), (p1, _)) = (pair[0], pair[1]);
                    let (s0, s1, power) = (1.0 - p0, 1.0 - p1, exponent(pair[0], pair[1]) + 1.0);
                    let log = libm::log(s1 / s0);
                    // A tail index of 1 makes the power 0.
                    let factor = if power == 0.0 { -log } else { -libm::expm1(power * log) / power };
                    x0 * s0 * factor
                });
                let (last_p, last_x) = table[table.len() - 1];
                pieces.sum::<f64>() + (1.0 - last_p) * last_x
            }
        }
    }
}

/// A mixture of distributions: each part with its probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture(pub Vec<(f64, Distribution)>);

impl From<Distribution> for Mixture {
    fn from(only: Distribution) -> Mixture {
        Mixture(vec![(1.0, only)])
    }
}

impl Mixture {
    /// The part chosen, and its value.
    pub fn draw(&self, stream: &mut Stream) -> (usize, f64) {
        let mut choice = stream.f64();
        let part = self.0.iter().position(|(probability, _)| {
            choice -= probability;
            choice < 0.0
        });
        let part = part.unwrap_or(self.0.len() - 1);
        (part, self.0[part].1.draw(stream))
    }

    /// The part chosen, and its value as a whole number of bytes, at least 1.
    pub fn draw_bytes(&self, stream: &mut Stream) -> (usize, u64) {
        let (part, bytes) = self.draw(stream);
        (part, libm::round(bytes).max(1.0) as u64)
    }

    /// A whole number of this mean: the value, rounded up as often as its fraction says. `u64::MAX` for
    /// an infinite value.
    pub fn draw_count(&self, stream: &mut Stream) -> u64 {
        (self.draw(stream).1 + stream.f64()) as u64
    }

    /// The mean, in closed form.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|(probability, part)| probability * part.mean()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled_mean(distribution: Distribution, n: usize) -> f64 {
        let mut stream = Stream::new(1, "distribution");
        (0..n).map(|_| distribution.draw(&mut stream)).sum::<f64>() / n as f64
    }

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() <= relative, "got {got}, want {want}");
    }

    #[test]
    fn sampled_means_are_the_analytic_ones() {
        use Distribution::*;
        // Light or short tails, so that 1 % is three standard errors at least.
        for distribution in [
            Constant(7.0),
            Uniform(10.0, 200.0),
            LogUniform(1.0, 20.0),
            Exponential(0.5),
            Weibull(2.0, 0.8),
            Lognormal(4000.0, 1.0),
            BoundedPareto(1.0, 100.0, 1.8),
            BoundedPareto(1.0, 20.0, 1.0),
            ParetoII(3.0, 100.0, 1.8),
        ] {
            close(sampled_mean(distribution, 200_000), distribution.mean(), 0.01);
        }
    }

    #[test]
    fn means_known_by_hand() {
        use Distribution::*;
        // The density is 32/15 x^-3 on 1 to 4, so the mean is 32/15 (1 - 1/4).
        close(BoundedPareto(1.0, 4.0, 2.0).mean(), 1.6, 1e-12);
        close(BoundedPareto(2.0, f64::INFINITY, 1.5).mean(), 6.0, 1e-12);
        // The density is 4/3 x^-2 on 1 to 4.
        close(BoundedPareto(1.0, 4.0, 1.0).mean(), 4.0 / 3.0 * 4f64.ln(), 1e-12);
        close(ParetoII(3.0, f64::INFINITY, 2.5).mean(), 2.0, 1e-12);
        // The density is 1/(x ln 4) on 1 to 4.
        close(LogUniform(1.0, 4.0).mean(), 3.0 / 4f64.ln(), 1e-12);
        // Gamma(3) = 2.
        close(Weibull(1.0, 0.5).mean(), 2.0, 1e-12);
    }

    #[test]
    fn counts_keep_the_mean() {
        let mut stream = Stream::new(1, "count");
        let mut mean = |distribution: Distribution| {
            let n = 100_000;
            (0..n).map(|_| Mixture::from(distribution).draw_count(&mut stream)).sum::<u64>() as f64 / n as f64
        };
        close(mean(Distribution::Exponential(0.6)), 0.6, 0.015);
        close(mean(Distribution::Constant(2.25)), 2.25, 0.01);
        assert_eq!(mean(Distribution::Constant(249.0)), 249.0);
        let endless = Mixture::from(Distribution::Constant(f64::INFINITY));
        assert_eq!(endless.draw_count(&mut stream), u64::MAX);
    }

    #[test]
    fn a_pareto_distribution_can_be_made_from_its_mean() {
        for (ratio, a) in [(100.0, 1.2), (1e4, 1.0), (f64::INFINITY, 1.5)] {
            let pareto = Distribution::pareto_of_mean(25.0, ratio, a);
            close(pareto.mean(), 25.0, 1e-12);
            assert!(
                matches!(pareto, Distribution::BoundedPareto(k, m, _) if (m / k / ratio - 1.0).abs() < 1e-12
                || m == ratio)
            );
            close(Distribution::pareto_ii_of_mean(12.0, ratio, a).mean(), 12.0, 1e-12);
        }
        // ns-2's least value, mean (a-1)/a.
        let ns2 = Distribution::pareto_of_mean(3.0, f64::INFINITY, 1.5);
        assert!(matches!(ns2, Distribution::BoundedPareto(k, _, _) if (k - 1.0).abs() < 1e-12));
    }

    #[test]
    fn the_parts_of_a_mixture_come_as_often_as_said() {
        let mixture =
            Mixture(vec![(0.275, Distribution::Constant(10.0)), (0.725, Distribution::Constant(100.4))]);
        let mut stream = Stream::new(1, "mixture");
        let n = 100_000;
        let mut first = 0;
        for _ in 0..n {
            let (part, bytes) = mixture.draw_bytes(&mut stream);
            assert_eq!(bytes, [10, 100][part]);
            first += usize::from(part == 0);
        }
        assert!((first as f64 / n as f64 - 0.275).abs() < 0.005, "{first}");
        close(mixture.mean(), 0.275 * 10.0 + 0.725 * 100.4, 1e-12);
    }
}
