//! The disciplines that a queue can have, by their parameters.

use lfn_units::{Rate, Time};

use crate::codel::{Codel, CodelConfig};
use crate::fq_codel::{FqCodel, FqCodelConfig, FqCodelError};
use crate::pie::{Pie, PieConfig, PieError};
use crate::red::{Red, RedConfig, RedError};

/// How a queue drops, marks and orders packets: the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AqmConfig {
    /// Drops the packet that does not fit.
    DropTail,
    /// Drops the packets that have waited longest until the new one fits: the senders hear of it a
    /// queueing delay earlier (Lakshman, Neidhardt, Ott 1996).
    DropHead,
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    Codel(CodelConfig),
    /// A queue and a CoDel for every flow. Beyond the limit it drops from the longest queue.
    FqCodel(FqCodelConfig),
    /// Proportional-integral controller of the delay.
    Pie(PieConfig),
}

/// The state of a queue's discipline.
#[derive(Debug)]
pub enum Aqm {
    /// None.
    DropTail,
    /// None.
    DropHead,
    /// See [`Red`].
    Red(Box<Red>),
    /// See [`Codel`].
    Codel(Codel),
    /// See [`FqCodel`].
    FqCodel(Box<FqCodel>),
    /// See [`Pie`].
    Pie(Box<Pie>),
}

/// Why the parameters of a discipline cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub enum AqmError {
    /// RED's.
    Red(#[from] RedError),
    /// FQ-CoDel's.
    FqCodel(#[from] FqCodelError),
    /// PIE's.
    Pie(#[from] PieError),
}

impl AqmConfig {
    /// Whether the fate of a packet is settled when it arrives, and nothing overtakes it, so that
    /// [`crate::Link`] can compute its departure. Else it takes a [`crate::QueuedLink`].
    pub fn decides_at_arrival(&self) -> bool {
        matches!(self, AqmConfig::DropTail | AqmConfig::Red(_))
    }

    /// The discipline of an empty queue in front of a link of this rate and one-way delay. `salt`
    /// decides which flows share a queue of FQ-CoDel; draw it.
    ///
    /// # Errors
    /// [`AqmError`] when a parameter lies outside its range.
    pub fn build(&self, rate: Rate, link_delay: Time, salt: u64) -> Result<Aqm, AqmError> {
        Ok(match *self {
            AqmConfig::DropTail => Aqm::DropTail,
            AqmConfig::DropHead => Aqm::DropHead,
            AqmConfig::Red(config) => Aqm::Red(Box::new(Red::new(config, rate, link_delay)?)),
            AqmConfig::Codel(config) => Aqm::Codel(Codel::new(config)),
            AqmConfig::FqCodel(config) => Aqm::FqCodel(Box::new(FqCodel::new(config, salt)?)),
            AqmConfig::Pie(config) => Aqm::Pie(Box::new(Pie::new(config)?)),
        })
    }
}
