//! Routers with a protocol: each link measures its load and writes the result into the headers of data
//! packets that leave it.
//!
//! A router stands beside a queue of any kind. Its owner calls [`Router::advance`] before anything
//! changes in the queue, so that timers see it as it was when they were due.
//!
//! A new protocol has a file with its keys and an implementation of [`Protocol`], and a line in the list below.

mod jetmax;
mod rcp;
mod vcp;
mod xcp;

use lfn_header::Header;
use lfn_keys::kinds;
use lfn_units::{Rate, Time};

pub use jetmax::JetMaxConfig;
pub use rcp::RcpConfig;
pub use vcp::{VcpCompat, VcpConfig};
pub use xcp::XcpConfig;

/// A link for its router.
#[derive(Clone, Copy, Debug)]
struct Site {
    /// Its name in headers, not 0.
    link: u16,
    /// Its rate.
    rate: Rate,
}

/// The router of one link.
trait Protocol: Sized {
    /// Its keys.
    type Config;

    /// `draw` gives numbers uniform on \[0, 1), for the phases of timers.
    fn new(config: Self::Config, site: Site, draw: impl FnMut() -> f64) -> Self;

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate);

    /// Timers up to `now`, since which `queue_bytes` have waited.
    fn advance(&mut self, now: Time, queue_bytes: u64);

    /// A packet arrives, also if it is dropped then. `header` is a data packet's, none for others.
    fn arrive(&mut self, bytes: u32, header: &Header);

    /// A packet leaves `queue_bytes` behind. `header` is a data packet's, or that of the first packet of a
    /// handshake; none for others.
    fn depart(&mut self, bytes: u32, queue_bytes: u64, header: &mut Header);
}

macro_rules! routers {
    ($($(#[doc = $about:literal])+ $name:ident = $kind:literal: $config:ty => $router:ty;)+) => {
        /// The protocol of a router: the parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum RouterConfig {
            $($(#[doc = $about])+ $name($config),)+
        }

        #[derive(Clone, Debug)]
        enum State {
            $($name($router),)+
        }

        kinds! {
            RouterConfig, "Router", "What a link tells the senders of the data that pass it.",
            like "kind = \"vcp\"" { $($name = $kind, concat!($($about),+).trim_ascii();)+ }
        }

        impl RouterConfig {
            /// The headers that its router fills in.
            pub fn header(&self) -> lfn_header::Protocol {
                match self { $(RouterConfig::$name(_) => lfn_header::Protocol::$name,)+ }
            }

            /// A router on a link of this rate, which headers call `link`, not 0. `draw` gives numbers uniform
            /// on \[0, 1), for the timers' phases.
            pub fn build(&self, link: u16, rate: Rate, draw: impl FnMut() -> f64) -> Router {
                let site = Site { link, rate };
                Router(match *self {
                    $(RouterConfig::$name(config) => State::$name(<$router>::new(config, site, draw)),)+
                })
            }
        }

        impl Router {
            /// The rate of the link changes.
            pub fn set_rate(&mut self, rate: Rate) {
                match &mut self.0 { $(State::$name(router) => router.set_rate(rate),)+ }
            }

            /// Timers up to `now`, since which `queue_bytes` have waited.
            #[inline]
            pub fn advance(&mut self, now: Time, queue_bytes: u64) {
                match &mut self.0 { $(State::$name(router) => router.advance(now, queue_bytes),)+ }
            }

            /// A packet arrives, also if it is dropped then. `header` is a data packet's, none for others.
            #[inline]
            pub fn arrive(&mut self, bytes: u32, header: &Header) {
                match &mut self.0 { $(State::$name(router) => router.arrive(bytes, header),)+ }
            }

            /// A packet leaves `queue_bytes` behind. `header` is a data packet's, none for others.
            #[inline]
            pub fn depart(&mut self, bytes: u32, queue_bytes: u64, header: &mut Header) {
                match &mut self.0 { $(State::$name(router) => router.depart(bytes, queue_bytes, header),)+ }
            }
        }
    };
}

/// The state of a router.
#[derive(Clone, Debug)]
pub struct Router(State);

routers! {
    /// Its load in a code, for the laws `vcp` and `evcp`.
    Vcp = "vcp": vcp::VcpConfig => vcp::VcpMeter;
    /// By how much each flow should change its rate, for the law `xcp`.
    Xcp = "xcp": xcp::XcpConfig => xcp::XcpRouter;
    /// One rate for all flows, for the law `rcp`.
    Rcp = "rcp": rcp::RcpConfig => rcp::RcpRouter;
    /// The fair rate of the flows for which it is the bottleneck, for the law `jetmax`.
    JetMax = "jetmax": jetmax::JetMaxConfig => jetmax::JetMaxRouter;
}
