//! The keys of links and topologies.

use std::collections::BTreeSet;

use lfn_path::{DeliveryTrace, TraceError};
use lfn_units::Time;

use super::{file, queue, router, FRACTION, LOSS, PROBABILITY};
use super::{DELAY_MAX, RATE_MAX, RATE_MIN};
use crate::error::ScenarioError;
use crate::model::{
    BurstLoss, GilbertElliott, Jitter, Link, Loss, Mode, NamedLink, NormalJitter, OneWay, ParkingLot,
    Reorder, Topology, UniformJitter,
};
use crate::network::LINKS_MAX;
use crate::quantity::Text;
use crate::reader::{Choice, Item, Table};

pub(crate) const ONE_WAY: &[&str] =
    &["rate", "trace", "delay", "loss", "duplicate", "reorder", "jitter", "queue", "router"];
pub(crate) const LINK: &[&str] = &[
    "rate",
    "trace",
    "delay",
    "mode",
    "loss",
    "duplicate",
    "reorder",
    "jitter",
    "queue",
    "router",
    "reverse",
];
pub(crate) const PARKING_LOT: &[&str] = &[
    "hops",
    "rate",
    "trace",
    "delay",
    "mode",
    "loss",
    "duplicate",
    "reorder",
    "jitter",
    "queue",
    "router",
    "reverse",
];
pub(crate) const NAMED_LINK: &[&str] = &[
    "name",
    "from",
    "to",
    "rate",
    "trace",
    "delay",
    "mode",
    "loss",
    "duplicate",
    "reorder",
    "jitter",
    "queue",
    "router",
    "duplex",
    "reverse",
];
pub(crate) const GILBERT_ELLIOTT: &[&str] = &["kind", "p", "r", "good", "bad"];
pub(crate) const REORDER: &[&str] = &["p", "delay"];
pub(crate) const UNIFORM_JITTER: &[&str] = &["kind", "low", "high", "keep_order"];
pub(crate) const NORMAL_JITTER: &[&str] = &["kind", "mean", "deviation", "keep_order"];

impl Choice for Mode {
    const ALL: &'static [(&'static str, Self)] = &[("closed", Self::Closed), ("event", Self::Event)];
}

#[derive(Clone, Copy)]
struct InBursts;

impl Choice for InBursts {
    const ALL: &'static [(&'static str, Self)] = &[("gilbert-elliott", InBursts)];
}

#[derive(Clone, Copy)]
enum JitterKind {
    Uniform,
    Normal,
}

impl Choice for JitterKind {
    const ALL: &'static [(&'static str, Self)] = &[("uniform", Self::Uniform), ("normal", Self::Normal)];
}

/// The topology, and the table of each directed link.
pub(crate) fn read<'a>(root: &Table<'a>) -> Result<(Topology, Vec<Table<'a>>), ScenarioError> {
    let said: Vec<_> =
        ["link", "parking-lot", "links"].into_iter().filter(|key| root.get(key).is_some()).collect();
    if let [one, other, ..] = said[..] {
        return Err(root.error(
            other,
            format!("found beside {one}"),
            "write one of link, parking-lot, links",
        ));
    }
    if let Some(item) = root.get("parking-lot") {
        let table = item.table(PARKING_LOT)?;
        let hops = table.need("hops", "hops = 3")?.integer(1..=(LINKS_MAX / 2) as u64)? as u32;
        let forward = one_way(&table, None)?;
        let (reverse, reverse_table) = reverse(&table, &forward)?;
        let lot = ParkingLot { hops, forward, mode: table.choice("mode", Mode::Closed)?, reverse };
        let tables = (0..hops).flat_map(|_| [table.clone(), reverse_table.clone()]).collect();
        return Ok((Topology::ParkingLot(lot), tables));
    }
    if let Some(item) = root.get("links") {
        return graph(root, &item);
    }
    let table = root.need("link", "[link] with a rate")?.table(LINK)?;
    let forward = one_way(&table, None)?;
    let (reverse, reverse_table) = reverse(&table, &forward)?;
    let link = Link { forward, mode: table.choice("mode", Mode::Closed)?, reverse };
    Ok((Topology::Dumbbell(link), vec![table, reverse_table]))
}

fn graph<'a>(root: &Table, item: &Item<'a>) -> Result<(Topology, Vec<Table<'a>>), ScenarioError> {
    let (mut links, mut tables) = (Vec::new(), Vec::new());
    let mut names = BTreeSet::new();
    for table in item.tables(NAMED_LINK)? {
        let name = table.need("name", "name = \"a\"")?.name()?;
        if !names.insert(name.clone()) {
            let found = format!("{:?} found a second time", name.0);
            return Err(table.error("name", found, "give each link its own name"));
        }
        let from = table.need("from", "from = \"a\"")?.name()?;
        let to = table.need("to", "to = \"b\"")?.name()?;
        if from == to {
            return Err(table.error("to", format!("{:?} is where it begins", to.0), "name another node"));
        }
        let forward = one_way(&table, None)?;
        let mode = table.choice("mode", Mode::Closed)?;
        let duplex = table.boolean("duplex", true)?;
        let opposite = if duplex {
            Some(reverse(&table, &forward)?)
        } else if table.get("reverse").is_some() {
            return Err(table.error("reverse", "found beside duplex = false", "write one of both"));
        } else {
            None
        };
        let (reverse, reverse_table) = opposite.unzip();
        links.push(NamedLink { name, from, to, forward, mode, duplex, reverse });
        tables.push(table);
        tables.extend(reverse_table);
    }
    if links.is_empty() {
        return Err(root.error("links", "no link", "write [[links]] with name, from, to and rate"));
    }
    if tables.len() > LINKS_MAX {
        let found = format!("{} links, both directions counted", tables.len());
        return Err(root.error("links", found, format!("allowed: up to {LINKS_MAX}")));
    }
    Ok((Topology::Graph(links), tables))
}

