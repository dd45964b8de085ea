//! Connection vectors: files that say which connections a link has seen and what their ends exchanged,
//! and their replay, as tmix does (Weigle, Adurthi, Hernández-Campos, Jeffay, Smith 2006).
//!
//! The format is a text in lines; blank lines and what follows a `#` do not count. The first line says
//! how long the trace is. A line `connection` begins a connection; the lines below it are its messages, of
//! its initiator (`send`) or to it (`receive`), each a time `after` the one before it has arrived:
//!
//! ```text
//! duration 60s
//! connection 1.5s rtt 54ms mss 1460B
//! send 420B
//! receive 8.9kB after 2ms
//! send 380B after 1.2s
//! receive 12MB after 10ms
//! connection 2s               # round-trip time and segment size of the scenario
//! send 25MB
//! ```
//!
//! Connections may stand in any order. A tmix vector with sequential exchanges says the same: `S` is
//! the start, `r` the round-trip time, each `a` a `send`, each `b` a `receive`, each `t` an `after`.

use std::str::FromStr;
use std::sync::Arc;

use lfn_keys::{keys, File, Span, DELAY_MAX};
use lfn_units::{Bytes, Rate, Time, UnitError};

use super::connection::{Connection, Message};
use super::keys::Keys;
use super::{BadTraffic, Direction, PathConfig, Paths};
use crate::rng::{Stream, Streams};

/// A connection as a file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// When it begins, before scaling.
    pub start: Time,
    /// Base round-trip time, where the file says.
    pub rtt: Option<Time>,
    /// Segment size in bytes of payload, where the file says.
    pub mss_bytes: Option<u32>,
    /// Messages, the initiator's [`Direction::Forward`]; at least one.
    pub messages: Vec<Message>,
}

/// A file of connection vectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// How long it is.
    pub duration: Time,
    /// Its connections, in order of their start.
    pub vectors: Vec<Vector>,
}

/// An error in a text of connection vectors; prints as `LINE: ERROR`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {fault}")]
pub struct TraceError {
    /// Line, from 1.
    pub line: usize,
    /// The error in it.
    pub fault: Fault,
}

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The line begins with no known word.
    #[error("{found:?} begins no line here; allowed: {allowed}")]
    Word {
        /// The word.
        found: String,
        /// The words that may begin this line.
        allowed: &'static str,
    },
    /// A word that needs a value is the last one.
    #[error("{0:?} needs a value")]
    NoValue(String),
    /// A value is no quantity.
    #[error("{key}: {error}")]
    Quantity {
        /// Key of the value.
        key: String,
        /// The error in it.
        error: UnitError,
    },
    /// An option that this kind of line does not have, or has twice.
    #[error("{found:?} does not belong here; allowed, once each: {allowed}")]
    Option {
        /// The word.
        found: String,
        /// The line's options.
        allowed: &'static str,
    },
    /// A connection begins when the trace is over.
    #[error("starts at {0}, but the trace ends at {1}")]
    Late(Time, Time),
    /// A value that makes no sense.
    #[error("{0}")]
    Value(&'static str),
    /// A connection without messages, or a trace without connections.
    #[error("{0} moves no bytes")]
    Empty(&'static str),
}

const CONNECTION_OPTIONS: &str = "rtt TIME, mss SIZE";
const MESSAGE_OPTIONS: &str = "after TIME";

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Trace, TraceError> {
        let lines = text.lines().zip(1..).filter_map(|(text, line)| {
            let mut words = text.split('#').next()?.split_whitespace();
            words.next().map(|first| (line, Line { first, words }))
        });
        let mut duration = None;
        let mut vectors: Vec<Vector> = Vec::new();
        // The line on which the last connection begins.
        let mut begun = 0;
        let mut last_line = 1;
        for (line, mut words) in lines {
            last_line = line;
            let at = |fault| TraceError { line, fault };
            match (words.first, duration) {
                ("duration", None) => duration = Some(words.only().map_err(at)?),
                (_, None) => return Err(at(words.unknown("duration"))),
                ("connection", Some(end)) => {
                    complete(&vectors, begun)?;
                    vectors.push(words.connection(end).map_err(at)?);
                    begun = line;
                }
                ("send" | "receive", Some(_)) => {
                    let Some(vector) = vectors.last_mut() else {
                        return Err(at(words.unknown("connection")));
                    };
                    let message = words.message(vector.messages.is_empty()).map_err(at)?;
                    vector.messages.push(message);
                }
                _ => return Err(at(words.unknown("connection, send, receive"))),
            }
        }
        complete(&vectors, begun)?;
        vectors.sort_by_key(|vector| vector.start);
        match duration {
            Some(duration) if !vectors.is_empty() => Ok(Trace { duration, vectors }),
            _ => Err(TraceError { line: last_line, fault: Fault::Empty("the trace") }),
        }
    }
}

