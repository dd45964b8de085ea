//! UDP sources.

use std::collections::BTreeSet;

use lfn_keys::Name;
use lfn_sim::traffic::udp::Burst;
use lfn_units::Time;

use super::path::Places;
use crate::error::ScenarioError;
use crate::model::{Pattern, Udp};
use crate::reader::Table;

/// All sources. `duration` is the run's.
pub(crate) fn resolve(
    sources: &mut [Udp],
    tables: &[Table],
    places: &Places,
    duration: Time,
) -> Result<(), ScenarioError> {
    let mut names = BTreeSet::new();
    for (i, (udp, table)) in sources.iter_mut().zip(tables).enumerate() {
        if table.get("name").is_none() {
            udp.name = Name(format!("udp{i}"));
        }
        if !names.insert(udp.name.clone()) {
            let found = format!("{:?} found a second time", udp.name.0);
            return Err(table.error("name", found, "give each source its own name"));
        }
        (udp.direction, udp.path) = places.path(table)?;
        if let Pattern::Bursts(bursts) = &mut udp.pattern {
            resolve_bursts(bursts, &table.tables("bursts"), duration)?;
        }
    }
    Ok(())
}

fn resolve_bursts(bursts: &mut [Burst], tables: &[Table], duration: Time) -> Result<(), ScenarioError> {
    let mut end = Time::ZERO;
    for (burst, table) in bursts.iter_mut().zip(tables) {
        if table.get("start").is_none() {
            burst.start = end;
        }
        if table.get("stop").is_none() {
            burst.stop = duration;
        }
        let Burst { start, stop, .. } = *burst;
        if start < end {
            let hint = format!("allowed: not before the end of the one before it, {end}");
            return Err(table.error("start", start.to_string(), hint));
        }
        if stop <= start {
            let hint = format!("allowed: later than its start, {start}");
            return Err(table.error("stop", stop.to_string(), hint));
        }
        end = stop;
    }
    Ok(())
}
