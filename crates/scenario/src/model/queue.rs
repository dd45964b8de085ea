//! Queues and their parameters.

use lfn_units::{Bytes, Time};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::quantity::{BufferSize, Packets, Text};

/// A queue and what it does when it fills. Default: drop-tail of 1bdp.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Queue {
    /// Drops what does not fit.
    DropTail(Fifo),
    /// Drops what has waited longest until the new packet fits.
    DropHead(Fifo),
    /// Random early detection.
    Red(Red),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// A queue and a CoDel for each flow (RFC 8290).
    FqCodel(FqCodel),
    /// Proportional-integral controller of the delay (RFC 8033).
    Pie(Pie),
}

/// A queue that only has a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Fifo {
    /// Room in packets, in bytes, or in products of the rate and the largest base RTT of the flows that
    /// pass (of all flows if none does), one packet at least. Of a trace, the mean rate. Default "1bdp".
    pub size: Text<BufferSize>,
}

/// A queue with random early detection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Red {
    /// Room, as for drop-tail. Default "1bdp".
    pub size: Text<BufferSize>,
    /// Where the defaults of the other keys come from. Default "gentle".
    pub preset: RedPreset,
    /// Average queue where early drops begin; with `max_th`. Default 5 packets in "classic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_th: Option<Text<Packets>>,
    /// Average queue where drops become certain, or the gentle slope begins; with `min_th`. Default 15
    /// packets in "classic".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_th: Option<Text<Packets>>,
    /// Queueing delay aimed at, from which both thresholds follow; not with `min_th`. Default 5ms in
    /// "gentle" and "adaptive".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Text<Time>>,
    /// Weight of a sample in the average queue, above 0, at most 1, or "auto" for a time constant of
    /// ten round trips. Default 0.002 in "classic", else "auto".
    pub weight: Weight,
    /// Drop probability at `max_th`, above 0, at most 1. Default 0.1.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub max_p: f64,
    /// Beyond `max_th` let the probability rise to 1 at twice that instead of jumping there. Default
    /// false in "classic".
    pub gentle: bool,
    /// Let `max_p` follow the average every 0.5s. Default true in "adaptive".
    pub adaptive: bool,
    /// Space drops 1/p to 2/p packets apart instead of 1 to 1/p. Default false in "classic".
    pub wait: bool,
    /// Measure the queue in bytes, and drop in proportion to a packet's size. Default false.
    pub byte_mode: bool,
    /// Mark packets of flows with `ecn` instead of dropping them. Default true in "adaptive".
    pub ecn: bool,
    /// Mark only while the probability is below this, else drop; above 0, at most 1, which marks also where drops
    /// are certain. Default 0.1.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub mark_p: f64,
}

/// A set of RED parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum RedPreset {
    /// As Floyd and Jacobson published it in 1993, for megabits per second.
    Classic,
    /// The defaults of ns-2.35, counted in packets.
    Gentle,
    /// Gentle, with marks and a `max_p` that adapts.
    Adaptive,
}

/// Weight of a sample in RED's average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// From the link's rate.
    Auto,
    /// This weight.
    Fixed(f64),
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Weight::Auto => serializer.serialize_str("auto"),
            Weight::Fixed(weight) => serializer.serialize_f64(weight),
        }
    }
}

/// A queue that keeps its delay near a target by drops at departure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Codel {
    /// Room, as for drop-tail. Default "1bdp".
    pub size: Text<BufferSize>,
    /// Standing delay that is acceptable. Default "5ms".
    pub target: Text<Time>,
    /// How long the delay may stand above it: about the longest usual RTT. Default "100ms".
    pub interval: Text<Time>,
    /// Mark packets of flows with `ecn` instead of dropping them. Default false.
    pub ecn: bool,
}

/// Queues that flows are hashed to, each with its own CoDel, served in turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct FqCodel {
    /// Room of all queues together, as for drop-tail; RFC 8290 proposes 10240 packets. Default "1bdp".
    pub size: Text<BufferSize>,
    /// Number of queues, 1 to 65536. Default 1024.
    #[cfg_attr(test, schemars(range(min = 1, max = 65536)))]
    pub queues: u32,
    /// What a queue may send in its turn, 1B to 64kB. Default: the largest packet of the flows on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Text<Bytes>>,
    /// Standing delay that is acceptable. Default "5ms".
    pub target: Text<Time>,
    /// How long the delay may stand above it. Default "100ms".
    pub interval: Text<Time>,
    /// Mark packets of flows with `ecn` instead of dropping them. Default true.
    pub ecn: bool,
}

/// A queue that keeps its delay near a target by drops at arrival.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Pie {
    /// Room, as for drop-tail. Default "1bdp".
    pub size: Text<BufferSize>,
    /// Queueing delay wanted. Default "15ms".
    pub target: Text<Time>,
    /// From one update of the drop probability to the next. Default "15ms".
    pub update: Text<Time>,
    /// Weight of the deviation from the target, 1/s, at least 0. Default 0.125.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub alpha: f64,
    /// Weight of the change since the last update, 1/s, at least 0. Default 1.25.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub beta: f64,
    /// After an idle time, how long a burst may last before anything is dropped. Default "150ms".
    pub burst: Text<Time>,
    /// Drop in proportion to a packet's size. Default false.
    pub byte_mode: bool,
    /// Mark packets of flows with `ecn` instead of dropping them, while the probability is below 0.1.
    /// Default false.
    pub ecn: bool,
}

impl Queue {
    /// Its room.
    pub(crate) fn size(&self) -> BufferSize {
        match self {
            Queue::DropTail(queue) | Queue::DropHead(queue) => queue.size.0,
            Queue::Red(queue) => queue.size.0,
            Queue::Codel(queue) => queue.size.0,
            Queue::FqCodel(queue) => queue.size.0,
            Queue::Pie(queue) => queue.size.0,
        }
    }
}
