//! Topologies: what a direction says, and what it takes from the other.

use std::collections::BTreeSet;

use lfn_path::{DeliveryTrace, TraceError};
use lfn_sim::config::LinkId;

use super::{file, DELAY_MAX};
use crate::config::Sizing;
use crate::error::ScenarioError;
use crate::model::{NamedLink, OneWay, Reverse, Topology, LINKS_MAX};
use crate::network::Network;
use crate::quantity::BufferSize;
use crate::reader::Table;

/// Completes the topology; the table of each directed link.
pub(crate) fn resolve<'a>(
    topology: &mut Topology,
    root: &Table<'a>,
) -> Result<Vec<Table<'a>>, ScenarioError> {
    let table = root.table(topology.key());
    match topology {
        Topology::Dumbbell(link) => {
            load(&mut link.forward, &table)?;
            let opposite = reverse(&mut link.reverse, &link.forward, &table)?;
            Ok(vec![table, opposite])
        }
        Topology::ParkingLot(lot) => {
            load(&mut lot.forward, &table)?;
            let opposite = reverse(&mut lot.reverse, &lot.forward, &table)?;
            Ok((0..lot.hops).flat_map(|_| [table.clone(), opposite.clone()]).collect())
        }
        Topology::Graph(links) => graph(links, root),
    }
}

fn graph<'a>(links: &mut [NamedLink], root: &Table<'a>) -> Result<Vec<Table<'a>>, ScenarioError> {
    let mut tables = Vec::new();
    let mut names = BTreeSet::new();
    for (link, table) in links.iter_mut().zip(root.tables("links")) {
        if !names.insert(link.name.clone()) {
            let found = format!("{:?} found a second time", link.name.0);
            return Err(table.error("name", found, "give each link its own name"));
        }
        if link.from == link.to {
            return Err(table.error(
                "to",
                format!("{:?} is where it begins", link.to.0),
                "name another node",
            ));
        }
        load(&mut link.forward, &table)?;
        let opposite = if link.duplex {
            Some(reverse(link.reverse.get_or_insert_default(), &link.forward, &table)?)
        } else if link.reverse.is_some() {
            return Err(table.error("reverse", "found beside duplex = false", "write one of both"));
        } else {
            None
        };
        tables.push(table);
        tables.extend(opposite);
    }
    if links.is_empty() {
        return Err(root.error("links", "no link", "write [[links]] with name, from, to and rate"));
    }
    if tables.len() > LINKS_MAX {
        let found = format!("{} links, both directions counted", tables.len());
        return Err(root.error("links", found, format!("allowed: up to {LINKS_MAX}")));
    }
    Ok(tables)
}

/// The opposite direction, like `forward` where its table does not say otherwise.
fn reverse<'a>(
    reverse: &mut Reverse,
    forward: &OneWay,
    table: &Table<'a>,
) -> Result<Table<'a>, ScenarioError> {
    let opposite = table.table("reverse");
    *reverse = Reverse(forward.clone());
    opposite.set(&mut reverse.0)?;
    load(reverse, &opposite)?;
    Ok(opposite)
}

/// Reads the trace that a direction's table names.
fn load(way: &mut OneWay, table: &Table) -> Result<(), ScenarioError> {
    if way.trace.is_none() {
        way.delivery = None;
    }
    if let (Some(trace), Some(item)) = (&mut way.trace, table.get("trace")) {
        way.delivery = Some(file::read(trace, &item, parse_trace)?);
    }
    Ok(())
}

fn parse_trace(text: &str) -> Result<DeliveryTrace, String> {
    text.parse().map_err(|error: TraceError| match error {
        TraceError::Empty => {
            "no line; write one for each opportunity to send a packet, its time in ms".into()
        }
        error => format!("{error}; allowed: whole milliseconds in order of time, the last above 0"),
    })
}

/// Checks that a packet of this size passes the token buckets of a link, and that a shaper is what slows it down.
fn check_buckets(table: &Table, way: &OneWay, wire_bytes: u32) -> Result<(), ScenarioError> {
    let error = |bucket: &str, key: &str, found: String, hint: String| match table.get(bucket) {
        Some(item) => item.table().error(key, found, hint),
        None => table.error(bucket, found, hint),
    };
    let bursts = [("policer", way.policer.map(|it| it.burst)), ("shaper", way.shaper.map(|it| it.burst))];
    for (bucket, burst) in bursts {
        if let Some(burst) = burst.filter(|burst| burst.0 < wire_bytes.into()) {
            let hint = format!("allowed: at least one packet, {wire_bytes}B on the wire");
            return Err(error(bucket, "burst", format!("{burst} is below one packet"), hint));
        }
    }
    match (way.shaper, way.rate) {
        (Some(_), None) => {
            Err(error("shaper", "rate", "found beside a trace".into(), "give the link a rate".into()))
        }
        (Some(shaper), Some(rate)) if shaper.rate >= rate => {
            let found = format!("{} is not below the link's rate", shaper.rate);
            Err(error("shaper", "rate", found, format!("allowed: below {rate}")))
        }
        _ => Ok(()),
    }
}

/// Checks that the queue of a link, in this table, has room for a packet and drains in time.
pub(crate) fn check_room(
    table: &Table,
    network: &Network,
    link: LinkId,
    sizing: &Sizing,
) -> Result<(), ScenarioError> {
    let way = network.hop(link).way;
    check_buckets(table, way, sizing.wire_bytes)?;
    let (size, rate) = (way.queue.size, way.mean_rate());
    let (packets, bytes) = sizing.limits(link, size, rate);
    let (found, hint) = if sizing.rtt(link).is_none() && matches!(size, BufferSize::MicroBdp(_)) {
        let hint = "write packets or bytes, for example \"250 packets\"".into();
        (format!("{size} needs the RTT of a [[flow]]"), hint)
    } else if packets == 0 || bytes < sizing.wire_bytes.into() {
        let hint = format!("allowed: at least one packet, {}B on the wire", sizing.wire_bytes);
        (format!("{size} is below one packet"), hint)
    } else {
        let drains_s = sizing.room_bytes(link, size, rate) * 8.0 / rate.as_bps();
        if drains_s <= DELAY_MAX.as_s() {
            return Ok(());
        }
        let found = format!("{size} takes {drains_s:.0} s to drain at {rate}");
        (found, format!("allowed: up to {DELAY_MAX}"))
    };
    Err(match table.get("queue") {
        Some(item) => item.table().error("size", found, hint),
        None => table.error("queue", found, hint),
    })
}
