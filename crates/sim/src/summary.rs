//! The summary of a run. It is serialised as it stands: names are the keys of `summary.json`, and the sentences
//! are its documentation (docs/reference/summary.schema.json, made by the test at the end).

use lfn_path::{ClassCounts, ClassView, Classes};
use lfn_units::Time;
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The summary of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Summary {
    /// Hash of every ACK that reached a sender and of all counters, 16 hexadecimal digits.
    pub hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated time.
    pub sim_s: f64,
    /// Time at which averages and counters of links begin.
    pub warmup_s: f64,
    /// Data packets that links delivered, each link counted on its own, background included, whole run; in a
    /// dumbbell, through the bottleneck.
    pub data_packets_delivered: u64,
    /// Events that the engine processed.
    pub events: u64,
    /// Jain's fairness index of the goodput of the flows that were active after the warm-up; null for one such flow, and
    /// if none delivered anything.
    pub jain: Option<f64>,
    /// Mean over flows of the coefficient of variation (population standard deviation over mean) of goodput
    /// in bins of 1 s; null below two bins.
    pub cov: Option<f64>,
    /// Flows under test.
    pub flows: Vec<FlowSummary>,
    /// Links; in a dumbbell forward, then reverse.
    pub links: Vec<LinkSummary>,
    /// Times at which the schedule changed a link or a route.
    pub changes_s: Vec<f64>,
    /// UDP sources; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpSummary>,
    /// Rows that a recording of packets would have had without its limit; absent without a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_rows: Option<u64>,
    /// Background traffic in sum; null without any.
    pub background: Option<BackgroundSummary>,
    /// Traffic models; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<BackgroundSummary>,
    /// Where every data packet of all flows is.
    pub conservation: Conservation,
    /// Memory held for packets and flows.
    pub memory: Memory,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct FlowSummary {
    /// Number from 0, in the order of the scenario; column `flow` of the tables.
    pub id: u32,
    /// Parallel connections of the flow; absent if it is one. Counters, goodput and mean window are their
    /// sum, `srtt_s` their mean; smallest and largest are those of any one.
    #[serde(skip_serializing_if = "is_one")]
    pub streams: u32,
    /// NAME or NAME:VARIANT of the law; of a law in Python `NAME (prototype)`; `udt/LAW` if a TCP law drives
    /// UDT.
    pub law: String,
    /// `udt`, or `stack` of a whole stack; absent over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Links of its data, from the beginning and from each change of route on.
    pub routes: Vec<RouteSummary>,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Size of a full packet at a queue.
    pub wire_bytes: u32,
    /// Base round-trip time.
    pub rtt_s: f64,
    /// Start time.
    pub start_s: f64,
    /// When its application stops; absent at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_s: Option<f64>,
    /// Payload to deliver, in whole segments; absent without an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Payload that its application writes, of each stream, while it is active; absent if there is always more to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_bps: Option<f64>,
    /// Payload delivered per second while the flow was active: from the later of start and warm-up until its last byte
    /// was acknowledged, or to the end of the run; null for a flow that was not active after the warm-up.
    pub goodput_bps: Option<f64>,
    /// When that was.
    #[serde(skip)]
    pub active: Active,
    /// Payload on its way, or that waited at the receiver for what was missing, when the warm-up ended.
    #[serde(skip)]
    pub outstanding_bytes: u64,
    /// Payload that arrived and was acknowledged since the warm-up.
    pub delivered_bytes: u64,
    /// Payload that the receiver acknowledged since the warm-up, arrived or not; absent unless it acknowledges what has
    /// not arrived (`misbehaves = "optimistic"`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_bytes: Option<u64>,
    /// Segments sent, whole run.
    pub sent: u64,
    /// Retransmissions, whole run.
    pub retransmits: u64,
    /// Retransmission timeouts, whole run.
    pub timeouts: u64,
    /// Reductions of the window, whole run.
    pub loss_events: u64,
    /// Reductions undone, whole run.
    pub undos: u64,
    /// Congestion window, mean over the time while the flow was active after the warm-up; null for a flow that was not,
    /// and for a law that keeps no window (rcp, jetmax).
    pub mean_cwnd_segments: Option<f64>,
    /// Smallest congestion window in that time.
    pub min_cwnd_segments: Option<f64>,
    /// Largest congestion window in that time.
    pub max_cwnd_segments: Option<f64>,
    /// Smoothed RTT at the end; null without a sample.
    pub srtt_s: Option<f64>,
    /// Smallest RTT; null without a sample.
    pub min_rtt_s: Option<f64>,
    /// Coefficient of variation of goodput in the bins of 1 s, from the warm-up on, in all of which the flow was
    /// under way; null below two bins.
    pub cov: Option<f64>,
    /// When it ended, by its size, its stop or a breaker: its last byte was acknowledged (and had arrived); null if it
    /// was under way at the end of the run.
    pub ended_s: Option<f64>,
    /// Time from start until the last byte of its size was acknowledged (and had arrived); null without a size, or if
    /// it did not finish.
    pub completion_s: Option<f64>,
    /// Segments of its application with a deadline; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// Feedback of marks that the ends agreed on and kept: `accecn`, `classic` (RFC 3168), `dctcp` (RFC 8257), or `off`, where
    /// data were sent without ECN in the end; `mixed` if parallel connections differ; absent if the sender did not ask for ECN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<&'static str>,
    /// Marks as both ends counted them; absent unless they agreed on AccECN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<Marks>,
    /// When a circuit breaker ended it; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tripped_s: Option<f64>,
}

impl FlowSummary {
    /// Another stream of the same transfer.
    pub(crate) fn add(&mut self, stream: &FlowSummary) {
        let of_all = |least: fn(f64, f64) -> f64, a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(least(a, b)),
            (one, other) => one.or(other),
        };
        let streams = f64::from(self.streams);
        let mean = self.srtt_s.zip(stream.srtt_s).map(|(mean, one)| (mean * streams + one) / (streams + 1.0));
        self.srtt_s = mean.or(self.srtt_s).or(stream.srtt_s);
        self.streams += 1;
        self.delivered_bytes += stream.delivered_bytes;
        self.outstanding_bytes += stream.outstanding_bytes;
        self.size_bytes = self.size_bytes.zip(stream.size_bytes).map(|(a, b)| a + b);
        self.claimed_bytes = self.claimed_bytes.zip(stream.claimed_bytes).map(|(a, b)| a + b);
        self.active = self.active.and(stream.active);
        self.goodput_bps = self.active.per_s(self.delivered_bytes as f64 * 8.0);
        self.sent += stream.sent;
        self.retransmits += stream.retransmits;
        self.timeouts += stream.timeouts;
        self.loss_events += stream.loss_events;
        self.undos += stream.undos;
        self.mean_cwnd_segments = of_all(|a, b| a + b, self.mean_cwnd_segments, stream.mean_cwnd_segments);
        self.min_cwnd_segments = of_all(f64::min, self.min_cwnd_segments, stream.min_cwnd_segments);
        self.max_cwnd_segments = of_all(f64::max, self.max_cwnd_segments, stream.max_cwnd_segments);
        self.min_rtt_s = of_all(f64::min, self.min_rtt_s, stream.min_rtt_s);
        self.frames = self
            .frames
            .zip(stream.frames)
            .map(|(a, b)| Frames { due: a.due + b.due, in_time: a.in_time + b.in_time });
        if self.ecn != stream.ecn {
            self.ecn = Some("mixed");
        }
        self.marks = self
            .marks
            .zip(stream.marks)
            .map(|(a, b)| Marks { arrived: a.arrived + b.arrived, told: a.told + b.told });
        self.tripped_s = self.tripped_s.or(stream.tripped_s);
        self.ended_s = self.ended_s.zip(stream.ended_s).map(|(a, b)| a.max(b));
        self.completion_s = self.completion_s.zip(stream.completion_s).map(|(a, b)| a.max(b));
    }
}

