//! The keys of models of TCP traffic.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use lfn_keys::Span;
use lfn_law::LawSpec;
use lfn_sim::traffic::vectors::Trace;
use lfn_units::{Bytes, Rate, Time};

use super::path::Places;
use super::{file, DELAY_MAX, RATE_MAX};
use crate::error::ScenarioError;
use crate::model::{
    LognormalSize, Model, Packmime, ParetoSize, Requests, ShortFlows, Size, Suite, Surge, Traffic, Vectors,
    Webtraf,
};
use crate::quantity::{Name, Start, Text, Window};
use crate::reader::{Item, Table};

const MODELS: &[&str] = &["short_flows", "requests", "packmime", "webtraf", "surge", "vectors", "suite"];
pub(crate) const TRAFFIC: &[&str] = &[
    "name",
    "law",
    "direction",
    "from",
    "to",
    "via",
    "route",
    "ack_route",
    "rtt",
    "receive_window",
    "short_flows",
    "requests",
    "packmime",
    "webtraf",
    "surge",
    "vectors",
    "suite",
];
pub(crate) const SHORT_FLOWS: &[&str] = &["load", "mean", "shape"];
pub(crate) const REQUESTS: &[&str] =
    &["load", "request", "response", "exchanges", "server_delay", "think", "persistent"];
pub(crate) const PARETO_SIZE: &[&str] = &["mean", "shape"];
pub(crate) const LOGNORMAL_SIZE: &[&str] = &["median", "sigma"];
pub(crate) const PACKMIME: &[&str] = &["connections", "requests"];
pub(crate) const WEBTRAF: &[&str] = &["sessions"];
pub(crate) const SURGE: &[&str] = &["users"];
pub(crate) const VECTORS: &[&str] = &["file", "scale", "shuffle"];
pub(crate) const SUITE: &[&str] = &["load", "reverse_load", "rtts"];

/// RTTs of connections beyond the delays of the links.
const RTTS: [Time; 2] = [Time::from_ms(10), Time::from_ms(200)];
const RECEIVE_WINDOW: Window = Window::Bytes(Bytes(65_536));
const COUNT_MAX: u64 = 1_000_000;
const SIZES: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1_000_000_000_000);
/// Of sizes that are drawn: what is less than a byte is sent as one, which would raise the mean.
const MEAN_SIZES: RangeInclusive<Bytes> = Bytes(100)..=Bytes(1_000_000_000_000);

/// All models.
pub(crate) fn read(tables: &[Table], places: &Places) -> Result<Vec<Traffic>, ScenarioError> {
    let mut names = BTreeSet::new();
    let one = |(i, table): (usize, &Table)| {
        let name = table.name("name")?.unwrap_or_else(|| Name(format!("traffic{i}")));
        if !names.insert(name.clone()) {
            let found = format!("{:?} found a second time", name.0);
            return Err(table.error("name", found, "give each model its own name"));
        }
        let (direction, path) = places.path(table)?;
        let (ack_route, ack_links) = places.back(table, &path.links)?;
        let links = places.network.delay(&path.links).after(places.network.delay(&ack_links));
        let [low, high] = RTTS.map(|rtt| links.after(rtt));
        let rtt = table.quantity("rtt")?.unwrap_or(Start::Uniform(low, high));
        check_rtt(table, rtt, links)?;
        let receive_window = table.quantity("receive_window")?.unwrap_or(RECEIVE_WINDOW);
        if matches!(receive_window, Window::Packets(0) | Window::Bytes(Bytes(0..=1459))) {
            let hint = "allowed: at least 1 packet, 1460B of payload";
            return Err(table.error("receive_window", "found less than a packet", hint));
        }
        Ok(Traffic {
            name,
            law: Text(table.get("law").map_or_else(|| Ok(reno()), |law| law.law())?),
            direction,
            path,
            ack_route,
            ack_links,
            rtt: Text(rtt),
            receive_window: Text(receive_window),
            model: model(table, links)?,
        })
    };
    tables.iter().enumerate().map(one).collect()
}

fn reno() -> LawSpec {
    "reno".parse().expect("the registry has reno")
}

/// Checks that connections can have this RTT; `links` is the delay of the links of both routes.
fn check_rtt(table: &Table, rtt: Start, links: Time) -> Result<(), ScenarioError> {
    let (low, high) = match rtt {
        Start::At(rtt) => (rtt, rtt),
        Start::Uniform(low, high) => (low, high),
    };
    if matches!(rtt, Start::Uniform(..)) && low >= high {
        return Err(table.error("rtt", rtt.to_string(), "allowed: uniform(LOW, HIGH) with LOW below HIGH"));
    }
    let least = links.max(Time::from_ns(1));
    if low < least || high > DELAY_MAX {
        let hint = format!("allowed: from {least}, at least the delays of the links, to {DELAY_MAX}");
        return Err(table.error("rtt", format!("{rtt} is out of range"), hint));
    }
    Ok(())
}

