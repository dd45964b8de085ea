//! Packets and events of a run, predicted before it starts, and an estimate of its memory.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_path::Loss;
use lfn_sim::config::LinkId;

mod memory;
mod traffic;

use crate::config::Sizing;
use crate::model::{Flow, Scenario, Topology, Transport, Udp};
use crate::network::{Hop, Network};
use crate::peaks::Peaks;
use traffic::{background_bps, Offered};

/// Half a packet's ACK, and the rest.
const EVENTS_PER_PACKET: f64 = 1.5;
/// Of a TCP connection at each link: a SYN, the ACK that ends its handshake, a SYN-ACK.
const HANDSHAKE_PACKETS: f64 = 3.0;
/// A packet of the background on the wire.
const BACKGROUND_WIRE_BYTES: f64 = 1514.0;
/// Packets before the first ACK of UDT.
const UDT_INITIAL_WINDOW: f64 = 16.0;

/// An estimate of memory is so many times too high or too low at most, in nine of ten runs.
pub(crate) const ESTIMATE_FACTOR: u64 = 3;

/// Part of a run that takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Flows and connections.
    Flows,
    /// Packets in flight.
    Packets,
    /// Links, and what is scheduled for them.
    Links,
    /// Tables.
    Tables,
    /// Recorded packets.
    Capture,
}

impl Part {
    const ALL: [Part; 5] = [Part::Flows, Part::Packets, Part::Links, Part::Tables, Part::Capture];

    /// Its name in an error.
    pub fn name(self) -> &'static str {
        match self {
            Part::Flows => "flows",
            Part::Packets => "packets in flight",
            Part::Links => "links",
            Part::Tables => "tables",
            Part::Capture => "recorded packets",
        }
    }
}

/// Slow start overflows a queue when its window is so many times what the queue holds, twice over before it knows of that.
const OVERFLOW: f64 = 8.0;
/// Mean window at a loss rate p: so many packets times p to the power of minus this, between Reno and Scalable TCP.
const LOSS_WINDOW: f64 = 4.0;
const LOSS_EXPONENT: f64 = 0.6;
/// Packets by which a window grows in a round trip of congestion avoidance.
const A_ROUND: f64 = 8.0;

/// Needs of a run: packets and events as predicted, memory as estimated. Computed in floating point, which no scenario
/// overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Memory of the flows and the background's.
    pub flow_bytes: u64,
    /// Memory of the packets in flight.
    pub packet_bytes: u64,
    /// Memory of the links and of what is scheduled for them.
    pub link_bytes: u64,
    /// Memory of the tables.
    pub table_bytes: u64,
    /// Memory of the recorded packets.
    pub capture_bytes: u64,
    /// The sum.
    pub memory_bytes: u64,
    /// Data packets that leave links, each counted at every link that it passes.
    pub packets: u64,
    /// Events.
    pub events: u64,
}

impl Prediction {
    pub(crate) fn bytes(&self, part: Part) -> u64 {
        match part {
            Part::Flows => self.flow_bytes,
            Part::Packets => self.packet_bytes,
            Part::Links => self.link_bytes,
            Part::Tables => self.table_bytes,
            Part::Capture => self.capture_bytes,
        }
    }

    pub(crate) fn largest_part(&self) -> Part {
        Part::ALL.into_iter().max_by_key(|&part| self.bytes(part)).unwrap_or(Part::Flows)
    }
}

/// An amount of memory in an error.
pub fn amount(bytes: u64) -> String {
    match bytes {
        ..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A group of flows on one route of their data, or a UDP source.
struct Load<'a> {
    links: &'a [LinkId],
    wire_bytes: f64,
    /// Most packets that it may have outstanding.
    window: f64,
    /// Of these, packets that leave before the first ACK.
    initial: f64,
    /// Most packets that it sends.
    demand: f64,
    /// Its sender keeps a sample of the delivery rate for each packet.
    samples: bool,
}

/// From what a run is predicted.
struct Basis<'a> {
    scenario: &'a Scenario,
    network: Network<'a>,
    sizing: Sizing,
    peaks: Peaks,
    loads: Vec<Load<'a>>,
    offered: Vec<Offered>,
    duration_s: f64,
}

impl Scenario {
    /// Predicts the needs of a run of this scenario.
    pub fn predict(&self) -> Prediction {
        Basis::of(self).predict()
    }

