//! The keys of schedules, and the files that they name.

use std::fmt::Display;
use std::str::FromStr;

use lfn_units::{Rate, Time};

use super::path::Places;
use super::{file, DELAY_MAX, LOSS, RATE_MAX, RATE_MIN};
use crate::error::{quote, ScenarioError};
use crate::model::{Change, FileChange, Flow, FlowId, LinkChange, RouteChange, Series};
use crate::quantity::Text;
use crate::reader::Table;

pub(crate) const LINK_CHANGE: &[&str] = &["at", "link", "rate", "delay", "loss", "down"];
pub(crate) const FILE_CHANGE: &[&str] = &["link", "file"];
pub(crate) const ROUTE_CHANGE: &[&str] = &["at", "flow", "route", "ack_route"];

const RATES: &str = "0bit/s, or 1kbit/s to 10Tbit/s";

fn is_rate(rate: Rate) -> bool {
    rate == Rate(0) || (RATE_MIN..=RATE_MAX).contains(&rate)
}

/// All entries. `duration` is the run's.
pub(crate) fn read(
    root: &Table,
    places: &Places,
    flows: &[Flow],
    duration: Time,
) -> Result<Vec<Change>, ScenarioError> {
    let mut last = Time::ZERO;
    let mut changes = Vec::new();
    let Some(entries) = root.get("schedule") else { return Ok(changes) };
    for entry in entries.elements()? {
        if entry.entry("file").is_some() {
            changes.push(Change::File(file_change(&entry.table(FILE_CHANGE)?, places)?));
            continue;
        }
        let is_route = entry.entry("flow").is_some();
        let table = entry.table(if is_route { ROUTE_CHANGE } else { LINK_CHANGE })?;
        let at = table.need("at", "at = \"30s\"")?.quantity()?;
        if at < last {
            let hint = "write the entries in order of time";
            return Err(table.error("at", format!("{at} is before {last}, the entry before it"), hint));
        }
        if at >= duration {
            let hint = format!("allowed: before the end of the run, {duration}");
            return Err(table.error("at", format!("{at} is too late"), hint));
        }
        last = at;
        changes.push(if is_route {
            Change::Route(route_change(&table, at, places, flows)?)
        } else {
            Change::Link(link_change(&table, at, places)?)
        });
    }
    Ok(changes)
}

fn link_change(table: &Table, at: Time, places: &Places) -> Result<LinkChange, ScenarioError> {
    let item = table.need("link", "link = \"forward\"")?;
    let number = places.link(&item)?;
    let rate: Option<Rate> = table.quantity("rate")?;
    if let Some(rate) = rate.filter(|&rate| !is_rate(rate)) {
        return Err(table.error("rate", format!("{rate} is out of range"), format!("allowed: {RATES}")));
    }
    let delay = table.quantity_in("delay", Time::ZERO..=DELAY_MAX)?;
    let loss = table.get("loss").map(|item| item.number(LOSS)).transpose()?;
    let down = table.get("down").map(|item| item.boolean()).transpose()?;
    if rate.is_some() && down.is_some() {
        return Err(table.error("down", "found beside rate", "write one of both"));
    }
    let changes_rate = if rate.is_some() { Some("rate") } else { down.map(|_| "down") };
    if let Some(key) = changes_rate {
        no_trace(table, key, number, places)?;
    }
    if rate.is_none() && delay.is_none() && loss.is_none() && down.is_none() {
        return Err(table.missing("rate", "rate = \"250Mbit/s\", or a delay, loss or down"));
    }
    let link = places.network.hop(number).name.clone();
    Ok(LinkChange { at: Text(at), link, rate: rate.map(Text), delay: delay.map(Text), loss, down, number })
}

fn no_trace(table: &Table, key: &str, link: u16, places: &Places) -> Result<(), ScenarioError> {
    let hop = places.network.hop(link);
    if hop.way.trace.is_none() {
        return Ok(());
    }
    Err(table.error(key, format!("{} follows a trace", hop.name), "give the link a rate to change it"))
}

