//! Load of the background and of models of traffic on a network that delays nothing.

use lfn_sim::traffic::{requests, Direction, Model};
use lfn_units::Time;

use crate::model::{Scenario, Traffic};
use crate::network::Network;

/// Load of the background's levels in both directions over the rate of the slowest link.
const LOADS: [f64; 4] = [0.0, 0.15, 0.375, 0.6];
/// Payload of a packet.
const SEGMENT_BYTES: f64 = 1460.0;

/// Load of the background's short flows in both directions.
pub(crate) fn background_bps(scenario: &Scenario, network: &Network) -> f64 {
    let background = &scenario.background;
    LOADS[usize::from(background.level as u8)] * network.slowest(&background.path.links).as_bps()
}

/// Load of one model in a second.
#[derive(Default)]
pub(crate) struct Offered {
    pub(crate) messages: f64,
    pub(crate) bytes: f64,
    /// Data packets, each counted at every link that it passes.
    pub(crate) packets: f64,
    /// It waits for no answer, so that it may pile up.
    pub(crate) is_open: bool,
    /// The longest round trip, in seconds.
    pub(crate) rtt_s: f64,
    /// Links in the direction of the model, and in the opposite one.
    links: [f64; 2],
}

impl Offered {
    pub(crate) fn of(traffic: &Traffic) -> Offered {
        let links = [&traffic.path.links, &traffic.ack_links].map(|links| links.len() as f64);
        let rtt_s = traffic.rtt.most().as_s();
        let model = traffic.sim_model();
        let is_open = !matches!(model, Model::Web(_));
        let mut offered = Offered { links, rtt_s, is_open, ..Offered::default() };
        match model {
            Model::Open(open) => offered.add(0, 1.0 / open.gap_s.mean(), open.bytes.mean()),
            Model::Requests(clients) => offered.add_clients(&clients, clients.direction),
            Model::EvaluationSuite(suite) => {
                let heavy = traffic.direction;
                suite.clients().iter().for_each(|clients| offered.add_clients(clients, heavy));
            }
            Model::Web(web) => {
                let bytes = web.object_bytes.mean();
                offered.add(0, web.offered_bps(Time::ZERO) / 8.0 / bytes, bytes);
            }
            Model::Replay(replay) => {
                let length_s = replay.trace.duration.as_s() * replay.scale;
                let messages = || replay.trace.vectors.iter().flat_map(|vector| &vector.messages);
                for (way, direction) in Direction::ALL.into_iter().enumerate() {
                    let count = messages().filter(|message| message.direction == direction).count() as f64;
                    if count > 0.0 {
                        let to = if way == 0 { replay.direction } else { replay.direction.opposite() };
                        offered.add(way, count / length_s, replay.offered_bps(to) / 8.0 * length_s / count);
                    }
                }
            }
        }
        offered
    }

    /// Messages of this mean size; `way` 0 is the direction of the model.
    fn add(&mut self, way: usize, per_s: f64, bytes: f64) {
        self.messages += per_s;
        self.bytes += per_s * bytes;
        self.packets += per_s * (bytes / SEGMENT_BYTES).ceil() * self.links[way];
    }

    /// Clients whose answers travel in `direction` or against it.
    fn add_clients(&mut self, clients: &requests::Config, direction: Direction) {
        let way = usize::from(clients.direction != direction);
        let per_s = (1.0 + clients.more_exchanges.mean()) / clients.gap_s.mean();
        self.add(way, per_s, clients.response_bytes.mean());
        self.add(1 - way, per_s, clients.request_bytes.mean());
    }
}
