//! Path elements: queues and their management, and the server behind them. None knows a clock or a
//! source of randomness: the time and the draws are arguments.

mod link;
mod red;

pub use link::{Counters, DataTotals, Discipline, DropReason, Link, Offer, PacketKind};
pub use red::{QueueState, Red, RedConfig, RedError, Thresholds, Verdict, Weight};
