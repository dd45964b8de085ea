//! The recording of packets.

use lfn_units::Time;

use super::path::Places;
use crate::error::ScenarioError;
use crate::model::Capture;
use crate::reader::Table;

pub(crate) fn resolve(
    capture: &mut Capture,
    table: &Table,
    places: &Places,
    duration: Time,
) -> Result<(), ScenarioError> {
    for item in table.items("links") {
        let number = places.link(&item)?;
        if capture.numbers.contains(&number) {
            return Err(item.error("found a second time", "write each link once"));
        }
        capture.numbers.push(number);
    }
    if table.get("links").is_none() {
        capture.numbers = places.network.links().collect();
    }
    if capture.numbers.is_empty() {
        return Err(table.error("links", "no link", "write the names of links, or leave it out for all"));
    }
    if table.get("to").is_none() {
        capture.to = duration;
    }
    let (from, to) = (capture.from, capture.to);
    if from >= to || to > duration {
        let hint = format!("allowed: from before to, up to the end of the run, {duration}");
        return Err(table.error(if to > duration { "to" } else { "from" }, format!("{from} to {to}"), hint));
    }
    capture.links = capture.numbers.iter().map(|&link| places.network.hop(link).name.clone()).collect();
    Ok(())
}
