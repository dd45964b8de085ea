//! The parts of a run that all others use.

use lfn_units::Time;

use super::network::Network;
use super::record::Record;
use crate::scheduler::Scheduler;

/// The network, clock and pending events, and what is recorded.
pub(super) struct Context {
    /// When the run ends.
    pub duration: Time,
    pub network: Network,
    pub scheduler: Scheduler,
    pub record: Record,
}
