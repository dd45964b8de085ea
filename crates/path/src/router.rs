//! Routers that speak: each link measures its load and writes what follows into the headers of data
//! packets that leave it.
//!
//! A router stands beside a queue of any kind. Its owner calls [`Router::advance`] before anything
//! changes in the queue, so that timers see it as it was when they were due.

mod vcp;

use lfn_header::Header;
use lfn_units::{Rate, Time};

pub use vcp::{VcpConfig, VcpMeter, INTERVAL as VCP_INTERVAL};

/// Which protocol a router speaks: the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouterConfig {
    /// VCP's load meter, for VCP and EVCP.
    Vcp(VcpConfig),
}

/// The state of a router.
#[derive(Clone, Debug)]
pub enum Router {
    /// See [`VcpMeter`].
    Vcp(VcpMeter),
}

impl RouterConfig {
    /// A router on a link of this rate. `draw` gives numbers uniform on \[0, 1), for the timers' phases.
    pub fn build(&self, rate: Rate, draw: impl FnMut() -> f64) -> Router {
        match *self {
            RouterConfig::Vcp(config) => Router::Vcp(VcpMeter::new(config, rate, draw)),
        }
    }
}

impl Router {
    /// The rate of the link changes.
    pub fn set_rate(&mut self, rate: Rate) {
        match self {
            Router::Vcp(meter) => meter.set_rate(rate),
        }
    }

    /// Timers up to `now`, since which `queue_bytes` have waited.
    #[inline]
    pub fn advance(&mut self, now: Time, queue_bytes: u64) {
        match self {
            Router::Vcp(meter) => meter.advance(now, queue_bytes),
        }
    }

    /// A packet arrives, also if it is dropped then. `header` is a data packet's.
    #[inline]
    pub fn arrive(&mut self, bytes: u32, _header: &Header) {
        match self {
            Router::Vcp(meter) => meter.arrive(bytes),
        }
    }

    /// A data packet leaves.
    #[inline]
    pub fn depart(&mut self, header: &mut Header) {
        match self {
            Router::Vcp(meter) => meter.depart(header),
        }
    }
}
