//! Senders of packets one by one, and the most that each of it may have outstanding.

use lfn_header::Protocol;
use lfn_law::{LawSpec, SlowStartKind};
use lfn_path::Loss;
use lfn_sim::config::LinkId;
use lfn_units::Time;

use super::demand::{background_load_bps, Demand};
use super::growth::{
    bears_losses, first_window, gives_way_to_losses, initial_window, resumed, samples_rates, Growth,
    OVERSHOOT,
};
use crate::config::Sizing;
use crate::model::{Change, Compat, Flow, Scenario, Series, Transport};
use crate::network::{Hop, Network};
use crate::peaks::{jumps, most_late, Peaks};
use crate::quantity::Start;

/// Over [`OVERSHOOT`]: under a law with delivery rates, start-up keeps 2 / ln 2 of what the path holds in flight, and
/// as much as it holds is SACKed before the first loss is repaired.
const START_UP: f64 = (2.0 / std::f64::consts::LN_2 + 1.0) / OVERSHOOT - 1.0;
/// Round trips before the first data.
const HANDSHAKE_ROUNDS: f64 = 1.0;
/// Round trips of growth in congestion avoidance between a loss and the answer to it.
const REACTION: f64 = 4.0;
/// The least retransmission timeout, and one that is not short.
pub(crate) const LEAST_TIMEOUT: Time = Time::from_ms(200);
pub(crate) const TIMEOUT_S: f64 = 1.0;
/// Slow start sends three packets for two that arrive, so a third of them queues if they arrive one behind the other.
const QUEUED_OF_SLOW_START: f64 = 1.0 / 3.0;
/// Of several flows only those lose packets which come last in a burst. The others double their windows once more.
const SPARED: f64 = 2.0;
/// The most by which the seconds since a loss let CUBIC and H-TCP grow in a round trip of 0.1 s, in packets.
const AVOIDANCE_BY_S: [f64; 2] = [12.0, 1.2];
/// Share of the flows without SACK whose recovery never ends.
const ENDLESS: f64 = 0.1;
/// Packets that `const-rate` adds in a round trip of a second.
const CONST_RATE_C: f64 = 4.0;
/// The longest ACK on the wire.
const ACK_BYTES_MOST: f64 = 90.0;
/// A retransmission that is lost three times waits for timeouts of 1, 2 and 4 s.
const HOLES: Time = Time::from_s(8);
/// Largest window of `hybla:linux`. As much again may be outstanding while losses are repaired.
const HYBLA_LINUX_SEGMENTS: f64 = 65_535.0;
/// A packet that opens a connection, on the wire.
const OPENING_BYTES: f64 = 90.0;

fn has_sack(flow: &Flow) -> bool {
    flow.tcp.is_none_or(|tcp| tcp.sack)
}

/// Load of one group of flows, or of one UDP source, on a link.
pub(crate) struct Load<'a> {
    pub(crate) links: &'a [LinkId],
    /// Where its ACKs travel.
    pub(crate) ack_links: &'a [LinkId],
    /// ACKs for each of its packets, while none is lost.
    pub(crate) acks: f64,
    pub(crate) wire_bytes: u32,
    /// Most packets that it may have outstanding.
    pub(crate) window: f64,
    /// Packets that leave before a loss can be known.
    pub(crate) initial: f64,
    /// Packets that it wants to deliver.
    pub(crate) demand: f64,
    /// Its sender keeps what is outstanding.
    pub(crate) keeps: bool,
    /// It keeps something for each packet that is outstanding: TCP.
    pub(crate) has_scoreboard: bool,
    /// Nothing but the host limits the window.
    pub(crate) boundless: bool,
    /// Its sender keeps a sample of the delivery rate for each packet.
    pub(crate) samples: bool,
    /// Packets of flows each of which sends for a round trip as if it had the path alone.
    pub(crate) unshared: f64,
    /// Most places of its scoreboards.
    pub(crate) places: f64,
    /// Packets that a UDP source sends in a second, at most.
    pub(crate) per_s: f64,
    /// The shortest round trip of its flows; 0 without.
    pub(crate) shortest_s: f64,
    /// No loss of less than a fifth of the packets lowers its rate.
    pub(crate) bears_losses: bool,
    /// Packets for which flows that ended keep room.
    pub(crate) left: f64,
    /// Packets that may be outstanding over what a link twice holds, as a share of it.
    pub(crate) more: f64,
    /// For how long a recovery lets a packet leave for each that arrives, and repairs one loss in each round trip.
    pub(crate) stalls_s: f64,
    /// Its flows.
    pub(crate) streams: f64,
}

