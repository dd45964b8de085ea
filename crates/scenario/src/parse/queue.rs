//! The keys of queues.

use lfn_path::AqmConfig;

use super::DELAY_MAX;
use crate::config::Sizing;
use crate::error::ScenarioError;
use crate::model::Queue;
use crate::network::Network;
use crate::quantity::{BufferSize, Text};
use crate::reader::{Item, Table};

const ONE_BDP: BufferSize = BufferSize::MicroBdp(1_000_000);

/// The discipline that a table names, by default drop-tail, and the table.
fn queue_table<'a>(item: &Item<'a>) -> Result<(AqmConfig, Table<'a>), ScenarioError> {
    let kinds: Vec<_> = AqmConfig::kinds().into_iter().map(|(kind, _, config)| (kind, config)).collect();
    let discipline = item.entry("kind").map_or(Ok(kinds[0].1), |kind| kind.word(&kinds))?;
    let keys = ["kind", "size"].into_iter().chain(discipline.keys().keys().into_iter().map(|key| key.name));
    Ok((discipline, item.table(&keys.collect::<Vec<_>>())?))
}

/// The queue of a link's table, `default` where the table has none.
pub(crate) fn read(link: &Table, default: Option<&Queue>) -> Result<Queue, ScenarioError> {
    let Some(item) = link.get("queue") else {
        let drop_tail = || Queue { size: Text(ONE_BDP), discipline: AqmConfig::kinds()[0].2 };
        return Ok(default.cloned().unwrap_or_else(drop_tail));
    };
    let (mut discipline, table) = queue_table(&item)?;
    let size = Text(table.quantity("size")?.unwrap_or(ONE_BDP));
    table.read(discipline.keys_mut())?;
    Ok(Queue { size, discipline })
}

/// Checks that the queue of a link, in this table, has room for a packet and drains in time.
pub(crate) fn check_room(
    table: &Table,
    network: &Network,
    link: u16,
    sizing: &Sizing,
) -> Result<(), ScenarioError> {
    let way = network.hop(link).way;
    let (size, rate) = (way.queue.size.0, way.mean_rate());
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
        Some(item) => queue_table(&item)?.1.error("size", found, hint),
        None => table.error("queue", found, hint),
    })
}
