//! The keys of queues.

use lfn_units::{Bytes, Time};

use super::{is_fraction, DELAY_MAX, FRACTION, PACKET_MAX};
use crate::config::Sizing;
use crate::error::ScenarioError;
use crate::model::{Codel, Fifo, FqCodel, Pie, Queue, Red, RedPreset, Weight};
use crate::network::Network;
use crate::quantity::{BufferSize, Packets, Text};
use crate::reader::{Choice, Item, Table};

pub(crate) const FIFO: &[&str] = &["kind", "size"];
pub(crate) const RED: &[&str] = &[
    "kind",
    "size",
    "preset",
    "min_th",
    "max_th",
    "target_delay",
    "weight",
    "max_p",
    "gentle",
    "adaptive",
    "wait",
    "byte_mode",
    "ecn",
    "mark_p",
];
pub(crate) const CODEL: &[&str] = &["kind", "size", "target", "interval", "ecn"];
pub(crate) const FQ_CODEL: &[&str] = &["kind", "size", "queues", "quantum", "target", "interval", "ecn"];
pub(crate) const PIE: &[&str] =
    &["kind", "size", "target", "update", "alpha", "beta", "burst", "byte_mode", "ecn"];

const ONE_BDP: BufferSize = BufferSize::MicroBdp(1_000_000);

#[derive(Clone, Copy)]
enum Kind {
    DropTail,
    DropHead,
    Red,
    Codel,
    FqCodel,
    Pie,
}

impl Choice for Kind {
    const ALL: &'static [(&'static str, Self)] = &[
        ("drop-tail", Self::DropTail),
        ("drop-head", Self::DropHead),
        ("red", Self::Red),
        ("codel", Self::Codel),
        ("fq-codel", Self::FqCodel),
        ("pie", Self::Pie),
    ];
}
impl Choice for RedPreset {
    const ALL: &'static [(&'static str, Self)] =
        &[("classic", Self::Classic), ("gentle", Self::Gentle), ("adaptive", Self::Adaptive)];
}

fn queue_table<'a>(item: &Item<'a>) -> Result<(Kind, Table<'a>), ScenarioError> {
    let kind = item.entry("kind").map_or(Ok(Kind::DropTail), |kind| kind.choice())?;
    let keys = match kind {
        Kind::DropTail | Kind::DropHead => FIFO,
        Kind::Red => RED,
        Kind::Codel => CODEL,
        Kind::FqCodel => FQ_CODEL,
        Kind::Pie => PIE,
    };
    Ok((kind, item.table(keys)?))
}

/// The queue of a link's table, `default` where the table has none.
pub(crate) fn read(link: &Table, default: Option<&Queue>) -> Result<Queue, ScenarioError> {
    let Some(item) = link.get("queue") else {
        return Ok(default.cloned().unwrap_or(Queue::DropTail(Fifo { size: Text(ONE_BDP) })));
    };
    let (kind, table) = queue_table(&item)?;
    let size = Text(table.quantity("size")?.unwrap_or(ONE_BDP));
    let time = |key, default| {
        table.quantity_in(key, Time::from_us(1)..=DELAY_MAX).map(|time| Text(time.unwrap_or(default)))
    };
    let (target, interval) = (Time::from_ms(5), Time::from_ms(100));
    Ok(match kind {
        Kind::DropTail => Queue::DropTail(Fifo { size }),
        Kind::DropHead => Queue::DropHead(Fifo { size }),
        Kind::Red => Queue::Red(red(&table, size)?),
        Kind::Codel => Queue::Codel(Codel {
            size,
            target: time("target", target)?,
            interval: time("interval", interval)?,
            ecn: table.boolean("ecn", false)?,
        }),
        Kind::FqCodel => Queue::FqCodel(FqCodel {
            size,
            queues: table.integer("queues", 1..=65_536, 1024)? as u32,
            quantum: table.quantity_in("quantum", Bytes(1)..=PACKET_MAX)?.map(Text),
            target: time("target", target)?,
            interval: time("interval", interval)?,
            ecn: table.boolean("ecn", true)?,
        }),
        Kind::Pie => {
            let weight = |key, default| {
                table.number(key, default, "of at least 0", |weight| (0.0..f64::INFINITY).contains(&weight))
            };
            Queue::Pie(Pie {
                size,
                target: time("target", Time::from_ms(15))?,
                update: time("update", Time::from_ms(15))?,
                alpha: weight("alpha", 0.125)?,
                beta: weight("beta", 1.25)?,
                burst: Text(
                    table.quantity_in("burst", Time::ZERO..=DELAY_MAX)?.unwrap_or(Time::from_ms(150)),
                ),
                byte_mode: table.boolean("byte_mode", false)?,
                ecn: table.boolean("ecn", false)?,
            })
        }
    })
}

/// Checks that the queue of a link, in this table, has room for a packet and drains in time.
pub(crate) fn check_room(
    table: &Table,
    network: &Network,
    link: u16,
    sizing: &Sizing,
) -> Result<(), ScenarioError> {
    let way = network.hop(link).way;
    let (size, rate) = (way.queue.size(), way.mean_rate());
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

fn red(table: &Table, size: Text<BufferSize>) -> Result<Red, ScenarioError> {
    let preset = table.choice("preset", RedPreset::Gentle)?;
    let classic = preset == RedPreset::Classic;
    let adaptive = preset == RedPreset::Adaptive;
    let threshold = |key| table.quantity_in(key, Packets(1)..=Packets(1_000_000_000));
    let (min_th, max_th) = (threshold("min_th")?, threshold("max_th")?);
    let target_delay = table.quantity_in("target_delay", Time::from_us(1)..=DELAY_MAX)?;
    let (min_th, max_th, target_delay) = match (min_th, max_th, target_delay) {
        (None, None, None) if classic => (Some(Packets(5)), Some(Packets(15)), None),
        (None, None, delay) => (None, None, Some(delay.unwrap_or(Time::from_ms(5)))),
        (Some(min_th), Some(max_th), None) if min_th < max_th => (Some(min_th), Some(max_th), None),
        (Some(min_th), Some(max_th), None) => {
            return Err(table.error(
                "max_th",
                max_th.to_string(),
                format!("allowed: more than min_th, {min_th}"),
            ))
        }
        (_, _, Some(_)) => {
            return Err(table.error(
                "target_delay",
                "found beside thresholds",
                "write either it or min_th and max_th",
            ))
        }
        (Some(_), None, None) => return Err(table.error("max_th", "missing beside min_th", "write both")),
        (None, Some(_), None) => return Err(table.error("min_th", "missing beside max_th", "write both")),
    };
    let weight = match table.get("weight") {
        None if classic => Weight::Fixed(0.002),
        None => Weight::Auto,
        Some(item) if item.text("").is_ok_and(|text| text == "auto") => Weight::Auto,
        Some(item) => Weight::Fixed(item.number("above 0 and at most 1, or \"auto\"", is_fraction)?),
    };
    Ok(Red {
        size,
        preset,
        min_th: min_th.map(Text),
        max_th: max_th.map(Text),
        target_delay: target_delay.map(Text),
        weight,
        max_p: table.number("max_p", 0.1, FRACTION, is_fraction)?,
        gentle: table.boolean("gentle", !classic)?,
        adaptive: table.boolean("adaptive", adaptive)?,
        wait: table.boolean("wait", !classic)?,
        byte_mode: table.boolean("byte_mode", false)?,
        ecn: table.boolean("ecn", adaptive)?,
        mark_p: table.number("mark_p", 0.1, FRACTION, is_fraction)?,
    })
}
