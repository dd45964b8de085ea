//! Links that follow a trace of delivery opportunities, as mahimahi's `mm-link` does
//! (Netravali and others, 2015; its manual page mm-link(1)).

use std::str::FromStr;
use std::sync::Arc;

use lfn_units::{Rate, Time};

/// Bytes that may leave at one opportunity: an IP packet of 1500 bytes and the device's 4.
const OPPORTUNITY_BYTES: u32 = NOMINAL_BYTES + DEVICE_BYTES;
/// The IP packet that fits an opportunity, by which a trace's rate is named.
const NOMINAL_BYTES: u32 = 1500;
/// Bytes that mahimahi's device adds to an IP packet.
const DEVICE_BYTES: u32 = 4;
const MILLISECOND: u64 = Time::from_ms(1).0;

/// When a link may send. Its text has one line for each opportunity to send an IP packet of 1500 bytes: the
/// time in whole milliseconds, never falling. After the last line it begins again, as many milliseconds
/// later as that line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// In ps; the last is above 0 and is the period. Shared, for traces are long and runs are many.
    times: Arc<[u64]>,
    /// At time 0 the trace is here.
    ahead: Time,
}

/// Errors in the text of a trace. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// No line has a number.
    #[error("the trace is empty; write a line for each opportunity to send a packet, its time in ms")]
    Empty,
    /// A line is no number of milliseconds.
    #[error("line {line}: {got:?} is not a whole number of milliseconds of at least 0")]
    NotANumber {
        /// Its number.
        line: usize,
        /// Its text.
        got: String,
    },
    /// A time lies before its predecessor.
    #[error("line {line}: time goes back from {before} ms to {got} ms")]
    TimeGoesBack {
        /// Number of the line.
        line: usize,
        /// The time before it, in ms.
        before: u64,
        /// Its time, in ms.
        got: u64,
    },
    /// A time that no simulation reaches.
    #[error("line {line}: {got} ms is too late; the most is {} ms (213 days)", u64::MAX / MILLISECOND)]
    TooLate {
        /// Number of the line.
        line: usize,
        /// Its time, in ms.
        got: u64,
    },
    /// Every time is 0, so that the trace would repeat without end at one instant.
    #[error("line {line}: the last time is 0 ms, but it is the period after which the trace repeats")]
    NoPeriod {
        /// Number of the last line.
        line: usize,
    },
}

impl FromStr for DeliveryTrace {
    type Err = TraceError;

    /// Reads a trace; blank lines are skipped.
    fn from_str(text: &str) -> Result<DeliveryTrace, TraceError> {
        let mut times = Vec::new();
        let (mut before, mut last_line) = (0, 0);
        for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
            let text = text.trim();
            // The standard library's parser also takes a sign.
            let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>());
            let Some(Ok(got)) = number else {
                return Err(TraceError::NotANumber { line, got: text.into() });
            };
            if got < before {
                return Err(TraceError::TimeGoesBack { line, before, got });
            }
            times.push(got.checked_mul(MILLISECOND).ok_or(TraceError::TooLate { line, got })?);
            (before, last_line) = (got, line);
        }
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod { line: last_line }),
            Some(_) => Ok(DeliveryTrace { times: times.into(), ahead: Time::ZERO }),
        }
    }
}

impl DeliveryTrace {
    /// After this the trace repeats.
    pub fn period(&self) -> Time {
        Time(self.times[self.times.len() - 1])
    }

    /// The trace of which a round begins at `start`.
    #[must_use]
    pub fn beginning_at(self, start: Time) -> DeliveryTrace {
        let period = self.period().0;
        DeliveryTrace { ahead: Time((period - start.0 % period) % period), ..self }
    }

    /// The mean rate of a link that sends an IP packet of 1500 bytes at every opportunity, rounded down.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.times.len() as u128 * u128::from(NOMINAL_BYTES) * 8;
        Rate(u64::try_from(bits * 1_000_000_000_000 / u128::from(self.period().0)).unwrap_or(u64::MAX))
    }

    /// Bytes on the wire that may leave between two times, in packets of one size with so many bytes beyond their IP packet.
    pub(crate) fn most_bytes(&self, from: Time, to: Time, wire_bytes: u32, framing_bytes: u32) -> f64 {
        let opportunities = self.before(to.after(Time(1))).saturating_sub(self.before(from));
        let needed_bytes = f64::from(wire_bytes.saturating_sub(framing_bytes) + DEVICE_BYTES);
        opportunities as f64 * f64::from(OPPORTUNITY_BYTES) * f64::from(wire_bytes) / needed_bytes
    }

    /// Opportunities before `now`.
    fn before(&self, now: Time) -> u64 {
        let Some(last) = now.after(self.ahead).0.checked_sub(1) else { return 0 };
        let (rounds, into) = (last / self.period().0, last % self.period().0);
        rounds * self.times.len() as u64 + self.times.partition_point(|&time| time <= into) as u64
    }

    /// When opportunity `number` comes, counted from 0.
    fn at(&self, number: u64) -> Time {
        let (round, place) = (number / self.times.len() as u64, number % self.times.len() as u64);
        Time(round.saturating_mul(self.period().0)).after(Time(self.times[place as usize])).since(self.ahead)
    }
}

