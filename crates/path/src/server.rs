//! How long packets take to leave: a server of exact rate.

use lfn_units::{Rate, Time};

/// The work of one byte in units of 10^-12 bit: a server of R bit/s does R of them in a picosecond.
pub(crate) const BYTE: u64 = 8_000_000_000_000;

/// Serialisation time of one packet size: `ps` and a remainder in units of 10^-12 bit.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    bytes: u32,
    ps: u64,
    remainder: u64,
}

/// Serialisation at one rate. Times are rounded down to a picosecond and the remainder is
/// carried to the next packet, so the rate is exact.
#[derive(Clone, Debug)]
pub(crate) struct Serialiser {
    rate: Rate,
    /// Work by which the last packet ends after its time, below that of 1 ps.
    carry: u64,
    /// Data and ACKs: two sizes, as a rule.
    known: [Known; 2],
}

impl Serialiser {
    pub(crate) fn new(rate: Rate) -> Serialiser {
        Serialiser { rate, carry: 0, known: [Known::default(); 2] }
    }

    #[inline]
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Time to serialise `bytes`. The rate is not 0.
    #[inline]
    pub(crate) fn serialise(&mut self, bytes: u32) -> Time {
        let slot = match bytes {
            b if b == self.known[0].bytes => 0,
            b if b == self.known[1].bytes => 1,
            _ => {
                let work = u128::from(bytes) * u128::from(BYTE);
                let rate = u128::from(self.rate.0);
                self.known.swap(0, 1);
                self.known[0] = Known { bytes, ps: (work / rate) as u64, remainder: (work % rate) as u64 };
                0
            }
        };
        let Known { ps, remainder, .. } = self.known[slot];
        self.carry += remainder;
        if self.carry >= self.rate.0 {
            self.carry -= self.rate.0;
            return Time(ps + 1);
        }
        Time(ps)
    }
}

/// Bytes that a server of this rate sends in this time.
pub(crate) fn rest_bytes(rate: Rate, time: Time) -> f64 {
    rate.as_bps() / 8.0 * time.as_s()
}

/// A server whose rate may change at any time, also to 0: then it stands still.
#[derive(Clone, Debug)]
pub(crate) struct RateServer {
    serialiser: Serialiser,
    /// Work to do before anything else: the packet's in service while the server stands still, or
    /// what was carried when the rate changed between two packets.
    owed: u128,
}

impl RateServer {
    pub(crate) fn new(rate: Rate) -> RateServer {
        RateServer { serialiser: Serialiser::new(rate), owed: 0 }
    }

    pub(crate) fn rate(&self) -> Rate {
        self.serialiser.rate
    }

    /// A packet enters service. Returns when its last bit leaves: [`Time::NEVER`] while the rate is 0.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time, bytes: u32) -> Time {
        if self.owed == 0 && self.serialiser.rate.0 > 0 {
            return now.after(self.serialiser.serialise(bytes));
        }
        self.owed += u128::from(bytes) * u128::from(BYTE);
        self.work_off(now)
    }

    /// The rate changes. `leaves` is when the packet in service would have left, `None` when there
    /// is none; a packet that leaves now has left. Returns when the packet in service leaves.
    pub(crate) fn change(&mut self, now: Time, rate: Rate, leaves: Option<Time>) -> Option<Time> {
        let old = std::mem::replace(&mut self.serialiser, Serialiser::new(rate));
        self.owed += u128::from(old.carry);
        let leaves = leaves.filter(|&at| at > now)?;
        if leaves < Time::NEVER {
            self.owed += u128::from((leaves - now).0) * u128::from(old.rate.0);
        }
        Some(self.work_off(now))
    }

    /// Bytes that have left of a packet of so many, which ends at `leaves`.
    pub(crate) fn partly_sent_bytes(&self, bytes: u32, leaves: Time, now: Time) -> f64 {
        let rest_bytes = match leaves {
            Time::NEVER => self.owed as f64 / BYTE as f64,
            leaves => rest_bytes(self.rate(), leaves.since(now)),
        };
        (f64::from(bytes) - rest_bytes).max(0.0)
    }

    /// When the work owed is done.
    fn work_off(&mut self, now: Time) -> Time {
        let rate = u128::from(self.serialiser.rate.0);
        if rate == 0 {
            return Time::NEVER;
        }
        self.serialiser.carry = (self.owed % rate) as u64;
        let ps = u64::try_from(self.owed / rate).unwrap_or(u64::MAX);
        self.owed = 0;
        now.after(Time(ps))
    }
}