/// An error where the last connection, begun on line `begun`, has no message.
fn complete(vectors: &[Vector], begun: usize) -> Result<(), TraceError> {
    match vectors.last() {
        Some(vector) if vector.messages.is_empty() => {
            Err(TraceError { line: begun, fault: Fault::Empty("the connection") })
        }
        _ => Ok(()),
    }
}

/// A line, its first word taken off.
struct Line<'a> {
    first: &'a str,
    words: std::str::SplitWhitespace<'a>,
}

impl Line<'_> {
    fn unknown(&self, allowed: &'static str) -> Fault {
        Fault::Word { found: self.first.into(), allowed }
    }

    /// The next word, the value of `key`.
    fn value<T: FromStr<Err = UnitError>>(&mut self, key: &str) -> Result<T, Fault> {
        let word = self.words.next().ok_or_else(|| Fault::NoValue(key.into()))?;
        word.parse().map_err(|error| Fault::Quantity { key: key.into(), error })
    }

    /// The only value of the line.
    fn only<T: FromStr<Err = UnitError>>(&mut self) -> Result<T, Fault> {
        let value = self.value(self.first)?;
        match self.words.next() {
            None => Ok(value),
            Some(found) => Err(Fault::Option { found: found.into(), allowed: "nothing" }),
        }
    }

    fn connection(&mut self, end: Time) -> Result<Vector, Fault> {
        let start = self.value(self.first)?;
        if start >= end {
            return Err(Fault::Late(start, end));
        }
        let mut vector = Vector { start, rtt: None, mss_bytes: None, messages: Vec::new() };
        while let Some(key) = self.words.next() {
            match key {
                "rtt" if vector.rtt.is_none() => vector.rtt = Some(self.value(key)?),
                "mss" if vector.mss_bytes.is_none() => {
                    let Bytes(bytes) = self.value(key)?;
                    let fits = u32::try_from(bytes).ok().filter(|bytes| (1..=65_535).contains(bytes));
                    vector.mss_bytes = Some(fits.ok_or(Fault::Value("mss: from 1B to 65.535kB"))?);
                }
                _ => return Err(Fault::Option { found: key.into(), allowed: CONNECTION_OPTIONS }),
            }
        }
        Ok(vector)
    }

    fn message(&mut self, is_first: bool) -> Result<Message, Fault> {
        let direction = if self.first == "send" { Direction::Forward } else { Direction::Reverse };
        let Bytes(bytes) = self.value(self.first)?;
        if bytes == 0 {
            return Err(Fault::Empty("the message"));
        }
        let mut after = None;
        while let Some(key) = self.words.next() {
            match key {
                "after" if is_first => {
                    return Err(Fault::Value("after: the first message goes when its connection begins"));
                }
                "after" if after.is_none() => after = Some(self.value(key)?),
                _ => return Err(Fault::Option { found: key.into(), allowed: MESSAGE_OPTIONS }),
            }
        }
        Ok(Message { after: after.unwrap_or(Time::ZERO), direction, bytes })
    }
}

keys! {
    /// A replay of connections.
    pub struct Vectors {
        /// A file of connection vectors, or a table of its `path` and `hash`.
        file: File, like "file = \"connections.txt\"";
        /// Factor on all times of start: 2 halves the load.
        scale: f64 = 1.0, in Span::above(0.0);
        /// Connections change places at random within bins of this length. Default: they do not.
        shuffle: Option<Time> = None, in Time::from_us(1)..=DELAY_MAX;
    }
    set {
        /// Contents of the file.
        trace: Arc<Trace> = Arc::default();
    }
}