/// Payload of so many segments; `None` without an end.
pub(crate) fn size_bytes(segments: u64, payload_bytes: u32) -> Option<u64> {
    (segments < u64::MAX).then(|| segments.saturating_mul(payload_bytes.into()))
}

/// A time in seconds; `None` for never.
pub(crate) fn some_s(time: Time) -> Option<f64> {
    (time != Time::NEVER).then(|| time.in_s())
}

/// The time after the warm-up while a flow was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// The later of start and warm-up.
    pub from: Time,
    /// The end of the flow or of the run; at most `from` if the flow was not active.
    pub to: Time,
}

impl Active {
    /// From the first beginning to the last end of both.
    fn and(self, other: Active) -> Active {
        Active { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// An amount per second of this time; `None` if it has no length.
    pub(crate) fn per_s(self, amount: f64) -> Option<f64> {
        let active_s = self.to.since(self.from).as_s();
        (active_s > 0.0).then(|| amount / active_s)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(streams: &u32) -> bool {
    *streams == 1
}

/// A route that a flow's data take for some time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct RouteSummary {
    /// Time from which it holds.
    pub from_s: f64,
    /// Names of the links, in the order in which a packet passes them.
    pub links: Vec<String>,
}

/// A rate that a link has for some time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct RateSummary {
    /// Time from which it holds.
    pub from_s: f64,
    /// Rate; of a trace the mean, in IP packets of 1500 bytes; 0 while the link is down.
    pub rate_bps: u64,
}

/// A link.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct LinkSummary {
    /// Name; `forward` or `reverse` in a dumbbell.
    pub id: String,
    /// Rate at the end; of a trace the mean, in IP packets of 1500 bytes.
    pub rate_bps: u64,
    /// Rates, from the beginning and from each change on.
    pub rates: Vec<RateSummary>,
    /// Opportunities of its trace since the warm-up; absent without a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opportunities: Option<u64>,
    /// Bytes sent over those that could have been sent, since the warm-up; from 0 to 1, and 0 if none could.
    pub utilization: f64,
    /// Packets of `arrivals` that came before the warm-up.
    #[serde(skip)]
    pub held_before: u64,
    /// Packets offered since the warm-up, or held by the link then, ACKs included; 0 on a link that carries
    /// only ACKs and has room for all, which is a pure delay.
    pub arrivals: u64,
    /// Packets dropped by the queue since the warm-up.
    pub drops: u64,
    /// Packets of `drops` that the AQM dropped before the queue was full.
    pub early_drops: u64,
    /// Packets that the AQM marked since the warm-up.
    pub marks: u64,
    /// Packets of data and of handshakes lost at random behind the queue, whole run; not the ACKs that `acks` loses.
    pub random_losses: u64,
    /// Mean waiting time since the warm-up.
    pub mean_queue_s: f64,
    /// 99th percentile of the waiting time since the warm-up.
    pub p99_queue_s: f64,
    /// Largest number of packets that waited since the warm-up.
    pub max_queue_packets: u64,
    /// L4S and Classic packets apart, since the warm-up; absent where the queue does not tell them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassesSummary>,
}

/// A queue for L4S beside one for Classic packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ClassesSummary {
    /// The base probability p' (RFC 9332) at the end.
    pub probability: f64,
    /// Packets that were ECT(1) or CE.
    pub l4s: ClassSummary,
    /// The others.
    pub classic: ClassSummary,
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ClassSummary {
    /// Packets that left it to be sent.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Packets that it marked.
    pub marks: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Mean waiting time; null if no packet left.
    pub mean_queue_s: Option<f64>,
    /// Median of the waiting time, to 2 %.
    pub p50_queue_s: Option<f64>,
    /// 90th percentile of the waiting time, to 2 %.
    pub p90_queue_s: Option<f64>,
    /// 99th percentile of the waiting time, to 2 %.
    pub p99_queue_s: Option<f64>,
    /// 99.9th percentile of the waiting time, to 2 %.
    pub p999_queue_s: Option<f64>,
}

impl ClassesSummary {
    /// Both classes of a queue in numbers.
    pub fn of(classes: &Classes) -> ClassesSummary {
        ClassesSummary {
            probability: classes.probability,
            l4s: ClassSummary::of(&classes.l4s),
            classic: ClassSummary::of(&classes.classic),
        }
    }
}

impl ClassSummary {
    fn of(view: &ClassView) -> ClassSummary {
        let ClassCounts { packets, bytes, marks, drops, delays } = view.counts;
        ClassSummary {
            packets: *packets,
            bytes: *bytes,
            marks: *marks,
            drops: *drops,
            mean_queue_s: delays.mean_s(),
            p50_queue_s: delays.quantile_s(0.5),
            p90_queue_s: delays.quantile_s(0.9),
            p99_queue_s: delays.quantile_s(0.99),
            p999_queue_s: delays.quantile_s(0.999),
        }
    }
}

/// Frames of constant rate: packets of UDP, or segments that an application writes. Those whose deadline lies between the
/// warm-up and the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Frames {
    /// All of them.
    pub due: u64,
    /// Those that were at the receiver by their deadline; over TCP in order.
    pub in_time: u64,
}

