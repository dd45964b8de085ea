//! Links, what happens on them, and how they make up a network.

use std::ops::{Deref, DerefMut};

use lfn_keys::{entry, keys, known, names, one_of, said, set, words};
use lfn_keys::{File, Given, Key, Kind, Kinds, Name, Said, Shape, Value, Wrong, DELAY_MAX};
use lfn_path::{AckImpair, AqmConfig, DeliveryTrace, Impair, Policer, RouterConfig, Shaper};
use lfn_sim::traffic::RATE_MAX;
use lfn_units::{Rate, Time};

use crate::quantity::BufferSize;

/// Most links of a network: their numbers are `u16`.
pub(crate) const LINKS_MAX: usize = u16::MAX as usize;
/// Lowest rate of a link.
pub(crate) const RATE_MIN: Rate = Rate(1_000);

one_of! {
    /// The links and what they connect: a dumbbell, a parking lot, or any directed graph.
    pub enum Topology, like "[link] with a rate" {
        /// One bottleneck. Its directions are the links `forward` and `reverse`.
        Dumbbell = "link": Link;
        /// Equal hops in a row between the routers 1, 2, 3, ... Hop k leads from router k to router k+1; its
        /// directions are the links `hopK` and `hopK.reverse`.
        ParkingLot = "parking-lot": ParkingLot;
        /// Any links between any nodes, 65535 directions at most.
        Graph = "links": Vec<NamedLink>;
    }
}

/// How departures from a link are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In closed form at arrival, where that is possible.
    Closed,
    /// By one event for each; the results are the same.
    Event,
}

words! { Mode { Closed = "closed", Event = "event", } }

keys! {
    /// One direction of a link: a queue, a server, then delay and losses. A key that the table `reverse` lacks has
    /// its value in the forward direction.
    pub struct OneWay, part of another table {
        /// How fast packets are serialised.
        rate: Option<Rate> = None, in RATE_MIN..=RATE_MAX;
        /// A file of mahimahi, in place of a rate: on each line a time in ms at which the link can send an IP packet
        /// of 1500 bytes. As in mahimahi a line is an opportunity for 1504 bytes, an IP packet takes 4 more than its
        /// own, and small packets share one. The file repeats. A table of `path` and `hash` names the file and the hash that it must have.
        trace: Option<File> = None;
        /// Propagation delay. Access links at the ends of a flow have the rest of its `rtt`.
        delay: Time = Time::ZERO, in Time::ZERO..=DELAY_MAX;
        /// Loss, duplication, reordering and jitter of data packets behind the queue.
        impair: Impair = Impair::default();
        /// Packets leave the link without ECN, neither capable nor marked, as behind a middlebox or a tunnel that
        /// loses these bits. Default false.
        bleach: Option<bool> = None;
        /// Losses and delays of packets without payload behind the queue; data have the keys beside it. Default nothing.
        acks: Option<AckImpair> = None;
        /// The queue in front of it. Default: drop-tail of 1bdp.
        queue: Queue = Queue::default();
        /// A token bucket ahead of the queue, which drops what exceeds it. Default none.
        policer: Option<Policer> = None;
        /// A token bucket behind the queue, which lets packets wait; below the link's rate. Default none.
        shaper: Option<Shaper> = None;
        /// A router protocol beside any queue, which tells senders about the load. Default none.
        router: Option<Router> = None;
    }
    set {
        /// Contents of the trace's file.
        delivery: Option<DeliveryTrace> = None;
    }
    settle OneWay::check;
}

impl OneWay {
    /// Either a rate or a trace.
    fn check(&mut self, is_said: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
        match (is_said("rate"), is_said("trace")) {
            (true, true) => return Err(Wrong::new("found beside rate", "write one of both").of("trace")),
            (true, false) => self.trace = None,
            (false, true) => self.rate = None,
            (false, false) if self.rate.is_none() && self.trace.is_none() => {
                return Err(Wrong::missing("rate = \"10Gbit/s\"").of("rate"));
            }
            (false, false) => {}
        }
        let tells_apart = matches!(self.queue.discipline, AqmConfig::DualPi2(_));
        if tells_apart && matches!(self.router, Some(Router(Some(_)))) {
            let found = "found beside the queue dualpi2, whose two queues it cannot see";
            return Err(Wrong::new(found, "allowed: with other queues").of("router"));
        }
        Ok(())
    }

    /// Whether it erases ECN.
    pub(crate) fn bleaches(&self) -> bool {
        self.bleach == Some(true)
    }

    /// How fast it is; of a trace, in the mean; with a shaper, as that.
    pub(crate) fn mean_rate(&self) -> Rate {
        if let Some(shaper) = self.shaper {
            return shaper.rate;
        }
        match (self.rate, &self.delivery) {
            (Some(rate), _) => rate,
            (None, Some(trace)) => trace.mean_rate(),
            (None, None) => Rate(0),
        }
    }
}

/// The opposite direction of a link: a table of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reverse(pub OneWay);

impl Deref for Reverse {
    type Target = OneWay;

    fn deref(&self) -> &OneWay {
        &self.0
    }
}

impl DerefMut for Reverse {
    fn deref_mut(&mut self) -> &mut OneWay {
        &mut self.0
    }
}

impl Value for Reverse {
    type Range = ();
    const ANY: () = ();

