//! Keys of a scenario that describe a model of traffic.

use super::{Direction, PathConfig};

/// The keys of a model of traffic.
pub(crate) trait Keys {
    /// A generator's settings, or a model.
    type Config;

    /// The model that they describe. Its larger part goes in `direction`, its connections have this path.
    fn config(&self, direction: Direction, path: PathConfig) -> Self::Config;
}
