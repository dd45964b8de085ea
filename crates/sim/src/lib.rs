//! The simulator: event engine, topology, traffic sources, sampling.

pub mod background;
pub mod rng;
