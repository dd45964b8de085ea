//! The path of a scenario between real network stacks.
//!
//! [`Network`] is the path without I/O: the simulator's links, driven by the owner of the clock. [`shell`]
//! runs a command behind it, with TUN devices between the kernel and us.

mod burst;
mod emulator;
mod error;
mod lateness;
mod live;
mod network;
mod plan;
mod process;
mod shell;
mod sockets;
mod traffic;
mod tun;

pub use emulator::{LinkReport, OwnDrops, Report};
pub use error::EmulatorError;
pub use lateness::{Histogram, Quantiles};
pub use network::{Delivery, Departure, Events, Kind, Network, NetworkConfig, Route};
pub use plan::{Plan, PlannedBackground, PlannedFlow, PlannedLink, PlannedRate, PlannedUdp, PlannedUdt};
pub use shell::{shell, Ended, Ends, Shell};
pub use traffic::{send_background, send_udp, take_tcp, BackgroundEnd, BackgroundSent, Span, UdpSent};
