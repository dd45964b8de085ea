//! All TCP models behind one face.

use lfn_keys::one_of;
use lfn_units::Time;

use super::connection::Dialogues;
use super::evaluation_suite::{self, Suite};
use super::open::{self, Open};
use super::requests::{self, Requests};
use super::vectors::{self, Replay};
use super::web::{self, Web};
use super::{packmime, BadTraffic, Direction, PathConfig, Transfer};
use crate::rng::Streams;

/// The keys of a model of traffic.
pub(crate) trait Keys {
    /// The model that they describe. Its larger part goes in `direction`, its connections have this path.
    fn model(&self, direction: Direction, path: PathConfig) -> Model;
}

macro_rules! models {
    ($($(#[doc = $about:literal])+ $name:ident = $key:literal: $keys:ty;)+) => {
        one_of! {
            /// A traffic model, by its keys. Segments hold 1460 bytes, in 10 % of the connections 536.
            pub enum Parameters, like "short_flows = { load = \"100Mbit/s\" }" {
                $($(#[doc = $about])+ $name = $key: $keys;)+
            }
        }

        impl Parameters {
            /// The model. Its larger part goes in `direction`, its connections have this path.
            pub fn model(&self, direction: Direction, path: PathConfig) -> Model {
                match self { $(Parameters::$name(keys) => Keys::model(keys, direction, path),)+ }
            }
        }
    };
}

models! {
    /// Poisson arrivals of flows with Pareto sizes (Dukkipati and others 2005).
    ShortFlows = "short_flows": open::ShortFlows;
    /// Clients that ask servers and wait for their answers.
    Requests = "requests": requests::Clients;
    /// Web traffic as a link sees it (Cao and others 2004).
    Packmime = "packmime": packmime::Packmime;
    /// Web sessions as in ns-2.
    Webtraf = "webtraf": web::Webtraf;
    /// Web users (Barford and Crovella 1998).
    Surge = "surge": web::Surge;
    /// Connections as a file lists them, as tmix replays them (Weigle and others 2006).
    Vectors = "vectors": vectors::Vectors;
    /// The nine pairs of the common TCP evaluation suite.
    Suite = "suite": evaluation_suite::Pairs;
}

/// A model of TCP traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Flows that come whatever the network does.
    Open(open::Config),
    /// Clients that ask and wait.
    Requests(requests::Config),
    /// Users who fetch pages.
    Web(web::Config),
    /// A trace of connections.
    Replay(vectors::Config),
    /// The sources of the common TCP evaluation suite.
    EvaluationSuite(evaluation_suite::Config),
}

/// TCP traffic: transfers in order of time.
///
/// The caller that transfers them calls [`Flows::next_transfer`] at [`Flows::next_at`], and [`Flows::on_done`] when
/// the last byte of a transfer has reached the application, once for each. Both may bring
/// [`Flows::next_at`] nearer or push it away, so it is read again after each.
#[derive(Clone, Debug)]
pub enum Flows {
    /// See [`Model::Open`].
    Open(Open),
    /// See [`Model::Requests`].
    Requests(Dialogues<Requests>),
    /// See [`Model::Web`].
    Web(Web),
    /// See [`Model::Replay`].
    Replay(Dialogues<Replay>),
    /// See [`Model::EvaluationSuite`].
    EvaluationSuite(Dialogues<Suite>),
}

impl Flows {
    /// The traffic that `model` describes, from time 0 on.
    ///
    /// # Errors
    /// [`BadTraffic`] where a parameter is out of its range.
    pub fn new(model: &Model, streams: &Streams) -> Result<Flows, BadTraffic> {
        Ok(match model {
            Model::Open(config) => Flows::Open(Open::new(config, streams)?),
            Model::Requests(config) => Flows::Requests(Dialogues::new(Requests::new(config, streams)?)),
            Model::Web(config) => Flows::Web(Web::new(config, streams)?),
            Model::Replay(config) => Flows::Replay(Dialogues::new(Replay::new(config, streams)?)),
            Model::EvaluationSuite(config) => {
                Flows::EvaluationSuite(Dialogues::new(Suite::new(config, streams)?))
            }
        })
    }

    /// When the next transfer begins, as far as is known; [`Time::NEVER`] while all wait for others, or
    /// when no more comes.
    pub fn next_at(&self) -> Time {
        match self {
            Flows::Open(open) => open.next_at(),
            Flows::Requests(requests) => requests.next_at(),
            Flows::Web(web) => web.next_at(),
            Flows::Replay(replay) => replay.next_at(),
            Flows::EvaluationSuite(suite) => suite.next_at(),
        }
    }

    /// The next transfer, which begins at [`Flows::next_at`]; `None` where that is [`Time::NEVER`].
    pub fn next_transfer(&mut self) -> Option<Transfer> {
        match self {
            Flows::Open(open) => open.next(),
            Flows::Requests(requests) => requests.next_transfer(),
            Flows::Web(web) => web.next_transfer(),
            Flows::Replay(replay) => replay.next_transfer(),
            Flows::EvaluationSuite(suite) => suite.next_transfer(),
        }
    }

    /// A transfer of `session` has arrived at `now`: [`Transfer::session`].
    pub fn on_done(&mut self, session: u64, now: Time) {
        match self {
            Flows::Open(_) => {}
            Flows::Requests(requests) => requests.on_done(session, now),
            Flows::Web(web) => web.on_done(session, now),
            Flows::Replay(replay) => replay.on_done(session, now),
            Flows::EvaluationSuite(suite) => suite.on_done(session, now),
        }
    }
}
