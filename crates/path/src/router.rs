//! Routers that speak: each link measures its load and writes what follows into the headers of data
//! packets that leave it.
//!
//! A router stands beside a queue of any kind. Its owner calls [`Router::advance`] before anything
//! changes in the queue, so that timers see it as it was when they were due.

mod jetmax;
mod rcp;
mod vcp;
mod xcp;

use lfn_header::Header;
use lfn_keys::kinds;
use lfn_units::{Rate, Time};

pub use jetmax::{JetMaxConfig, JetMaxRouter};
pub use rcp::{RcpConfig, RcpRouter};
pub use vcp::{VcpCompat, VcpConfig, VcpMeter};
pub use xcp::{XcpConfig, XcpRouter};

/// Which protocol a router speaks: the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RouterConfig {
    /// VCP's load meter, for VCP and EVCP.
    Vcp(VcpConfig),
    /// XCP's controllers.
    Xcp(XcpConfig),
    /// RCP's rate.
    Rcp(RcpConfig),
    /// JetMax's fair rate.
    JetMax(JetMaxConfig),
}

/// The state of a router.
#[derive(Clone, Debug)]
pub enum Router {
    /// See [`VcpMeter`].
    Vcp(VcpMeter),
    /// See [`XcpRouter`].
    Xcp(XcpRouter),
    /// See [`RcpRouter`].
    Rcp(RcpRouter),
    /// See [`JetMaxRouter`].
    JetMax(JetMaxRouter),
}

kinds! {
    RouterConfig, "Router", "What a link tells the senders of the data that pass it.", like "kind = \"vcp\"" {
        Vcp = "vcp", "Its load in a code, for the laws `vcp` and `evcp`.";
        Xcp = "xcp", "By how much each flow should change its rate, for the law `xcp`.";
        Rcp = "rcp", "One rate for all flows, for the law `rcp`.";
        JetMax = "jetmax", "The fair rate of the flows for which it is the bottleneck, for the law `jetmax`.";
    }
}

impl RouterConfig {
    /// A router on a link of this rate, which headers call `link`, not 0. `draw` gives numbers uniform on
    /// \[0, 1), for the timers' phases.
    pub fn build(&self, link: u16, rate: Rate, draw: impl FnMut() -> f64) -> Router {
        match *self {
            RouterConfig::Vcp(config) => Router::Vcp(VcpMeter::new(config, rate, draw)),
            RouterConfig::Xcp(config) => Router::Xcp(XcpRouter::new(config, rate, draw)),
            RouterConfig::Rcp(config) => Router::Rcp(RcpRouter::new(config, rate, draw)),
            RouterConfig::JetMax(config) => Router::JetMax(JetMaxRouter::new(config, link, rate, draw)),
        }
    }
}

impl Router {
    /// The rate of the link changes.
    pub fn set_rate(&mut self, rate: Rate) {
        match self {
            Router::Vcp(router) => router.set_rate(rate),
            Router::Xcp(router) => router.set_rate(rate),
            Router::Rcp(router) => router.set_rate(rate),
            Router::JetMax(router) => router.set_rate(rate),
        }
    }

    /// Timers up to `now`, since which `queue_bytes` have waited.
    #[inline]
    pub fn advance(&mut self, now: Time, queue_bytes: u64) {
        match self {
            Router::Vcp(router) => router.advance(now, queue_bytes),
            Router::Xcp(router) => router.advance(now, queue_bytes),
            Router::Rcp(router) => router.advance(now, queue_bytes),
            Router::JetMax(router) => router.advance(now),
        }
    }

    /// A packet arrives, also if it is dropped then. `header` is a data packet's, none for others.
    #[inline]
    pub fn arrive(&mut self, bytes: u32, header: &Header) {
        match self {
            Router::Vcp(router) => router.arrive(bytes),
            Router::Xcp(router) => router.arrive(bytes, header),
            Router::Rcp(router) => router.arrive(bytes, header),
            Router::JetMax(router) => router.arrive(bytes, header),
        }
    }

    /// A packet leaves `queue_bytes` behind. `header` is a data packet's, none for others.
    #[inline]
    pub fn depart(&mut self, bytes: u32, queue_bytes: u64, header: &mut Header) {
        match self {
            Router::Vcp(router) => router.depart(header),
            Router::Xcp(router) => router.depart(bytes, queue_bytes, header),
            Router::Rcp(router) => router.depart(header),
            Router::JetMax(router) => router.depart(header),
        }
    }
}