fn file_change(table: &Table, places: &Places) -> Result<FileChange, ScenarioError> {
    let number = places.link(&table.need("link", "link = \"forward\"")?)?;
    let file = file::read(&table.need("file", "file = \"rates.csv\"")?, series)?;
    if matches!(file.content, Series::Rate(_)) {
        no_trace(table, "file", number, places)?;
    }
    Ok(FileChange { link: places.network.hop(number).name.clone(), file, number })
}

fn route_change(
    table: &Table,
    at: Time,
    places: &Places,
    flows: &[Flow],
) -> Result<RouteChange, ScenarioError> {
    let item = table.need("flow", "flow = 0")?;
    let names = || flows.iter().filter_map(|flow| flow.name.as_ref()).map(|name| &*name.0);
    let (flow, group) = if item.is_text() {
        let name = item.name()?;
        let index =
            |name: &str| flows.iter().position(|flow| flow.name.as_ref().is_some_and(|own| own.0 == name));
        if names().next().is_none() {
            return Err(
                item.error(format!("no flow {:?}", name.0), "no [[flow]] has a name; write its index")
            );
        }
        let group = item.one_of("flow", &name.0, index, names())?;
        (FlowId::Name(name), group)
    } else {
        if flows.is_empty() {
            return Err(item.error("no flow", "write a [[flow]]"));
        }
        let group = item.integer(0..=flows.len() as u64 - 1)?;
        (FlowId::Index(group as u32), group as usize)
    };
    let flow_config = &flows[group];
    let (route, links) = places.route(table, "route")?;
    let links = if links.is_empty() { flow_config.path.links.clone() } else { links };
    let wanted = places.network.ends(&flow_config.path.links);
    places.check_ends(table, "route", &links, wanted)?;
    if route.is_empty() && table.get("ack_route").is_none() {
        return Err(table.missing("route", "route = [\"a\", \"b\"], or an ack_route"));
    }
    let (ack_route, ack_links) = places.back(table, &links)?;
    Ok(RouteChange { at: Text(at), flow, route, ack_route, group, links: [links, ack_links] })
}

/// What a file says: a line that names the columns, and a line for each change.
fn series(text: &str) -> Result<Series, String> {
    const HEADS: &str = "write time,rate or time,delay or time,loss";
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((number, head)) = lines.next() else {
        return Err(format!("no line; {HEADS}, and a line for each change"));
    };
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    let in_range = |ok: bool, text: &str, allowed: &str| {
        if ok {
            Ok(())
        } else {
            Err(format!("{} is out of range; allowed: {allowed}", quote(text)))
        }
    };
    match columns[..] {
        ["time", "rate"] => rows(lines, |text| {
            let rate = value(text)?;
            in_range(is_rate(rate), text, RATES).map(|()| rate)
        })
        .map(Series::Rate),
        ["time", "delay"] => rows(lines, |text| {
            let delay = value(text)?;
            in_range(delay <= DELAY_MAX, text, "up to 1000s").map(|()| delay)
        })
        .map(Series::Delay),
        ["time", "loss"] => rows(lines, |text| {
            let loss =
                text.parse().map_err(|_| format!("{} is no number; write for example 0.001", quote(text)))?;
            in_range(LOSS.contains(loss), text, &format!("a number {LOSS}")).map(|()| loss)
        })
        .map(Series::Loss),
        _ => Err(format!("line {number}: {}; {HEADS}", quote(head))),
    }
}

fn value<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn rows<'a, T>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<(Time, T)>, String> {
    let mut rows: Vec<(Time, T)> = Vec::new();
    for (number, line) in lines {
        let row = || {
            let (time, value_text) = line
                .split_once(',')
                .ok_or_else(|| format!("{}; write a time, a comma, a value", quote(line)))?;
            let time = value(time.trim())?;
            match rows.last() {
                Some(&(before, _)) if time < before => {
                    Err(format!("time goes back from {before} to {time}; write the lines in order of time"))
                }
                _ => Ok((time, parse(value_text.trim())?)),
            }
        };
        rows.push(row().map_err(|error: String| format!("line {number}: {error}"))?);
    }
    if rows.is_empty() {
        return Err("no change; write a line for each: a time, a comma, a value".into());
    }
    Ok(rows)
}
