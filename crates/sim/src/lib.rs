#![doc = include_str!("../README.md")]

pub mod accurate;
pub mod application;
pub mod background;
pub mod breaker;
mod clock;
pub mod config;
mod ends;
mod engine;
mod error;
mod memory;
pub mod misbehaving;
mod network;
pub mod rng;
mod summary;
pub mod tables;
pub mod traffic;

pub use ends::stack::StackCounts;
pub use engine::{Held, Outcome, Seen, Sim};
pub use error::SimError;
pub use lfn_path::Ecn;
pub use network::{ack_path, impair};
pub use summary::{
    BackgroundSummary, ClassSummary, ClassesSummary, Conservation, FlowSummary, Frames, LinkSummary, Marks,
    Memory, Summary,
};
pub use tables::Tables;
