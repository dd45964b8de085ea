//! The tables of a run's results, each column declared once: name, type, unit and meaning. Rows, columns, their
//! sizes, the arrays in Python, the polars schema and docs/results.md follow from this list.

mod declare;

use declare::{codes, tables, Named};
pub use declare::{Cell, Column, ColumnSchema, TableSchema};
use lfn_path::{Counters, Snapshot};
use lfn_tcp::{EventKind, State};
use lfn_units::Time;
use serde::{Deserialize, Serialize};

use crate::traffic::Direction;

tables! {
    /// a sample of a flow; of parallel streams the sum, with RTTs, state and probes of the first that is active
    #[derive(Default)]
    flows: FlowRow in FlowTable {
        /// Simulated time.
        t_s: f64, "s";
        /// `id` of the flow in the summary.
        flow: u32, "";
        /// Congestion window; of a law that keeps none (rcp, jetmax) the bound on what a broken path swallows.
        cwnd_seg: f64, "segments";
        /// Slow-start threshold; infinite before the first reduction.
        ssthresh_seg: f64, "segments";
        /// Smoothed RTT.
        srtt_s: f64, "s";
        /// Latest RTT sample.
        rtt_s: f64, "s";
        /// Segments in the network, as the sender estimates (RFC 6675 pipe).
        inflight_seg: u32, "segments";
        /// Payload acknowledged since the flow began: what arrived in order.
        delivered_bytes: u64, "B";
        /// Payload that arrived since the flow began, in order or not: what is acknowledged also selectively (SACK).
        /// Over UDT, whose ACKs are cumulative, what its receiver has.
        arrived_bytes: u64, "B";
        /// Segments sent again, since the flow began.
        retransmits: u64, "segments";
        /// Congestion state of the sender.
        state: State, "";
        /// Pacing rate; 0 without pacing.
        pacing_bps: f64, "bit/s";
    }

    /// a sample of a link
    #[derive(Serialize, Deserialize)]
    queues: QueueRow in QueueTable {
        /// Simulated time.
        t_s: f64, "s";
        /// Place of the link in the summary's `links`; in a dumbbell 0 is forward, 1 reverse.
        link: u16, "";
        /// Packets that wait.
        packets: u32, "packets";
        /// Bytes that wait.
        bytes: u64, "B";
        /// Packets that arrived at the queue since the warm-up.
        arrivals: u64, "packets";
        /// Packets that the queue dropped since the warm-up.
        drops: u64, "packets";
        /// Packets that the queue marked since the warm-up.
        marks: u64, "packets";
        /// Bytes sent since the warm-up, with the sent part of the packet in service; on a link that follows a trace,
        /// bytes used of its opportunities before this time.
        sent_bytes: u64, "B";
        /// Bytes that could have been sent since the warm-up: by the link's rates, at its trace's opportunities, by a
        /// shaper's tokens that came.
        capacity_bytes: f64, "B";
        /// Time that the link needs for the packets that wait; infinite while it is down.
        drain_s: Wait, "s";
    }

    /// a congestion event of a flow
    events: EventRow in EventTable {
        /// Simulated time.
        t_s: f64, "s";
        /// `id` of the flow in the summary.
        flow: u32, "";
        /// Kind of the event.
        kind: EventKind, "";
        /// Congestion window before the event.
        cwnd_before_seg: f64, "segments";
        /// Congestion window after the event.
        cwnd_after_seg: f64, "segments";
        /// Slow-start threshold that the law set.
        ssthresh_seg: f64, "segments";
        /// Segments marked lost so far in the episode.
        lost: u32, "segments";
    }

    /// a sample of a variable of a law
    probes: ProbeRow in ProbeTable {
        /// Simulated time.
        t_s: f64, "s";
        /// `id` of the flow in the summary.
        flow: u32, "";
        /// Place of the variable in the law's list (`lfn laws NAME --json`).
        probe: u8, "";
        /// Value of the variable.
        value: f64, "";
    }

    /// a transfer of a traffic model that began after the warm-up and is complete
    transfers: TransferRow in TransferTable {
        /// Time at which the last byte reached the receiver.
        t_s: f64, "s";
        /// Place of the model in the scenario, after the background if there is one.
        traffic: u16, "";
        /// Direction of the data.
        direction: Direction, "";
        /// Payload.
        bytes: u64, "B";
        /// Time from the first byte at the sender to the last byte at the receiver.
        duration_s: f64, "s";
    }

    /// a packet at a point of a link, where packets are recorded
    packets: PacketRow in PacketTable {
        /// Simulated time.
        t_ps: u64, "ps";
        /// Place of the link in the summary's `links`.
        link: u16, "";
        /// Point of the link.
        point: Point, "";
        /// Number of the connection, or of the UDP source.
        flow: u32, "";
        /// Kind of the packet.
        kind: PacketClass, "";
        /// Direction of the packet.
        direction: Direction, "";
        /// Segment number of data, cumulative number of an ACK, first two words of a control packet of UDT
        /// without the bit that marks it.
        seq: u64, "segments";
        /// Size on the wire.
        bytes: u32, "B";
        /// Size of the payload.
        payload_bytes: u32, "B";
        /// Sum of 1: retransmission, 2: CE, 4: ECE, 8: CWR, 32: the packet leaves its host, 64: ECT(1).
        flags: u8, "";
        /// First SACK block of an ACK: its first segment; 0 without a block.
        sack1_start: u64, "segments";
        /// First SACK block: the segment after its last.
        sack1_end: u64, "segments";
        /// Second SACK block: its first segment.
        sack2_start: u64, "segments";
        /// Second SACK block: the segment after its last.
        sack2_end: u64, "segments";
        /// Third SACK block: its first segment.
        sack3_start: u64, "segments";
        /// Third SACK block: the segment after its last.
        sack3_end: u64, "segments";
    }
}

