//! From TOML to a [`Scenario`]: every key, its bounds and its default.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_units::{Bytes, Rate, Time};
use toml::de::DeTable;

use crate::config::{Path, Room};
use crate::error::ScenarioError;
use crate::model::{
    Background, Compat, Direction, DropTail, Flow, Link, Mode, Queue, Red, RedPreset, Reverse, Scenario,
    Weight,
};
use crate::predict::Part;
use crate::quantity::{BufferSize, Packets, Sample, Start, Text, Window};
use crate::reader::{Choice, Item, Source, Table};

pub(crate) const SCENARIO: &[&str] =
    &["schema", "name", "seed", "duration", "warmup", "sample", "compat", "link", "flow", "background"];
pub(crate) const LINK: &[&str] = &["rate", "mode", "loss", "queue", "reverse"];
pub(crate) const REVERSE: &[&str] = &["rate", "loss", "queue"];
pub(crate) const DROP_TAIL: &[&str] = &["kind", "size"];
pub(crate) const RED: &[&str] =
    &["kind", "size", "preset", "min_th", "max_th", "target_delay", "weight", "max_p", "wait", "ecn"];
pub(crate) const FLOW: &[&str] = &[
    "law",
    "count",
    "rtt",
    "start",
    "stop",
    "size",
    "direction",
    "packet",
    "receive_window",
    "initial_window",
    "initial_ssthresh",
    "slow_start",
    "delayed_ack",
    "sack",
    "ecn",
    "pacing",
];
pub(crate) const BACKGROUND: &[&str] = &["level", "long_flows"];

/// Longest duration: 30 days.
const DURATION_MAX: Time = Time::from_s(30 * 86_400);
/// Longest base RTT, and longest time that a full queue may take to drain.
const DELAY_MAX: Time = Time::from_s(1000);
const RATE_MIN: Rate = Rate(1_000);
const RATE_MAX: Rate = Rate(10_000_000_000_000);
const PACKET_MIN: Bytes = Bytes(64);
const PACKET_MAX: Bytes = Bytes(64_000);
const ONE_BDP: BufferSize = BufferSize::MicroBdp(1_000_000);
/// Largest window that a law can reach, in segments.
const WINDOW_MAX: u64 = lfn_law::MAX_CWND >> 32;

#[derive(Clone, Copy)]
enum QueueKind {
    DropTail,
    Red,
}

impl Choice for QueueKind {
    const ALL: &'static [(&'static str, Self)] = &[("drop-tail", Self::DropTail), ("red", Self::Red)];
}
impl Choice for Compat {
    const ALL: &'static [(&'static str, Self)] = &[("linux", Self::Linux), ("ns2", Self::Ns2)];
}
impl Choice for Mode {
    const ALL: &'static [(&'static str, Self)] = &[("closed", Self::Closed), ("event", Self::Event)];
}
impl Choice for Direction {
    const ALL: &'static [(&'static str, Self)] = &[("forward", Self::Forward), ("reverse", Self::Reverse)];
}
impl Choice for RedPreset {
    const ALL: &'static [(&'static str, Self)] =
        &[("classic", Self::Classic), ("gentle", Self::Gentle), ("adaptive", Self::Adaptive)];
}

impl Scenario {
    /// Reads a scenario. `file` names the text in errors. A run that is predicted to need more than
    /// `memory_limit_bytes` is refused.
    ///
    /// # Errors
    /// The first fault of the text.
    pub fn parse(text: &str, file: &str, memory_limit_bytes: Option<u64>) -> Result<Scenario, ScenarioError> {
        let source = Source { file, text };
        let document = DeTable::parse(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            if error.message() == "duplicate key" {
                let key = text.get(span.clone()).unwrap_or_default();
                return source.error(span.start, key, "found a second time", "write each key once");
            }
            source.error(span.start, "", format!("not TOML: {}", error.message()), "see toml.io")
        })?;
        let root = Table::new(source, String::new(), document.get_ref(), 0..0, SCENARIO)?;
        let scenario = read_scenario(&root)?;
        if let Some(limit) = memory_limit_bytes {
            check_memory(&scenario, &root, limit)?;
        }
        Ok(scenario)
    }
}

