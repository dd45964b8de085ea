//! From TOML to a [`Scenario`]: every key, its bounds and its default.

use std::collections::BTreeSet;

use lfn_keys::{Span, DELAY_MAX, PACKET_MAX};
use lfn_units::{Bytes, Rate, Time};
use toml::de::DeTable;

use crate::config::{Routes, Sizing, ROUTES_MAX};
use crate::error::ScenarioError;
use crate::model::{Background, Compat, Flow, Scenario, Topology, Transport};
use crate::network::Network;
use crate::predict::Part;
use crate::quantity::{Sample, Text};
use crate::reader::{Choice, Source, Table};
use crate::FindLaw;

pub(crate) mod capture;
pub(crate) mod file;
pub(crate) mod flow;
pub(crate) mod link;
mod path;
pub(crate) mod queue;
pub(crate) mod router;
pub(crate) mod schedule;
pub(crate) mod traffic;
pub(crate) mod udp;

use path::Places;

pub(crate) const SCENARIO: &[&str] = &[
    "schema",
    "name",
    "seed",
    "duration",
    "warmup",
    "sample",
    "compat",
    "link",
    "parking-lot",
    "links",
    "flow",
    "udp",
    "background",
    "traffic",
    "schedule",
    "capture",
];
pub(crate) const BACKGROUND: &[&str] = &["level", "long_flows", "from", "to", "via", "route", "ack_route"];

/// Longest duration: 30 days.
const DURATION_MAX: Time = Time::from_s(30 * 86_400);
const RATE_MIN: Rate = Rate(1_000);
const RATE_MAX: Rate = Rate(10_000_000_000_000);
const PACKET_MIN: Bytes = Bytes(64);

const LOSS: Span = Span::at_least(0.0).below(1.0);
const PROBABILITY: Span = Span::at_least(0.0).at_most(1.0);
const FRACTION: Span = Span::above(0.0).at_most(1.0);

impl Choice for Compat {
    const ALL: &'static [(&'static str, Self)] = &[("linux", Self::Linux), ("ns2", Self::Ns2)];
}

impl Scenario {
    /// Reads a scenario. `file` names the text in errors. A run that is predicted to need more than
    /// `memory_limit_bytes` is refused.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str, file: &str, memory_limit_bytes: Option<u64>) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, file, memory_limit_bytes, &|_, _| None)
    }

    /// The same with laws that the registry does not have.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse_with(
        text: &str,
        file: &str,
        memory_limit_bytes: Option<u64>,
        find_law: &FindLaw,
    ) -> Result<Scenario, ScenarioError> {
        let source = Source { file, text, find_law };
        Scenario::of_tables(source, source.tables()?.get_ref(), memory_limit_bytes)
    }

    pub(crate) fn of_tables(
        source: Source,
        tables: &DeTable,
        memory_limit_bytes: Option<u64>,
    ) -> Result<Scenario, ScenarioError> {
        let root = Table::new(source, String::new(), tables, 0..0, SCENARIO)?;
        let scenario = read_scenario(&root)?;
        if let Some(limit) = memory_limit_bytes {
            check_memory(&scenario, &root, limit)?;
        }
        Ok(scenario)
    }
}

