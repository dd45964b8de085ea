//! Memory, packets and events of a run, predicted before it starts.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_sim::tables::{FlowTable, PacketTable, ProbeTable, QueueTable, TransferTable};
use lfn_sim::traffic::udp;
use lfn_units::{Rate, Time};

use crate::config::Sizing;
use crate::demand::{pile_up, Demand};
use crate::model::{Change, Compat, Flow, Pattern, Scenario, Series, Transport};
use crate::network::Network;
use crate::peaks::Peaks;
use crate::quantity::{Sample, Start};

/// Memory of a flow: configuration, sender, receiver, law, and its summary as a value and as JSON.
const FLOW_BYTES: f64 = 2_500.0;
/// The same of a flow that is reported in sum.
const SHORT_FLOW_BYTES: f64 = 1_800.0;
/// The same over UDT, where both ends are connections that measure.
const UDT_FLOW_BYTES: f64 = 6_000.0;
/// Memory of a packet in flight: queue and delay line, its ACK, the sender's scoreboard, and the room
/// that these keep to grow.
const PACKET_BYTES: f64 = 130.0;
/// Of a packet that is outstanding, but no longer in flight: the sender's scoreboard.
const KEPT_BYTES: f64 = 80.0;
/// Bytes a packet that a sender keeps for a law with delivery-rate samples, with room to grow.
const RATE_SAMPLE_BYTES: f64 = 104.0;
/// Rows of the table `transfers` are a mean number: there may be a third more.
const TRANSFERS: f64 = 4.0 / 3.0;
/// A connection of a model of traffic, with its messages and what it has in flight.
const CONNECTION_BYTES: f64 = 5_000.0;
/// Columns grow to up to twice what they hold, and exist once more while they are stored.
const TABLE_COPIES: f64 = 3.0;
/// Memory of every run.
const RUN_BYTES: f64 = 1_000_000.0;
/// Slow start may send twice what path and buffer hold before it detects a loss.
const OVERSHOOT: f64 = 2.0;
/// Beyond that, recoveries and queues of ACKs may hold so many packets, if the windows allow it.
const SLACK_PACKETS: f64 = 200_000.0;
/// A connection that waits on a link which is down, or offered more than it carries.
const PILED_BYTES: f64 = 3_500.0;
/// Connections that pile up while a link is down need as long again to end.
const PILE_TIMES: f64 = 2.0;
/// Connections of a model of traffic pile up while a link has less than this share of its first rate.
const SLOW: f64 = 0.5;
/// Packets outstanding without SACK over those with it: while a recovery repairs one loss per round trip, each
/// duplicate ACK lets the sender send a packet.
const WITHOUT_SACK: f64 = 2.0;
/// Over [`OVERSHOOT`]: under a law with delivery rates, start-up keeps 2 / ln 2 of what the path holds in flight, and as
/// much as it holds is SACKed before the first loss is repaired.
const START_UP: f64 = (2.0 / std::f64::consts::LN_2 + 1.0) / OVERSHOOT;
/// Packets before the first ACK of UDT.
const UDT_INITIAL_WINDOW: f64 = 16.0;
/// Below this round trip Hybla is Reno; above, no loss keeps its window near what the path holds.
const HYBLA_RTT_S: f64 = 0.025;
/// Rows that a packet makes where it is recorded, those dropped and ACKs included, at most.
const CAPTURE_ROWS_PER_PACKET: f64 = 3.5;
/// Short background flows at once for each Mbit/s of load.
const BACKGROUND_FLOWS_PER_MBITPS: f64 = 10.0;
/// The same beside long flows that do not give way to losses.
const PRESSED_FLOWS_PER_MBITPS: f64 = 15.0;
/// The same where a queue holds few packets, or fewer than there are long flows: a short flow often loses its first
/// packets, and waits for timeouts of a second and longer ones.
const STARVED_FLOWS_PER_MBITPS: f64 = 45.0;
/// So few, of the largest.
const STARVED_PACKETS: f64 = 10.0;
/// Of a TCP connection at each link: a SYN, the ACK that ends its handshake, a SYN-ACK.
const HANDSHAKE_PACKETS: f64 = 3.0;
/// Short flows keep as many packets as their load sends in this time, in seconds.
const BACKGROUND_PACKETS_S: f64 = 0.5;
/// Short background flows that begin in a second for each Mbit/s of load.
const BACKGROUND_FLOWS_PER_MBITPS_AND_S: f64 = 13.0;
/// Half a packet's ACK, and the rest.
const EVENTS_PER_PACKET: f64 = 1.5;
/// Of a link: its histogram of waiting times and what it keeps besides packets.
const LINK_BYTES: f64 = 20_000.0;
/// Of a change that is scheduled.
const CHANGE_BYTES: f64 = 64.0;
/// A UDP source of many.
const UDP_SOURCE_BYTES: f64 = 300.0;

