//! Models of TCP traffic.

use std::collections::BTreeSet;
use std::sync::Arc;

use lfn_keys::{Name, Spread};
use lfn_sim::traffic::vectors::Trace;
use lfn_sim::traffic::Parameters;
use lfn_units::{Bytes, Time};

use super::path::Places;
use super::{file, DELAY_MAX};
use crate::error::ScenarioError;
use crate::model::Traffic;
use crate::quantity::{LawName, Window};
use crate::reader::Table;

/// All models.
pub(crate) fn resolve(
    models: &mut [Traffic],
    tables: &[Table],
    places: &Places,
) -> Result<(), ScenarioError> {
    let mut names = BTreeSet::new();
    for (i, (traffic, table)) in models.iter_mut().zip(tables).enumerate() {
        if table.get("name").is_none() {
            traffic.name = Name(format!("traffic{i}"));
        }
        if !names.insert(traffic.name.clone()) {
            let found = format!("{:?} found a second time", traffic.name.0);
            return Err(table.error("name", found, "give each model its own name"));
        }
        (traffic.direction, traffic.path) = places.path(table)?;
        (traffic.ack_route, traffic.ack_links) = places.back(table, &traffic.path.links)?;
        let links = places.network.delay(&traffic.path.links).after(places.network.delay(&traffic.ack_links));
        if let (None, Spread::Uniform(low, high)) = (table.get("rtt"), traffic.rtt) {
            traffic.rtt = Spread::Uniform(links.after(low), links.after(high));
        }
        check_rtt(table, traffic.rtt, links)?;
        if matches!(traffic.receive_window, Window::Packets(0) | Window::Bytes(Bytes(0..=1459))) {
            let hint = "allowed: at least 1 packet, 1460B of payload";
            return Err(table.error("receive_window", "found less than a packet", hint));
        }
        if let Some(law) = table.get("law") {
            traffic.spec = law.law()?;
        }
        traffic.law = LawName(traffic.spec.to_string());
        resolve_model(&mut traffic.model, table, links)?;
    }
    Ok(())
}

/// Checks that connections can have this RTT; `links` is the delay of the links of both routes.
fn check_rtt(table: &Table, rtt: Spread<Time>, links: Time) -> Result<(), ScenarioError> {
    let (low, high) = (rtt.least(), rtt.most());
    let least = links.max(Time::from_ns(1));
    if low < least || high > DELAY_MAX {
        let hint = format!("allowed: from {least}, at least the delays of the links, to {DELAY_MAX}");
        return Err(table.error("rtt", format!("{rtt} is out of range"), hint));
    }
    Ok(())
}

/// Resolves keys of a model that depend on its place: a file, and RTTs that the links allow.
fn resolve_model(model: &mut Parameters, table: &Table, links: Time) -> Result<(), ScenarioError> {
    let table = table.table(model.key());
    match model {
        Parameters::Vectors(vectors) => {
            let parse =
                |text: &str| text.parse::<Trace>().map_err(|error| format!("line {error}")).map(Arc::new);
            if let Some(item) = table.get("file") {
                vectors.trace = file::read(&mut vectors.file, &item, parse)?;
            }
        }
        Parameters::Suite(_) => {
            let range = links.max(Time::from_ns(1))..=DELAY_MAX;
            for rtt in table.items("rtts") {
                rtt.value::<Time>(&range)?;
            }
        }
        _ => {}
    }
    Ok(())
}
