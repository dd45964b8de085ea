//! Memory, packets and events of a run, predicted before it starts.

use lfn_path::Impair;
use lfn_sim::config::LinkId;
use lfn_sim::tables::{PacketTable, TransferTable};
use lfn_units::Time;

mod cross_traffic;
mod demand;
mod growth;
mod loads;
mod udp_load;

use crate::model::{Change, Compat, Mode, Pattern, Scenario, Series, Transport};
use crate::network::Network;
use crate::peaks::{most_late, most_late_ack};
use cross_traffic::CrossTraffic;
use demand::Demand;
use growth::{samples_rates, OVERSHOOT};
use loads::{Basis, Load, Paths, LEAST_TIMEOUT};

/// Memory of a flow: configuration, sender, receiver, law, and its summary as a value and as JSON.
const FLOW_BYTES: f64 = 2_200.0;
/// The same of a flow that is reported in sum: 1,088, of which 2.25 times as much exists while their list grows, and its
/// task.
const SHORT_FLOW_BYTES: f64 = 2_520.0;
/// The same over UDT, where both ends are connections that measure, and list at least some packets.
const UDT_FLOW_BYTES: f64 = 16_000.0;
/// Memory of a packet that is outstanding. In a queue it takes 60 bytes, with a quarter more for growth, and 32 of them once
/// more while they are copied; on a delay line 16 and as much again for its ACK; on the sender's scoreboard 9, which
/// double. If it was lost or has arrived behind a hole, both ends know the range that it is in.
const PACKET_BYTES: f64 = 119.0;
/// The same in no queue: 25 for its time, its flags and the ranges at both ends, in two places; and on a delay line, or on
/// the lists of what is lost and sent again. BBR, which bears losses, has them all at once.
const LISTED_BYTES: f64 = 88.0;
/// The same of windows far above what the path holds: nearly all is lost. A place takes half of it.
const LOST_BYTES: f64 = 92.0;
/// Of those on a delay line, and their ACKs.
const LINE_BYTES: f64 = 32.0;
/// The same of UDT and UDP on a wire: they list lost packets alone.
const UNLISTED_BYTES: f64 = 48.0;
/// And of UDT's packets that are outstanding elsewhere: both ends list them as ranges in trees, which take most if each
/// second packet is lost.
const UDT_LOST_BYTES: f64 = 52.0;
/// The same of many flows: more of their packets are lost at once.
const MANY_UDT_LOST_BYTES: f64 = 170.0;
/// Of a packet on a scoreboard of a flow that ended.
const LEFT_BYTES: f64 = 100.0;
/// The same of cross traffic: 25 in 64 places for its 45 packets, and the lists.
const KEPT_BYTES: f64 = 80.0;
/// Of a packet on a wire that is out of order, beyond the rest: 104, with a quarter more for growth, and an event.
const LATE_BYTES: f64 = 160.0;
/// Bytes a packet that a sender keeps for a law with delivery-rate samples, with room to grow.
const RATE_SAMPLE_BYTES: f64 = 80.0;
/// Rows of the table `transfers` are a mean number: there may be a third more.
const TRANSFERS: f64 = 4.0 / 3.0;
/// A connection of a model of traffic, with its messages and what it has in flight.
const CONNECTION_BYTES: f64 = 5_000.0;
/// Columns grow by a quarter of what they hold, and exist once more while they are stored; the rows of events come on top.
const TABLE_COPIES: f64 = 2.3;
/// Memory of every run, with the room of its small lists.
const RUN_BYTES: f64 = 4_000_000.0;
/// Scoreboards have places for a power of two of packets: where that many are outstanding, and no more are held, they
/// need so much of what else is spare.
const SCOREBOARD_ROOM: f64 = 1.6;
/// Room that structures which hold few packets keep for more.
const SPARE_PACKETS: f64 = 1_000.0;
/// Beyond that, queues of ACKs may hold so many packets, and recoveries so much of what the links hold, if the
/// windows allow it. This includes the empty places of lists, which double as they grow.
const SLACK_PACKETS: f64 = 40_000.0;
const RECOVERY: f64 = 0.55;
/// The same of recoveries after an outage that only some of the flows met, beyond that.
const RECOVERY_AFTER_OUTAGE: f64 = 2.5;
/// The same of recoveries of BBR, whose rate no loss lowers, beyond that.
const RECOVERY_BY_RATE: f64 = 1.5;
/// The same of recoveries without SACK, beyond that.
const STALLED: f64 = 1.0;
const STALLED_MOST_PACKETS: f64 = 750_000.0;
/// In a long run some of these flows never end their recovery, and add packets in each round trip.
const STALLED_A_ROUND: f64 = 0.025;
/// So many flows add all of that; each of fewer adds its share.
const STALLED_FLOWS: f64 = 10.0;
/// A connection that waits on a link which is down, or offered more than it carries.
const PILED_BYTES: f64 = 3_500.0;
/// Rows for each packet that leaves a recorded link, at most: it arrives, leaves and reaches its host, others arrive and
/// are dropped.
const ROWS_PER_PACKET: f64 = 4.5;
const ROWS_PER_ACK: f64 = 3.0;
/// Rows of those that are dropped while windows grow, at most.
const CAPTURE_ROWS: f64 = 100_000.0;
/// Of a TCP connection at each link: a SYN, the ACK that ends its handshake, a SYN-ACK.
const HANDSHAKE_PACKETS: f64 = 3.0;
/// Half a packet's ACK, and the rest.
const EVENTS_PER_PACKET: f64 = 1.5;
/// Of a link: its histogram of waiting times and what it keeps besides packets.
const LINK_BYTES: f64 = 20_000.0;
/// Of a change that is scheduled.
const CHANGE_BYTES: f64 = 64.0;
/// A UDP source of many.
const UDP_SOURCE_BYTES: f64 = 300.0;
/// A circuit breaker: its settings, its count and its event, with room to grow.
const BREAKER_BYTES: f64 = 400.0;
/// Counts of the delays of an entry of UDP: 64 bins for each power of two up to 2^32 us.
const UDP_DELAYS_BYTES: f64 = 10_000.0;

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