/// Predicted needs of a run: upper bounds of memory and packets, an estimate of events. Computed in floating
/// point, which no scenario overflows.
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

/// Part of a run that takes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Flows,
    Packets,
    Links,
    Tables,
    Capture,
}

impl Part {
    /// Its name in an error.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Flows => "flows",
            Part::Packets => "packets in flight",
            Part::Links => "links",
            Part::Tables => "tables",
            Part::Capture => "recorded packets",
        }
    }
}

impl Prediction {
    pub(crate) fn parts(&self) -> [(u64, Part); 5] {
        [
            (self.flow_bytes, Part::Flows),
            (self.packet_bytes, Part::Packets),
            (self.link_bytes, Part::Links),
            (self.table_bytes, Part::Tables),
            (self.capture_bytes, Part::Capture),
        ]
    }

    pub(crate) fn largest_part(&self) -> Part {
        self.parts().into_iter().max_by_key(|&(bytes, _)| bytes).map_or(Part::Flows, |(_, part)| part)
    }
}

/// Limit of the window of a flow on a path, besides its receiver, its demand and its host.
#[derive(Clone, Copy, PartialEq)]
enum Limit {
    /// Losses keep it near what the path holds, and an ACK makes it grow by no more than it acknowledges.
    Acks,
    /// Losses keep it near what the path holds. FAST may jump to the window that it computes from an RTT, and a router
    /// may ask for any.
    Losses,
    /// Nothing, as far as is known.
    Nothing,
}

impl Limit {
    /// Of a law, or of UDT's own control.
    fn of(law: Option<&LawSpec>, longest_rtt_s: f64) -> Limit {
        let Some(law) = law else { return Limit::Acks };
        let label = law.label();
        let name = label.split(':').next();
        if law.prototype().is_some() || name == Some("hybla") && longest_rtt_s > HYBLA_RTT_S {
            Limit::Nothing
        } else if law.family() == Some("router") || name == Some("fast") {
            Limit::Losses
        } else {
            Limit::Acks
        }
    }
}

/// Whether a law uses delivery-rate samples.
fn samples_rates(law: &LawSpec) -> bool {
    law.slow_start() == SlowStartKind::None
}

/// Whether losses hardly slow a flow down.
fn is_stubborn(flow: &Flow) -> bool {
    flow.transport() == Transport::Udt || flow.control.law().is_some_and(samples_rates)
}

fn has_sack(flow: &Flow) -> bool {
    flow.tcp.is_none_or(|tcp| tcp.sack)
}

/// Packets that a flow may send before the first ACK.
fn initial_window(flow: &Flow) -> f64 {
    flow.tcp.map_or(UDT_INITIAL_WINDOW, |tcp| tcp.initial_window.0 as f64)
}

/// Load of one group of flows, or of one UDP source, on a link.
struct Load<'a> {
    links: &'a [u16],
    wire_bytes: u32,
    /// Most packets that it may have outstanding.
    window: f64,
    /// Packets that it wants to deliver.
    demand: f64,
    /// Its sender keeps what is outstanding.
    keeps: bool,
    /// Nothing but the host limits the window.
    boundless: bool,
    /// Its sender keeps a sample of the delivery rate for each packet.
    samples: bool,
    /// Of what is outstanding in flight.
    times: f64,
}