/// A server that sends at the opportunities of a trace. Several packets may share one, a packet may
/// need several, and unused opportunities are lost.
#[derive(Clone, Debug)]
pub(crate) struct TraceServer {
    trace: DeliveryTrace,
    /// Bytes of a packet on the wire that are not its IP packet's; mahimahi's device has its own in their place.
    framing_bytes: u32,
    /// Bytes used so far, and by packets under way.
    used_bytes: u64,
    /// The opportunity in use, and what it can still send.
    at: Time,
    left_bytes: u32,
    /// The opportunity after it: when its round of the trace began, and its place there.
    round_began: u64,
    next: usize,
}

impl TraceServer {
    pub(crate) fn new(trace: DeliveryTrace, framing_bytes: u32) -> TraceServer {
        TraceServer {
            trace,
            framing_bytes,
            used_bytes: 0,
            at: Time::ZERO,
            left_bytes: 0,
            round_began: 0,
            next: 0,
        }
    }

    /// Bytes that so many packets need, which have so many bytes on the wire.
    fn needed_bytes(&self, packets: u64, bytes: u64) -> u64 {
        (bytes + packets * u64::from(DEVICE_BYTES)).saturating_sub(packets * u64::from(self.framing_bytes))
    }

    /// Opportunities before `now`.
    pub(crate) fn opportunities(&self, now: Time) -> u64 {
        self.trace.before(now)
    }

    /// Bytes that could be sent before `now`.
    pub(crate) fn offered_bytes(&self, now: Time) -> f64 {
        self.opportunities(now) as f64 * f64::from(OPPORTUNITY_BYTES)
    }

    /// Bytes sent before `now`, up to which all departures are known.
    pub(crate) fn sent_bytes(&self, now: Time) -> f64 {
        // Nothing is lost of the opportunities from `now` on: what is gone of them is used.
        let place = self.begun() as f64 * f64::from(OPPORTUNITY_BYTES) - f64::from(self.left_bytes);
        self.used_bytes as f64 - (place - self.offered_bytes(now)).max(0.0)
    }

    /// When so many packets with so many bytes on the wire have left that wait behind the one in service, or
    /// for the next opportunity.
    pub(crate) fn drained_at(&self, packets: u64, bytes: u64) -> Time {
        let beyond = self.needed_bytes(packets, bytes).saturating_sub(self.left_bytes.into());
        match beyond.div_ceil(OPPORTUNITY_BYTES.into()) {
            0 => self.at,
            more => self.trace.at((self.begun() + more).saturating_sub(1)),
        }
    }

    /// Opportunities up to the one in use.
    fn begun(&self) -> u64 {
        self.round_began / self.trace.period().0 * self.trace.times.len() as u64 + self.next as u64
    }

    pub(crate) fn mean_rate(&self) -> Rate {
        self.trace.mean_rate()
    }

    /// The first time from `now` on when something can be sent.
    pub(crate) fn ready_at(&mut self, now: Time) -> Time {
        if self.at < now || self.left_bytes == 0 {
            self.skip_to(now);
            self.step();
        }
        self.at
    }

    /// Begins a packet when the server is ready. Returns when its last byte leaves.
    pub(crate) fn begin(&mut self, bytes: u32) -> Time {
        let mut bytes = self.needed_bytes(1, bytes.into()) as u32;
        self.used_bytes += u64::from(bytes);
        while bytes > self.left_bytes {
            bytes -= self.left_bytes;
            self.step();
        }
        self.left_bytes -= bytes;
        self.at
    }

    /// Loses the opportunities before `now`.
    fn skip_to(&mut self, now: Time) {
        let now = now.after(self.trace.ahead);
        // A round's times lie after its beginning, up to and with the period; those at 0 coincide
        // with the end of the round before.
        let period = self.trace.period().0;
        let round_began = now.0.saturating_sub(1) / period * period;
        if round_began > self.round_began {
            (self.round_began, self.next) = (round_began, 0);
        }
        let began = self.round_began;
        self.next +=
            self.trace.times[self.next..].partition_point(|&time| began.saturating_add(time) < now.0);
    }

    fn step(&mut self) {
        self.at = Time(self.round_began).after(Time(self.trace.times[self.next])).since(self.trace.ahead);
        self.left_bytes = OPPORTUNITY_BYTES;
        self.next += 1;
        if self.next == self.trace.times.len() {
            self.next = 0;
            self.round_began = self.round_began.saturating_add(self.trace.period().0);
        }
    }
}
