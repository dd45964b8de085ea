//! Flows of one size that begin at equal intervals.

use lfn_keys::{keys, DELAY_MAX};
use lfn_units::{Bytes, Time};

use super::keys::Keys;
use super::open::Config;
use super::{Direction, PathConfig, SIZE_MAX};
use crate::rng::Distribution;

keys! {
    /// Flows of one size that begin at equal intervals.
    #[derive(Copy)]
    pub struct Periodic {
        /// Size of a flow.
        size: Bytes, in Bytes(1)..=SIZE_MAX, like "size = \"1MB\"";
        /// Time from one flow to the next.
        every: Time = Time::from_s(1), in Time::from_us(1)..=DELAY_MAX;
    }
}

impl Keys for Periodic {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        let gap_s = Distribution::Constant(self.every.as_s());
        let bytes = Distribution::Constant(self.size.0 as f64).into();
        Config { direction, gap_s, bytes, path }
    }
}
