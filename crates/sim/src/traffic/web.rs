//! Web sessions: a user fetches a page of some objects, each over a TCP connection of its own, reads,
//! and fetches the next. A closed loop: the next page begins a think time after all objects of the one
//! before it have arrived, so a slow network lowers the load. As `PagePool/WebTraf` of ns-2 (Feldmann,
//! Gilbert, Huang, Willinger 1999) and SURGE (Barford and Crovella 1998).
//!
//! Requests are not generated. Each session has a stream of its own, so what a user fetches does not
//! depend on how fast other users, or earlier pages, are served.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use lfn_keys::keys;
use lfn_units::Time;

use super::keys::Keys;
use super::COUNT_MAX;
use super::{BadTraffic, Direction, PathConfig, Paths, Transfer};
use crate::memory::tree_bytes;
use crate::rng::{Distribution, Mixture, Stream, Streams};

keys! {
    /// ns-2's web sessions of 250 pages, one begun each second on average.
    #[derive(Copy)]
    pub struct Webtraf {
        /// How many begin.
        sessions: u64, in 1..=COUNT_MAX, like "sessions = 400";
    }
}

impl Keys for Webtraf {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        Config::webtraf(direction, self.sessions, path)
    }
}

keys! {
    /// Users who read pages without end.
    #[derive(Copy)]
    pub struct Surge {
        /// How many.
        users: u64, in 1..=COUNT_MAX, like "users = 100";
    }
}

impl Keys for Surge {
    type Config = Config;

    fn config(&self, direction: Direction, path: PathConfig) -> Config {
        Config::surge(direction, self.users, path)
    }
}

/// Users and what they fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which way the objects travel.
    pub direction: Direction,
    /// How many sessions begin; `u64::MAX` for no end.
    pub sessions: u64,
    /// Time between the beginnings of two sessions, in seconds.
    pub session_gap_s: Distribution,
    /// Pages of a session after its first; infinite for sessions that never end.
    pub more_pages: Mixture,
    /// Time from the end of a page to the beginning of the next, in seconds.
    pub think_s: Distribution,
    /// Objects of a page after its first.
    pub more_objects: Mixture,
    /// Time between the beginnings of two objects of a page, in seconds.
    pub object_gap_s: Distribution,
    /// Size of an object in bytes.
    pub object_bytes: Mixture,
    /// Round-trip time and segment size of a user's connections.
    pub path: PathConfig,
}

impl Config {
    /// The large example that comes with ns-2: sessions of 250 pages begin every second on average; a
    /// page is one object of 12 packets of 1000 bytes on average, ParetoII of shape 1.2; 15 s of reading.
    /// Our bound: the largest object is 10^4 times the scale, 30 MB.
    pub fn webtraf(direction: Direction, sessions: u64, path: PathConfig) -> Config {
        Config {
            direction,
            sessions,
            session_gap_s: Distribution::Exponential(1.0),
            more_pages: Distribution::Constant(249.0).into(),
            think_s: Distribution::Exponential(15.0),
            more_objects: Distribution::Constant(0.0).into(),
            object_gap_s: Distribution::Exponential(0.010),
            object_bytes: Distribution::pareto_ii_of_mean(12e3, 1e4, 1.2).into(),
            path,
        }
    }

    /// SURGE: users without end, who begin within a second or so. Our bounds: the largest file is 10^3
    /// times the least of the tail (133 MB), a page has at most 1000 embedded files, and no user reads
    /// longer than 1000 s. So long it takes until as many users read for long as in the steady state
    /// that [`Config::offered_bps`] speaks of; in the first 100 s the load is several percent higher.
    pub fn surge(direction: Direction, users: u64, path: PathConfig) -> Config {
        Config {
            direction,
            sessions: users,
            session_gap_s: Distribution::Exponential(1.0 / users as f64),
            more_pages: Distribution::Constant(f64::INFINITY).into(),
            think_s: Distribution::BoundedPareto(1.0, 1e3, 1.5),
            more_objects: Distribution::BoundedPareto(1.0, 1e3, 2.43).into(),
            object_gap_s: Distribution::Weibull(0.382, 1.46),
            // The median is e^9.357.
            object_bytes: Mixture(vec![
                (0.93, Distribution::Lognormal(11_580.0, 1.318)),
                (0.07, Distribution::BoundedPareto(133e3, 133e6, 1.1)),
            ]),
            path,
        }
    }

    /// Expected bytes of a page.
    pub fn page_bytes(&self) -> f64 {
        (1.0 + self.more_objects.mean()) * self.object_bytes.mean()
    }

    /// Expected payload in bits per second while all of [`Config::sessions`] run, were a page fetched in
    /// `page` on average.
    pub fn offered_bps(&self, page: Time) -> f64 {
        8.0 * self.sessions as f64 * self.page_bytes() / (self.think_s.mean() + page.as_s())
    }

    /// Expected payload in bits per second where sessions begin and end without end: whatever the
    /// network does, in the long run every session fetches all its pages.
    pub fn offered_by_sessions_bps(&self) -> f64 {
        8.0 * (1.0 + self.more_pages.mean()) * self.page_bytes() / self.session_gap_s.mean()
    }

