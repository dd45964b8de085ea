//! An estimate of the memory of a run: within a factor of three in nine of ten runs.

use lfn_path::AqmConfig;
use lfn_sim::config::LinkId;
use lfn_sim::tables::{PacketTable, TransferTable};

use super::traffic::background_bps;
use super::{Basis, Load};
use crate::model::{Change, Pattern, Scenario, Series, Transport};
use crate::peaks::most_late;

/// Every run: its random streams, small lists, summary and JSON.
const RUN_BYTES: f64 = 70_000.0;
/// A flow with both ends, its law, its configuration, and its summary as a value and as JSON.
const FLOW_BYTES: f64 = 2_600.0;
/// A flow over UDT, whose ends measure and list lost packets.
const UDT_FLOW_BYTES: f64 = 9_000.0;
/// A short flow of the background or a connection of a model of traffic, with what it has in flight.
const CONNECTION_BYTES: f64 = 3_000.0;
/// Round trips for which it is open, their mean time in the background in seconds, and the mean size of its flows.
const CONNECTION_ROUNDS: f64 = 5.0;
const BACKGROUND_RTT_S: f64 = 0.08;
const BACKGROUND_MEAN_BYTES: f64 = 10_000.0;
/// A packet in flight: in a queue or on a delay line, on the sender's scoreboard, its ACK.
const PACKET_BYTES: f64 = 45.0;
/// A packet in flight of a law with delivery-rate samples.
const SAMPLED_PACKET_BYTES: f64 = 240.0;
/// A packet that jitter or reordering takes out of line, with its event.
const LATE_BYTES: f64 = 60.0;
/// A link with its histogram of waiting times.
const LINK_BYTES: f64 = 18_000.0;
/// A queue of FQ-CoDel.
const QUEUE_BYTES: f64 = 200.0;
/// A change that is scheduled; a UDP source.
const CHANGE_BYTES: f64 = 64.0;
const UDP_SOURCE_BYTES: f64 = 200.0;
/// Rows of a packet that is recorded: it arrives, leaves, and reaches its host or is dropped.
const ROWS_PER_PACKET: f64 = 4.0;
/// Lists double, and a table exists once more while it is stored.
const TABLE_COPIES: f64 = 1.3;
/// Both ends of a whole stack, with the buffers of smoltcp's: two of 16 MiB.
const STACK_BYTES: f64 = 40e6;
/// Over the sum of all parts.
const SAFETY: f64 = 1.25;