impl Scenario {
    /// Predicts the needs of a run of this scenario.
    pub fn predict(&self) -> Prediction {
        let network = Network::new(&self.topology);
        let sizing = Sizing::new(&network, &self.flow, &self.udp, self.compat);
        let Peaks { rates, longer } = Peaks::of(self, &network);
        let duration_s = self.duration.as_s();
        let loads = self.loads(&network, &sizing, &rates);
        // By link: what passes it, and whether it is the slowest link of some of that.
        let mut passing: Vec<Vec<&Load>> = network.hops.iter().map(|_| Vec::new()).collect();
        let mut is_slowest = vec![false; network.hops.len()];
        for load in &loads {
            load.links.iter().for_each(|&link| passing[usize::from(link)].push(load));
            if let Some(&link) = load.links.iter().min_by_key(|&&link| rates[usize::from(link)]) {
                is_slowest[usize::from(link)] = true;
            }
        }
        let windows: f64 = loads.iter().filter(|load| load.keeps).map(|load| load.window).sum();
        let boundless = loads.iter().filter(|load| load.keeps && load.boundless);
        let boundless = boundless.map(|load| load.window).sum::<f64>() * KEPT_BYTES / PACKET_BYTES;
        let mut in_flight = windows.min(SLACK_PACKETS) + boundless;
        let mut packets = 0.0;
        for (link, hop) in (0..).zip(&network.hops) {
            let i = usize::from(link);
            let Some(wire_bytes) = passing[i].iter().map(|load| load.wire_bytes).min() else { continue };
            let wire_bytes = f64::from(wire_bytes);
            let rtt = sizing.rtt(link).unwrap_or(Time::ZERO).after(longer);
            let bdp_bytes = if is_slowest[i] { rates[i].as_bps() / 8.0 * rtt.as_s() } else { 0.0 };
            let buffer_bytes = sizing.room_bytes(link, hop.way.queue.size, hop.way.mean_rate());
            let room = OVERSHOOT * (bdp_bytes + buffer_bytes) / wire_bytes;
            let room = room * passing[i].iter().map(|load| load.times).fold(1.0, f64::max);
            in_flight += room.min(passing[i].iter().map(|load| load.window).sum());
            let capacity = rates[i].as_bps() / 8.0 * duration_s / wire_bytes;
            packets += capacity.min(passing[i].iter().map(|load| load.demand).sum());
        }
        let streams = |transport: Transport| -> f64 {
            let flows = self.flow.iter().filter(|flow| flow.transport() == transport);
            flows.map(|flow| f64::from(flow.streams())).sum()
        };
        let mut flows = streams(Transport::Tcp);
        packets += HANDSHAKE_PACKETS * flows * network.hops.len() as f64;
        let rows = match self.sample {
            Sample::Off => 0.0,
            Sample::Every(step) => duration_s / step.as_s() + 1.0,
        };
        let row = |bytes: usize| bytes as f64;
        let flow_row_bytes = |flow: &Flow| {
            let law = flow.control.law().filter(|_| flow.transport() == Transport::Tcp);
            let probes = law.map_or(0, |law| law.probes().len()) as f64;
            f64::from(flow.count) * (row(FlowTable::ROW_BYTES) + probes * row(ProbeTable::ROW_BYTES))
        };
        let queues = network.hops.len() as f64;
        let row_bytes =
            self.flow.iter().map(flow_row_bytes).sum::<f64>() + queues * row(QueueTable::ROW_BYTES);
        let demands: Vec<Demand> = self.traffic.iter().map(Demand::of).collect();
        let transfers = demands.iter().map(Demand::messages_per_s).sum::<f64>() * duration_s;
        let table_bytes =
            TABLE_COPIES * (rows * row_bytes + TRANSFERS * transfers * row(TransferTable::ROW_BYTES));
        let load_share = *[0.0, 0.15, 0.375, 0.6].get(self.background.level as usize).unwrap_or(&0.0);
        let load_bps = load_share * network.slowest(&self.background.path.links).as_bps();
        let long_flows = 2.0 * f64::from(self.background.long_flows);
        // Hardly more at once than begin in all.
        let begun = 100.0 + BACKGROUND_FLOWS_PER_MBITPS_AND_S * load_bps / 1e6 * duration_s;
        let beside = |link: u16| self.flow.iter().filter(move |flow| flow.path.links.contains(&link));
        let is_starved = |&link: &u16| {
            let way = network.hop(link).way;
            let room_bytes = sizing.room_bytes(link, way.queue.size, way.mean_rate());
            let long = beside(link).map(|flow| f64::from(flow.streams())).sum::<f64>();
            room_bytes < STARVED_PACKETS.max(long) * f64::from(sizing.wire_bytes)
        };
        let mut links = self.background.path.links.iter().chain(&*self.background.ack_links);
        let per_mbitps = if links.clone().any(is_starved) {
            STARVED_FLOWS_PER_MBITPS
        } else if links.any(|&link| beside(link).any(is_stubborn)) {
            PRESSED_FLOWS_PER_MBITPS
        } else {
            BACKGROUND_FLOWS_PER_MBITPS
        };
        let short_flows = (per_mbitps * load_bps / 1e6).min(begun);
        // Half of the load that is forward travels in reverse, where it may be more than that way carries.
        let background = &self.background;
        let back_bps = network.slowest(&background.ack_links).as_bps();
        let piled_s = if load_bps > 0.0 && back_bps < 0.5 * load_bps {
            duration_s
        } else {
            let ways = [&background.path.links, &background.ack_links];
            let stopped_s: f64 =
                ways.iter().map(|way| self.stopped_s(&network, way, load_share.min(SLOW))).sum();
            (PILE_TIMES * stopped_s).min(duration_s)
        };
        let piled = BACKGROUND_FLOWS_PER_MBITPS_AND_S * load_bps / 1e6 * piled_s;
        // Those that piled up are among those that began.
        let short_flows = short_flows.min(begun - piled).max(0.0);
        flows += long_flows;
        in_flight += 20.0 * long_flows + BACKGROUND_PACKETS_S * load_bps / 8.0 / 1514.0;
        packets += load_bps / 8.0 * duration_s / 1514.0;
        let mut connections = 0.0;
        for (traffic, demand) in self.traffic.iter().zip(&demands) {
            // The queue is on the slowest link of a way, where several are, on the one that holds least.
            let queueing_s = |way: &[u16]| {
                let bottleneck = way.iter().map(|&link| {
                    let hop = network.hop(link);
                    let room = sizing.room_bytes(link, hop.way.queue.size, hop.way.mean_rate());
                    (rates[usize::from(link)], room)
                });
                let slowest = bottleneck.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                slowest.map_or(0.0, |(rate, room)| room * 8.0 / rate.as_bps().max(1.0))
            };
            let queueing_s = queueing_s(&traffic.path.links) + queueing_s(&traffic.ack_links);
            connections += demand.connections(queueing_s);
            let ways = [&traffic.path.links, &traffic.ack_links];
            let stopped_s: f64 = ways.iter().map(|way| self.stopped_s(&network, way, SLOW)).sum();
            connections += demand.begun((PILE_TIMES * stopped_s).min(duration_s));
            in_flight += demand.wire_bytes_per_s() / 1514.0;
            packets += demand.packets_per_s() * duration_s;
        }
        for (link, rate) in (0..).zip(&rates) {
            connections += pile_up(&demands, link, rate.as_bps() / 8.0, duration_s);
        }
        let capture_rows = self.capture.as_ref().map_or(0.0, |capture| {
            (capture.max_rows as f64).min(100_000.0 + CAPTURE_ROWS_PER_PACKET * packets)
        });
        let capture_bytes = TABLE_COPIES * row(PacketTable::ROW_BYTES) * capture_rows;
        let sampled = if self.traffic.iter().any(|traffic| samples_rates(&traffic.spec)) {
            in_flight
        } else {
            loads.iter().filter(|load| load.samples).map(|load| load.window).sum::<f64>().min(in_flight)
        };
        let parts = [
            RUN_BYTES
                + flows * FLOW_BYTES
                + streams(Transport::Udt) * UDT_FLOW_BYTES
                + short_flows * SHORT_FLOW_BYTES
                + piled * PILED_BYTES
                + connections * CONNECTION_BYTES,
            in_flight * PACKET_BYTES + sampled * RATE_SAMPLE_BYTES,
            queues * LINK_BYTES + self.link_extra_bytes(&network),
            table_bytes,
            capture_bytes,
        ];
        let [flow_bytes, packet_bytes, link_bytes, table_bytes, capture_bytes] =
            parts.map(|part| part as u64);
        Prediction {
            flow_bytes,
            packet_bytes,
            link_bytes,
            table_bytes,
            capture_bytes,
            memory_bytes: parts.iter().sum::<f64>() as u64,
            packets: packets as u64,
            events: (packets * EVENTS_PER_PACKET) as u64,
        }
    }