impl QueueRow {
    /// A sample of link number `link`, which was so.
    pub fn new(at: Time, link: u16, link_then: Snapshot, counters: &Counters) -> QueueRow {
        QueueRow {
            t_s: at.in_s(),
            link,
            packets: link_then.packets as u32,
            bytes: link_then.bytes,
            arrivals: counters.arrivals,
            drops: counters.drops_full + counters.drops_early,
            marks: counters.marks,
            sent_bytes: link_then.sent_bytes as u64,
            capacity_bytes: link_then.capacity_bytes,
            drain_s: Wait(link_then.drain_s),
        }
    }
}

/// Seconds, infinite where nothing ends; in JSON null then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Option<f64>")]
pub struct Wait(pub f64);

impl From<Option<f64>> for Wait {
    fn from(seconds: Option<f64>) -> Wait {
        Wait(seconds.unwrap_or(f64::INFINITY))
    }
}

impl Cell for Wait {
    type Stored = f64;
    fn stored(self) -> f64 {
        self.0
    }
}

codes! { State { Open: "open", Disorder: "disorder", Cwr: "CWR", Recovery: "recovery", Loss: "loss", } }
codes! {
    EventKind {
        FastRetransmit: "fast retransmit",
        Timeout: "timeout",
        Ecn: "ECN",
        Undo: "undo",
        RecoveryEnd: "end of recovery",
    }
}
codes! { Direction { Forward: "forward", Reverse: "reverse", } }

/// Where at a link a packet is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Point {
    /// At the queue.
    Arrived,
    /// At the queue, which drops it.
    Dropped,
    /// Behind the link: its last bit is sent.
    Left,
    /// At the host, behind the last link of its route.
    Received,
}
codes! { Point { Arrived: "arrived", Dropped: "dropped", Left: "left", Received: "received", } }

/// Kind of a recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketClass {
    /// Payload of TCP.
    Data,
    /// An ACK of TCP without payload.
    Ack,
    /// A datagram of UDP.
    Udp,
    /// Payload of UDT.
    UdtData,
    /// A control packet of UDT.
    UdtControl,
    /// A SYN.
    Syn,
    /// A SYN-ACK.
    SynAck,
    /// The ACK that ends a handshake.
    HandshakeAck,
}
codes! {
    PacketClass {
        Data: "data",
        Ack: "ACK",
        Udp: "UDP",
        UdtData: "UDT data",
        UdtControl: "UDT control",
        Syn: "SYN",
        SynAck: "SYN-ACK",
        HandshakeAck: "handshake ACK",
    }
}

impl PacketTable {
    /// Brings rows in order of time; those of one instant stay as they are.
    pub(crate) fn sort(&mut self) {
        if self.t_ps.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.t_ps.len()).collect();
        order.sort_by_key(|&row| self.t_ps[row]);
        self.reorder(&order);
    }
}