impl Keys for Vectors {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        let trace = self.trace.clone();
        Config { trace, direction, scale: self.scale, shuffle: self.shuffle, path }
    }
}

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The trace.
    pub trace: Arc<Trace>,
    /// Which way what initiators send travels.
    pub direction: Direction,
    /// Factor on all times of start: 2 halves the load.
    pub scale: f64,
    /// Connections change places at random within bins of this length, after scaling; none where `None`.
    /// The common TCP evaluation suite shuffles in bins of 500 Mbit divided by the rate of the bottleneck.
    pub shuffle: Option<Time>,
    /// Round-trip time and segment size of connections whose vector does not say.
    pub path: PathConfig,
}

impl Config {
    /// Payload in bits per second in `direction`, over the trace.
    pub fn offered_bps(&self, direction: Direction) -> f64 {
        let of_trace = if self.direction == Direction::Forward { direction } else { direction.opposite() };
        let messages = self.trace.vectors.iter().flat_map(|vector| &vector.messages);
        let bytes: u64 =
            messages.filter(|message| message.direction == of_trace).map(|message| message.bytes).sum();
        8.0 * bytes as f64 / (self.trace.duration.as_s() * self.scale)
    }

    /// These connections, scaled so that `load` is offered in `direction`.
    #[must_use]
    pub fn scaled_to(self, direction: Direction, load: Rate) -> Config {
        let scale = self.scale * self.offered_bps(direction) / load.as_bps();
        Config { scale, ..self }
    }
}

/// The connections of a trace, in order of time.
#[derive(Clone, Debug)]
pub struct Replay {
    config: Config,
    paths: Paths,
    /// Which vector stands in whose place.
    order: Vec<usize>,
    next: usize,
}

impl Replay {
    /// The connections of `config`'s trace.
    ///
    /// # Errors
    /// [`BadTraffic`] where the scale is not positive, bins have no length, or the path is none.
    pub fn new(config: &Config, streams: &Streams) -> Result<Replay, BadTraffic> {
        BadTraffic::positive("scale", config.scale)?;
        config.path.check()?;
        let mut order: Vec<usize> = (0..config.trace.vectors.len()).collect();
        if let Some(bin) = config.shuffle {
            BadTraffic::positive("shuffle", bin.as_s())?;
            let bin_of = |&i: &usize| scaled(config.trace.vectors[i].start, config.scale).0 / bin.0;
            let mut stream = streams.stream("shuffle");
            order.chunk_by_mut(|a, b| bin_of(a) == bin_of(b)).for_each(|places| shuffle(places, &mut stream));
        }
        Ok(Replay { config: config.clone(), paths: Paths::new(config.path, streams), order, next: 0 })
    }
}

fn scaled(start: Time, scale: f64) -> Time {
    Time::from_s_f64(start.as_s() * scale)
}

/// Every order equally likely (Fisher and Yates).
fn shuffle(places: &mut [usize], stream: &mut Stream) {
    for last in (1..places.len()).rev() {
        let chosen = stream.f64() * (last + 1) as f64;
        places.swap(last, chosen as usize);
    }
}

impl Iterator for Replay {
    type Item = Connection;

    fn next(&mut self) -> Option<Connection> {
        let vectors = &self.config.trace.vectors;
        let vector = &vectors[*self.order.get(self.next)?];
        let start = scaled(vectors[self.next].start, self.config.scale);
        self.next += 1;
        let turned = |message: &Message| match self.config.direction {
            Direction::Forward => *message,
            Direction::Reverse => Message { direction: message.direction.opposite(), ..*message },
        };
        let messages = vector.messages.iter().map(turned).collect();
        let (mss_bytes, rtt) = self.paths.draw();
        let (mss_bytes, rtt) = (vector.mss_bytes.unwrap_or(mss_bytes), vector.rtt.unwrap_or(rtt));
        Some(Connection { start, mss_bytes, rtt, persistent: true, messages })
    }
}

#[cfg(test)]
mod tests;
