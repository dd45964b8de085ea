//! Schedules, and the files that they name.

use std::fmt::Display;
use std::str::FromStr;

use lfn_path::LOSS;
use lfn_sim::config::LinkId;
use lfn_sim::traffic::RATE_MAX;
use lfn_units::{Rate, Time};

use super::path::Places;
use super::{file, DELAY_MAX};
use crate::error::{quote, ScenarioError};
use crate::model::{Change, FileChange, Flow, FlowId, LinkChange, RouteChange, Series, RATE_MIN};
use crate::reader::Table;

const RATES: &str = "0bit/s, or 1kbit/s to 10Tbit/s";

fn is_rate(rate: Rate) -> bool {
    rate == Rate(0) || (RATE_MIN..=RATE_MAX).contains(&rate)
}

/// All entries. `duration` is the run's.
pub(crate) fn resolve(
    changes: &mut [Change],
    tables: &[Table],
    places: &Places,
    flows: &[Flow],
    duration: Time,
) -> Result<(), ScenarioError> {
    let mut last = Time::ZERO;
    for (change, table) in changes.iter_mut().zip(tables) {
        let at = match change {
            Change::File(change) => {
                resolve_file(change, table, places)?;
                continue;
            }
            Change::Link(change) => change.at,
            Change::Route(change) => change.at,
        };
        if at < last {
            let hint = "write the entries in order of time";
            return Err(table.error("at", format!("{at} is before {last}, the entry before it"), hint));
        }
        if at >= duration {
            let hint = format!("allowed: before the end of the run, {duration}");
            return Err(table.error("at", format!("{at} is too late"), hint));
        }
        last = at;
        match change {
            Change::Link(change) => resolve_link(change, table, places)?,
            Change::Route(change) => resolve_route(change, table, places, flows)?,
            Change::File(_) => {}
        }
    }
    Ok(())
}

/// The number of the link that a change names.
fn link(table: &Table, places: &Places) -> Result<LinkId, ScenarioError> {
    table.get("link").map_or(Ok(LinkId(0)), |item| places.link(&item))
}

fn resolve_link(change: &mut LinkChange, table: &Table, places: &Places) -> Result<(), ScenarioError> {
    change.number = link(table, places)?;
    let LinkChange { rate, delay, loss, down, number, .. } = *change;
    if let Some(rate) = rate.filter(|&rate| !is_rate(rate)) {
        return Err(table.error("rate", format!("{rate} is out of range"), format!("allowed: {RATES}")));
    }
    if rate.is_some() && down.is_some() {
        return Err(table.error("down", "found beside rate", "write one of both"));
    }
    let changes_rate = if rate.is_some() { Some("rate") } else { down.map(|_| "down") };
    if let Some(key) = changes_rate {
        has_rate(table, key, number, places)?;
    }
    if rate.is_none() && delay.is_none() && loss.is_none() && down.is_none() {
        return Err(table.missing("rate", "rate = \"250Mbit/s\", or a delay, loss or down"));
    }
    Ok(())
}

fn has_rate(table: &Table, key: &str, link: LinkId, places: &Places) -> Result<(), ScenarioError> {
    let hop = places.network.hop(link);
    let (found, hint) = match (&hop.way.trace, hop.way.shaper) {
        (None, None) => return Ok(()),
        (Some(_), _) => ("follows a trace", "give the link a rate to change it"),
        (None, Some(_)) => ("has a shaper", "allowed: for a link without one"),
    };
    Err(table.error(key, format!("{} {found}", hop.name), hint))
}

fn resolve_file(change: &mut FileChange, table: &Table, places: &Places) -> Result<(), ScenarioError> {
    change.number = link(table, places)?;
    if let Some(item) = table.get("file") {
        change.series = file::read(&mut change.file, &item, series)?;
    }
    if matches!(change.series, Series::Rate(_)) {
        has_rate(table, "file", change.number, places)?;
    }
    Ok(())
}

fn resolve_route(
    change: &mut RouteChange,
    table: &Table,
    places: &Places,
    flows: &[Flow],
) -> Result<(), ScenarioError> {
    let item = table.get("flow").ok_or_else(|| table.missing("flow", "flow = 0"))?;
    let names = || flows.iter().filter_map(|flow| flow.name.as_ref()).map(|name| &*name.0);
    match &mut change.flow {
        FlowId::Name(name) => {
            let index = |name: &str| {
                flows.iter().position(|flow| flow.name.as_ref().is_some_and(|own| own.0 == name))
            };
            if names().next().is_none() {
                let hint = "no [[flow]] has a name; write its index";
                return Err(item.error(format!("no flow {:?}", name.0), hint));
            }
            change.group = item.one_of("flow", &name.0, index, names())?;
        }
        FlowId::Index(index) => {
            if flows.is_empty() {
                return Err(item.error("no flow", "write a [[flow]]"));
            }
            *index = item.value(&(0..=flows.len() as u32 - 1))?;
            change.group = *index as usize;
        }
    }
    let flow = &flows[change.group];
    let (route, links) = places.route(table, "route")?;
    let links = if links.is_empty() { flow.path.links.clone() } else { links };
    let wanted = places.network.ends(&flow.path.links);
    places.check_ends(table, "route", &links, wanted)?;
    if route.is_empty() && table.get("ack_route").is_none() {
        return Err(table.missing("route", "route = [\"a\", \"b\"], or an ack_route"));
    }
    let (ack_route, ack_links) = places.back(table, &links)?;
    (change.route, change.ack_route, change.links) = (route, ack_route, [links, ack_links]);
    Ok(())
}

/// Reads a file of changes: a line with the columns' names, and a line for each change.
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
