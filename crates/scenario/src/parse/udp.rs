//! The keys of UDP sources.

use std::collections::BTreeSet;

use lfn_keys::Span;
use lfn_units::{Bytes, Rate, Time};

use super::path::Places;
use super::{DELAY_MAX, PACKET_MAX, PACKET_MIN, RATE_MAX};
use crate::error::ScenarioError;
use crate::model::{Burst, OnOff, Pattern, Steps, Udp};
use crate::quantity::{Name, Text};
use crate::reader::{Item, Table};

pub(crate) const UDP: &[&str] =
    &["name", "direction", "from", "to", "via", "route", "packet", "bursts", "steps", "on_off"];
pub(crate) const BURST: &[&str] = &["start", "stop", "rate"];
pub(crate) const STEPS: &[&str] = &["start", "each", "rates"];
pub(crate) const ON_OFF: &[&str] = &["sources", "rate", "burst", "idle", "shape", "tail_ratio"];

/// All sources. `duration` is the run's.
pub(crate) fn read(tables: &[Table], places: &Places, duration: Time) -> Result<Vec<Udp>, ScenarioError> {
    let mut names = BTreeSet::new();
    let one = |(i, table): (usize, &Table)| {
        let name = table.name("name")?.unwrap_or_else(|| Name(format!("udp{i}")));
        if !names.insert(name.clone()) {
            let found = format!("{:?} found a second time", name.0);
            return Err(table.error("name", found, "give each source its own name"));
        }
        let (direction, path) = places.path(table)?;
        let packet = Text(table.quantity_in("packet", PACKET_MIN..=PACKET_MAX)?.unwrap_or(Bytes(1500)));
        Ok(Udp { name, direction, path, packet, pattern: pattern(table, duration)? })
    };
    tables.iter().enumerate().map(one).collect()
}

fn pattern(table: &Table, duration: Time) -> Result<Pattern, ScenarioError> {
    let said: Vec<_> =
        ["bursts", "steps", "on_off"].into_iter().filter(|key| table.get(key).is_some()).collect();
    match said[..] {
        ["bursts"] => bursts(table, duration),
        ["steps"] => steps(&table.need("steps", "")?),
        ["on_off"] => on_off(&table.need("on_off", "")?),
        [one, other, ..] => {
            Err(table.error(other, format!("found beside {one}"), "write one of bursts, steps, on_off"))
        }
        _ => Err(table.missing("bursts", "bursts = [{start = \"10s\", stop = \"12s\", rate = \"5Gbit/s\"}]")),
    }
}

fn bursts(table: &Table, duration: Time) -> Result<Pattern, ScenarioError> {
    let (mut bursts, mut end) = (Vec::new(), Time::ZERO);
    for table in table.need("bursts", "")?.tables(BURST)? {
        let start = table.quantity("start")?.unwrap_or(end);
        if start < end {
            let hint = format!("allowed: not before the end of the one before it, {end}");
            return Err(table.error("start", start.to_string(), hint));
        }
        let stop = table.quantity("stop")?.unwrap_or(duration);
        if stop <= start {
            let hint = format!("allowed: later than its start, {start}");
            return Err(table.error("stop", stop.to_string(), hint));
        }
        let rate = table.need("rate", "rate = \"5Gbit/s\"")?.quantity_in(Rate(0)..=RATE_MAX)?;
        bursts.push(Burst { start: Text(start), stop: Text(stop), rate: Text(rate) });
        end = stop;
    }
    if bursts.is_empty() {
        return Err(table.error("bursts", "no burst", "write at least one"));
    }
    Ok(Pattern::Bursts(bursts))
}

fn steps(item: &Item) -> Result<Pattern, ScenarioError> {
    let table = item.table(STEPS)?;
    let rates = table.need("rates", "rates = [\"0bit/s\", \"75Mbit/s\"]")?.items()?;
    if rates.is_empty() {
        return Err(table.error("rates", "no rate", "write at least one"));
    }
    let rate = |item: &Item| item.quantity_in(Rate(0)..=RATE_MAX).map(Text);
    Ok(Pattern::Steps(Steps {
        start: Text(table.quantity("start")?.unwrap_or(Time::ZERO)),
        each: Text(table.need("each", "each = \"1s\"")?.quantity_in(Time(1)..=DELAY_MAX)?),
        rates: rates.iter().map(rate).collect::<Result<_, _>>()?,
    }))
}

fn on_off(item: &Item) -> Result<Pattern, ScenarioError> {
    let table = item.table(ON_OFF)?;
    let time = |key| {
        let time = table.quantity_in(key, Time::from_us(1)..=DELAY_MAX)?;
        Ok(Text(time.unwrap_or(Time::from_ms(500))))
    };
    let above_1 = |key, default| table.number(key, default, Span::above(1.0));
    Ok(Pattern::OnOff(OnOff {
        sources: table.need("sources", "sources = 100")?.integer(1..=1_000_000)? as u32,
        rate: Text(table.quantity_in("rate", Rate(1)..=RATE_MAX)?.unwrap_or(Rate(10_000_000))),
        burst: time("burst")?,
        idle: time("idle")?,
        shape: above_1("shape", 1.5)?,
        tail_ratio: above_1("tail_ratio", 1e4)?,
    }))
}
