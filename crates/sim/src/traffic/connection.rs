//! Connections as the messages that their ends exchange, each sent a while after the one before it has
//! arrived: the a-b-t model of Hernández-Campos, Jeffay and Smith (2004), which tmix replays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use lfn_units::Time;

use super::{Direction, Transfer};
use crate::memory::tree_bytes;

/// Bytes that one end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// How long after the message before it has arrived. The first goes when the connection begins.
    pub after: Time,
    /// Which way it travels.
    pub direction: Direction,
    /// Payload, at least 1.
    pub bytes: u64,
}

/// A connection, or, where every message has one of its own, several in a row between the same ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// When it begins.
    pub start: Time,
    /// Segment size in bytes of payload.
    pub mss_bytes: u32,
    /// Base round-trip time.
    pub rtt: Time,
    /// Whether all messages of a direction go over one connection.
    pub persistent: bool,
    /// At least one.
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug)]
struct Running {
    connection: Connection,
    /// The next message.
    next: usize,
}

/// Plays connections: a message goes when the one before it is reported as done.
#[derive(Clone, Debug)]
pub struct Dialogues<I> {
    connections: I,
    upcoming: Option<Connection>,
    started: u64,
    running: BTreeMap<u64, Running>,
    /// Messages whose time is known: (time, session).
    ready: BinaryHeap<Reverse<(Time, u64)>>,
    /// Places for messages of all that are running.
    messages: usize,
}

impl<I: Iterator<Item = Connection>> Dialogues<I> {
    /// Plays `connections`, which come in order of their start.
    pub fn new(mut connections: I) -> Dialogues<I> {
        let upcoming = connections.next();
        Dialogues {
            connections,
            upcoming,
            started: 0,
            running: BTreeMap::new(),
            ready: BinaryHeap::new(),
            messages: 0,
        }
    }

    /// When the next transfer begins, as far as is known; [`Time::NEVER`] while all wait for others.
    pub fn next_at(&self) -> Time {
        self.ready.peek().map_or(Time::NEVER, |next| next.0 .0).min(self.upcoming_at())
    }

    /// The next transfer; `None` while all wait for others.
    pub fn next_transfer(&mut self) -> Option<Transfer> {
        if self.upcoming_at() <= self.next_at() {
            let connection = self.upcoming.take()?;
            self.upcoming = self.connections.next();
            self.ready.push(Reverse((connection.start, self.started)));
            self.messages += connection.messages.capacity();
            self.running.insert(self.started, Running { connection, next: 0 });
            self.started += 1;
        }
        let Reverse((at, session)) = self.ready.pop()?;
        let Running { connection, next } = self.running.get_mut(&session)?;
        let Message { direction, bytes, .. } = connection.messages[*next];
        let alone = |others: &[Message]| {
            !connection.persistent || others.iter().all(|message| message.direction != direction)
        };
        let (first, last) = (alone(&connection.messages[..*next]), alone(&connection.messages[*next + 1..]));
        *next += 1;
        let (mss_bytes, rtt) = (connection.mss_bytes, connection.rtt);
        Some(Transfer { at, direction, bytes, mss_bytes, rtt, session, first, last })
    }

    /// The transfer of `session` has arrived at `now`: the next message of the session follows in time.
    pub fn on_done(&mut self, session: u64, now: Time) {
        let Some(Running { connection, next }) = self.running.get(&session) else { return };
        match connection.messages.get(*next) {
            Some(message) => self.ready.push(Reverse((now.after(message.after), session))),
            None => {
                self.messages -= connection.messages.capacity();
                self.running.remove(&session);
            }
        }
    }

    /// How many connections have begun and not ended.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Bytes of memory that the connections hold which have begun and not ended.
    pub fn memory_bytes(&self) -> usize {
        tree_bytes::<(u64, Running)>(self.running.len())
            + self.ready.capacity() * size_of::<Reverse<(Time, u64)>>()
            + self.messages * size_of::<Message>()
    }

    fn upcoming_at(&self) -> Time {
        self.upcoming.as_ref().map_or(Time::NEVER, |connection| connection.start)
    }
}