/// Packets with CE of a flow with AccECN, whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Marks {
    /// Those that arrived.
    pub arrived: u64,
    /// Those that ACKs told the sender of; under "counter" more, where lost ACKs leave only the count modulo 8.
    pub told: u64,
}

/// A UDP source, whole run, in packets.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct UdpSummary {
    /// Name.
    pub name: String,
    /// Bits sent per second over the whole run, headers included.
    pub offered_bps: f64,
    /// Bits received per second.
    pub received_bps: f64,
    /// Packets sent.
    pub sent: u64,
    /// Packets received, duplicates included.
    pub delivered: u64,
    /// Packets that queues dropped.
    pub dropped: u64,
    /// Packets lost at random behind queues.
    pub lost: u64,
    /// Mean one-way delay of the packets received since the warm-up; null if there are none.
    pub mean_delay_s: Option<f64>,
    /// 99th percentile of that delay, to 2 %.
    pub p99_delay_s: Option<f64>,
    /// Packets with a deadline; absent without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// When a circuit breaker ended it; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tripped_s: Option<f64>,
}

/// Background traffic, or a model of traffic, in sum, whole run.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct BackgroundSummary {
    /// Name of the traffic model in the scenario; absent for the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Short flows that began.
    pub flows_started: u64,
    /// Short flows that completed.
    pub flows_completed: u64,
    /// Largest number of flows at once.
    pub max_active: u64,
    /// Payload of the short flows that began, per second: forward, reverse.
    pub offered_bps: [f64; 2],
    /// Payload acknowledged per second, long flows included: forward, reverse.
    pub goodput_bps: [f64; 2],
    /// Retransmissions.
    pub retransmits: u64,
    /// Timeouts.
    pub timeouts: u64,
}

/// Data packets of all flows: `sent = dropped + lost + delivered + in_flight`, checked in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Conservation {
    /// Packets that senders sent, and duplicates that links made.
    pub sent: u64,
    /// Packets that queues dropped.
    pub dropped: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets delivered to receivers, those behind the last queue included.
    pub delivered: u64,
    /// Packets in a queue or between two links.
    pub in_flight: u64,
}

/// Memory that grows with packets in flight and with flows, at the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Memory {
    /// Memory of one flow without packets.
    pub bytes_per_flow: usize,
    /// Memory that scoreboards, receivers, delay lines and queues held.
    pub packet_bytes: usize,
}

/// docs/reference/summary.schema.json describes these types. With LFN_REGENERATE set, writes the file
/// instead.
#[test]
fn the_schema_of_the_summary_is_current() {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/summary.schema.json");
    let schema = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = schema.into_generator().into_root_schema_for::<Summary>();
    let current = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("LFN_REGENERATE").is_some() {
        std::fs::write(&file, &current).expect("docs/reference can be written");
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == current, "stale: run LFN_REGENERATE=1 cargo test -p lfn-sim --lib");
}
