//! The scenario as a value: what the TOML says, with every default filled in.
//!
//! The comments on the fields are the reference of the format; `docs/reference/scenario.schema.json`
//! is made from them.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_units::{Bytes, Rate, Time};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::quantity::{BufferSize, Packets, Sample, Start, Text, Window};

/// A dumbbell: any number of flows through one bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["schema", "duration", "link"])))]
pub struct Scenario {
    /// Version of this format: 1.
    #[cfg_attr(test, schemars(range(min = 1, max = 1)))]
    pub schema: u32,
    /// Free text that names the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of every random stream, at least 0. Default 1.
    pub seed: u64,
    /// Simulated time, 1us to 30 days.
    pub duration: Text<Time>,
    /// Summary statistics begin here, before the end of the run. Default "0s".
    pub warmup: Text<Time>,
    /// Grid of the tables `flows` and `queues`, or "off". Default "10ms".
    pub sample: Text<Sample>,
    /// Which TCP. Default "linux".
    pub compat: Compat,
    /// The bottleneck.
    pub link: Link,
    /// Groups of equal flows that are reported one by one. Without any, there must be background.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Flow>,
    /// Short flows and capped long ones, reported in sum. Default none.
    pub background: Background,
}

/// What a sender and a receiver do where a flow does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Compat {
    /// Today's Linux: 14 bytes of framing and 52 of headers in a packet.
    Linux,
    /// The papers' ns-2: initial window 2, no delayed ACK, losses by three duplicate ACKs, the window
    /// halved at once, no tail loss probe, classic slow start, RTO of RFC 6298; 40 bytes of headers
    /// and no framing; a queue of n packets holds n-1.
    Ns2,
}

/// How departures from a link are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Mode {
    /// In closed form at arrival.
    Closed,
    /// By one event for each; the results are the same.
    Event,
}

/// The bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["rate"])))]
pub struct Link {
    /// Rate in the forward direction, 1kbit/s to 10Tbit/s.
    pub rate: Text<Rate>,
    /// "closed", or "event" for tests. Default "closed".
    pub mode: Mode,
    /// Probability that a data packet is lost behind the queue, at least 0, below 1. Default 0.
    #[cfg_attr(test, schemars(range(min = 0), extend("exclusiveMaximum" = 1)))]
    pub loss: f64,
    /// The queue in front of it.
    pub queue: Queue,
    /// The opposite direction. Default: the same rate, loss and queue.
    pub reverse: Reverse,
}

/// The bottleneck of the opposite direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Reverse {
    /// Rate. Default: as forward.
    pub rate: Text<Rate>,
    /// Probability that a data packet is lost. Default: as forward.
    #[cfg_attr(test, schemars(range(min = 0), extend("exclusiveMaximum" = 1)))]
    pub loss: f64,
    /// Queue. Default: as forward.
    pub queue: Queue,
}

/// A queue and what it does when it fills. Default: drop-tail of 1bdp.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Queue {
    /// Drops what does not fit.
    DropTail(DropTail),
    /// Random early detection.
    Red(Red),
}

/// A queue that drops what does not fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct DropTail {
    /// Room in packets, in bytes, or in products of the rate and the largest base RTT of the flows,
    /// one packet at least. Default "1bdp".
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
    /// Space drops 1/p to 2/p packets apart instead of 1 to 1/p. Default false in "classic".
    pub wait: bool,
    /// Mark packets of flows with `ecn` instead of dropping them. Default true in "adaptive".
    pub ecn: bool,
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

/// Flows that differ in nothing but their random start.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = ["law", "rtt"])))]
pub struct Flow {
    /// Congestion-control law, NAME or NAME:VARIANT.
    pub law: Text<LawSpec>,
    /// How many such flows. Default 1.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub count: u32,
    /// Round-trip time without queueing and serialisation, 1ns to 1000s.
    pub rtt: Text<Time>,
    /// When it begins: a time, or "uniform(LOW, HIGH)", drawn for each flow. Default "0s".
    pub start: Text<Start>,
    /// When it stops to send. Default: at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Text<Time>>,
    /// Payload to deliver, after which the flow ends. Default: no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Text<Bytes>>,
    /// Which way its data go. Default "forward".
    pub direction: Direction,
    /// IP packet (MTU), 64B to 64kB. Default "1500B".
    pub packet: Text<Bytes>,
    /// Most data outstanding, in packets or bytes. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_window: Option<Text<Window>>,
    /// Initial window. Default 10 packets, with `compat = "ns2"` 2 packets.
    pub initial_window: Text<Packets>,
    /// Initial ssthresh, 2 packets at least. Default: infinite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Text<Packets>>,
    /// Slow start. Default: what the law's registry line says, with `compat = "ns2"` classic.
    pub slow_start: Text<SlowStartKind>,
    /// An ACK for every second segment instead of every one. Default true, with `compat = "ns2"` false.
    pub delayed_ack: bool,
    /// Selective acknowledgement. Default true.
    pub sack: bool,
    /// Explicit congestion notification. Default false.
    pub ecn: bool,
    /// Pace at 2 cwnd/srtt in slow start and 1.2 cwnd/srtt after, even if the law does not ask for it.
    /// Default false.
    pub pacing: bool,
}

/// Which way a flow's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Direction {
    /// On the link.
    Forward,
    /// On `link.reverse`.
    Reverse,
}

/// Traffic of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Background {
    /// Offered load of short flows: 0, 1, 2 or 3 for nothing, 10 %, 25 % or 40 % of the rate forward
    /// and half of that in reverse. Default 0.
    #[cfg_attr(test, schemars(range(max = 3)))]
    pub level: u8,
    /// Long flows in each direction, of at most 20 packets each. Default 10, at level 0 none.
    pub long_flows: u32,
}
