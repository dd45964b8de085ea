//! The parts of a run that all others use.

use lfn_units::Time;

use super::record::Record;
use crate::clock::scheduler::Scheduler;
use crate::network::Network;

/// The network, clock and pending events, and the tables.
pub(crate) struct Context {
    /// When the run ends.
    pub duration: Time,
    pub network: Network,
    pub scheduler: Scheduler,
    pub record: Record,
}
