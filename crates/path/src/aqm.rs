//! The disciplines that a queue can have. A new one has a file of its own, with its keys and an implementation of
//! [`Parameters`] and [`Rule`], and a line in the list below.

use std::convert::Infallible;

use lfn_keys::kinds;
use lfn_units::{Rate, Time};

use crate::classes::Classes;
use crate::codel::{Codel, CodelConfig, CodelError};
use crate::counters::Ledger;
use crate::drop::{DropHead, DropTail};
use crate::dualpi2::{DualPi2, DualPi2Config};
use crate::fifo::{Fifo, Waiting};
use crate::fq_codel::{FqCodel, FqCodelConfig, FqCodelError};
use crate::limit::DropReason;
use crate::pi::PiError;
use crate::pi2::{Pi2, Pi2Config};
use crate::pie::{Pie, PieConfig, PieError};
use crate::red::{Red, RedConfig, RedError};
use crate::rule::{Arrival, Parameters, Rule, Site};

macro_rules! disciplines {
    ($($(#[doc = $about:literal])+ $name:ident = $kind:literal: $config:ty => $rule:ty;)+) => {
        /// How a queue drops, marks and orders packets: the parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum AqmConfig {
            $($(#[doc = $about])+ $name($config),)+
        }

        /// The state of a queue's discipline.
        #[derive(Debug)]
        pub enum Aqm {
            $(#[doc = concat!("See [`AqmConfig::", stringify!($name), "`].")] $name(Box<$rule>),)+
        }

        kinds! { AqmConfig { $($name = $kind, concat!($($about),+).trim_ascii();)+ } }

        impl AqmConfig {
            /// Whether it draws random numbers.
            pub fn draws(&self) -> bool {
                match self { $(AqmConfig::$name(_) => <$config as Parameters>::DRAWS,)+ }
            }

            /// Whether the fate of a packet is settled when it arrives, and nothing overtakes it, so that
            /// [`crate::Link`] can compute its departure. Else it takes a [`crate::QueuedLink`].
            pub fn decides_at_arrival(&self) -> bool {
                match self { $(AqmConfig::$name(_) => <$config as Parameters>::AT_ARRIVAL,)+ }
            }

            /// This queue for packets of at most this size on the wire.
            pub fn for_packets(mut self, packet_bytes: u32) -> AqmConfig {
                match &mut self { $(AqmConfig::$name(config) => config.fit(packet_bytes),)+ }
                self
            }

            /// The discipline of an empty queue in front of a link of this rate and one-way delay. `salt`
            /// decides which flows share a queue of FQ-CoDel; draw it.
            ///
            /// # Errors
            /// [`AqmError`] when a parameter lies outside its range.
            pub fn build(&self, rate: Rate, delay: Time, salt: u64) -> Result<Aqm, AqmError> {
                let site = Site { rate, delay, salt };
                Ok(match *self { $(AqmConfig::$name(config) => Aqm::$name(Box::new(config.build(site)?)),)+ })
            }
        }

        impl Rule for Aqm {
            fn admit(
                &mut self,
                arrival: &Arrival,
                fifo: &mut Fifo,
                draw: impl FnOnce() -> f64,
                ledger: &mut Ledger,
            ) -> Result<bool, DropReason> {
                match self { $(Aqm::$name(rule) => Rule::admit(&mut **rule, arrival, fifo, draw, ledger),)+ }
            }

            fn keeps(&self) -> Option<(u64, u64)> {
                match self { $(Aqm::$name(rule) => Rule::keeps(&**rule),)+ }
            }

            fn kept_bytes(&self) -> usize {
                match self { $(Aqm::$name(rule) => Rule::kept_bytes(&**rule),)+ }
            }

            fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
                match self { $(Aqm::$name(rule) => Rule::take(&mut **rule, now, fifo, ledger),)+ }
            }

            fn classes(&self, now: Time) -> Option<Classes<'_>> {
                match self { $(Aqm::$name(rule) => Rule::classes(&**rule, now),)+ }
            }

            fn reset_counters(&mut self) {
                match self { $(Aqm::$name(rule) => Rule::reset_counters(&mut **rule),)+ }
            }

            fn set_rate(&mut self, rate: Rate) {
                match self { $(Aqm::$name(rule) => Rule::set_rate(&mut **rule, rate),)+ }
            }
        }
    };
}

disciplines! {
    /// Drops what does not fit.
    DropTail = "drop-tail": DropTail => DropTail;
    /// Drops what has waited longest until the new packet fits.
    DropHead = "drop-head": DropHead => DropHead;
    /// Random early detection (Floyd and Jacobson 1993; gentle and adaptive: Floyd, Gummadi and Shenker 2001).
    Red = "red": RedConfig => Red;
    /// Controlled delay (RFC 8289).
    Codel = "codel": CodelConfig => Codel;
    /// A queue and a CoDel for each flow (RFC 8290).
    FqCodel = "fq-codel": FqCodelConfig => FqCodel;
    /// Proportional-integral controller of the delay (RFC 8033).
    Pie = "pie": PieConfig => Pie;
    /// PI2: PIE's controller with a square in place of its tables (De Schepper and others 2016, RFC 9332).
    Pi2 = "pi2": Pi2Config => Pi2;
    /// A queue for L4S beside one for Classic flows, coupled (RFC 9332).
    DualPi2 = "dualpi2": DualPi2Config => DualPi2;
}

/// Why the parameters of a discipline cannot work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub enum AqmError {
    /// RED's.
    Red(#[from] RedError),
    /// FQ-CoDel's.
    FqCodel(#[from] FqCodelError),
    /// PIE's.
    Pie(#[from] PieError),
    /// PI2's or DualPI2's.
    Pi(#[from] PiError),
    /// CoDel's.
    Codel(#[from] CodelError),
}

impl From<Infallible> for AqmError {
    fn from(never: Infallible) -> AqmError {
        match never {}
    }
}