/// Data from which a prediction is made.
pub(crate) struct Basis<'a> {
    pub(crate) paths: Paths<'a>,
    pub(crate) loads: Vec<Load<'a>>,
    pub(crate) demands: Vec<Demand<'a>>,
    pub(crate) duration_s: f64,
}

/// The paths of a scenario and what they hold.
pub(crate) struct Paths<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) network: Network<'a>,
    pub(crate) sizing: Sizing,
    pub(crate) peaks: Peaks,
}

/// So many flows of UDT raise their rates by more, together, than their losses lower them.
const MANY_UDT_FLOWS: f64 = 50.0;
/// So many flows of UDT at once have windows of all that their path carries.
const JUMPS_AT_ONCE: f64 = 8.0;

impl<'a> Paths<'a> {
    pub(crate) fn of(scenario: &'a Scenario) -> Paths<'a> {
        let network = Network::new(&scenario.topology);
        let sizing = Sizing::new(&network, &scenario.flow, &scenario.udp, scenario.compat);
        let peaks = Peaks::of(scenario, &network);
        Paths { scenario, network, sizing, peaks }
    }

    /// All that sends packets one by one.
    pub(crate) fn loads(&self) -> Vec<Load<'a>> {
        let scenario = self.scenario;
        let limits = scenario.send_limits(&self.network, &self.sizing);
        let groups = scenario.flow.iter().zip(limits).enumerate();
        let flows = groups.flat_map(|(group, (flow, limit))| {
            let growth = self.growth(flow);
            let routes = scenario.data_routes(group, flow);
            routes.map(move |links| self.flow_load(flow, growth, limit as f64, links))
        });
        let mut loads: Vec<Load> = flows.collect();
        let windows: f64 = loads.iter().map(|load| load.window).sum();
        loads.extend(scenario.udp.iter().map(|udp| self.udp_load(udp, windows)));
        loads
    }

