//! The keys of the recording of packets.

use lfn_units::Time;

use super::path::Places;
use crate::error::ScenarioError;
use crate::model::Capture;
use crate::quantity::Text;
use crate::reader::Item;

pub(crate) const CAPTURE: &[&str] = &["links", "from", "to", "max_rows"];

pub(crate) fn read(item: &Item, places: &Places, duration: Time) -> Result<Capture, ScenarioError> {
    let table = item.table(CAPTURE)?;
    let named = table.items("links")?;
    let mut numbers = Vec::new();
    for item in &named {
        let number = places.link(item)?;
        if numbers.contains(&number) {
            return Err(item.error("found a second time", "write each link once"));
        }
        numbers.push(number);
    }
    if table.get("links").is_none() {
        numbers = (0..places.network.hops.len() as u16).collect();
    }
    if numbers.is_empty() {
        return Err(table.error("links", "no link", "write the names of links, or leave it out for all"));
    }
    let from = table.quantity("from")?.unwrap_or(Time::ZERO);
    let to = table.quantity("to")?.unwrap_or(duration);
    if from >= to || to > duration {
        let hint = format!("allowed: from before to, up to the end of the run, {duration}");
        return Err(table.error(if to > duration { "to" } else { "from" }, format!("{from} to {to}"), hint));
    }
    Ok(Capture {
        links: numbers.iter().map(|&link| places.network.hop(link).name.clone()).collect(),
        from: Text(from),
        to: Text(to),
        max_rows: table.integer("max_rows", 1..=1_000_000_000, 1_000_000)?,
        numbers,
    })
}
