//! Load that traffic models offer to the network, and the number of connections open at once.

use lfn_sim::config::LinkId;
use lfn_sim::rng::{Distribution, Mixture, Stream};
use lfn_sim::traffic::{requests, Direction, Model};
use lfn_units::Time;

use crate::model::{Scenario, Traffic};
use crate::network::Network;
use crate::quantity::{Start, Window};

/// Load of the background's levels in both directions over the rate of the slowest link.
const LOADS: [f64; 4] = [0.0, 0.15, 0.375, 0.6];

/// Load of the background's short flows in both directions.
pub(crate) fn background_load_bps(scenario: &Scenario, network: &Network) -> f64 {
    let background = &scenario.background;
    LOADS[usize::from(background.level as u8)] * network.slowest(&background.path.links).as_bps()
}

/// Bytes of headers of a packet on the wire, all of an ACK.
const HEADER_BYTES: f64 = 66.0;
const SEGMENT_BYTES: f64 = 1460.0;
/// In a tenth of the connections.
const SMALL_SEGMENT_BYTES: f64 = 536.0;
/// A connection begins with so many segments.
const INITIAL_WINDOW_SEGMENTS: f64 = 2.0;
/// The most at once over the mean, on a link that is not overloaded.
const PEAK: f64 = 2.0;
/// Share of all messages that wait for a timeout in the end, on an overloaded link: as in the evaluation
/// suite at 110 %.
const TIMED_OUT: f64 = 0.025;
/// Sizes that stand for a distribution.
const DRAWS: usize = 1000;

/// Messages of one kind.
struct Messages {
    /// 0: in the direction of the model; 1: in the opposite one.
    way: usize,
    per_s: f64,
    bytes: Mixture,
}

impl Messages {
    fn segments(bytes: f64) -> f64 {
        0.9 * (bytes / SEGMENT_BYTES).ceil() + 0.1 * (bytes / SMALL_SEGMENT_BYTES).ceil()
    }

    fn wire_bytes(bytes: f64) -> f64 {
        bytes + HEADER_BYTES * Messages::segments(bytes)
    }
}

/// Load of one model on a network that delays no transfer.
pub(crate) struct Demand<'a> {
    ways: [&'a [LinkId]; 2],
    messages: Vec<Messages>,
    /// Connections that are kept for a message to come.
    waiting: f64,
    /// All its connections at most, where people wait before they ask for more.
    most: f64,
    rtt_s: f64,
    window_bytes: f64,
}

