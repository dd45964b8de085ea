//! The disciplines that a queue can have. A new one has a file of its own, with its keys and an implementation of
//! [`Parameters`] and [`Rule`], and a line in the list below.

use lfn_keys::{kinds, Keys};
use lfn_units::{Rate, Time};

use crate::codel::{Codel, CodelConfig};
use crate::counters::Ledger;
use crate::fifo::{DropHead, DropTail, Fifo, Waiting};
use crate::fq_codel::{FqCodel, FqCodelConfig, FqCodelError};
use crate::limit::{DropReason, Limit};
use crate::packet::Packet;
use crate::pie::{Pie, PieConfig, PieError};
use crate::red::{QueueState, Red, RedConfig, RedError};

/// The parameters of a discipline.
pub(crate) trait Parameters: Keys + Copy {
    /// The discipline at work.
    type Rule: Rule;
    /// Whether it draws random numbers.
    const DRAWS: bool = false;
    /// Whether the fate of a packet is settled when it arrives, and nothing overtakes it, so that
    /// [`crate::Link`] can compute its departure. Else it takes a [`crate::QueuedLink`].
    const AT_ARRIVAL: bool = false;

    /// Takes the size of the largest packet on the wire.
    fn fit(&mut self, packet_bytes: u32) {
        let _ = packet_bytes;
    }

    /// Most bytes that an empty queue takes.
    fn memory_bytes(&self) -> f64 {
        0.0
    }

    /// The discipline of an empty queue.
    fn build(self, site: Site) -> Result<Self::Rule, AqmError>;
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Rate of the link behind it.
    pub(crate) rate: Rate,
    /// One-way delay of that link.
    pub(crate) delay: Time,
    /// A random number.
    pub(crate) salt: u64,
}

/// A packet at the queue, and what it finds.
pub(crate) struct Arrival {
    pub(crate) now: Time,
    pub(crate) packet: Packet,
    /// Since when queue and link have been idle; an idle link takes any packet.
    pub(crate) idle_since: Option<Time>,
    pub(crate) limit: Limit,
}

impl Arrival {
    /// The queue without the packet.
    pub(crate) fn queue(&self, fifo: &Fifo) -> QueueState {
        QueueState { packets: fifo.packets(), bytes: fifo.bytes(), idle_since: self.idle_since }
    }

    /// Whether the packet fits.
    pub(crate) fn fits(&self, fifo: &Fifo) -> Result<(), DropReason> {
        match self.limit.admits(self.queue(fifo), self.packet.bytes) {
            true => Ok(()),
            false => Err(DropReason::Full),
        }
    }
}

/// A discipline at work. The packets wait in `fifo` unless the discipline keeps them itself.
pub(crate) trait Rule {
    /// Whether a packet joins the queue, with a mark or without.
    fn admit(
        &mut self,
        arrival: &Arrival,
        fifo: &mut Fifo,
        draw: impl FnOnce() -> f64,
        ledger: &mut Ledger,
    ) -> Result<bool, DropReason> {
        let _ = (draw, ledger);
        arrival.fits(fifo).map(|()| false)
    }

    /// Packets and bytes of a discipline that keeps them itself: then [`Rule::admit`] takes each of them.
    fn keeps(&self) -> Option<(u64, u64)> {
        None
    }

    /// Memory of what it keeps itself.
    fn kept_bytes(&self) -> usize {
        0
    }

    /// The packet to send now.
    fn take(&mut self, now: Time, fifo: &mut Fifo, ledger: &mut Ledger) -> Option<Waiting> {
        let _ = (now, ledger);
        fifo.pop()
    }

    /// The rate of the link changes.
    fn set_rate(&mut self, rate: Rate) {
        let _ = rate;
    }
}

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

            /// Most bytes that an empty queue takes.
            pub fn memory_bytes(&self) -> f64 {
                match self { $(AqmConfig::$name(config) => config.memory_bytes(),)+ }
            }

            /// The same for packets of at most this size on the wire.
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
    /// Random early detection.
    Red = "red": RedConfig => Red;
    /// Controlled delay (RFC 8289).
    Codel = "codel": CodelConfig => Codel;
    /// A queue and a CoDel for each flow (RFC 8290).
    FqCodel = "fq-codel": FqCodelConfig => FqCodel;
    /// Proportional-integral controller of the delay (RFC 8033).
    Pie = "pie": PieConfig => Pie;
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
}