    /// The key that asks for a part of the memory, and how to need less.
    pub fn remedy(&self, part: Part) -> (&'static str, &'static str) {
        let links = match self.topology {
            Topology::Dumbbell(_) => "link",
            Topology::ParkingLot(_) => "parking-lot",
            Topology::Graph(_) => "links",
        };
        match part {
            Part::Flows => ("flow", "use fewer flows"),
            Part::Packets => (links, "lower rate, rtt or queue size"),
            Part::Links => (links, "use fewer links"),
            Part::Tables => ("sample", "sample less often or not at all (\"off\"), or use fewer flows"),
            Part::Capture => ("capture", "lower max_rows"),
        }
    }
}

impl<'a> Basis<'a> {
    fn of(scenario: &'a Scenario) -> Basis<'a> {
        let network = Network::new(&scenario.topology);
        let sizing = Sizing::new(&network, &scenario.flow, &scenario.udp, scenario.compat);
        let peaks = Peaks::of(scenario, &network);
        let limits = scenario.send_limits(&network, &sizing);
        let offered = scenario.traffic.iter().map(Offered::of).collect();
        let duration_s = scenario.duration.as_s();
        let mut basis = Basis { scenario, network, sizing, peaks, loads: Vec::new(), offered, duration_s };
        for ((group, flow), limit) in scenario.flow.iter().enumerate().zip(limits) {
            for links in scenario.data_routes(group, flow) {
                basis.loads.push(basis.flow_load(flow, limit as f64, links));
            }
        }
        let udp: Vec<Load> = scenario.udp.iter().map(|udp| basis.udp_load(udp)).collect();
        basis.loads.extend(udp);
        basis
    }

    /// Of a UDP source: no more of it is under way than its links delay, or hold where it alone overloads them.
    fn udp_load(&self, udp: &'a Udp) -> Load<'a> {
        let traffic = self.scenario.udp_traffic(udp);
        let wire_bytes = f64::from(traffic.packet_bytes);
        let bps = traffic.offered_bps(self.scenario.duration);
        let demand = (bps / 8.0 * self.duration_s / wire_bytes).ceil();
        let held_bytes = udp.path.links.iter().map(|&link| {
            let way = self.network.hop(link).way;
            let queued = if bps < way.mean_rate().as_bps() { 0.0 } else { self.room_bytes(link) };
            bps / 8.0 * way.delay.after(self.peaks.longer).as_s() + queued
        });
        Load {
            links: &udp.path.links,
            wire_bytes,
            window: demand.min(held_bytes.sum::<f64>() / wire_bytes),
            initial: 0.0,
            demand,
            samples: false,
        }
    }

    /// Of all flows of a group on one route of their data.
    fn flow_load(&self, flow: &'a Flow, limit: f64, links: &'a [LinkId]) -> Load<'a> {
        let compat = self.scenario.compat;
        let payload_bytes = f64::from(flow.payload_bytes(compat));
        let wanted = flow
            .size
            .as_ref()
            .map_or(f64::INFINITY, |size| (size.most(flow.count).0 as f64 / payload_bytes).ceil());
        let received = flow.receive_window.map_or(f64::INFINITY, |_| flow.window_packets(compat) as f64);
        let begin_s = flow.start.least(flow.count).as_s();
        // The first has a handshake.
        let rounds = ((self.duration_s - begin_s) / flow.rtt.least(flow.count).as_s() - 1.0).max(0.0).floor();
        let initial = flow.tcp.as_ref().map_or(UDT_INITIAL_WINDOW, |tcp| {
            (tcp.initial_window.0 as f64).max(tcp.saved_window.map_or(0.0, |window| window.0 as f64))
        });
        let law = flow.control.law();
        let header = law.and_then(LawSpec::header);
        let answers = |hop: &Hop| {
            let router = hop.way.router.and_then(|router| router.0);
            router.is_some_and(|config| Some(config.header()) == header)
        };
        let growth = match flow.tcp.as_ref().map(|tcp| tcp.slow_start.0) {
            // A law in Python, or a router, may ask for any window.
            _ if law.is_some_and(|law| law.info().is_none()) => f64::INFINITY,
            _ if header.is_some() && self.network.hops.iter().any(answers) => f64::INFINITY,
            // Without its router such a law has no slow start.
            _ if header.is_some() => 1.0,
            Some(SlowStartKind::Rapid) => 3.0,
            _ => 2.0,
        };
        let loss = self.loss(flow, links);
        // Slow start ends with the first loss; a round trip passes before it is known.
        let grown = (initial * f64::powf(growth, rounds) + rounds).min(initial.max(2.0 / loss));
        let streams = f64::from(flow.streams());
        let most = received.min(wanted).min(limit).min(grown);
        let mean = most.min(LOSS_WINDOW * loss.powf(-LOSS_EXPONENT));
        let window = streams * most.min(initial.max(self.after_overflow(flow, links, rounds)));
        Load {
            links,
            wire_bytes: f64::from(compat.wire_bytes(flow.packet)),
            window,
            initial: window.min(streams * initial),
            demand: (f64::from(flow.count) * wanted).min(streams * (2.0 * most + rounds * mean)),
            samples: law.is_some_and(samples_rates),
        }
    }

    /// Share of the packets of a flow that links lose at random; 0 where losses do not lower its window.
    fn loss(&self, flow: &Flow, links: &[LinkId]) -> f64 {
        let losses = links.iter().map(|&link| match self.network.hop(link).way.impair.loss {
            Loss::Bernoulli(p) if gives_way(flow) => p,
            _ => 0.0,
        });
        losses.fold(0.0, f64::max)
    }

    /// Window of a flow whose slow start ended when its bursts overflowed the queues, after so many round trips.
    fn after_overflow(&self, flow: &Flow, links: &[LinkId], rounds: f64) -> f64 {
        let rooms: f64 = links.iter().map(|&link| self.room_bytes(link)).sum();
        let room = rooms / f64::from(self.scenario.compat.wire_bytes(flow.packet));
        if gives_way(flow) {
            OVERFLOW * room + A_ROUND * rounds
        } else {
            f64::INFINITY
        }
    }

    fn predict(&self) -> Prediction {
        let packets = self.packets();
        let [flow_bytes, packet_bytes, link_bytes, table_bytes, capture_bytes] = self.memory();
        Prediction {
            flow_bytes,
            packet_bytes,
            link_bytes,
            table_bytes,
            capture_bytes,
            memory_bytes: [flow_bytes, packet_bytes, link_bytes, table_bytes, capture_bytes]
                .into_iter()
                .fold(0, u64::saturating_add),
            packets: packets as u64,
            events: (packets * EVENTS_PER_PACKET) as u64,
        }
    }

    fn bdp_bytes(&self, link: LinkId) -> f64 {
        let rtt = self.sizing.rtt(link).unwrap_or_default().after(self.peaks.longer);
        self.peaks.rates[link.index()].as_bps() / 8.0 * rtt.as_s()
    }

    /// Bytes of a link's full queue.
    fn room_bytes(&self, link: LinkId) -> f64 {
        let way = self.network.hop(link).way;
        let burst = way.shaper.map_or(0.0, |shaper| shaper.burst.0 as f64);
        self.sizing.room_bytes(link, way.queue.size, way.mean_rate()) + burst
    }

    fn streams(&self, transport: Transport) -> f64 {
        let flows = self.scenario.flow.iter().filter(|flow| flow.transport() == transport);
        flows.map(|flow| f64::from(flow.streams())).sum()
    }

    fn passing(&self, link: LinkId) -> impl Iterator<Item = &Load<'a>> {
        self.loads.iter().filter(move |load| load.links.contains(&link))
    }