fn read_scenario(root: &Table) -> Result<Scenario, ScenarioError> {
    let schema = root.need("schema", "schema = 1")?.integer(1..=1)? as u32;
    let name = root.get("name").map(|item| item.text("write a text")).transpose()?.map(String::from);
    let seed = root.integer("seed", 0..=i64::MAX as u64, 1)?;
    let duration: Time =
        root.need("duration", "duration = \"60s\"")?.quantity_in(Time::from_us(1)..=DURATION_MAX)?;
    let warmup = root.quantity("warmup")?.unwrap_or(Time::ZERO);
    if warmup >= duration {
        return Err(root.error(
            "warmup",
            format!("{warmup} is not before the end"),
            format!("allowed: less than {duration}"),
        ));
    }
    let sample = match root.quantity("sample")? {
        Some(Sample::Every(step)) if step < Time::from_us(1) || step > duration => {
            let hint = format!("allowed: 1us to {duration}, or \"off\"");
            return Err(root.error("sample", format!("{step} is out of range"), hint));
        }
        Some(sample) => sample,
        None => Sample::Every(Time::from_ms(10).min(duration)),
    };
    let compat = root.choice("compat", Compat::Linux)?;
    let (topology, link_tables) = link::read(root)?;
    let network = Network::new(&topology);
    let places = Places { topology: &topology, network: &network };
    let flow_keys = flow::keys();
    let tables = |key, keys| root.get(key).map_or(Ok(Vec::new()), |item| item.tables(keys));
    let flows = tables("flow", &flow_keys)?;
    let read_flow = |table| flow::read(table, &places, compat, duration);
    let flow = flows.iter().map(read_flow).collect::<Result<Vec<_>, _>>()?;
    check_flows(&flows, &flow)?;
    let udp = udp::read(&tables("udp", udp::UDP)?, &places, duration)?;
    let background = read_background(&root.table("background", BACKGROUND)?, &places)?;
    let traffic = traffic::read(&tables("traffic", traffic::TRAFFIC)?, &places)?;
    if flow.is_empty() && udp.is_empty() && background.is_silent() && traffic.is_empty() {
        return Err(root.error("flow", "missing", "write a [[flow]], or a [background] with a level"));
    }
    let sizing = Sizing::new(&network, &flow, &udp, compat);
    for (link, table) in (0..).zip(&link_tables) {
        queue::check_room(table, &network, link, &sizing)?;
    }
    let schedule = schedule::read(root, &places, &flow, duration)?;
    flow::check_ecn(&flows, &flow, &network, &schedule)?;
    let capture = root.get("capture").map(|item| capture::read(&item, &places, duration)).transpose()?;
    let scenario = Scenario {
        schema,
        name,
        seed,
        duration: Text(duration),
        warmup: Text(warmup),
        sample: Text(sample),
        compat,
        topology,
        flow,
        udp,
        background,
        traffic,
        schedule,
        capture,
    };
    let routes = Routes::of(&scenario).count();
    if routes > ROUTES_MAX {
        let hint = format!("allowed: up to {ROUTES_MAX}");
        return Err(root.error("flow", format!("{routes} different routes"), hint));
    }
    Ok(scenario)
}

fn check_flows(tables: &[Table], flows: &[Flow]) -> Result<(), ScenarioError> {
    let (mut sum, mut over_udt, mut names) = (0, 0, BTreeSet::new());
    for (table, flow) in tables.iter().zip(flows) {
        let streams = u64::from(flow.count) * u64::from(flow.parallel);
        sum += streams;
        over_udt += if flow.transport == Transport::Udt { streams } else { 0 };
        for (flows, most, what) in
            [(sum, flow::FLOWS_MAX, "flows"), (over_udt, flow::FLOWS_MAX / 2, "flows over UDT")]
        {
            if flows > most {
                let hint = format!("allowed: up to {most} in all groups");
                return Err(table.error("count", format!("{flows} {what} up to here"), hint));
            }
        }
        if let Some(name) = flow.name.as_ref().filter(|&name| !names.insert(name)) {
            let found = format!("{:?} found a second time", name.0);
            return Err(table.error("name", found, "give each group its own name"));
        }
    }
    Ok(())
}

fn read_background(table: &Table, places: &Places) -> Result<Background, ScenarioError> {
    let level = table.integer("level", 0..=3, 0)? as u8;
    let long_flows = table.integer("long_flows", 0..=100_000, if level > 0 { 10 } else { 0 })? as u32;
    if level == 0 && long_flows == 0 {
        return Ok(Background::default());
    }
    let (_, path) = places.path(table)?;
    let (ack_route, ack_links) = places.back(table, &path.links)?;
    Ok(Background { level, long_flows, path, ack_route, ack_links })
}

/// Refuses a run that needs more memory than allowed, at the key that asks for the most.
fn check_memory(scenario: &Scenario, root: &Table, limit_bytes: u64) -> Result<(), ScenarioError> {
    let need = scenario.predict();
    if need.memory_bytes <= limit_bytes {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let large = need.parts().into_iter().filter(|&(bytes, _)| bytes > need.memory_bytes / 100);
    let parts: Vec<_> =
        large.map(|(bytes, part)| format!("{} for {}", gigabytes(bytes), part.name())).collect();
    let found =
        format!("the run needs about {} of memory: {}", gigabytes(need.memory_bytes), parts.join(", "));
    let allowed = format!("allowed: {}", gigabytes(limit_bytes));
    let links = match scenario.topology {
        Topology::Dumbbell(_) => "link",
        Topology::ParkingLot(_) => "parking-lot",
        Topology::Graph(_) => "links",
    };
    let (key, advice) = match need.largest_part() {
        Part::Tables if root.get("sample").is_none() => {
            ("flow", "sample less often (\"10ms\" by default) or not at all (\"off\"), or use fewer flows")
        }
        Part::Tables => ("sample", "sample less often or not at all (\"off\"), or use fewer flows"),
        Part::Flows => ("flow", "use fewer flows"),
        Part::Packets => (links, "lower rate, rtt or queue size"),
        Part::Links => (links, "use fewer links"),
        Part::Capture => ("capture", "lower max_rows"),
    };
    Err(root.error(key, found, format!("{allowed}; {advice}")))
}