fn reverse<'a>(table: &Table<'a>, forward: &OneWay) -> Result<(OneWay, Table<'a>), ScenarioError> {
    let opposite = table.table("reverse", ONE_WAY)?;
    Ok((one_way(&opposite, Some(forward))?, opposite))
}

/// One direction, like `default` where it does not say otherwise.
fn one_way(table: &Table, default: Option<&OneWay>) -> Result<OneWay, ScenarioError> {
    let rate = table.quantity_in("rate", RATE_MIN..=RATE_MAX)?.map(Text);
    let trace = table.get("trace").map(|item| file::read(&item, parse_trace)).transpose()?;
    let (rate, trace) = match (rate, trace, default) {
        (Some(_), Some(_), _) => return Err(table.error("trace", "found beside rate", "write one of both")),
        (None, None, Some(default)) => (default.rate, default.trace.clone()),
        (None, None, None) => return Err(table.missing("rate", "rate = \"10Gbit/s\"")),
        (rate, trace, _) => (rate, trace),
    };
    let (delay, loss, duplicate, reorder, jitter) = match default {
        Some(link) => (link.delay.0, link.loss, link.duplicate, link.reorder, link.jitter),
        None => (Time::ZERO, Loss::Bernoulli(0.0), 0.0, None, None),
    };
    Ok(OneWay {
        rate,
        trace,
        delay: Text(table.quantity_in("delay", Time::ZERO..=DELAY_MAX)?.unwrap_or(delay)),
        loss: read_loss(table, loss)?,
        duplicate: table.number("duplicate", duplicate, LOSS)?,
        reorder: table.get("reorder").map(|item| read_reorder(&item)).transpose()?.or(reorder),
        jitter: table.get("jitter").map(|item| read_jitter(&item)).transpose()?.or(jitter),
        queue: queue::read(table, default.map(|link| &link.queue))?,
        router: router::read(table, default.and_then(|link| link.router))?,
    })
}

fn parse_trace(text: &str) -> Result<DeliveryTrace, String> {
    text.parse().map_err(|error: TraceError| match error {
        TraceError::Empty => {
            "no line; write one for each opportunity to send 1500 bytes, its time in ms".into()
        }
        error => format!("{error}; allowed: whole milliseconds in order of time, the last above 0"),
    })
}

fn read_loss(table: &Table, default: Loss) -> Result<Loss, ScenarioError> {
    let Some(item) = table.get("loss") else { return Ok(default) };
    if !item.is_table() {
        return item.number(LOSS).map(Loss::Bernoulli);
    }
    let table = item.table(GILBERT_ELLIOTT)?;
    table.need("kind", "kind = \"gilbert-elliott\"")?.choice::<InBursts>()?;
    let probability = |key, default| table.number(key, default, PROBABILITY);
    Ok(Loss::Bursts(BurstLoss::GilbertElliott(GilbertElliott {
        p: table.need("p", "p = 0.0001")?.number(PROBABILITY)?,
        r: table.need("r", "r = 0.1")?.number(FRACTION)?,
        good: probability("good", 0.0)?,
        bad: probability("bad", 1.0)?,
    })))
}

fn read_reorder(item: &Item) -> Result<Reorder, ScenarioError> {
    let table = item.table(REORDER)?;
    Ok(Reorder {
        p: table.need("p", "p = 0.01")?.number(PROBABILITY)?,
        delay: Text(table.need("delay", "delay = \"1ms\"")?.quantity_in(Time::ZERO..=DELAY_MAX)?),
    })
}

fn read_jitter(item: &Item) -> Result<Jitter, ScenarioError> {
    let kind = item.entry("kind").map_or(Ok(JitterKind::Uniform), |kind| kind.choice())?;
    let table = item.table(match kind {
        JitterKind::Uniform => UNIFORM_JITTER,
        JitterKind::Normal => NORMAL_JITTER,
    })?;
    let time = |key, example| table.need(key, example)?.quantity_in(Time::ZERO..=DELAY_MAX);
    let keep_order = table.boolean("keep_order", true)?;
    Ok(match kind {
        JitterKind::Uniform => {
            let low = table.quantity_in("low", Time::ZERO..=DELAY_MAX)?.unwrap_or(Time::ZERO);
            let high = time("high", "high = \"1ms\"")?;
            if low > high {
                return Err(table.error("high", high.to_string(), format!("allowed: at least low, {low}")));
            }
            Jitter::Uniform(UniformJitter { low: Text(low), high: Text(high), keep_order })
        }
        JitterKind::Normal => {
            let mean = time("mean", "mean = \"1ms\"")?;
            let deviation = time("deviation", "deviation = \"0.2ms\"")?;
            if deviation > mean {
                let hint = format!("allowed: at most the mean, {mean}");
                return Err(table.error("deviation", deviation.to_string(), hint));
            }
            Jitter::Normal(NormalJitter { mean: Text(mean), deviation: Text(deviation), keep_order })
        }
    })
}