    /// Data packets that leave links.
    fn packets(&self) -> f64 {
        let carried: f64 = self.network.links().map(|link| self.carried(link, self.duration_s)).sum();
        let handshakes = HANDSHAKE_PACKETS * self.streams(Transport::Tcp) * self.network.hops.len() as f64;
        let models: f64 = self.offered.iter().map(|offered| offered.packets).sum();
        let background = background_bps(self.scenario, &self.network) / 8.0 / BACKGROUND_WIRE_BYTES;
        carried + handshakes + (models + background) * self.duration_s
    }

    /// Data packets of the flows and UDP sources that leave a link in so many seconds: the smallest come first.
    fn carried(&self, link: LinkId, seconds: f64) -> f64 {
        let mut passing: Vec<&Load> = self.passing(link).collect();
        passing.sort_by(|a, b| a.wire_bytes.total_cmp(&b.wire_bytes));
        let mut left_bytes = self.peaks.rates[link.index()].as_bps() / 8.0 * seconds;
        let carried = passing.into_iter().map(|load| {
            let packets = load.demand.min(left_bytes / load.wire_bytes);
            left_bytes -= packets * load.wire_bytes;
            packets
        });
        carried.sum()
    }
}

/// Whether losses lower the window of a flow.
fn gives_way(flow: &Flow) -> bool {
    let gives_way = |law: &LawSpec| {
        !samples_rates(law) && law.header().is_none() && law.info().is_some_and(|law| law.name != "hybla")
    };
    flow.control.law().is_none_or(gives_way)
}

/// Whether a law uses delivery-rate samples.
fn samples_rates(law: &LawSpec) -> bool {
    law.slow_start() == SlowStartKind::None
}