fn model(table: &Table, links: Time) -> Result<Model, ScenarioError> {
    let said: Vec<_> = MODELS.iter().copied().filter(|key| table.get(key).is_some()).collect();
    let key = match said[..] {
        [key] => key,
        [one, other, ..] => {
            let hint = format!("write one of {}", MODELS.join(", "));
            return Err(table.error(other, format!("found beside {one}"), hint));
        }
        [] => return Err(table.missing("short_flows", "short_flows = { load = \"100Mbit/s\" }")),
    };
    let item = table.need(key, "")?;
    Ok(match key {
        "short_flows" => {
            let table = item.table(SHORT_FLOWS)?;
            let ParetoSize { mean, shape } = pareto(&table)?;
            Model::ShortFlows(ShortFlows { load: load(&table, "load")?, mean, shape })
        }
        "requests" => requests(&item.table(REQUESTS)?)?,
        "packmime" => {
            let table = item.table(PACKMIME)?;
            let connections = table.need("connections", "connections = 100")?;
            Model::Packmime(Packmime {
                connections: connections.number(Span::above(0.0).at_most(COUNT_MAX as f64))?,
                requests: table.boolean("requests", true)?,
            })
        }
        "webtraf" => {
            let table = item.table(WEBTRAF)?;
            let sessions = table.need("sessions", "sessions = 400")?.integer(1..=COUNT_MAX)?;
            Model::Webtraf(Webtraf { sessions })
        }
        "surge" => {
            let table = item.table(SURGE)?;
            Model::Surge(Surge { users: table.need("users", "users = 100")?.integer(1..=COUNT_MAX)? })
        }
        "vectors" => vectors(&item)?,
        _ => suite(&item, links)?,
    })
}

fn requests(table: &Table) -> Result<Model, ScenarioError> {
    let request = table.get("request").map(|item| size(&item)).transpose()?;
    let response = table.get("response").map(|item| size(&item)).transpose()?;
    let time = |key, default| -> Result<Text<Time>, ScenarioError> {
        Ok(Text(table.quantity_in(key, Time::ZERO..=DELAY_MAX)?.unwrap_or(default)))
    };
    Ok(Model::Requests(Requests {
        load: load(table, "load")?,
        request: request.unwrap_or(Size::Constant(Text(Bytes(500)))),
        response: response.unwrap_or(Size::Pareto(ParetoSize { mean: Text(Bytes(36_500)), shape: 1.2 })),
        exchanges: table.number("exchanges", 1.0, Span::at_least(1.0).at_most(COUNT_MAX as f64))?,
        server_delay: time("server_delay", Time::ZERO)?,
        think: time("think", Time::from_s(1))?,
        persistent: table.boolean("persistent", true)?,
    }))
}

fn size(item: &Item) -> Result<Size, ScenarioError> {
    if !item.is_table() {
        return item.quantity_in(SIZES).map(|size| Size::Constant(Text(size)));
    }
    if item.entry("median").is_none() {
        let table = item.table(PARETO_SIZE)?;
        table.need("mean", "mean = \"36.5kB\"")?;
        return pareto(&table).map(Size::Pareto);
    }
    let table = item.table(LOGNORMAL_SIZE)?;
    let sigma = table.need("sigma", "sigma = 1.3")?;
    Ok(Size::Lognormal(LognormalSize {
        median: Text(table.need("median", "")?.quantity_in(MEAN_SIZES)?),
        sigma: sigma.number(Span::above(0.0).at_most(4.0))?,
    }))
}

/// The keys of a Pareto distribution of sizes, by default that of short flows.
fn pareto(table: &Table) -> Result<ParetoSize, ScenarioError> {
    let mean = table.quantity_in("mean", MEAN_SIZES)?;
    Ok(ParetoSize {
        mean: Text(mean.unwrap_or(Bytes(36_500))),
        shape: table.number("shape", 1.2, Span::above(1.0))?,
    })
}

fn load(table: &Table, key: &str) -> Result<Text<Rate>, ScenarioError> {
    table.need(key, &format!("{key} = \"100Mbit/s\""))?.quantity_in(Rate(1)..=RATE_MAX).map(Text)
}

fn vectors(item: &Item) -> Result<Model, ScenarioError> {
    let table = item.table(VECTORS)?;
    let parse = |text: &str| {
        let trace = text.parse::<Trace>().map_err(|error| format!("line {error}"));
        trace.map(Arc::new)
    };
    let shuffle = table.quantity_in("shuffle", Time::from_us(1)..=DELAY_MAX)?;
    Ok(Model::Vectors(Vectors {
        file: file::read(&table.need("file", "file = \"connections.txt\"")?, parse)?,
        scale: table.number("scale", 1.0, Span::above(0.0))?,
        shuffle: shuffle.map(Text),
    }))
}

fn suite(item: &Item, links: Time) -> Result<Model, ScenarioError> {
    let table = item.table(SUITE)?;
    let rtts = table.need("rtts", "rtts = [\"4ms\", \"74ms\"]")?.items()?;
    if rtts.is_empty() {
        return Err(table.error("rtts", "no RTT", "write at least one"));
    }
    let rtt = |item: &Item| item.quantity_in(links.max(Time::from_ns(1))..=DELAY_MAX).map(Text);
    Ok(Model::Suite(Suite {
        load: load(&table, "load")?,
        reverse_load: load(&table, "reverse_load")?,
        rtts: rtts.iter().map(rtt).collect::<Result<_, _>>()?,
    }))
}