fn read_scenario(root: &Table) -> Result<Scenario, ScenarioError> {
    let schema = root.need("schema", "schema = 1")?.integer(1..=1)? as u32;
    let name = root.get("name").map(|item| item.text("write a text")).transpose()?.map(String::from);
    let seed = root.integer("seed", 0..=i64::MAX as u64, 1)?;
    let duration: Time =
        root.need("duration", "duration = \"60s\"")?.quantity_in(Time::from_us(1)..=DURATION_MAX)?;
    let warmup = root.quantity("warmup")?.unwrap_or(Time::ZERO);
    if warmup >= duration {
        return Err(root.error(
            "warmup",
            format!("{warmup} is not before the end"),
            format!("allowed: less than {duration}"),
        ));
    }
    let sample = match root.quantity("sample")? {
        Some(Sample::Every(step)) if step < Time::from_us(1) || step > duration => {
            let hint = format!("allowed: 1us to {duration}, or \"off\"");
            return Err(root.error("sample", format!("{step} is out of range"), hint));
        }
        Some(sample) => sample,
        None => Sample::Every(Time::from_ms(10).min(duration)),
    };
    let compat = root.choice("compat", Compat::Linux)?;
    let background = read_background(&root.table("background", BACKGROUND)?)?;
    let groups = root.get("flow").map(|item| item.tables(FLOW)).transpose()?.unwrap_or_default();
    let flow =
        groups.iter().map(|group| read_flow(group, compat, duration)).collect::<Result<Vec<_>, _>>()?;
    if flow.is_empty() && background == (Background { level: 0, long_flows: 0 }) {
        return Err(root.error("flow", "missing", "write a [[flow]], or a [background] with a level"));
    }
    let path = Path::new(&flow, compat);
    let link = read_link(&root.need("link", "[link] with a rate")?.table(LINK)?, &path)?;
    Ok(Scenario {
        schema,
        name,
        seed,
        duration: Text(duration),
        warmup: Text(warmup),
        sample: Text(sample),
        compat,
        link,
        flow,
        background,
    })
}

fn read_background(table: &Table) -> Result<Background, ScenarioError> {
    let level = table.integer("level", 0..=3, 0)? as u8;
    let long_flows = table.integer("long_flows", 0..=100_000, if level > 0 { 10 } else { 0 })? as u32;
    Ok(Background { level, long_flows })
}

fn read_loss(table: &Table, default: f64) -> Result<f64, ScenarioError> {
    table.number("loss", default, "of at least 0 and below 1", |loss| (0.0..1.0).contains(&loss))
}

fn read_link(table: &Table, path: &Path) -> Result<Link, ScenarioError> {
    let rate = table.need("rate", "rate = \"10Gbit/s\"")?.quantity_in(RATE_MIN..=RATE_MAX)?;
    let mode = table.choice("mode", Mode::Closed)?;
    let loss = read_loss(table, 0.0)?;
    let queue = read_queue(table, rate, path, None)?;
    let opposite = table.table("reverse", REVERSE)?;
    let reverse_rate = opposite.quantity_in("rate", RATE_MIN..=RATE_MAX)?.unwrap_or(rate);
    let reverse = Reverse {
        rate: Text(reverse_rate),
        loss: read_loss(&opposite, loss)?,
        queue: read_queue(&opposite, reverse_rate, path, Some(&queue))?,
    };
    Ok(Link { rate: Text(rate), mode, loss, queue, reverse })
}

/// The queue of a link's table; `default` where the table has none.
fn read_queue(
    link: &Table,
    rate: Rate,
    path: &Path,
    default: Option<&Queue>,
) -> Result<Queue, ScenarioError> {
    let table = link.get("queue").map(|item| queue_table(&item)).transpose()?;
    let queue = match (&table, default) {
        (Some((kind, table)), _) => {
            let size = Text(table.quantity("size")?.unwrap_or(ONE_BDP));
            match kind {
                QueueKind::DropTail => Queue::DropTail(DropTail { size }),
                QueueKind::Red => Queue::Red(read_red(table, size)?),
            }
        }
        (None, Some(queue)) => queue.clone(),
        (None, None) => Queue::DropTail(DropTail { size: Text(ONE_BDP) }),
    };
    let size = queue.size();
    let (found, hint) = match path.room(size, rate) {
        Room::Drains(time) if time <= DELAY_MAX => return Ok(queue),
        Room::Drains(time) => {
            let found = format!("{size} takes {:.0} s to drain at {rate}", time.as_s());
            (found, format!("allowed: up to {DELAY_MAX}"))
        }
        Room::BelowOnePacket => {
            let hint = format!("allowed: at least one packet, {}B on the wire", path.wire_bytes);
            (format!("{size} is below one packet"), hint)
        }
        Room::NoRtt => {
            let hint = "write packets or bytes, for example \"250 packets\"".into();
            (format!("{size} needs the RTT of a [[flow]]"), hint)
        }
    };
    Err(match &table {
        Some((_, table)) => table.error("size", found, hint),
        None => link.error("queue", found, hint),
    })
}

fn queue_table<'a>(item: &Item<'a>) -> Result<(QueueKind, Table<'a>), ScenarioError> {
    let kind = item.entry("kind").map_or(Ok(QueueKind::DropTail), |kind| kind.choice())?;
    let keys = match kind {
        QueueKind::DropTail => DROP_TAIL,
        QueueKind::Red => RED,
    };
    Ok((kind, item.table(keys)?))
}