impl<'a> Demand<'a> {
    pub(crate) fn of(traffic: &'a Traffic) -> Demand<'a> {
        let rtt = match traffic.rtt {
            Start::At(rtt) | Start::Uniform(_, rtt) => rtt,
        };
        let mut demand = Demand {
            ways: [&traffic.path.links, &traffic.ack_links],
            messages: Vec::new(),
            waiting: 0.0,
            most: f64::INFINITY,
            rtt_s: rtt.as_s(),
            window_bytes: match traffic.receive_window {
                Window::Packets(n) => n as f64 * SEGMENT_BYTES,
                Window::Bytes(bytes) => bytes.0 as f64,
            },
        };
        match traffic.sim_model() {
            Model::Open(open) => {
                let per_s = 1.0 / open.gap_s.mean();
                demand.messages.push(Messages { way: 0, per_s, bytes: open.bytes });
            }
            Model::Requests(clients) => demand.add_clients(&clients, clients.direction),
            Model::EvaluationSuite(suite) => {
                let heavy = traffic.direction;
                suite.clients().iter().for_each(|clients| demand.add_clients(clients, heavy));
                demand.rtt_s = suite.rtts.iter().max().map_or(0.0, |rtt| rtt.as_s());
            }
            Model::Web(web) => {
                let per_s = web.offered_bps(Time::ZERO) / 8.0 / web.object_bytes.mean();
                demand.most = web.sessions as f64 * (1.0 + web.more_objects.mean());
                demand.messages.push(Messages { way: 0, per_s, bytes: web.object_bytes });
            }
            Model::Replay(replay) => {
                let length_s = replay.trace.duration.as_s() * replay.scale;
                let messages = || replay.trace.vectors.iter().flat_map(|vector| &vector.messages);
                for (way, direction) in Direction::ALL.into_iter().enumerate() {
                    let count = messages().filter(|message| message.direction == direction).count() as f64;
                    if count > 0.0 {
                        let to = if way == 0 { replay.direction } else { replay.direction.opposite() };
                        let bytes = replay.offered_bps(to) / 8.0 * length_s / count;
                        let bytes = Distribution::Constant(bytes).into();
                        demand.messages.push(Messages { way, per_s: count / length_s, bytes });
                    }
                }
                demand.waiting = 2.0 * messages().map(|message| message.after.as_s()).sum::<f64>() / length_s;
            }
        }
        demand
    }

    /// Clients whose answers travel in `direction` or against it.
    fn add_clients(&mut self, clients: &requests::Config, direction: Direction) {
        let way = usize::from(clients.direction != direction);
        let more = clients.more_exchanges.mean();
        let per_s = (1.0 + more) / clients.gap_s.mean();
        self.messages.push(Messages { way, per_s, bytes: clients.response_bytes.clone() });
        self.messages.push(Messages { way: 1 - way, per_s, bytes: clients.request_bytes.clone() });
        if clients.persistent {
            let pauses_s = more * clients.think_s.mean() + (1.0 + more) * clients.server_delay_s.mean();
            self.waiting += 2.0 * pauses_s / clients.gap_s.mean();
        }
    }

    /// Bytes on the wire per second, both ways, headers and ACKs included.
    pub(crate) fn wire_bytes_per_s(&self) -> f64 {
        let of = |m: &Messages| {
            let mean = m.bytes.mean();
            m.per_s * (Messages::wire_bytes(mean) + HEADER_BYTES * Messages::segments(mean))
        };
        self.messages.iter().map(of).sum()
    }

    /// Data packets per second, each counted at every link that it passes.
    pub(crate) fn packets_per_s(&self) -> f64 {
        let of = |m: &Messages| m.per_s * Messages::segments(m.bytes.mean()) * self.ways[m.way].len() as f64;
        self.messages.iter().map(of).sum()
    }

    /// Messages per second.
    pub(crate) fn messages_per_s(&self) -> f64 {
        self.messages.iter().map(|m| m.per_s).sum()
    }

    /// Connections that begin in so many seconds, while none ends.
    pub(crate) fn begun(&self, seconds: f64) -> f64 {
        if self.most.is_finite() {
            0.0
        } else {
            self.messages_per_s() * seconds
        }
    }

    /// Connections at once on links that are not overloaded, with queues of `queueing_s` on the way: a
    /// message takes the rounds of slow start, and those of a full window.
    pub(crate) fn connections(&self, queueing_s: f64) -> f64 {
        let taken = |m: &Messages| {
            let bytes = m.bytes.mean();
            let rounds = (1.0 + Messages::segments(bytes) / INITIAL_WINDOW_SEGMENTS).log2().ceil();
            m.per_s * (rounds + bytes / self.window_bytes) * (self.rtt_s + queueing_s)
        };
        let open = self.waiting + self.messages.iter().map(taken).sum::<f64>();
        if self.most.is_finite() {
            self.most
        } else {
            PEAK * open
        }
    }
}

/// Connections that pile up in so many seconds on a link which is offered more than it carries. With
/// processor sharing they grow by a per second, a = sum of rates x E[1 - exp(-a S)], S the time that a
/// message has of the link (Jean-Marie and Robert 1994, "On the transient behavior of the processor sharing
/// queue"); besides, messages wait for timeouts.
pub(crate) fn pile_up(demands: &[Demand], link: LinkId, bytes_per_s: f64, duration_s: f64) -> f64 {
    let open = || demands.iter().filter(|demand| demand.most.is_infinite());
    let on = |way: usize| move |demand: &&Demand| demand.ways[way].contains(&link);
    let mut acks = 0.0;
    let mut classes: Vec<(f64, &Mixture)> = Vec::new();
    for way in [0, 1] {
        for m in open().filter(on(way)).flat_map(|demand| &demand.messages) {
            if m.way == way {
                classes.push((m.per_s, &m.bytes));
            } else {
                acks += m.per_s * HEADER_BYTES * (Messages::segments(m.bytes.mean()) / 2.0).ceil();
            }
        }
    }
    let left = (bytes_per_s - acks).max(0.01 * bytes_per_s);
    let mut stream = Stream::new(0, "predict");
    // So few draws rarely contain values of a heavy tail: they are scaled to the mean.
    let mut seconds = |bytes: &Mixture| -> Vec<f64> {
        let drawn: Vec<f64> =
            (0..DRAWS).map(|_| Messages::wire_bytes(bytes.draw(&mut stream).1) / left).collect();
        let mean_s = Messages::wire_bytes(bytes.mean()) / left;
        let stretch = mean_s * DRAWS as f64 / drawn.iter().sum::<f64>();
        drawn.into_iter().map(|seconds| seconds * stretch).collect()
    };
    let classes: Vec<(f64, Vec<f64>)> =
        classes.into_iter().map(|(per_s, bytes)| (per_s, seconds(bytes))).collect();
    let grows = |a: f64| {
        let of = |(per_s, seconds): &(f64, Vec<f64>)| {
            per_s * seconds.iter().map(|s| -(-a * s).exp_m1()).sum::<f64>() / DRAWS as f64
        };
        classes.iter().map(of).sum::<f64>() > a
    };
    let load: f64 = classes.iter().map(|(per_s, seconds)| per_s * seconds.iter().sum::<f64>()).sum();
    if load <= DRAWS as f64 {
        return 0.0;
    }
    let all_per_s: f64 = classes.iter().map(|(per_s, _)| per_s).sum();
    let (mut low, mut high) = (0.0, all_per_s);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if grows(middle) {
            low = middle
        } else {
            high = middle
        }
    }
    (high + TIMED_OUT * all_per_s) * duration_s
}
