//! Links, what happens on them, and how they make up a network.

use lfn_path::DeliveryTrace;
use lfn_units::{Rate, Time};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

use super::queue::Queue;
use super::router::Router;
use crate::file::File;
use crate::quantity::{Name, Text};

/// The links and what they connect: a dumbbell, a parking lot, or any directed graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Topology {
    /// One bottleneck. Its directions are the links `forward` and `reverse`.
    #[serde(rename = "link")]
    Dumbbell(Link),
    /// Equal hops in a row between the routers 1, 2, 3, ... Hop k leads from router k to router k+1; its
    /// directions are the links `hopK` and `hopK.reverse`.
    #[serde(rename = "parking-lot")]
    ParkingLot(ParkingLot),
    /// Any links between any nodes, 65535 directions at most.
    #[serde(rename = "links")]
    Graph(Vec<NamedLink>),
}

/// How departures from a link are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Mode {
    /// In closed form at arrival, where that is possible.
    Closed,
    /// By one event for each; the results are the same.
    Event,
}

/// One direction of a link: a queue, a server, and what happens behind it. The direction `reverse` of a
/// link is like the other one, except in what it says itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct OneWay {
    /// How fast packets are serialised, 1kbit/s to 10Tbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// In place of a rate: a file with a line for each opportunity to send 1500 bytes, its time in ms
    /// (mahimahi's format), or a table of its `path` and `hash`. It repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<File<DeliveryTrace>>,
    /// Propagation delay, up to 1000s. Default "0s": what is left of a flow's RTT lies at its ends.
    pub delay: Text<Time>,
    /// Data packets lost behind the queue: a probability of at least 0 and below 1, or a table for losses
    /// in bursts. Default 0.
    pub loss: Loss,
    /// Probability that a data packet arrives twice, at least 0, below 1. Default 0.
    #[cfg_attr(test, schemars(range(min = 0), extend("exclusiveMaximum" = 1)))]
    pub duplicate: f64,
    /// Data packets that are held up, so that others overtake them. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// An additional delay, drawn for each data packet. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// The queue in front of it.
    pub queue: Queue,
    /// What it tells the senders of the data that pass it, beside whatever queue. Default nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub router: Option<Router>,
}

impl OneWay {
    /// How fast it is; of a trace, in the mean.
    pub(crate) fn mean_rate(&self) -> Rate {
        match (&self.rate, &self.trace) {
            (Some(rate), _) => rate.0,
            (None, Some(trace)) => trace.content.mean_rate(),
            (None, None) => Rate(0),
        }
    }
}

/// Loss of data packets behind a queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Loss {
    /// Each with this probability.
    Bernoulli(#[cfg_attr(test, schemars(range(min = 0), extend("exclusiveMaximum" = 1)))] f64),
    /// In bursts.
    Bursts(BurstLoss),
}

/// Loss in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum BurstLoss {
    /// A good and a bad state.
    GilbertElliott(GilbertElliott),
}

/// Losses in bursts (Gilbert 1960, Elliott 1963): before each packet the path may change between a good
/// and a bad state. The mean loss is (r good + p bad) / (p + r).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["p", "r"])))]
pub struct GilbertElliott {
    /// Probability to turn from good to bad, at most 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub p: f64,
    /// Probability to turn from bad to good, above 0, at most 1: a bad time lasts 1/r packets in the mean.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub r: f64,
    /// Loss in the good state, at most 1. Default 0.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub good: f64,
    /// Loss in the bad state, at most 1. Default 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub bad: f64,
}

/// Some packets are held up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct Reorder {
    /// Probability that a packet is, at least 0, at most 1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub p: f64,
    /// For how long.
    pub delay: Text<Time>,
}

/// An additional delay and its distribution. Default "uniform".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Jitter {
    /// Uniform between two delays.
    Uniform(UniformJitter),
    /// Normal, cut at 0 and at twice the mean.
    Normal(NormalJitter),
}

/// Uniform jitter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["high"])))]
pub struct UniformJitter {
    /// The least delay. Default "0s".
    pub low: Text<Time>,
    /// The longest.
    pub high: Text<Time>,
    /// A packet that would overtake waits for its predecessor. Default true.
    pub keep_order: bool,
}

/// Normal jitter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["mean", "deviation"])))]
pub struct NormalJitter {
    /// The mean.
    pub mean: Text<Time>,
    /// The standard deviation before the cut, at most the mean.
    pub deviation: Text<Time>,
    /// A packet that would overtake waits for its predecessor. Default true.
    pub keep_order: bool,
}

/// The bottleneck of a dumbbell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Link {
    /// Forward.
    #[serde(flatten)]
    pub forward: OneWay,
    /// "closed", or "event" for tests. Default "closed".
    pub mode: Mode,
    /// The opposite direction. Default: as forward.
    pub reverse: OneWay,
}

/// Equal hops in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["hops"])))]
pub struct ParkingLot {
    /// How many, 1 to 32767.
    #[cfg_attr(test, schemars(range(min = 1, max = 32767)))]
    pub hops: u32,
    /// Each of them.
    #[serde(flatten)]
    pub forward: OneWay,
    /// "closed", or "event" for tests. Default "closed".
    pub mode: Mode,
    /// The opposite direction. Default: as forward.
    pub reverse: OneWay,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["name", "from", "to"])))]
pub struct NamedLink {
    /// Its name in routes, schedules and results: letters, digits, `_` and `-`. The opposite direction is
    /// NAME.reverse.
    pub name: Name,
    /// The node where it begins. Nodes exist by being named.
    pub from: Name,
    /// The node where it ends.
    pub to: Name,
    /// In this direction.
    #[serde(flatten)]
    pub forward: OneWay,
    /// "closed", or "event" for tests. Default "closed".
    pub mode: Mode,
    /// Whether there is an opposite direction. Default true.
    pub duplex: bool,
    /// The opposite direction. Default: the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<OneWay>,
}
