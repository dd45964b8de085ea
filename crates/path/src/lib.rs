#![doc = include_str!("../README.md")]

mod ack_impair;
mod aqm;
mod classes;
mod codel;
mod counters;
mod delays;
mod drop;
mod dualpi2;
mod fifo;
mod fq_codel;
mod impair;
mod limit;
mod link;
mod packet;
mod pi;
mod pi2;
mod pie;
mod queue;
mod queued;
mod red;
mod router;
mod rule;
mod server;
mod token_bucket;
mod trace;

pub use ack_impair::AckImpair;
pub use aqm::{Aqm, AqmConfig, AqmError};
pub use classes::{ClassCounts, ClassView, Classes};
pub use codel::{Codel, CodelConfig, CodelError};
pub use counters::{Counters, DataTotals, Snapshot};
pub use delays::Delays;
pub use drop::{DropHead, DropTail};
pub use dualpi2::{DualPi2, DualPi2Config, Overload};
pub use fq_codel::{FqCodel, FqCodelConfig, FqCodelError};
pub use impair::{
    Bernoulli, BurstLoss, GilbertElliott, GilbertElliottConfig, Impair, ImpairError, Jitter, JitterConfig,
    Loss, NormalJitter, Reorder, Reordering, Turn, UniformJitter, LOSS,
};
pub use lfn_header::Ecn;
pub use limit::{DropReason, Limit};
pub use link::{Discipline, Link, Offer};
pub use packet::{Packet, PacketKind};
pub use pi::PiError;
pub use pi2::{Pi2, Pi2Config};
pub use pie::{Pie, PieConfig, PieError};
pub use queued::{QueuedLink, Service};
pub use red::{Red, RedConfig, RedError, RedPreset, RedRules, Threshold, Thresholds, Weight};
pub use router::{JetMaxConfig, RcpConfig, Router, RouterConfig, VcpCompat, VcpConfig, XcpConfig};
pub use token_bucket::{Policer, Shaper};
pub use trace::{DeliveryTrace, TraceError};