    fn check(&self) -> Result<(), BadTraffic> {
        BadTraffic::positive("session_gap", self.session_gap_s.mean())?;
        BadTraffic::mixture("object", &self.object_bytes, BadTraffic::positive)?;
        BadTraffic::positive("think", self.think_s.mean())?;
        BadTraffic::mixture("more_objects", &self.more_objects, BadTraffic::not_negative)?;
        BadTraffic::not_negative("object_gap", self.object_gap_s.mean())?;
        BadTraffic::mixture("more_pages", &self.more_pages, |key, pages| {
            BadTraffic::unless(pages >= 0.0, key, pages.to_string(), "at least 0, or infinite")
        })?;
        self.path.check()
    }
}

#[derive(Clone, Debug)]
struct Session {
    stream: Stream,
    mss_bytes: u32,
    rtt: Time,
    /// Pages that have not begun.
    pages: u64,
    /// Objects of the present page that have not arrived.
    objects: u64,
}

/// Web traffic: objects in order of time.
#[derive(Clone, Debug)]
pub struct Web {
    config: Config,
    streams: Streams,
    starts: Stream,
    paths: Paths,
    next_session: Time,
    begun: u64,
    running: BTreeMap<u64, Session>,
    /// Objects whose time is known: (time, session, bytes).
    ready: BinaryHeap<Reverse<(Time, u64, u64)>>,
}

impl Web {
    /// The users that `config` describes. The first comes one gap after time 0.
    ///
    /// # Errors
    /// [`BadTraffic`] where a parameter has no mean, or one out of its range.
    pub fn new(config: &Config, streams: &Streams) -> Result<Web, BadTraffic> {
        config.check()?;
        let mut web = Web {
            config: config.clone(),
            streams: streams.clone(),
            starts: streams.stream("session"),
            paths: Paths::new(config.path, streams),
            next_session: Time::ZERO,
            begun: 0,
            running: BTreeMap::new(),
            ready: BinaryHeap::new(),
        };
        web.advance();
        Ok(web)
    }

    /// When the next object is fetched, as far as is known; [`Time::NEVER`] while all users wait.
    pub fn next_at(&self) -> Time {
        self.ready.peek().map_or(Time::NEVER, |next| next.0 .0).min(self.next_session)
    }

    /// The next object; `None` while all users wait.
    pub fn next_transfer(&mut self) -> Option<Transfer> {
        if self.next_session < Time::NEVER && self.next_session <= self.next_at() {
            self.begin_session();
        }
        let Reverse((at, session, bytes)) = self.ready.pop()?;
        let Session { mss_bytes, rtt, .. } = *self.running.get(&session)?;
        let direction = self.config.direction;
        Some(Transfer { at, direction, bytes, mss_bytes, rtt, session, first: true, last: true })
    }

    /// An object of `session` has arrived at `now`.
    pub fn on_done(&mut self, session: u64, now: Time) {
        let Some(user) = self.running.get_mut(&session) else { return };
        user.objects -= 1;
        if user.objects > 0 {
            return;
        }
        if user.pages == 0 {
            self.running.remove(&session);
            return;
        }
        let think_s = self.config.think_s.draw(&mut user.stream);
        self.begin_page(session, now.after(Time::from_s_f64(think_s)));
    }

    /// How many sessions have begun and not ended.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Bytes of memory that the users hold who are fetching or reading.
    pub fn memory_bytes(&self) -> usize {
        tree_bytes::<(u64, Session)>(self.running.len())
            + self.ready.capacity() * size_of::<Reverse<(Time, u64, u64)>>()
    }

    fn advance(&mut self) {
        let gap = Time::from_s_f64(self.config.session_gap_s.draw(&mut self.starts));
        let more = self.begun < self.config.sessions;
        self.next_session = if more { self.next_session.after(gap) } else { Time::NEVER };
    }

    fn begin_session(&mut self) {
        let (session, start) = (self.begun, self.next_session);
        let mut stream = self.streams.part("session", session as usize).stream("pages");
        let (mss_bytes, rtt) = self.paths.draw();
        let pages = self.config.more_pages.draw_count(&mut stream).saturating_add(1);
        self.running.insert(session, Session { stream, mss_bytes, rtt, pages, objects: 0 });
        self.begin_page(session, start);
        self.begun += 1;
        self.advance();
    }

    fn begin_page(&mut self, session: u64, start: Time) {
        let Some(user) = self.running.get_mut(&session) else { return };
        user.pages -= 1;
        user.objects = self.config.more_objects.draw_count(&mut user.stream).saturating_add(1);
        let mut at = start;
        for _ in 0..user.objects {
            let (_, bytes) = self.config.object_bytes.draw_bytes(&mut user.stream);
            self.ready.push(Reverse((at, session, bytes)));
            at = at.after(Time::from_s_f64(self.config.object_gap_s.draw(&mut user.stream)));
        }
    }
}

#[cfg(test)]
mod tests;