impl Scenario {
    /// Predicts the needs of a run of this scenario.
    pub fn predict(&self) -> Prediction {
        let paths = Paths::of(self);
        let loads = paths.loads();
        let demands = self.traffic.iter().map(Demand::of).collect();
        Basis { paths, loads, demands, duration_s: self.duration.as_s() }.predict()
    }
}

impl Basis<'_> {
    fn predict(&self) -> Prediction {
        let cross = self.cross_traffic();
        let packets = self.packets() + cross.packets;
        let parts = [
            self.flow_bytes(&cross),
            self.packet_bytes(&cross),
            self.link_bytes(),
            self.table_bytes(),
            self.capture_bytes(&cross),
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

    fn links(&self) -> impl Iterator<Item = LinkId> {
        self.paths.network.links()
    }

    fn link_count(&self) -> f64 {
        self.paths.network.hops.len() as f64
    }

    fn streams(&self, transport: Transport) -> f64 {
        let flows = self.paths.scenario.flow.iter().filter(|flow| flow.transport() == transport);
        flows.map(|flow| f64::from(flow.streams())).sum()
    }

    fn flow_bytes(&self, cross: &CrossTraffic) -> f64 {
        RUN_BYTES
            + (self.streams(Transport::Tcp) + cross.long_flows) * FLOW_BYTES
            + self.streams(Transport::Udt) * UDT_FLOW_BYTES
            + cross.short_flows * SHORT_FLOW_BYTES
            + cross.piled * PILED_BYTES
            + cross.connections * CONNECTION_BYTES
            + self.breakers() * BREAKER_BYTES
    }

    fn breakers(&self) -> f64 {
        let Scenario { flow, udp, .. } = self.paths.scenario;
        let of_flows = flow.iter().map(|flow| f64::from(flow.count) * flow.breakers.len() as f64);
        of_flows.sum::<f64>() + udp.iter().map(|udp| udp.breakers.len() as f64).sum::<f64>()
    }

    fn passing(&self, link: LinkId) -> impl Iterator<Item = &Load<'_>> + Clone {
        self.loads.iter().filter(move |load| load.links.contains(&link))
    }

    /// Whether a link is the slowest of some route.
    fn is_slowest(&self, link: LinkId) -> bool {
        let rate = |link: LinkId| self.paths.peaks.rates[link.index()];
        let slowest = |load: &Load| load.links.iter().copied().min_by_key(|&link| rate(link));
        self.passing(link).any(|load| slowest(load) == Some(link))
    }

    fn packet_bytes(&self, cross: &CrossTraffic) -> f64 {
        let senders = || self.loads.iter().filter(|load| load.keeps);
        let windows: f64 = senders().filter(|load| !load.boundless).map(|load| load.window).sum();
        let boundless: f64 = senders().filter(|load| load.boundless).map(|load| load.window).sum();
        let links: f64 = self.links().map(|link| self.held(link)).sum();
        // Without RACK a lost retransmission waits for its timeout, while others arrive behind it.
        let behind = senders()
            .filter(|_| self.paths.scenario.compat == Compat::Ns2)
            .map(|load| {
                let longest =
                    load.links.iter().map(|&link| self.round_trip(link)).fold(LEAST_TIMEOUT, Time::max);
                self.paths.carried(load.links, load.wire_bytes, longest.min(self.paths.scenario.duration))
            })
            .fold(0.0, f64::max);
        let initial: f64 = senders().filter(|load| !load.boundless).map(|load| load.initial).sum();
        // Without SACK more is outstanding while losses are repaired.
        let stalling = || senders().filter(|load| load.stalls_s > 0.0);
        let stalled: f64 = stalling().map(|load| load.window).sum();
        let rounds = stalling().map(|load| self.duration_s / load.shortest_s).fold(0.0, f64::max);
        let stalls = stalling_share(senders()) * STALLED.max(STALLED_A_ROUND * rounds) * links.min(stalled);
        let stalls = stalls.min(STALLED_MOST_PACKETS);
        let after_outage = if self.paths.spans_outage() { RECOVERY_AFTER_OUTAGE * links } else { 0.0 };
        let bears = |load: &&Load| load.samples && load.bears_losses;
        let by_rate = if senders().any(|load| bears(&load)) { RECOVERY_BY_RATE * links } else { 0.0 };
        let unshared: f64 = senders().map(|load| load.unshared).sum();
        let recovery = (RECOVERY * links - unshared).max(0.0);
        let slack = SLACK_PACKETS + recovery + initial + stalls + by_rate + after_outage + behind;
        let held = slack.min(windows) + boundless + unshared + links;
        // No more is held than is outstanding, at most.
        let room = |load: &Load| if load.samples { 1.0 } else { SCOREBOARD_ROOM };
        let outstanding: f64 = self.loads.iter().map(|load| room(load) * load.window).sum();
        let held = held.min(outstanding + SPARE_PACKETS);
        let in_flight = held + cross.in_flight;
        let sampled = if self.paths.scenario.traffic.iter().any(|traffic| samples_rates(&traffic.spec)) {
            in_flight
        } else {
            senders().filter(|load| load.samples).map(|load| load.window).sum::<f64>().min(in_flight)
        };
        let left: f64 = self.loads.iter().map(|load| load.left).sum();
        let listed = self.loads.iter().filter(|load| load.has_scoreboard);
        let on_scoreboards = SPARE_PACKETS + listed.map(|load| room(load) * load.window).sum::<f64>();
        let queued = self.links().map(|link| self.queued(link)).sum::<f64>().min(held);
        let listed = (held - queued).min(on_scoreboards);
        let bearing = senders().filter(|load| bears(load)).map(|load| load.window).sum::<f64>().min(listed);
        let overflowing = || senders().filter(|load| load.boundless && !load.samples);
        let lost = overflowing().map(|load| load.window).sum::<f64>().min(listed - bearing);
        let places = overflowing().map(|load| load.places).sum::<f64>().min(2.0 * lost);
        let unlisted = (held - queued - on_scoreboards).max(0.0);
        let on_wire = unlisted.min(links / OVERSHOOT);
        let many_over_udt = senders().any(|load| !load.has_scoreboard && load.bears_losses);
        let udt_lost_bytes = if many_over_udt { MANY_UDT_LOST_BYTES } else { UDT_LOST_BYTES };
        let held_bytes = (queued + cross.in_flight + bearing) * PACKET_BYTES
            + places / 2.0 * LOST_BYTES
            + self.carried_at_once().min(lost) * LINE_BYTES
            + (listed - bearing - lost) * LISTED_BYTES
            + on_wire * UNLISTED_BYTES
            + (unlisted - on_wire) * udt_lost_bytes
            + sampled * RATE_SAMPLE_BYTES;
        let under_way = in_flight + self.udp_packets();
        let late_at = |link| (self.late(link) + self.late_acks(link)).min(under_way);
        // Each link keeps its room.
        let late: f64 = self.links().map(late_at).sum();
        held_bytes.max(left * (LEFT_BYTES + RATE_SAMPLE_BYTES)) + late * LATE_BYTES + cross.kept * KEPT_BYTES
    }

    /// The most packets in a link's queue, and on its wire if each of them is an event.
    fn queued(&self, link: LinkId) -> f64 {
        let Some(wire_bytes) = self.passing(link).map(|load| load.wire_bytes).min() else { return 0.0 };
        let windows: f64 = self.passing(link).map(|load| load.window).sum();
        let has_events = self.paths.network.hop(link).mode == Mode::Event;
        let on_wire = if has_events { self.bdp_bytes(link) } else { 0.0 };
        ((self.paths.room_bytes(link) + on_wire) / f64::from(wire_bytes)).min(windows)
    }

    /// Packets that the slowest links carry in a round trip, and that their queues hold.
    fn carried_at_once(&self) -> f64 {
        let packets = |link: LinkId| {
            let wire_bytes =
                self.passing(link).map(|load| load.wire_bytes).min().map_or(f64::INFINITY, f64::from);
            (self.bdp_bytes(link) + self.paths.room_bytes(link)) / wire_bytes
        };
        self.links().filter(|&link| self.is_slowest(link)).map(packets).sum()
    }

    /// Bytes that a link carries in the longest round trip of its flows.
    fn bdp_bytes(&self, link: LinkId) -> f64 {
        self.paths.peaks.rates[link.index()].as_bps() / 8.0 * self.round_trip(link).as_s()
    }

    /// Packets that UDP sources send in the longest round trip. The place of a packet out of order is free again when all
    /// such packets that were sent before it have arrived.
    fn udp_packets(&self) -> f64 {
        let sources = self.loads.iter().filter(|load| !load.keeps);
        let sent = sources.map(|load| {
            let longest_s = load.links.iter().map(|&link| self.round_trip(link).as_s()).fold(0.0, f64::max);
            load.demand.min(load.per_s * longest_s)
        });
        sent.sum()
    }

    /// The longest round trip of the flows on a link, and how late its packets are.
    fn round_trip(&self, link: LinkId) -> Time {
        let late = most_late(&self.paths.network.hop(link).way.impair).after(self.paths.peaks.longer);
        self.paths.sizing.rtt(link).unwrap_or(Time::ZERO).after(late)
    }

    /// Packets on the wire behind a link that are out of order.
    fn late(&self, link: LinkId) -> f64 {
        let Some(wire_bytes) = self.passing(link).map(|load| load.wire_bytes).min() else { return 0.0 };
        let impair = &self.paths.network.hop(link).way.impair;
        let overtaken = self.paths.carried(&[link], wire_bytes, most_late(impair));
        let share = share_out_of_order(impair, overtaken);
        if share == 0.0 {
            return 0.0;
        }
        // Data are half of the round trip on their way.
        let rtt = self.paths.sizing.rtt(link).unwrap_or(Time::ZERO).after(self.paths.peaks.longer);
        share * (overtaken + 0.5 * self.paths.carried(&[link], wire_bytes, rtt))
    }

    /// ACKs behind a link that are out of order.
    fn late_acks(&self, link: LinkId) -> f64 {
        let Some(acks) = &self.paths.network.hop(link).way.acks else { return 0.0 };
        let (impair, late) = (acks.motion(), most_late_ack(acks));
        let rtt = self.paths.sizing.rtt(link).unwrap_or(Time::ZERO).after(self.paths.peaks.longer);
        let acked = self.loads.iter().filter(|load| load.ack_links.contains(&link));
        let out_of_order = acked.map(|load| {
            let sent = |time| load.acks * self.paths.carried(load.links, load.wire_bytes, time);
            share_out_of_order(&impair, sent(late)) * sent(late.after(rtt))
        });
        out_of_order.sum()
    }

    /// Packets in a link and its queue, and those that are outstanding because it dropped some, as packets in flight.
    fn held(&self, link: LinkId) -> f64 {
        let sum = |loads: &mut dyn Iterator<Item = &Load<'_>>| loads.map(|load| load.window).sum::<f64>();
        let least = |loads: &mut dyn Iterator<Item = &Load<'_>>| loads.map(|load| load.wire_bytes).min();
        let Some(wire_bytes) = least(&mut self.passing(link)) else { return 0.0 };
        let all = self.held_of(link, wire_bytes, sum(&mut self.passing(link)));
        let flows = || self.passing(link).filter(|load| load.keeps);
        let udp = sum(&mut self.passing(link).filter(|load| !load.keeps));
        // Small packets of UDP are few where UDP is slow.
        least(&mut flows()).map_or(all, |bytes| all.min(udp + self.held_of(link, bytes, sum(&mut flows()))))
    }

    /// The same of packets of at least this size, of senders with these windows together.
    fn held_of(&self, link: LinkId, wire_bytes: u32, windows: f64) -> f64 {
        let packets = |bytes: f64| bytes / f64::from(wire_bytes);
        let room = packets(self.paths.room_bytes(link));
        if !self.is_slowest(link) {
            return (OVERSHOOT * room).min(windows);
        }
        let bdp = packets(self.bdp_bytes(link));
        if self.passing(link).all(|load| load.boundless) {
            return 0.0;
        }
        // A law that asks for more estimates the path without its queue if it is alone.
        let is_alone = self.streams(Transport::Tcp) + self.streams(Transport::Udt) == 1.0;
        let estimated = if is_alone { bdp } else { bdp + room };
        let bytes_per_s = self.paths.peaks.rates[link.index()].as_bps() / 8.0;
        let share = stalling_share(self.passing(link));
        let more = |load: &Load| {
            let stalls = share * packets(bytes_per_s * load.stalls_s);
            (OVERSHOOT * load.more * estimated + stalls).min(load.window)
        };
        let more = self.passing(link).filter(|load| !load.boundless).map(more).fold(0.0, f64::max);
        (OVERSHOOT * (bdp + room) + more).min(windows)
    }

    /// Data packets that leave links, except those of cross traffic.
    fn packets(&self) -> f64 {
        let carried = self.links().map(|link| self.carried(link, self.duration_s));
        let handshakes = self.streams(Transport::Tcp) * self.link_count();
        carried.sum::<f64>() + HANDSHAKE_PACKETS * handshakes
    }

    /// Data packets that leave a link in so many seconds: the smallest come first.
    fn carried(&self, link: LinkId, seconds: f64) -> f64 {
        let mut passing: Vec<&Load> = self.passing(link).collect();
        passing.sort_by_key(|load| load.wire_bytes);
        let mut left_bytes = self.paths.peaks.rates[link.index()].as_bps() / 8.0 * seconds;
        let carried = passing.into_iter().map(|load| {
            let wire_bytes = f64::from(load.wire_bytes);
            let packets = load.demand.min(left_bytes / wire_bytes);
            left_bytes -= packets * wire_bytes;
            packets
        });
        carried.sum()
    }

    fn link_bytes(&self) -> f64 {
        self.link_count() * LINK_BYTES + self.paths.scenario.link_extra_bytes(&self.paths.network)
    }

    fn table_bytes(&self) -> f64 {
        let scenario = self.paths.scenario;
        let sampled = scenario.sampled_bytes(scenario.sample, self.paths.network.hops.len());
        let transfers = self.demands.iter().map(Demand::messages_per_s).sum::<f64>() * self.duration_s;
        TABLE_COPIES * (sampled + TRANSFERS * transfers * TransferTable::ROW_BYTES as f64)
    }

    fn capture_bytes(&self, cross: &CrossTraffic) -> f64 {
        let Some(capture) = &self.paths.scenario.capture else { return 0.0 };
        let time = capture.to.min(self.paths.scenario.duration).since(capture.from);
        let rows = capture.numbers.iter().map(|&link| {
            let outstanding: f64 = self.passing(link).map(|load| load.window).sum();
            let acked = self.loads.iter().filter(|load| load.ack_links.contains(&link));
            let acks = acked.map(|load| {
                load.acks * load.demand.min(self.paths.carried(load.links, load.wire_bytes, time))
            });
            let data = self.carried(link, time.as_s());
            CAPTURE_ROWS.min(ROWS_PER_ACK * outstanding)
                + ROWS_PER_PACKET * data
                + ROWS_PER_ACK * acks.sum::<f64>()
        });
        let handshakes = HANDSHAKE_PACKETS * self.streams(Transport::Tcp) * self.link_count();
        let rows = rows.sum::<f64>() + ROWS_PER_PACKET * (cross.packets + handshakes);
        TABLE_COPIES * PacketTable::ROW_BYTES as f64 * rows.min(capture.max_rows as f64)
    }
}

/// How much of what recoveries without SACK add is added by these flows.
fn stalling_share<'a>(loads: impl Iterator<Item = &'a Load<'a>>) -> f64 {
    let flows: f64 = loads.filter(|load| load.stalls_s > 0.0).map(|load| load.streams).sum();
    (flows / STALLED_FLOWS).min(1.0)
}

/// The share of packets that are out of order where so many arrive while one is held up.
fn share_out_of_order(impair: &Impair, overtaken: f64) -> f64 {
    match (impair.jitter, impair.reorder) {
        (None, None) => 0.0,
        (None, Some(reorder)) => (reorder.p * (1.0 + overtaken)).min(1.0),
        (Some(_), _) => 1.0,
    }
}

impl Scenario {
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
        queues.sum::<f64>()
            + CHANGE_BYTES * changes.sum::<f64>()
            + UDP_SOURCE_BYTES * sources.sum::<f64>()
            + UDP_DELAYS_BYTES * self.udp.len() as f64
    }
}