fn read_red(table: &Table, size: Text<BufferSize>) -> Result<Red, ScenarioError> {
    let preset = table.choice("preset", RedPreset::Gentle)?;
    let classic = preset == RedPreset::Classic;
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
    let is_fraction = |value: f64| 0.0 < value && value <= 1.0;
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
        max_p: table.number("max_p", 0.1, "above 0 and at most 1", is_fraction)?,
        wait: table.boolean("wait", !classic)?,
        ecn: table.boolean("ecn", preset == RedPreset::Adaptive)?,
    })
}

fn read_flow(table: &Table, compat: Compat, duration: Time) -> Result<Flow, ScenarioError> {
    let law: LawSpec = table.need("law", "law = \"cubic\"")?.quantity()?;
    let count = table.integer("count", 1..=u32::MAX.into(), 1)? as u32;
    let rtt = table.need("rtt", "rtt = \"100ms\"")?.quantity_in(Time::from_ns(1)..=DELAY_MAX)?;
    let start = table.quantity("start")?.unwrap_or(Start::At(Time::ZERO));
    if let Start::Uniform(low, high) = start {
        if low >= high {
            return Err(table.error(
                "start",
                start.to_string(),
                "allowed: uniform(LOW, HIGH) with LOW below HIGH",
            ));
        }
    }
    if start.latest() >= duration {
        let hint = format!("allowed: before the end of the run, {duration}");
        return Err(table.error("start", format!("{start} is too late"), hint));
    }
    let stop = table.quantity("stop")?;
    if let Some(stop) = stop.filter(|stop| *stop <= start.latest()) {
        let hint = format!("allowed: later than {}", start.latest());
        return Err(table.error("stop", format!("{stop} is not after the start"), hint));
    }
    let size = table.quantity_in("size", Bytes(1)..=Bytes(1_000_000_000_000_000_000))?;
    let packet = table.quantity_in("packet", PACKET_MIN..=PACKET_MAX)?.unwrap_or(Bytes(1500));
    let payload = compat.payload_bytes(packet);
    let receive_window = table.quantity("receive_window")?;
    if receive_window.is_some_and(|window| compat.window_segments(window, packet) == 0) {
        let hint = format!("allowed: at least 1 packet, {payload}B of payload");
        return Err(table.error("receive_window", "found less than a packet", hint));
    }
    let initial_window = table.quantity_in("initial_window", Packets(1)..=Packets(WINDOW_MAX))?;
    let initial_ssthresh = table.quantity_in("initial_ssthresh", Packets(2)..=Packets(WINDOW_MAX))?;
    let (default_window, default_slow_start, default_delayed_ack) = match compat {
        Compat::Linux => (Packets(10), law.info().slow_start, true),
        Compat::Ns2 => (Packets(2), SlowStartKind::Classic, false),
    };
    Ok(Flow {
        law: Text(law),
        count,
        rtt: Text(rtt),
        start: Text(start),
        stop: stop.map(Text),
        size: size.map(Text),
        direction: table.choice("direction", Direction::Forward)?,
        packet: Text(packet),
        receive_window: receive_window.map(Text::<Window>),
        initial_window: Text(initial_window.unwrap_or(default_window)),
        initial_ssthresh: initial_ssthresh.map(Text),
        slow_start: Text(table.quantity("slow_start")?.unwrap_or(default_slow_start)),
        delayed_ack: table.boolean("delayed_ack", default_delayed_ack)?,
        sack: table.boolean("sack", true)?,
        ecn: table.boolean("ecn", false)?,
        pacing: table.boolean("pacing", false)?,
    })
}

/// Refuses a run that needs more memory than allowed, at the key that asks for the most.
fn check_memory(scenario: &Scenario, root: &Table, limit_bytes: u64) -> Result<(), ScenarioError> {
    let need = scenario.predict();
    if need.memory_bytes <= limit_bytes {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let found = format!(
        "the run needs about {} of memory: {} for flows, {} for packets in flight, {} for tables",
        gigabytes(need.memory_bytes),
        gigabytes(need.flow_bytes),
        gigabytes(need.packet_bytes),
        gigabytes(need.table_bytes),
    );
    let allowed = format!("allowed: {}", gigabytes(limit_bytes));
    let (key, advice) = match need.largest_part() {
        Part::Tables if root.get("sample").is_none() => {
            ("flow", "sample less often (\"10ms\" by default) or not at all (\"off\"), or use fewer flows")
        }
        Part::Tables => ("sample", "sample less often or not at all (\"off\"), or use fewer flows"),
        Part::Flows => ("flow", "use fewer flows"),
        Part::Packets => ("link", "lower rate, rtt or queue size"),
    };
    Err(root.error(key, found, format!("{allowed}; {advice}")))
}
