//! Sizes of messages, as keys say them.

use lfn_keys::{entry, keys, Given, Kind, Said, Span, Value, Wrong};
use lfn_units::Bytes;

use super::SIZE_MAX;
use crate::rng::Distribution;

/// Sizes that are drawn: what is less than a byte is sent as one, which would raise the mean.
pub(crate) const LEAST_MEAN: Bytes = Bytes(100);

/// Sizes of messages, independent of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// One size.
    Constant(Bytes),
    /// Pareto.
    Pareto(ParetoSize),
    /// Lognormal.
    Lognormal(LognormalSize),
}

keys! {
    /// Pareto sizes, of which the largest is 10^4 times the least.
    #[derive(Copy)]
    pub struct ParetoSize {
        /// Their mean.
        mean: Bytes, in LEAST_MEAN..=SIZE_MAX, like "mean = \"36.5kB\"";
        /// Their tail index.
        shape: f64 = 1.2, in Span::above(1.0);
    }
}

keys! {
    /// Lognormal sizes.
    #[derive(Copy)]
    pub struct LognormalSize {
        /// Their median.
        median: Bytes, in LEAST_MEAN..=SIZE_MAX, like "median = \"9kB\"";
        /// Standard deviation of their logarithm.
        sigma: f64, in Span::above(0.0).at_most(4.0), like "sigma = 1.3";
    }
}

impl Size {
    /// The distribution in bytes.
    pub fn distribution(&self) -> Distribution {
        match self {
            Size::Constant(bytes) => Distribution::Constant(bytes.0 as f64),
            Size::Pareto(size) => pareto(size.mean, size.shape),
            Size::Lognormal(size) => Distribution::Lognormal(size.median.0 as f64, size.sigma),
        }
    }
}

/// Pareto sizes, of which the largest is 10^4 times the least.
pub(crate) fn pareto(mean: Bytes, shape: f64) -> Distribution {
    Distribution::pareto_of_mean(mean.0 as f64, 1e4, shape)
}

impl Value for Size {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Size, Wrong> {
        match given {
            Given::Table(entries) if entry(entries, "median").is_some() => {
                LognormalSize::read(given, &()).map(Size::Lognormal)
            }
            Given::Table(_) => ParetoSize::read(given, &()).map(Size::Pareto),
            _ => Bytes::read(given, &(Bytes(1)..=SIZE_MAX)).map(Size::Constant),
        }
    }

    fn said(&self) -> Said {
        match self {
            Size::Constant(bytes) => bytes.said(),
            Size::Pareto(size) => size.said(),
            Size::Lognormal(size) => size.said(),
        }
    }

    fn kind((): &()) -> Kind {
        let kinds = vec![
            ("All alike.", Bytes::kind(&(Bytes(1)..=SIZE_MAX))),
            ("Pareto.", ParetoSize::kind(&())),
            ("Lognormal.", LognormalSize::kind(&())),
        ];
        Kind::Either("Size", "Sizes of messages, independent of each other.", kinds)
    }
}
