//! Path elements: queues and their management, and the server behind them. None knows a clock or a
//! source of randomness: the time and the draws are arguments.

mod counters;
mod fifo;
mod limit;
mod link;
mod packet;
mod queued;
mod red;
mod server;

pub use counters::{Counters, DataTotals};
pub use limit::DropReason;
pub use link::{Discipline, Link, Offer};
pub use packet::{Packet, PacketKind};
pub use queued::{Aqm, QueuedLink};
pub use red::{QueueState, Red, RedConfig, RedError, Thresholds, Verdict, Weight};
