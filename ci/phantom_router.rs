//! Phantom's router (Afek, Mansour, Ostfeld, SIGCOMM 1996): it allows each flow a multiple of the rate that all flows
//! leave unused.

use lfn_header::Header;
use lfn_keys::{keys, Span, DELAY_MAX};
use lfn_units::{Rate, Time};

use super::{Protocol, Site};

/// First unused rate, of the capacity.
const FIRST_SHARE: f64 = 0.05;

keys! {
    /// The phantom protocol.
    #[derive(Copy)]
    pub struct PhantomConfig {
        /// Rate of a flow as a multiple of the unused rate.
        factor: f64 = 5.0, in Span::above(0.0);
        /// Weight of a sample in the average of the unused rate.
        gain: f64 = 0.03125, in Span::above(0.0).at_most(1.0);
        /// Time from one sample to the next.
        interval: Time = Time::from_ms(100), in Time::from_ms(1)..=DELAY_MAX;
    }
}

/// The router of one link. Rates in bytes/s.
#[derive(Clone, Debug)]
pub(super) struct PhantomRouter {
    config: PhantomConfig,
    capacity: f64,
    unused: f64,
    arrived_bytes: u64,
    interval_end: Time,
}

impl Protocol for PhantomRouter {
    type Config = PhantomConfig;

    fn new(config: PhantomConfig, Site { rate, .. }: Site, mut draw: impl FnMut() -> f64) -> PhantomRouter {
        let interval_end = Time((config.interval.0 as f64 * (1.0 - draw())) as u64);
        let capacity = rate.as_bps() / 8.0;
        PhantomRouter { config, capacity, unused: FIRST_SHARE * capacity, arrived_bytes: 0, interval_end }
    }

    fn set_rate(&mut self, rate: Rate) {
        self.capacity = rate.as_bps() / 8.0;
    }

    fn advance(&mut self, now: Time, _: u64) {
        while self.interval_end <= now {
            let rate = self.arrived_bytes as f64 / self.config.interval.as_s();
            self.unused += self.config.gain * ((self.capacity - rate).max(0.0) - self.unused);
            self.arrived_bytes = 0;
            self.interval_end = self.interval_end + self.config.interval;
        }
    }

    fn arrive(&mut self, bytes: u32, _: &Header) {
        self.arrived_bytes += u64::from(bytes);
    }

    fn depart(&mut self, _: u32, _: u64, header: &mut Header) {
        if let Header::Phantom(phantom) = header {
            phantom.rate_bytes_per_s = phantom.rate_bytes_per_s.min(self.config.factor * self.unused);
        }
    }
}