impl Basis<'_> {
    /// Bytes of flows, packets, links, tables and recorded packets.
    pub(super) fn memory(&self) -> [u64; 5] {
        let parts = [
            self.flow_bytes(),
            self.packet_bytes(),
            self.link_bytes(),
            self.table_bytes(),
            self.capture_bytes(),
        ];
        parts.map(|bytes| (SAFETY * bytes) as u64)
    }

    fn flow_bytes(&self) -> f64 {
        let Scenario { background, traffic, .. } = self.scenario;
        let short_per_s = background_bps(self.scenario, &self.network) / 8.0 / BACKGROUND_MEAN_BYTES;
        let background_s = (CONNECTION_ROUNDS * BACKGROUND_RTT_S).min(self.duration_s);
        let connections = traffic.iter().zip(&self.offered).map(|(traffic, offered)| {
            // Of a load that the links do not carry, connections pile up.
            let carried = self.network.slowest(&traffic.path.links).as_bps() / 8.0;
            let piling_s = if offered.is_open { self.duration_s } else { 0.0 };
            let piled_s = piling_s * (1.0 - carried / offered.bytes).max(0.0);
            offered.messages * (CONNECTION_ROUNDS * offered.rtt_s + piled_s).min(self.duration_s)
        });
        RUN_BYTES
            + (self.streams(Transport::Tcp) + 2.0 * f64::from(background.long_flows)) * FLOW_BYTES
            + self.streams(Transport::Udt) * UDT_FLOW_BYTES
            + self.streams(Transport::Stack) * STACK_BYTES
            + (short_per_s * background_s + connections.sum::<f64>()) * CONNECTION_BYTES
    }

    fn packet_bytes(&self) -> f64 {
        let held: f64 = self.network.links().map(|link| self.held_bytes(link)).sum();
        let late: f64 = self.network.links().map(|link| self.late(link) * LATE_BYTES).sum();
        held + late
    }

    /// The link that limits a load.
    fn bottleneck(&self, load: &Load) -> Option<LinkId> {
        load.links.iter().copied().min_by_key(|&link| self.peaks.rates[link.index()])
    }

    /// Memory of the packets that a link carries in a round trip and that its queue holds, if it limits those that pass.
    fn held_bytes(&self, link: LinkId) -> f64 {
        let limited: Vec<&Load> =
            self.passing(link).filter(|load| self.bottleneck(load) == Some(link)).collect();
        let held_bytes = self.bdp_bytes(link) + self.room_bytes(link);
        let windows: f64 = limited.iter().map(|load| load.window * load.wire_bytes).sum();
        let share = (held_bytes / windows.max(1.0)).min(1.0);
        let bytes = limited.iter().map(|load| {
            let each = if load.samples { SAMPLED_PACKET_BYTES } else { PACKET_BYTES };
            (load.window * share).max(load.initial) * each
        });
        bytes.sum()
    }

    /// Packets behind a link that jitter or reordering has taken out of line.
    fn late(&self, link: LinkId) -> f64 {
        let impair = &self.network.hop(link).way.impair;
        let Some(wire_bytes) = self.passing(link).map(|load| load.wire_bytes).reduce(f64::min) else {
            return 0.0;
        };
        let held = (self.bdp_bytes(link) + self.room_bytes(link)) / wire_bytes;
        let windows: f64 = self.passing(link).map(|load| load.window).sum();
        let packets_per_s = self.peaks.rates[link.index()].as_bps() / 8.0 / wire_bytes;
        let overtaken = packets_per_s * most_late(impair).as_s();
        let share = match (impair.jitter, impair.reorder) {
            (None, None) => 0.0,
            (None, Some(reorder)) => (reorder.p * (1.0 + overtaken)).min(1.0),
            (Some(_), _) => 1.0,
        };
        share * held.min(windows)
    }

    fn link_bytes(&self) -> f64 {
        let queues = self.network.hops.iter().map(|hop| match hop.way.queue.discipline {
            AqmConfig::FqCodel(config) => QUEUE_BYTES * f64::from(config.queues),
            _ => 0.0,
        });
        let changes = self.scenario.schedule.iter().map(|change| match change {
            Change::Link(_) => 3.0,
            Change::File(change) => match &change.series {
                Series::Rate(rows) => rows.len() as f64,
                Series::Delay(rows) => rows.len() as f64,
                Series::Loss(rows) => rows.len() as f64,
            },
            Change::Route(change) => f64::from(self.scenario.flow[change.group].streams()),
        });
        let sources = self.scenario.udp.iter().map(|udp| match &udp.pattern {
            Pattern::OnOff(on_off) => f64::from(on_off.sources),
            _ => 1.0,
        });
        self.network.hops.len() as f64 * LINK_BYTES
            + queues.sum::<f64>()
            + CHANGE_BYTES * changes.sum::<f64>()
            + UDP_SOURCE_BYTES * sources.sum::<f64>()
    }

    fn table_bytes(&self) -> f64 {
        let sampled = self.scenario.sampled_bytes(self.scenario.sample, self.network.hops.len());
        let messages: f64 = self.offered.iter().map(|offered| offered.messages).sum();
        TABLE_COPIES * (sampled + messages * self.duration_s * TransferTable::ROW_BYTES as f64)
    }

    fn capture_bytes(&self) -> f64 {
        let Some(capture) = &self.scenario.capture else { return 0.0 };
        let seconds = capture.to.min(self.scenario.duration).since(capture.from).as_s();
        let packets: f64 = capture.numbers.iter().map(|&link| self.carried(link, seconds)).sum();
        let rows = (ROWS_PER_PACKET * packets).min(capture.max_rows as f64);
        TABLE_COPIES * PacketTable::ROW_BYTES as f64 * rows
    }
}