    /// Reads the keys that are given. The others are those of the other direction, which is read first.
    fn read(given: &Given, (): &()) -> Result<Reverse, Wrong> {
        let mut way = OneWay { rate: Some(RATE_MIN), ..OneWay::default() };
        lfn_keys::read(&mut way, given)?;
        Ok(Reverse(way))
    }

    fn said(&self) -> Said {
        Said::Table(said(&self.0))
    }

    fn kind((): &()) -> Kind {
        OneWay::kind(&())
    }
}

/// A queue and what it does when it fills, with the keys of its discipline as `lfn_path` declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its room.
    pub size: BufferSize,
    /// Its discipline.
    pub discipline: AqmConfig,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { size: ONE_BDP, discipline: AqmConfig::kinds()[0].2 }
    }
}

const ONE_BDP: BufferSize = BufferSize::MicroBdp(1_000_000);
/// The key that all kinds of queue have.
const SIZE: Key = Key {
    name: "size",
    about: "Its room: packets, bytes, or a multiple of the BDP, at least one packet. The BDP is the link's rate times the \
            largest base RTT of the flows that pass (of all flows, if none passes). The rate of a trace is its mean.",
    kind: || BufferSize::kind(&()),
    needed: None,
};

impl Value for Queue {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Queue, Wrong> {
        let entries = given.entries()?;
        let mut discipline = AqmConfig::named(entries)?;
        known(entries, &[&["kind", SIZE.name], &names(discipline.keys())[..]].concat())?;
        let size = entry(entries, SIZE.name).map_or(Ok(ONE_BDP), |size| BufferSize::read(size, &()));
        let size = size.map_err(|wrong| wrong.of(SIZE.name))?;
        set(discipline.keys_mut(), entries)?;
        Ok(Queue { size, discipline })
    }

    fn said(&self) -> Said {
        let mut table = self.discipline.table();
        table.insert(1, (SIZE.name, self.size.said()));
        Said::Table(table)
    }

    fn kind((): &()) -> Kind {
        let shape = |(kind, about, config): (_, _, AqmConfig)| {
            let mut shape = Shape::new("", about, config.keys());
            shape.keys.insert(0, (SIZE, ONE_BDP.said()));
            (kind, shape)
        };
        let about = "A queue and what it does when it fills. Default: drop-tail of 1bdp.";
        Kind::Kinds("Queue", about, AqmConfig::kinds().into_iter().map(shape).collect(), false)
    }
}

/// Router protocol of a link, with its keys as `lfn_path` declares them; `None` is a link without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Router(pub Option<RouterConfig>);

impl Value for Router {
    type Range = ();
    const ANY: () = ();

    fn read(given: &Given, (): &()) -> Result<Router, Wrong> {
        let entries = given.entries()?;
        match entry(entries, "kind") {
            Some(Given::Text("none")) => known(entries, &["kind"]).map(|()| Router(None)),
            Some(kind) => {
                let kinds = RouterConfig::kinds();
                let words: Vec<&str> =
                    ["none"].into_iter().chain(kinds.iter().map(|&(kind, ..)| kind)).collect();
                if !words.iter().any(|word| *kind == Given::Text(word)) {
                    return Err(kind.refused(&words).of("kind"));
                }
                RouterConfig::of(given).map(|router| Router(Some(router)))
            }
            None => RouterConfig::of(given).map(|router| Router(Some(router))),
        }
    }

    fn said(&self) -> Said {
        Said::Table(match &self.0 {
            Some(router) => router.table(),
            None => vec![("kind", Said::Text("none".into()))],
        })
    }

    fn kind((): &()) -> Kind {
        let Kind::Kinds(name, about, mut kinds, needed) = RouterConfig::shapes() else {
            unreachable!("it has kinds")
        };
        kinds
            .insert(0, ("none", Shape { name: "", about: "Nothing.", keys: Vec::new(), one_of: Vec::new() }));
        Kind::Kinds(name, about, kinds, needed)
    }
}

keys! {
    /// The bottleneck of a dumbbell.
    pub struct Link {
        /// Forward.
        forward: OneWay = OneWay::default();
        /// How departures are computed: in closed form where that is possible, or by one event for each packet.
        /// Results are the same; tests compare both.
        mode: Mode = Mode::Closed;
        /// The opposite direction. Default: as forward.
        reverse: Reverse = Reverse::default();
    }
}

keys! {
    /// Equal hops in a row.
    pub struct ParkingLot {
        /// How many.
        hops: u32, in 1..=(LINKS_MAX / 2) as u32, like "hops = 3";
        /// Each of them.
        forward: OneWay = OneWay::default();
        /// How departures are computed, as for a dumbbell.
        mode: Mode = Mode::Closed;
        /// The opposite direction. Default: as forward.
        reverse: Reverse = Reverse::default();
    }
}

keys! {
    /// A link between two nodes.
    pub struct NamedLink {
        /// Its name in routes, schedules and results: letters, digits, `_` and `-`. The opposite direction is
        /// NAME.reverse.
        name: Name, like "name = \"a\"";
        /// The node where it begins. Any name makes a node.
        from: Name, like "from = \"a\"";
        /// The node where it ends.
        to: Name, like "to = \"b\"";
        /// In this direction.
        forward: OneWay = OneWay::default();
        /// How departures are computed, as for a dumbbell.
        mode: Mode = Mode::Closed;
        /// Whether there is an opposite direction.
        duplex: bool = true;
        /// The opposite direction. Default: the same.
        reverse: Option<Reverse> = None;
    }
}
