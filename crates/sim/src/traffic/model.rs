//! All TCP models behind one face.

use lfn_units::Time;

use super::connection::Dialogues;
use super::evaluation_suite::{self, Suite};
use super::open::{self, Open};
use super::requests::{self, Requests};
use super::vectors::{self, Replay};
use super::web::{self, Web};
use super::{packmime, BadTraffic, Transfer};
use crate::rng::Streams;

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

impl From<open::Config> for Model {
    fn from(config: open::Config) -> Model {
        Model::Open(config)
    }
}

impl From<requests::Config> for Model {
    fn from(config: requests::Config) -> Model {
        Model::Requests(config)
    }
}

impl From<web::Config> for Model {
    fn from(config: web::Config) -> Model {
        Model::Web(config)
    }
}

impl From<vectors::Config> for Model {
    fn from(config: vectors::Config) -> Model {
        Model::Replay(config)
    }
}

impl From<evaluation_suite::Config> for Model {
    fn from(config: evaluation_suite::Config) -> Model {
        Model::EvaluationSuite(config)
    }
}

impl From<packmime::Config> for Model {
    fn from(config: packmime::Config) -> Model {
        match config {
            packmime::Config::Requests(config) => Model::Requests(config),
            packmime::Config::Flows(config) => Model::Open(config),
        }
    }
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

    /// Bytes of memory that grow with the transfers that have begun or wait.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Flows::Open(_) => 0,
            Flows::Requests(requests) => requests.memory_bytes(),
            Flows::Web(web) => web.memory_bytes(),
            Flows::Replay(replay) => replay.memory_bytes(),
            Flows::EvaluationSuite(suite) => suite.memory_bytes(),
        }
    }
}
