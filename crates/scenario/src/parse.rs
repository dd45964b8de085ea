//! From TOML to a [`Scenario`]: its keys are read as they are declared; then what depends on several of them is filled
//! in and checked.

use std::collections::BTreeSet;

use lfn_keys::DELAY_MAX;
use lfn_units::Time;
use toml::de::DeTable;

use crate::config::{Routes, Sizing, ROUTES_MAX};
use crate::error::ScenarioError;
use crate::model::{Background, Flow, Scenario, Transport, FLOWS_MAX};
use crate::network::Network;
use crate::predict::{amount, ESTIMATE_FACTOR};
use crate::quantity::Sample;
use crate::reader::{Source, Table};
use crate::{Files, Outside};

mod capture;
mod file;
mod flow;
mod link;
mod path;
mod schedule;
mod traffic;
mod udp;

use path::Places;

impl Scenario {
    /// Reads a scenario. `file` names the text in errors. A run that is predicted to need more than
    /// `memory_limit_bytes` is refused.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str, file: &str, memory_limit_bytes: Option<u64>) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, file, memory_limit_bytes, &Files)
    }

    /// The same with laws that the registry does not have, and files that something else reads.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse_with(
        text: &str,
        file: &str,
        memory_limit_bytes: Option<u64>,
        outside: &dyn Outside,
    ) -> Result<Scenario, ScenarioError> {
        let source = Source { file, text, outside };
        Scenario::of_tables(source, source.tables()?.get_ref(), memory_limit_bytes)
    }

    pub(crate) fn of_tables(
        source: Source,
        tables: &DeTable,
        memory_limit_bytes: Option<u64>,
    ) -> Result<Scenario, ScenarioError> {
        let root = Table::root(source, tables);
        let mut scenario = Scenario::default();
        root.read(&mut scenario)?;
        resolve(&mut scenario, &root)?;
        if let Some(limit) = memory_limit_bytes {
            check_memory(&scenario, &root, limit)?;
        }
        Ok(scenario)
    }
}

/// Fills in the defaults that depend on other keys, and checks what keys say together.
fn resolve(scenario: &mut Scenario, root: &Table) -> Result<(), ScenarioError> {
    resolve_times(scenario, root)?;
    let Scenario { duration, compat, .. } = *scenario;
    let link_tables = link::resolve(&mut scenario.topology, root)?;
    let network = Network::new(&scenario.topology);
    let network_links = network.hops.len();
    let places = Places { topology: &scenario.topology, network: &network };
    let flow_tables = root.tables("flow");
    for (flow, table) in scenario.flow.iter_mut().zip(&flow_tables) {
        flow::resolve(flow, table, &places, compat, duration)?;
    }
    check_flows(&flow_tables, &scenario.flow)?;
    udp::resolve(&mut scenario.udp, &root.tables("udp"), &places, duration)?;
    resolve_background(&mut scenario.background, &root.table("background"), &places)?;
    traffic::resolve(&mut scenario.traffic, &root.tables("traffic"), &places)?;
    let (flow, udp) = (&scenario.flow, &scenario.udp);
    if flow.is_empty() && udp.is_empty() && scenario.background.is_silent() && scenario.traffic.is_empty() {
        return Err(root.error("flow", "missing", "write a [[flow]], or a [background] with a level"));
    }
    let sizing = Sizing::new(&network, flow, udp, compat);
    for (link, table) in network.links().zip(&link_tables) {
        link::check_room(table, &network, link, &sizing)?;
    }
    schedule::resolve(&mut scenario.schedule, &root.tables("schedule"), &places, flow, duration)?;
    flow::check_ecn(&flow_tables, flow, &network, &scenario.schedule)?;
    flow::check_bleach(&flow_tables, flow, &network)?;
    if let Some(capture) = &mut scenario.capture {
        capture::resolve(capture, &root.table("capture"), &places, duration)?;
    }
    let routes = Routes::of(scenario).count();
    if routes > ROUTES_MAX {
        let hint = format!("allowed: up to {ROUTES_MAX}");
        return Err(root.error("flow", format!("{routes} different routes"), hint));
    }
    if root.get("sample").is_none() {
        let chosen = scenario.choose_interval(network_links);
        chosen.map_err(|wrong| root.error("sample_rows", wrong.found, wrong.hint))?;
    }
    Ok(())
}

fn resolve_times(scenario: &mut Scenario, root: &Table) -> Result<(), ScenarioError> {
    let Scenario { duration, warmup, .. } = *scenario;
    if warmup >= duration {
        let found = format!("{warmup} is not before the end");
        return Err(root.error("warmup", found, format!("allowed: less than {duration}")));
    }
    if let (Some(rows), Some(_)) = (scenario.sample_rows, root.get("sample")) {
        let found = format!("{rows} found beside sample");
        return Err(root.error("sample_rows", found, "write one of the two"));
    }
    match scenario.sample {
        Sample::Every(step)
            if root.get("sample").is_some() && !(Time::from_us(1)..=duration).contains(&step) =>
        {
            let hint = format!("allowed: 1us to {duration}, or \"off\"");
            return Err(root.error("sample", format!("{step} is out of range"), hint));
        }
        _ => {}
    }
    Ok(())
}

fn check_flows(tables: &[Table], flows: &[Flow]) -> Result<(), ScenarioError> {
    let (mut sum, mut over_udt, mut names) = (0, 0, BTreeSet::new());
    for (table, flow) in tables.iter().zip(flows) {
        let streams = u64::from(flow.count) * u64::from(flow.parallel);
        sum += streams;
        over_udt += if flow.transport() == Transport::Udt { streams } else { 0 };
        for (flows, most, what) in
            [(sum, u64::from(FLOWS_MAX), "flows"), (over_udt, u64::from(FLOWS_MAX) / 2, "flows over UDT")]
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

fn resolve_background(
    background: &mut Background,
    table: &Table,
    places: &Places,
) -> Result<(), ScenarioError> {
    if background.level > 0 && table.get("long_flows").is_none() {
        background.long_flows = 10;
    }
    if background.is_silent() {
        *background = Background::default();
        return Ok(());
    }
    (_, background.path) = places.path(table)?;
    (background.ack_route, background.ack_links) = places.back(table, &background.path.links)?;
    Ok(())
}

/// Refuses a run of which even a part of the estimate exceeds the allowed memory, at the key that asks for the most. One
/// that exceeds it in spite of its estimate ends while it runs.
fn check_memory(scenario: &Scenario, root: &Table, limit_bytes: u64) -> Result<(), ScenarioError> {
    let need = scenario.predict();
    if need.memory_bytes / ESTIMATE_FACTOR <= limit_bytes {
        return Ok(());
    }
    let part = need.largest_part();
    let found = format!(
        "the run needs about {} of memory, {} for {}",
        amount(need.memory_bytes),
        amount(need.bytes(part)),
        part.name()
    );
    let (key, advice) = scenario.remedy(part);
    Err(root.error(key, found, format!("allowed: {}; {advice}", amount(limit_bytes))))
}