    /// All that sends packets one by one.
    fn loads(&self, network: &Network, sizing: &Sizing, rates: &[Rate]) -> Vec<Load<'_>> {
        let limits: Vec<f64> = self.send_limits(network, sizing).into_iter().map(|n| n as f64).collect();
        let limits = &limits;
        let carried = |links: &[u16], wire_bytes: u32| {
            let slowest =
                links.iter().map(|&link| rates[usize::from(link)].as_bps()).fold(f64::INFINITY, f64::min);
            slowest / 8.0 * self.duration.as_s() / f64::from(wire_bytes)
        };
        let flows = self.flow.iter().enumerate().flat_map(move |(group, flow)| {
            let wire_bytes = self.compat.wire_bytes(flow.packet);
            let law = flow.control.law();
            let limit = Limit::of(law, self.longest_rtt_s(flow, network, sizing));
            self.data_routes(group, flow).map(move |links| Load {
                links,
                wire_bytes,
                window: (f64::from(flow.streams()) * self.window(flow, limit).min(limits[group]))
                    .min(self.fed_by_acks(flow, limit, carried(links, wire_bytes))),
                demand: f64::from(flow.count) * self.demand(flow),
                keeps: true,
                // Without SACK each loss takes a round trip to repair, and without RACK a lost retransmission takes a
                // timeout, in which as much leaves as the rate asks for.
                boundless: limit == Limit::Nothing
                    || (!has_sack(flow) || self.compat == Compat::Ns2) && law.is_some_and(samples_rates),
                samples: flow.control.law().is_some_and(samples_rates),
                times: match flow.control.law() {
                    _ if !has_sack(flow) => WITHOUT_SACK,
                    Some(law) if samples_rates(law) => START_UP,
                    _ => 1.0,
                },
            })
        });
        let udp = self.udp.iter().map(|udp| {
            let traffic = self.udp_traffic(udp);
            let bytes = traffic.offered_bps(self.duration) / 8.0 * self.duration.as_s();
            let demand = match traffic.pattern {
                udp::Pattern::Bursts(_) => (bytes / f64::from(traffic.packet_bytes)).ceil(),
                udp::Pattern::OnOff(_) => f64::INFINITY,
            };
            Load {
                links: &udp.path.links,
                wire_bytes: traffic.packet_bytes,
                // No more is under way than is ever sent.
                window: demand,
                demand,
                keeps: false,
                boundless: false,
                samples: false,
                times: 1.0,
            }
        });
        flows.chain(udp).collect()
    }

    /// Memory of links beyond [`LINK_BYTES`], of their changes, and of UDP sources.
    fn link_extra_bytes(&self, network: &Network) -> f64 {
        let queues = network.hops.iter().map(|hop| hop.way.queue.discipline.memory_bytes());
        let changes = self.schedule.iter().map(|change| match change {
            Change::Link(_) => 3.0,
            Change::File(change) => match &change.series {
                Series::Rate(rows) => rows.len() as f64,
                Series::Delay(rows) => rows.len() as f64,
                Series::Loss(rows) => rows.len() as f64,
            },
            Change::Route(change) => f64::from(self.flow[change.group].streams()),
        });
        let sources = self.udp.iter().map(|udp| match &udp.pattern {
            Pattern::OnOff(on_off) => f64::from(on_off.sources),
            _ => 1.0,
        });
        queues.sum::<f64>() + CHANGE_BYTES * changes.sum::<f64>() + UDP_SOURCE_BYTES * sources.sum::<f64>()
    }

    /// Round trip of a flow while all queues on its way are full, in seconds; infinite where the schedule or a trace
    /// changes a link.
    fn longest_rtt_s(&self, flow: &Flow, network: &Network, sizing: &Sizing) -> f64 {
        if !self.schedule.is_empty() {
            return f64::INFINITY;
        }
        let queueing_s = flow.path.links.iter().chain(&flow.ack_links).map(|&link| {
            let way = network.hop(link).way;
            let rate = way.mean_rate();
            match way.delivery {
                Some(_) => f64::INFINITY,
                None => sizing.room_bytes(link, way.queue.size, rate) * 8.0 / rate.as_bps(),
            }
        });
        flow.rtt.as_s() + queueing_s.sum::<f64>()
    }

    /// Most packets that a flow may have outstanding.
    fn window(&self, flow: &Flow, limit: Limit) -> f64 {
        let window = flow.receive_window.map_or(f64::INFINITY, |_| flow.window_packets(self.compat) as f64);
        window.min(self.demand(flow)).min(self.grown(flow, limit))
    }

    /// Most packets that ACKs, which at most double the window in each round trip, make of the initial window until
    /// the end of the run.
    fn grown(&self, flow: &Flow, limit: Limit) -> f64 {
        if limit != Limit::Acks {
            return f64::INFINITY;
        }
        let begins = match flow.start {
            Start::At(time) | Start::Uniform(time, _) => time,
        };
        let rounds = self.duration.since(begins).as_s() / flow.rtt.as_s();
        initial_window(flow) * 2.0 * rounds.exp2()
    }

    /// Most packets that all flows of a group may have outstanding on a path that carries so many until the end of
    /// the run: each that arrives makes room for itself, and lets the window grow by one.
    fn fed_by_acks(&self, flow: &Flow, limit: Limit, carried: f64) -> f64 {
        if limit != Limit::Acks {
            return f64::INFINITY;
        }
        f64::from(flow.streams()) * initial_window(flow) + 2.0 * carried
    }

    /// Packets that a flow wants to deliver.
    fn demand(&self, flow: &Flow) -> f64 {
        let payload = f64::from(flow.payload_bytes(self.compat));
        flow.size.map_or(f64::INFINITY, |size| (size.0 as f64 / payload).ceil())
    }
}
