//! The scenario as a value: what the TOML says, with every default filled in.
//!
//! Each key is declared once, here or with the part of the simulator that it sets. Reader, canonical TOML, JSON Schema,
//! reference and the values in Python are made from the declarations.

use lfn_keys::{keys, words, Keys, Said};
use lfn_units::Time;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::quantity::Sample;

mod change;
mod link;
mod traffic;

pub use change::{Capture, Change, FileChange, FlowId, LinkChange, RouteChange, Series};
pub use link::{Link, Mode, NamedLink, OneWay, ParkingLot, Queue, Reverse, Router, Topology};
pub(crate) use link::{LINKS_MAX, RATE_MIN};
pub(crate) use traffic::FLOWS_MAX;
pub use traffic::{Background, Flow, Path, Pattern, Tcp, Traffic, Transport, Udp};

/// Longest duration: 30 days.
const DURATION_MAX: Time = Time::from_s(30 * 86_400);

keys! {
    /// Links, the traffic over them, and what changes on the way.
    pub struct Scenario {
        /// Version of this format.
        schema: u32, in 1..=1, like "schema = 1";
        /// Free text that names the run.
        name: Option<String> = None;
        /// Seed of every random stream.
        seed: u64 = 1;
        /// Simulated time.
        duration: Time, in Time::from_us(1)..=DURATION_MAX, like "duration = \"60s\"";
        /// Start of the summary statistics; less than `duration`.
        warmup: Time = Time::ZERO;
        /// Grid of the tables `flows`, `probes` and `queues`, or "off". By default the first of 10, 20, 50, 100, 200,
        /// 500 ms and 1 s with which they have at most `sample_rows` rows, so a run of many flows samples less often.
        /// The resolved scenario in `provenance.json` names the interval.
        sample: Sample = Sample::Every(Time::from_ms(10));
        /// Most rows of these tables together, instead of `sample`. Default 4 million, and a sample every second
        /// where that is not enough.
        sample_rows: Option<u64> = None, in 1..=1_000_000_000;
        /// The TCP: "linux" is Linux 6.12, with 14 bytes of framing and 52 of headers in a packet. "ns2" is the
        /// simulator of the papers: initial window 2, no delayed ACK, a loss after three duplicate ACKs, the window
        /// halved at once, no tail loss probe, classic slow start, the RTO of RFC 6298, 40 bytes of headers, no
        /// framing. There a queue of n packets holds n-1.
        compat: Compat = Compat::Linux;
        /// The links.
        topology: Topology = Topology::default();
        /// Groups of equal flows that are reported one by one, 16 million at most. Without any, there must be other
        /// traffic.
        flow: Vec<Flow> = Vec::new();
        /// UDP sources, each reported in sum.
        udp: Vec<Udp> = Vec::new();
        /// Short flows and capped long ones, reported in sum. Default none.
        background: Background = Background::default();
        /// Models of TCP traffic, each reported in sum.
        traffic: Vec<Traffic> = Vec::new();
        /// Changes during the run, in order of time. All changes of one instant are made in this order, before any other
        /// event of that instant.
        schedule: Vec<Change> = Vec::new();
        /// Which packets to record. Default none.
        capture: Option<Capture> = None;
    }
}

/// Defaults of sender and receiver, for keys that a flow does not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compat {
    /// Today's Linux.
    Linux,
    /// The papers' ns-2.
    Ns2,
}

words! { Compat { Linux = "linux", Ns2 = "ns2", } }

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SaidAs(&Said::Table(lfn_keys::said(self as &dyn Keys))).serialize(serializer)
    }
}

/// A value as TOML and JSON have it.
struct SaidAs<'a>(&'a Said);

impl Serialize for SaidAs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Said::Nothing => serializer.serialize_unit(),
            Said::Text(text) => serializer.serialize_str(text),
            Said::Integer(value) => serializer.serialize_u64(*value),
            Said::Number(value) => serializer.serialize_f64(*value),
            Said::Boolean(value) => serializer.serialize_bool(*value),
            Said::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| list.serialize_element(&SaidAs(value)))?;
                list.end()
            }
            Said::Table(keys) => {
                let said = keys.iter().filter(|(_, value)| *value != Said::Nothing);
                serializer.collect_map(said.map(|(key, value)| (key, SaidAs(value))))
            }
        }
    }
}
