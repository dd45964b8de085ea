//! What a run will need, before it starts.

use lfn_units::Time;

use crate::config::Path;
use crate::model::{Direction, Flow, Scenario};
use crate::quantity::Sample;

/// Memory of a flow: configuration, sender, receiver, law, and its summary as a value and as JSON.
const FLOW_BYTES: f64 = 2_500.0;
/// Memory of a packet in flight: queue and delay line, its ACK, the sender's scoreboard, and the room
/// that these keep to grow.
const PACKET_BYTES: f64 = 125.0;
/// A row of the table `flows`.
const FLOW_ROW_BYTES: f64 = 73.0;
/// A row of the table `probes`.
const PROBE_ROW_BYTES: f64 = 21.0;
/// A row of the table `queues`.
const QUEUE_ROW_BYTES: f64 = 53.0;
/// Tables exist twice while they are stored.
const TABLE_COPIES: f64 = 2.0;
/// Slow start may send twice what path and buffer hold before it hears of a loss.
const OVERSHOOT: f64 = 2.0;
/// Short background flows at once for each Mbit/s of load.
const BACKGROUND_FLOWS_PER_MBITPS: f64 = 10.0;
/// Half a packet's ACK, and the rest.
const EVENTS_PER_PACKET: f64 = 1.5;

/// What a run is predicted to need: memory and packets at most, events about. Computed in floating
/// point, which no scenario overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Memory of the flows and the background's.
    pub flow_bytes: u64,
    /// Memory of the packets in flight.
    pub packet_bytes: u64,
    /// Memory of the tables.
    pub table_bytes: u64,
    /// The sum.
    pub memory_bytes: u64,
    /// Data packets through the bottleneck, both directions.
    pub packets: u64,
    /// Events.
    pub events: u64,
}

/// What needs the most memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Flows,
    Packets,
    Tables,
}

impl Prediction {
    pub(crate) fn largest_part(&self) -> Part {
        let parts = [
            (self.flow_bytes, Part::Flows),
            (self.packet_bytes, Part::Packets),
            (self.table_bytes, Part::Tables),
        ];
        parts.into_iter().max_by_key(|&(bytes, _)| bytes).map_or(Part::Flows, |(_, part)| part)
    }
}

impl Scenario {
    /// What a run of this scenario needs at most.
    pub fn predict(&self) -> Prediction {
        let path = Path::new(&self.flow, self.compat);
        let link = &self.link;
        let directions = [
            (Direction::Forward, link.rate.0, &link.queue),
            (Direction::Reverse, link.reverse.rate.0, &link.reverse.queue),
        ];
        let (mut in_flight, mut packets) = (0.0, 0.0);
        for (direction, rate, queue) in directions {
            let groups = || self.flow.iter().filter(|flow| flow.direction == direction);
            let wire_bytes = groups().map(|flow| self.compat.wire_bytes(flow.packet.0)).min().unwrap_or(1514);
            let bdp_bytes = rate.as_bps() / 8.0 * path.rtt.map_or(0.0, Time::as_s);
            let room = OVERSHOOT * (bdp_bytes + path.room_bytes(queue.size(), rate)) / f64::from(wire_bytes);
            let windows: f64 = groups().map(|flow| f64::from(flow.count) * self.window(flow)).sum();
            in_flight += room.min(windows);
            let capacity = rate.as_bps() / 8.0 * self.duration.0.as_s() / f64::from(wire_bytes);
            let demand: f64 = groups().map(|flow| f64::from(flow.count) * self.demand(flow)).sum();
            packets += capacity.min(demand);
        }
        let mut flows: f64 = self.flow.iter().map(|flow| f64::from(flow.count)).sum();
        let rows = match self.sample.0 {
            Sample::Off => 0.0,
            Sample::Every(step) => self.duration.0.as_s() / step.as_s() + 1.0,
        };
        let flow_row_bytes = |flow: &Flow| {
            let probes = flow.law.0.info().probes.len() as f64;
            f64::from(flow.count) * (FLOW_ROW_BYTES + probes * PROBE_ROW_BYTES)
        };
        let row_bytes = self.flow.iter().map(flow_row_bytes).sum::<f64>() + 2.0 * QUEUE_ROW_BYTES;
        let table_bytes = TABLE_COPIES * rows * row_bytes;
        let load_bps = [0.0, 0.15, 0.375, 0.6].get(usize::from(self.background.level)).unwrap_or(&0.0)
            * link.rate.0.as_bps();
        let long_flows = 2.0 * f64::from(self.background.long_flows);
        flows += long_flows + BACKGROUND_FLOWS_PER_MBITPS * load_bps / 1e6;
        in_flight += 20.0 * long_flows + load_bps / 8.0 / 1514.0;
        packets += load_bps / 8.0 * self.duration.0.as_s() / 1514.0;
        let (flow_bytes, packet_bytes) = (flows * FLOW_BYTES, in_flight * PACKET_BYTES);
        Prediction {
            flow_bytes: flow_bytes as u64,
            packet_bytes: packet_bytes as u64,
            table_bytes: table_bytes as u64,
            memory_bytes: (flow_bytes + packet_bytes + table_bytes) as u64,
            packets: packets as u64,
            events: (packets * EVENTS_PER_PACKET) as u64,
        }
    }

    /// Most packets that a flow may have outstanding.
    fn window(&self, flow: &Flow) -> f64 {
        let window = flow.receive_window.map(|window| self.compat.window_segments(window.0, flow.packet.0));
        window.map_or(f64::INFINITY, |segments| segments as f64).min(self.demand(flow))
    }

    /// Packets that a flow wants to deliver.
    fn demand(&self, flow: &Flow) -> f64 {
        let payload = f64::from(self.compat.payload_bytes(flow.packet.0));
        flow.size.map_or(f64::INFINITY, |size| (size.0 .0 as f64 / payload).ceil())
    }
}
