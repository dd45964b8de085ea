//! One run in numbers. Serialised as it stands: names are the JSON's.

use serde::Serialize;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Hash of every ACK that reached a sender and of all counters, 16 hexadecimal digits.
    pub hash: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated time.
    pub sim_s: f64,
    /// Statistics below count from here.
    pub warmup_s: f64,
    /// Data packets that left the bottleneck, both directions, whole run.
    pub data_packets_delivered: u64,
    /// Events processed.
    pub events: u64,
    /// Jain's index of the flows' goodput; null if no flow delivered anything.
    pub jain: Option<f64>,
    /// Mean over flows of the coefficient of variation of goodput in bins of 1 s; null for runs
    /// shorter than two bins.
    pub cov: Option<f64>,
    /// The flows.
    pub flows: Vec<FlowSummary>,
    /// The links.
    pub links: Vec<LinkSummary>,
    /// When the schedule changed a link or a route.
    pub changes_s: Vec<f64>,
    /// UDP sources; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpSummary>,
    /// Rows that a recording of packets would have had without its limit; null without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_rows: Option<u64>,
    /// Background traffic, if there was any.
    pub background: Option<BackgroundSummary>,
    /// Models of TCP traffic; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<BackgroundSummary>,
    /// Where every data packet is.
    pub conservation: Conservation,
    /// Largest memory held for packets and flows.
    pub memory: Memory,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowSummary {
    /// Number, from 0, in the order of the scenario.
    pub id: u32,
    /// Parallel connections that it is the sum of; left out if it is one.
    #[serde(skip_serializing_if = "is_one")]
    pub streams: u32,
    /// Law and variant; `udt/LAW` where a law of TCP's drives UDT.
    pub law: String,
    /// `udt`; left out over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// forward or reverse.
    pub direction: &'static str,
    /// Links of its data, from the beginning of the run and from each change on.
    pub routes: Vec<RouteSummary>,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// A full packet at a queue.
    pub wire_bytes: u32,
    /// Base round-trip time.
    pub rtt_s: f64,
    /// When it began.
    pub start_s: f64,
    /// Payload acknowledged per second, from the later of start and warm-up to the end of the flow.
    pub goodput_bps: f64,
    /// How long that was.
    #[serde(skip)]
    pub active_s: f64,
    /// Payload acknowledged since the warm-up.
    pub delivered_bytes: u64,
    /// Segments sent, whole run.
    pub sent: u64,
    /// Retransmissions, whole run.
    pub retransmits: u64,
    /// Retransmission timeouts, whole run.
    pub timeouts: u64,
    /// Reductions of the window, whole run.
    pub loss_events: u64,
    /// Reductions taken back, whole run.
    pub undos: u64,
    /// Time average.
    pub mean_cwnd_segments: f64,
    /// Smallest.
    pub min_cwnd_segments: f64,
    /// Largest.
    pub max_cwnd_segments: f64,
    /// Smoothed RTT at the end.
    pub srtt_s: f64,
    /// Smallest RTT.
    pub min_rtt_s: f64,
    /// Coefficient of variation of goodput in bins of 1 s.
    pub cov: Option<f64>,
    /// From start until the last byte was acknowledged; null if it has no size or did not finish.
    pub completion_s: Option<f64>,
}

impl FlowSummary {
    /// Another stream of the same transfer.
    pub(crate) fn add(&mut self, stream: &FlowSummary) {
        self.srtt_s = (self.srtt_s * f64::from(self.streams) + stream.srtt_s) / f64::from(self.streams + 1);
        self.streams += 1;
        self.delivered_bytes += stream.delivered_bytes;
        self.active_s = self.active_s.max(stream.active_s);
        if self.active_s > 0.0 {
            self.goodput_bps = self.delivered_bytes as f64 * 8.0 / self.active_s;
        }
        self.sent += stream.sent;
        self.retransmits += stream.retransmits;
        self.timeouts += stream.timeouts;
        self.loss_events += stream.loss_events;
        self.undos += stream.undos;
        self.mean_cwnd_segments += stream.mean_cwnd_segments;
        self.min_cwnd_segments = self.min_cwnd_segments.min(stream.min_cwnd_segments);
        self.max_cwnd_segments = self.max_cwnd_segments.max(stream.max_cwnd_segments);
        self.min_rtt_s = self.min_rtt_s.min(stream.min_rtt_s);
        self.completion_s = self.completion_s.zip(stream.completion_s).map(|(a, b)| a.max(b));
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(streams: &u32) -> bool {
    *streams == 1
}

/// A route that a flow's data take for some time.
#[derive(Clone, Debug, Serialize)]
pub struct RouteSummary {
    /// Since when.
    pub from_s: f64,
    /// Names of its links, in the order in which a packet meets them.
    pub links: Vec<String>,
}

/// A rate that a link has for some time.
#[derive(Clone, Debug, Serialize)]
pub struct RateSummary {
    /// Since when.
    pub from_s: f64,
    /// Bits per second; of a trace the mean.
    pub rate_bps: u64,
}

/// A link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkSummary {
    /// Its name; forward or reverse in a dumbbell.
    pub id: String,
    /// Rate at the end.
    pub rate_bps: u64,
    /// Its rates, from the beginning of the run and from each change on.
    pub rates: Vec<RateSummary>,
    /// Bits sent over capacity.
    pub utilization: f64,
    /// Packets offered.
    pub arrivals: u64,
    /// Packets dropped by queue or AQM.
    pub drops: u64,
    /// Of those, by the AQM before the queue was full.
    pub early_drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets lost at random behind the queue, whole run.
    pub random_losses: u64,
    /// Mean waiting time.
    pub mean_queue_s: f64,
    /// 99th percentile of the waiting time.
    pub p99_queue_s: f64,
    /// Most packets that waited.
    pub max_queue_packets: u64,
}

/// A UDP source, whole run, in packets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UdpSummary {
    /// Its name.
    pub name: String,
    /// Bits sent per second over the whole run, headers included.
    pub offered_bps: f64,
    /// Bits received per second.
    pub received_bps: f64,
    /// Packets sent.
    pub sent: u64,
    /// Of those, received, duplicates included.
    pub delivered: u64,
    /// Dropped by queues.
    pub dropped: u64,
    /// Lost behind queues, or about to be.
    pub lost: u64,
}

/// Background traffic, or a model of traffic, in sum, whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackgroundSummary {
    /// Of a model of traffic, as the scenario calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Short flows begun.
    pub flows_started: u64,
    /// Short flows done.
    pub flows_completed: u64,
    /// Most flows at once.
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
pub struct Conservation {
    /// By the senders, and duplicates that links made.
    pub sent: u64,
    /// By queues.
    pub dropped: u64,
    /// At random.
    pub lost: u64,
    /// To receivers; those behind the last queue count, though some are still on the line.
    pub delivered: u64,
    /// In a queue, or between two links.
    pub in_flight: u64,
}

/// Memory that grows with packets in flight and with flows, at the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// One flow without packets.
    pub bytes_per_flow: usize,
    /// Held by scoreboards, receivers, lines, and queues.
    pub packet_bytes: usize,
}
