#![doc = include_str!("../README.md")]

pub mod accecn;
mod config;
mod prefetch;
mod prr;
mod ranges;
mod rate;
mod receiver;
mod reordering;
mod rtt;
mod scoreboard;
mod sender;
pub mod wheel;

pub use config::{LossDetection, ReceiverConfig, Reduction, RtoForm, SendBuffer, SenderConfig};
pub use prefetch::{prefetch, prefetch_behind};
pub use prr::Prr;
pub use ranges::{Range, RangeSet};
pub use receiver::{AckFlags, Acknowledgement, Receiver, SegmentIn, SACK_BLOCKS};
pub use rtt::RttEstimator;
pub use sender::{EventKind, Segment, Sender, SenderEvent, SenderStats, State};
