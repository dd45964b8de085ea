#![doc = include_str!("../README.md")]

pub mod ack_path;
pub mod application;
pub mod background;
pub mod breaker;
pub mod config;
mod delays;
mod engine;
mod events;
mod flow;
mod ids;
pub mod impair;
mod memory;
pub mod misbehaving;
mod packet;
pub mod rng;
mod scheduler;
mod summary;
pub mod tables;
pub mod traffic;

pub use engine::{Held, Outcome, Sim, SimError};
pub use summary::{BackgroundSummary, Conservation, FlowSummary, LinkSummary, Memory, Summary};
pub use tables::Tables;
