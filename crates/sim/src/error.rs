//! Why a run could not be.

use lfn_path::{AqmError, ImpairError};

use crate::traffic::BadTraffic;

/// Why a run could not be.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Parameters of a queue that make no sense together.
    #[error("link {link}: {source}")]
    Queue {
        /// Its name.
        link: String,
        /// The error.
        source: AqmError,
    },
    /// Parameters of an impairment that make no sense.
    #[error("link {link}: {source}")]
    Impair {
        /// Its name.
        link: String,
        /// The error.
        source: ImpairError,
    },
    /// Parameters of a traffic model that make no sense.
    #[error("traffic {name}: {source}")]
    Traffic {
        /// Its name.
        name: String,
        /// The error.
        source: BadTraffic,
    },
    /// A flow with ECN on a link whose router uses the same two bits of the IP header.
    #[error("flow {flow} has ECN, and link {link} speaks VCP: both need the same bits of the IP header")]
    EcnBesideVcp {
        /// Number of the flow.
        flow: usize,
        /// Name of the link.
        link: String,
    },
    /// A route, link or flow that does not exist, or a change that goes back in time.
    #[error("{0}")]
    Unknown(String),
    /// A packet was lost or made by the engine itself: a bug, and the results are worthless.
    #[error("packets are not conserved: {0}")]
    NotConserved(String),
    /// A number that the path does not allow: a bug, and the results are worthless.
    #[error("a result is beyond what the path allows: {0}; this is a fault of lfnlab")]
    BeyondBounds(String),
}