    /// Of all flows of a group on one route of their data.
    fn flow_load(&self, flow: &'a Flow, growth: Growth, limit: f64, links: &'a [LinkId]) -> Load<'a> {
        let compat = self.scenario.compat;
        let wire_bytes = compat.wire_bytes(flow.packet);
        let payload = f64::from(flow.payload_bytes(compat));
        let wanted = flow.size.map_or(f64::INFINITY, |size| (size.0 as f64 / payload).ceil());
        let received = flow.receive_window.map_or(f64::INFINITY, |_| flow.window_packets(compat) as f64);
        let n = f64::from(flow.streams());
        let carried = self.carried(links, wire_bytes, self.scenario.duration);
        let grown = self.early(flow, links) * self.grown(flow, growth, self.rounds(flow, links));
        let mut window = (n * received.min(wanted).min(limit)).min(if jumps(flow, self.first_rtt_s(flow)) {
            f64::INFINITY
        } else {
            grown
        });
        // Where losses are hidden none ends its growth.
        if !flow.is_optimistic() {
            window = window
                .min(fed_by_acks(flow, growth, carried))
                .min(self.ended_by_losses(flow, growth, links))
                .min(self.ended_by_overflow(flow, growth, links));
        }
        if flow.control.law().is_some_and(|law| law.label() == "hybla:linux") {
            window = window.min(OVERSHOOT * n * HYBLA_LINUX_SEGMENTS.max(initial_window(flow, growth)));
        }
        let samples = flow.control.law().is_some_and(samples_rates);
        // At the law's rate, while a loss waits: without SACK a round trip each, without RACK also for timeouts.
        let boundless =
            growth.boundless || flow.is_optimistic() || samples && (!has_sack(flow) || compat == Compat::Ns2);
        let more = if samples { START_UP } else { growth.beyond_doubling() };
        if boundless && !flow.is_optimistic() {
            // Packets under way, and those that have arrived behind a hole.
            let under_way = (1.0 + growth.per_packet) * (1.0 + more) * self.held(flow, links)
                + n * (initial_window(flow, growth) + REACTION * growth.per_round);
            // The window of Hybla alone is too large by itself; other holes end with their timeouts.
            let holes =
                if growth.boundless { self.scenario.duration } else { self.scenario.duration.min(HOLES) };
            window = window.min(under_way + self.carried(links, wire_bytes, holes));
        }
        Load {
            links,
            ack_links: &flow.ack_links,
            acks: if flow.tcp.is_none_or(|tcp| tcp.delayed_ack) { 0.5 } else { 1.0 },
            wire_bytes,
            window,
            initial: (n * first_window(flow, growth)).min(window),
            demand: (f64::from(flow.count) * wanted).min(self.sent(flow, growth, window, links)),
            keeps: true,
            has_scoreboard: flow.transport() == Transport::Tcp,
            boundless,
            samples,
            unshared: self.unshared(flow, growth, links).min(window),
            places: (2.0 * window).min(n * places(received.min(wanted).min(limit))),
            per_s: 0.0,
            shortest_s: self.shortest_s(flow),
            bears_losses: match flow.control.law() {
                Some(law) => bears_losses(law, growth),
                None => n >= MANY_UDT_FLOWS,
            },
            left: if samples { self.left(flow, links, wire_bytes, window) } else { 0.0 },
            more,
            stalls_s: self.stalls_s(flow),
            streams: n,
        }
    }

    /// Of a link's full queue.
    pub(crate) fn room_bytes(&self, link: LinkId) -> f64 {
        let way = self.network.hop(link).way;
        let burst = way.shaper.map_or(0.0, |shaper| shaper.burst.0 as f64);
        self.sizing.room_bytes(link, way.queue.size, way.mean_rate()) + burst
    }

    /// The highest rate of a route's slowest link.
    fn rate_bps(&self, links: &[LinkId]) -> f64 {
        let rates = links.iter().map(|&link| self.peaks.rates[link.index()].as_bps());
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Packets that a route carries in this time.
    pub(crate) fn carried(&self, links: &[LinkId], wire_bytes: u32, time: Time) -> f64 {
        self.rate_bps(links) / 8.0 * time.as_s() / f64::from(wire_bytes)
    }

    /// Packets for which flows keep room after their end, where they begin one after the other: each has a start-up alone.
    fn left(&self, flow: &Flow, links: &[LinkId], wire_bytes: u32, window: f64) -> f64 {
        match (flow.start, flow.size) {
            (Start::Uniform(..), Some(_)) => {
                let start_up = OVERSHOOT * (1.0 + START_UP) * self.carried(links, wire_bytes, flow.rtt);
                (f64::from(flow.streams()) * start_up).min(window)
            }
            _ => 0.0,
        }
    }

    /// Packets that a route and its queues hold.
    fn held(&self, flow: &Flow, links: &[LinkId]) -> f64 {
        let wire_bytes = self.scenario.compat.wire_bytes(flow.packet);
        let rooms: f64 = links.iter().map(|&link| self.room_bytes(link)).sum();
        self.carried(links, wire_bytes, flow.rtt.after(self.peaks.longer)) + rooms / f64::from(wire_bytes)
    }

    fn growth(&self, flow: &Flow) -> Growth {
        let header = flow.control.law().and_then(LawSpec::header);
        let answers = |hop: &Hop| hop.way.router.and_then(|router| router.0).map(|config| config.header());
        let is_answered = header.is_some() && self.network.hops.iter().any(|hop| answers(hop) == header);
        let growth = Growth::of(flow.control.law(), self.first_rtt_s(flow), is_answered);
        match flow.tcp.map(|tcp| tcp.slow_start.0) {
            Some(SlowStartKind::Rapid) => Growth { per_packet: 2.0 * growth.per_packet, ..growth },
            _ => growth,
        }
    }

    /// The longest first round trip of a flow, in seconds: all queues on its way are full. At the start of a run they
    /// hold what begins there: an opening packet of each flow; where these are too many for a queue, some come again
    /// when it may be full. Infinite where a trace says when a link sends.
    fn first_rtt_s(&self, flow: &Flow) -> f64 {
        let scenario = self.scenario;
        let streams: f64 = scenario.flow.iter().map(|flow| f64::from(flow.streams())).sum();
        let is_quiet = flow.start == Start::At(Time::ZERO)
            && scenario.background.is_silent()
            && scenario.traffic.is_empty()
            // These begin with data, and a handshake's packet that is lost comes again.
            && scenario.udp.is_empty()
            && scenario.flow.iter().all(|flow| flow.transport() == Transport::Tcp)
            && self.losses(&flow.path.links).is_empty();
        let queueing_s = flow.path.links.iter().chain(&flow.ack_links).map(|&link| {
            let way = self.network.hop(link).way;
            let has_data = scenario.flow.iter().any(|flow| flow.path.links.contains(&link));
            let room_bytes = match self.sizing.limits(link, way.queue.size, way.mean_rate()) {
                (packets, u64::MAX) if is_quiet && !has_data => packets as f64 * OPENING_BYTES,
                _ => self.room_bytes(link),
            };
            let is_enough = room_bytes > streams * f64::from(self.sizing.wire_bytes);
            let waits_bytes = if is_quiet && is_enough { streams * OPENING_BYTES } else { room_bytes };
            match way.delivery {
                Some(_) => f64::INFINITY,
                None => waits_bytes * 8.0 / self.peaks.least_rates[link.index()].as_bps(),
            }
        });
        flow.rtt.after(self.peaks.longer).as_s() + queueing_s.sum::<f64>()
    }

    /// The shortest round trip of a flow.
    fn shortest_s(&self, flow: &Flow) -> f64 {
        flow.rtt.since(self.peaks.shorter).as_s()
    }

    /// Round trips of a flow in a run, at most. While a link of its route is down there is one.
    fn rounds(&self, flow: &Flow, links: &[LinkId]) -> f64 {
        let time_s = self.scenario.duration.since(begins(flow)).as_s();
        let is_changed = links != &*flow.path.links;
        let down_s = if begins(flow) > Time::ZERO || is_changed { 0.0 } else { self.down_s(links) };
        (time_s - down_s) / self.shortest_s(flow) + if down_s > 0.0 { 1.0 } else { 0.0 }
    }

    /// Whether flows of a group begin one after the other, and a link of theirs is down in the run.
    pub(crate) fn spans_outage(&self) -> bool {
        let spans = |(group, flow): (usize, &'a Flow)| {
            matches!(flow.start, Start::Uniform(..))
                && self.scenario.data_routes(group, flow).any(|links| self.down_s(links) > 0.0)
        };
        self.scenario.flow.iter().enumerate().any(spans)
    }

    /// For how long the link of a route is down that is down longest.
    fn down_s(&self, links: &[LinkId]) -> f64 {
        let down = links.iter().map(|&link| self.scenario.stopped_s(&self.network, &[link], 0.0));
        down.fold(0.0, f64::max)
    }

    /// Most packets that ACKs make of the initial window in so many round trips: each packet that arrives makes room
    /// for itself and for what the window grows by.
    fn grown(&self, flow: &Flow, growth: Growth, rounds: f64) -> f64 {
        let rounds = (rounds - HANDSHAKE_ROUNDS).max(0.0).floor();
        let initial = initial_window(flow, growth);
        if growth.steady {
            self.stalled(flow) * (initial + growth.per_round * rounds)
        } else {
            initial * (1.0 + growth.per_packet).powf(rounds)
        }
    }

    /// For how long a recovery without SACK lets a packet leave for each that arrives, and repairs one loss in each
    /// round trip: until a timeout.
    fn stalls_s(&self, flow: &Flow) -> f64 {
        match (has_sack(flow), self.scenario.compat) {
            (true, _) => 0.0,
            (false, Compat::Linux) => self.shortest_s(flow) + LEAST_TIMEOUT.as_s(),
            (false, Compat::Ns2) => 3.0 * self.shortest_s(flow) + TIMEOUT_S,
        }
    }

    /// How many flows that begin with the first of a group have as much outstanding as all of the group while windows
    /// grow: a flow that begins r round trips later has 2^-r of the first one's window. Those that begin while a link is
    /// down begin together when it is back.
    fn early(&self, flow: &Flow, links: &[LinkId]) -> f64 {
        let n = f64::from(flow.streams());
        match flow.start {
            Start::At(_) => n,
            Start::Uniform(low, high) => {
                // 1 + 1/2 + 1/4 and so on: windows double once a round trip.
                let together_s = 2.0 * self.shortest_s(flow) + self.down_s(links);
                let expected = n * (together_s / high.since(low).as_s()).min(1.0);
                (f64::from(flow.parallel) * most_of(expected / f64::from(flow.parallel))).min(n)
            }
        }
    }

    /// Most packets that all flows of a group send while so many may be outstanding: until they are, as many as a
    /// geometric series gives.
    fn sent(&self, flow: &Flow, growth: Growth, window: f64, links: &[LinkId]) -> f64 {
        let first = f64::from(flow.streams()) * initial_window(flow, growth);
        let growing = (window / first).max(1.0).log(1.0 + growth.per_packet).floor();
        window * (2.0 + (self.rounds(flow, links) - growing).max(0.0))
    }

    /// Most packets that all flows of a group may have outstanding where packets are lost at random: slow start
    /// ends with the first loss, and a round trip passes before it is known. Afterwards each loss costs more than the
    /// packets between two losses bring. Infinite for laws and receivers of which this is not known.
    fn ended_by_losses(&self, flow: &Flow, growth: Growth, links: &[LinkId]) -> f64 {
        if !flow.control.law().is_some_and(gives_way_to_losses) {
            return f64::INFINITY;
        }
        let stalled = self.stalled(flow);
        let n = f64::from(flow.streams());
        // Packets before the first loss of each of n flows, together.
        let most_before = most_of(n);
        // A loss may cost a law nothing that takes what it measured for its window.
        let is_kept = flow.control.law().and_then(LawSpec::info).is_some_and(|law| law.ssthresh_is_estimate);
        let (_, packets) = self.avoidance(flow).unwrap_or((0.0, f64::INFINITY));
        let kept = if is_kept { n * self.rounds(flow, links) * packets } else { 0.0 };
        let bound = |(since, loss): (Time, f64)| {
            let rounds = since.since(begins(flow)).as_s() / self.shortest_s(flow);
            let before = n * self.grown(flow, growth, rounds);
            let known = (1.0 + growth.per_packet).max(OVERSHOOT) * before;
            stalled * (known + OVERSHOOT * growth.per_packet * most_before / loss + kept)
        };
        self.losses(links).into_iter().map(bound).fold(f64::INFINITY, f64::min)
    }

    /// How many windows of a flow are outstanding at most while losses are repaired.
    fn stalled(&self, flow: &Flow) -> f64 {
        // While a lost retransmission waits for its timeout, half a window leaves in each round trip; RACK does not
        // wait. UDT's window holds all that is not acknowledged.
        let waits_s = match (flow.transport(), self.scenario.compat) {
            (Transport::Udt, _) => 0.0,
            (Transport::Tcp, Compat::Ns2) => TIMEOUT_S,
            (Transport::Tcp, Compat::Linux) => self.stalls_s(flow),
        };
        let rounds = waits_s / self.shortest_s(flow);
        // A recovery that repairs one loss in each round trip may last to the end, of a few flows.
        let rounds = if has_sack(flow) {
            rounds
        } else {
            rounds.max(ENDLESS * self.scenario.duration.as_s() / self.shortest_s(flow))
        };
        1.0 + rounds / 2.0
    }

    /// Most packets that all flows of a group may have outstanding where the queue is short: packets that leave in slow
    /// start arrive one behind the other, so part of them queues. Infinite where that is not so.
    fn ended_by_overflow(&self, flow: &Flow, growth: Growth, links: &[LinkId]) -> f64 {
        if !self.is_in_bursts(flow, links) {
            return f64::INFINITY;
        }
        let wire_bytes = self.scenario.compat.wire_bytes(flow.packet);
        let late = links.iter().map(|&link| most_late(&self.network.hop(link).way.impair));
        let rooms: f64 = links.iter().map(|&link| self.room_bytes(link)).sum();
        // Late packets spread over that time.
        let queue = rooms / f64::from(wire_bytes)
            + self.carried(links, wire_bytes, late.fold(Time::ZERO, Time::after));
        // Trains of packets that mix are spread as well.
        let trains = self.scenario.flow.iter().map(|flow| match flow.start {
            Start::At(_) => 1.0,
            Start::Uniform(..) => f64::from(flow.streams()),
        });
        let others = self.scenario.udp.len() + usize::from(!self.scenario.background.is_silent());
        let trains = trains.sum::<f64>() + others as f64;
        let n = f64::from(flow.streams());
        let first = n * initial_window(flow, growth) + trains * queue / QUEUED_OF_SLOW_START;
        let rounds = self.rounds(flow, links);
        let (share, packets) = self.avoidance(flow).unwrap_or((f64::INFINITY, f64::INFINITY));
        // A round trip passes before a loss is known.
        let streams: f64 = self.scenario.flow.iter().map(|flow| f64::from(flow.streams())).sum();
        let spared = if streams > 1.0 { SPARED } else { 1.0 };
        let window = spared * OVERSHOOT * first * (1.0 + share).powf(rounds) + n * rounds * packets;
        self.stalled(flow) * window
    }

    /// Packets of flows each of which sends for a round trip as if it had the path alone: JetMax grants a new flow what a
    /// link has to spare before it knows of the others, UDT's window [may jump](jumps), and so does Careful Resume's.
    fn unshared(&self, flow: &Flow, growth: Growth, links: &[LinkId]) -> f64 {
        let is_granted = growth.per_packet.is_infinite()
            && flow.control.law().and_then(LawSpec::header) == Some(Protocol::JetMax);
        if !is_granted && !jumps(flow, self.first_rtt_s(flow)) {
            return f64::from(flow.streams()) * resumed(flow);
        }
        let wire_bytes = self.scenario.compat.wire_bytes(flow.packet);
        let most = if is_granted { f64::INFINITY } else { JUMPS_AT_ONCE };
        f64::from(flow.streams()).min(most)
            * self.carried(links, wire_bytes, flow.rtt.after(self.peaks.longer))
    }

    /// Whether a scheduled change lets a path carry no more, and as late.
    fn is_slower(&self, change: &Change) -> bool {
        match change {
            Change::Link(change) => {
                let first = self.network.hop(change.number).way.mean_rate();
                change.delay.is_none() && change.rate.is_none_or(|rate| rate <= first)
            }
            Change::File(_) | Change::Route(_) => false,
        }
    }

    /// Load of the background on a way, if all of it travels there.
    fn background_bps(&self, way: &[LinkId]) -> f64 {
        let background = &self.scenario.background;
        let links = background.path.links.iter().chain(&*background.ack_links);
        let passes = links.clone().any(|link| way.contains(link));
        if passes && !background.is_silent() {
            background_load_bps(self.scenario, &self.network)
        } else {
            0.0
        }
    }

    /// By which share of it, and by how many packets, the window of a flow grows in a round trip of congestion avoidance,
    /// at most. `None` for laws that double it, or whose packets leave over the whole round trip.
    fn avoidance(&self, flow: &Flow) -> Option<(f64, f64)> {
        let seconds = self.scenario.duration.as_s();
        let [by_s, by_s2] = AVOIDANCE_BY_S;
        match flow.control.law()?.info()?.name {
            "reno" | "westwood" | "vegas" | "veno" | "dctcp" => Some((0.0, 2.0)),
            "illinois" => Some((0.0, 10.0)),
            "bic" => Some((0.0, 32.0)),
            "const-rate" => {
                let rtt_s = self.first_rtt_s(flow);
                Some((0.0, CONST_RATE_C * rtt_s * rtt_s.max(1.0)))
            }
            "cubic" | "cuback" | "htcp" | "htcp-be" => {
                let by_time = (by_s + by_s2 * seconds) * seconds;
                Some((0.0, 32.0 + by_time * (10.0 * flow.rtt.as_s()).max(1.0)))
            }
            "hstcp" | "cw-hstcp" | "scalable" | "westwood-s" | "yeah" | "ltcp" | "compound" => {
                Some((0.05, 32.0))
            }
            _ => None,
        }
    }

    /// Whether a flow in slow start sends its packets one behind the other, and nothing but flows that do the same, and
    /// steady UDP, spreads them.
    fn is_in_bursts(&self, flow: &Flow, links: &[LinkId]) -> bool {
        let scenario = self.scenario;
        let acks = &*flow.ack_links;
        let meets = |links: &[LinkId]| links.iter().any(|link| acks.contains(link));
        let acks_bps =
            self.rate_bps(links) / f64::from(scenario.compat.wire_bytes(flow.packet)) * ACK_BYTES_MOST;
        self.avoidance(flow).is_some()
            && flow.tcp.is_some_and(|tcp| !tcp.pacing)
            && scenario.schedule.iter().all(|change| self.is_slower(change))
            && scenario.traffic.is_empty()
            && links.iter().chain(acks).all(|&link| self.network.hop(link).way.delivery.is_none())
            && self.rate_bps(acks) > acks_bps + 2.0 * self.background_bps(acks)
            && !scenario.flow.iter().any(|flow| meets(&flow.path.links))
            && !scenario.udp.iter().any(|udp| meets(&udp.path.links))
    }

    /// From which time on a route loses at least which share of its data packets.
    fn losses(&self, links: &[LinkId]) -> Vec<(Time, f64)> {
        let mut found = Vec::new();
        for &link in links {
            let mut least = f64::INFINITY;
            for (at, loss) in self.course_of_loss(link).into_iter().rev() {
                least = loss.min(least);
                found.push((at, least));
            }
        }
        found.retain(|&(_, loss)| loss > 0.0);
        found
    }

    /// Share of its data packets that a link loses, and since when; 0 for losses in bursts.
    pub(crate) fn course_of_loss(&self, link: LinkId) -> Vec<(Time, f64)> {
        let first = match self.network.hop(link).way.impair.loss {
            Loss::Bernoulli(p) => p,
            Loss::Bursts(_) => 0.0,
        };
        let mut course = vec![(Time::ZERO, first)];
        for change in &self.scenario.schedule {
            match change {
                Change::Link(change) if change.number == link => {
                    course.extend(change.loss.map(|loss| (change.at, loss)));
                }
                Change::File(change) if change.number == link => {
                    if let Series::Loss(rows) = &change.series {
                        course.extend(rows.iter().copied());
                    }
                }
                _ => {}
            }
        }
        course.sort_by_key(|&(at, _)| at);
        course
    }
}

/// Most packets that all flows of a group may have outstanding on a path that carries so many until the end of the
/// run.
fn fed_by_acks(flow: &Flow, growth: Growth, carried: f64) -> f64 {
    f64::from(flow.streams()) * initial_window(flow, growth) + (1.0 + growth.per_packet) * carried
}

/// Value that a sum of independent terms of which so many are expected, each exponential or at most 1, exceeds with a
/// chance of 2e-5.
fn most_of(expected: f64) -> f64 {
    expected + 4.0 * expected.sqrt() + 6.0
}

/// Places of the scoreboard of a flow with this window.
fn places(window: f64) -> f64 {
    window.max(1.0).log2().ceil().exp2()
}

/// When the first flow of a group begins.
fn begins(flow: &Flow) -> Time {
    match flow.start {
        Start::At(time) | Start::Uniform(time, _) => time,
    }
}
