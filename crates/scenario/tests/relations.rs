//! The same scenario said in another way gives the same figures: of each relation `LFN_RELATIONS_DRAWS` scenarios of all
//! kinds, `LFN_SEED` the seed; `make soak` draws many with a new seed.
//!
//! One rule of the simulator limits them: a link that carries nothing but ACKs, with room to spare, is a delay. A change of
//! its rate, delay or loss, a policer, a shaper, impairments of ACKs or a recorded packet make it a queue, in which an ACK
//! waits for the one before it and packets are counted. An entry without an effect makes it no queue, except for a policer:
//! that it passes everything shows in the run alone.

mod drawn;
mod troubled;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use lfn_scenario::Scenario;
use lfn_sim::rng::Stream;
use lfn_sim::tables::Column;
use lfn_sim::Sim;
use lfn_units::Time;
use serde_json::Value as Json;
use toml::{Table, Value};
use troubled::{entries, keys, leading, Files};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
}

/// Every figure of a run by its name: `links[0].drops`, or `tables.flows.cwnd_seg` for a hash of that column.
type Figures = BTreeMap<String, Json>;

/// Figures of a run of the text at this time, or at its end.
fn run(text: &str, until: Option<Time>) -> Option<Figures> {
    let scenario = Scenario::parse_with(text, "drawn.toml", None, &Files).ok()?;
    let config = scenario.config(scenario.seed);
    let mut sim = Sim::new(&config).ok()?;
    sim.run_until(until.unwrap_or(config.duration));
    let outcome = sim.finish().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut figures = Figures::new();
    flatten(&mut figures, "", serde_json::to_value(outcome.summary).expect("plain data"));
    for (table, columns) in outcome.tables.into_columns() {
        for (name, column) in columns {
            figures.insert(format!("tables.{table}.{name}"), hash(&column).into());
        }
    }
    Some(figures)
}

fn flatten(into: &mut Figures, name: &str, value: Json) {
    match value {
        Json::Object(keys) => {
            let dot = if name.is_empty() { "" } else { "." };
            keys.into_iter().for_each(|(key, value)| flatten(into, &format!("{name}{dot}{key}"), value));
        }
        Json::Array(all) => {
            all.into_iter().enumerate().for_each(|(i, value)| flatten(into, &format!("{name}[{i}]"), value));
        }
        value => drop(into.insert(name.into(), value)),
    }
}

fn hash(column: &Column) -> u64 {
    let mut hasher = DefaultHasher::new();
    match column {
        Column::F64(values) => values.iter().for_each(|value| value.to_bits().hash(&mut hasher)),
        Column::U64(values) => values.hash(&mut hasher),
        Column::U32(values) => values.hash(&mut hasher),
        Column::U16(values) => values.hash(&mut hasher),
        Column::U8(values) => values.hash(&mut hasher),
    }
    hasher.finish()
}

/// Another way to say a scenario; `None` where it does not apply.
type Other = fn(Table) -> Option<String>;

/// Ways to say a scenario, and the figures that may differ, by parts of their names.
const RELATIONS: [(&str, &[&str], Other); 21] = [
    ("other units", &[], other_units),
    ("other order, comments and line ends", &[], other_order),
    ("all keys with their values", &[], all_keys),
    ("another seed where nothing is random", &["seed"], another_seed),
    ("flows one by one", &[], one_by_one),
    ("a dumbbell as a graph", &[], as_graph),
    ("twice as long, and changed later", EFFORT, twice_as_long),
    ("an event for each packet", EFFORT, event_mode),
    ("no samples", SAMPLES, no_samples),
    ("other samples", SAMPLES, other_samples),
    ("another warm-up", SINCE_WARMUP, another_warmup),
    ("every link recorded", &["events", "memory.", "captured_rows", "tables.packets"], recorded),
    ("changes that change nothing", &[], no_changes),
    ("impairments that do nothing", &[], no_impairments),
    ("a policer that passes everything", EFFORT, policed),
    ("a router that nobody asks", EFFORT, unasked),
    (
        "a link that nobody uses",
        &["hash", "links[2]", "changes_s", "tables.queues", "events", "memory."],
        unused,
    ),
    ("UDP that sends nothing", &["udp[", "events", "memory."], silent),
    ("breakers that never trip", EFFORT, no_breakers),
    // The summary of a flow says its stop.
    ("limits out of reach", &["stop_s"], no_limits),
    ("goodput without a warm-up", SINCE_WARMUP, without_warmup),
];

/// How the engine gets there.
const EFFORT: &[&str] = &["events", "memory."];
const SAMPLES: &[&str] = &["events", "memory.", "tables.flows", "tables.queues", "tables.probes"];
/// Figures that are counted from the warm-up on.
const SINCE_WARMUP: &[&str] = &[
    "hash",
    "events",
    "memory.",
    "warmup_s",
    "jain",
    "cov",
    "goodput_bps",
    "delivered_bytes",
    "claimed_bytes",
    "cwnd_segments",
    "utilization",
    "opportunities",
    "arrivals",
    "drops",
    "marks",
    "queue_s",
    "max_queue_packets",
    "delay_s",
    "tables.transfers",
    "tables.queues",
];

fn other_units(table: Table) -> Option<String> {
    fn other(value: &mut Value) {
        match value {
            Value::Table(keys) => keys.iter_mut().for_each(|(_, value)| other(value)),
            Value::Array(all) => all.iter_mut().for_each(other),
            Value::String(text) => {
                let thousands = |unit: &str| {
                    let n: u64 = text.strip_suffix(unit)?.parse().ok()?;
                    Some(format!("{}.{:03}k{unit}", n / 1000, n % 1000))
                };
                let times = || text.replace("us)", "000ns)").replace("us,", "000ns,");
                let time = || text.strip_suffix("us").map_or_else(times, |n| format!("{n}000ns"));
                *text = thousands("bit/s").or_else(|| thousands("B")).unwrap_or_else(time);
            }
            _ => {}
        }
    }
    let mut value = Value::Table(table);
    other(&mut value);
    value.as_table().map(Table::to_string)
}

/// Each table in one line, its last key first.
fn other_order(table: Table) -> Option<String> {
    fn backwards(value: &Value) -> String {
        let inside = |parts: Vec<String>| parts.join(", ");
        match value {
            Value::Table(keys) => {
                let key = |(key, value): (&String, &Value)| format!("{key} = {}", backwards(value));
                format!("{{ {} }}", inside(keys.iter().rev().map(key).collect()))
            }
            Value::Array(all) => format!("[{}]", inside(all.iter().map(backwards).collect())),
            value => value.to_string(),
        }
    }
    Some(table.iter().rev().map(|(key, value)| format!("{key} = {} # so\r\n", backwards(value))).collect())
}

fn all_keys(table: Table) -> Option<String> {
    Some(troubled::parsed(&table)?.to_toml().expect("it was parsed"))
}

fn another_seed(mut table: Table) -> Option<String> {
    if troubled::parsed(&table)?.is_random() {
        return None;
    }
    table.insert("seed".into(), 4711.into());
    Some(table.to_string())
}

fn one_by_one(mut table: Table) -> Option<String> {
    let has_routes = entries(&mut table, "schedule").any(|change| change.contains_key("flow"));
    let (mut groups, mut every) = (0, Vec::new());
    for flow in entries(&mut table, "flow") {
        let count = flow.remove("count").and_then(|count| count.as_integer()).unwrap_or(1);
        every.extend((0..count).map(|_| Value::Table(flow.clone())));
        groups += 1;
    }
    let applies = every.len() > groups && every.len() < 60 && !has_routes;
    table.insert("flow".into(), Value::Array(every));
    applies.then(|| table.to_string())
}

/// Each directed link: its name, and its keys with those of `reverse`.
fn ways(table: &Table) -> Vec<(String, Table)> {
    let mut ways = Vec::new();
    let mut add = |names: [String; 2], forward: &Table| {
        let (mut forward, mut reverse) = (forward.clone(), forward.clone());
        if let Some(Value::Table(keys)) = forward.remove("reverse") {
            reverse.remove("reverse");
            if keys.contains_key("rate") {
                reverse.remove("trace");
            }
            reverse.extend(keys);
        }
        let is_one_way = forward.contains_key("duplex");
        let both = names.into_iter().zip([forward, reverse]);
        ways.extend(both.take(if is_one_way { 1 } else { 2 }));
    };
    if let Some(Value::Table(link)) = table.get("link") {
        add(["forward".into(), "reverse".into()], link);
    }
    if let Some(Value::Table(lot)) = table.get("parking-lot") {
        for hop in 1..=lot["hops"].as_integer().expect("a number") {
            add([format!("hop{hop}"), format!("hop{hop}.reverse")], lot);
        }
    }
    for link in table.get("links").and_then(Value::as_array).into_iter().flatten() {
        let name = link["name"].as_str().expect("a name");
        add([name.into(), format!("{name}.reverse")], link.as_table().expect("a link"));
    }
    ways
}

/// A dumbbell as two links of one direction each.
fn graph(mut table: Table) -> Option<Table> {
    let ways = ways(&table);
    table.remove("link")?;
    let ends = [["left", "right"], ["right", "left"]];
    let links = ways.into_iter().zip(ends).map(|((name, mut link), [from, to])| {
        link.extend(keys(&format!("name = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = false")));
        Value::Table(link)
    });
    table.insert("links".into(), links.collect::<Vec<_>>().into());
    for of in ["flow", "udp", "traffic", "background"] {
        for entry in entries(&mut table, of) {
            let is_reverse = entry.get("direction").and_then(Value::as_str) == Some("reverse");
            let [from, to] = ends[usize::from(is_reverse)];
            entry.extend(keys(&format!("from = \"{from}\"\nto = \"{to}\"")));
        }
    }
    Some(table)
}

fn as_graph(table: Table) -> Option<String> {
    graph(table).map(|it| it.to_string())
}

/// Both runs are compared at the end of the shorter one. A later change of a link of ACKs alone would make it a queue.
fn twice_as_long(mut table: Table) -> Option<String> {
    let duration_us = leading(&table["duration"]);
    table.insert("duration".into(), format!("{}us", 2.0 * duration_us).into());
    for capture in entries(&mut table, "capture") {
        capture.entry("to").or_insert(format!("{duration_us}us").into());
    }
    let change = format!("at = \"{}us\"\nlink = \"forward\"\nloss = 0.3", 1.5 * duration_us);
    let is_forward = |flow: &mut Table| !flow.contains_key("direction");
    if table.contains_key("link") && entries(&mut table, "flow").any(is_forward) {
        push(&mut table, "schedule", &change);
    }
    Some(table.to_string())
}

/// One more table of this name.
fn push(table: &mut Table, of: &str, text: &str) {
    let all = table.entry(of).or_insert_with(|| Value::Array(Vec::new()));
    all.as_array_mut().expect("tables").push(keys(text).into());
}

/// Each table of these names changed alike.
fn with(mut table: Table, of: &[&str], change: fn(&mut Table)) -> Option<String> {
    of.iter().for_each(|of| entries(&mut table, of).for_each(change));
    Some(table.to_string())
}

const LINKS: [&str; 3] = ["link", "parking-lot", "links"];

/// Keys that are not there yet.
fn set(table: &mut Table, text: &str) {
    for (key, value) in keys(text) {
        table.entry(key).or_insert(value);
    }
}

/// The same, unless equal links follow one another: there two packets reach a link in the same picosecond, and which comes
/// first depends on the order in which the engine got to know of them.
fn without_ties(table: Table) -> Option<Table> {
    let hops = table.get("parking-lot").and_then(|lot| lot["hops"].as_integer());
    hops.is_none_or(|hops| hops == 1).then_some(table)
}

fn event_mode(table: Table) -> Option<String> {
    let table = without_ties(table)?;
    with(table, &LINKS, |link| set(link, "mode = \"event\""))
}

fn no_samples(mut table: Table) -> Option<String> {
    table.insert("sample".into(), "off".into()).filter(|was| was.as_str() != Some("off"))?;
    Some(table.to_string())
}

fn other_samples(mut table: Table) -> Option<String> {
    let every_us = 0.037 * leading(&table["duration"]) + 1.0;
    table.insert("sample".into(), format!("{every_us:.0}us").into());
    Some(table.to_string())
}

fn another_warmup(mut table: Table) -> Option<String> {
    let warmup_us = 0.31 * leading(&table["duration"]);
    table.insert("warmup".into(), format!("{warmup_us:.0}us").into());
    Some(table.to_string())
}

/// Its goodput is held against the links' rates.
fn without_warmup(mut table: Table) -> Option<String> {
    table.remove("warmup");
    Some(table.to_string())
}

fn recorded(table: Table) -> Option<String> {
    let mut table = without_ties(table)?;
    table.insert("capture".into(), Table::new().into());
    Some(table.to_string())
}

/// At the beginning each link and each route gets what it has, and near the end what is up comes up.
fn no_changes(mut table: Table) -> Option<String> {
    let ways = ways(&table);
    let later = table.remove("schedule").unwrap_or_else(|| Value::Array(Vec::new()));
    for (name, link) in &ways {
        let value = |key: &str, default: &str| link.get(key).map_or(default.into(), Value::to_string);
        let mut change = format!("at = \"0s\"\nlink = \"{name}\"\ndelay = {}", value("delay", "\"0s\""));
        if !link.get("loss").is_some_and(Value::is_table) {
            write!(change, "\nloss = {}", value("loss", "0.0")).unwrap();
        }
        if !link.contains_key("trace") && !link.contains_key("shaper") {
            write!(change, "\nrate = {}", value("rate", "")).unwrap();
        }
        push(&mut table, "schedule", &change);
    }
    let routes: Vec<Option<Value>> =
        entries(&mut table, "flow").map(|flow| flow.get("route").cloned()).collect();
    for (i, route) in routes.into_iter().enumerate() {
        if let Some(route) = route {
            push(&mut table, "schedule", &format!("at = \"0s\"\nflow = {i}\nroute = {route}"));
        }
    }
    let goes_down = later.as_array()?.iter().any(|change| change.get("down").is_some());
    table["schedule"].as_array_mut()?.extend(later.as_array()?.clone());
    let at_us = 0.97 * leading(&table["duration"]);
    for (name, link) in ways {
        if !goes_down && !link.contains_key("trace") && !link.contains_key("shaper") {
            push(&mut table, "schedule", &format!("at = \"{at_us:.0}us\"\nlink = \"{name}\"\ndown = false"));
        }
    }
    Some(table.to_string())
}

fn no_impairments(table: Table) -> Option<String> {
    with(table, &LINKS, |link| {
        let late = "reorder = { p = 0.0, delay = \"5ms\" }\njitter = { high = \"0s\", keep_order = false }";
        set(link, late);
        set(link, "loss = { kind = \"gilbert-elliott\", p = 0.0, r = 0.5 }\nduplicate = 0.0\nbleach = false");
        set(link, "acks = { loss = 0.0 }\nrouter = { kind = \"none\" }");
        if let Some(Value::Table(acks)) = link.get_mut("acks") {
            set(acks, late);
        }
    })
}

fn policed(table: Table) -> Option<String> {
    let mut table = graph(table)?;
    let from: Vec<String> = entries(&mut table, "flow").map(|flow| flow["from"].to_string()).collect();
    for link in entries(&mut table, "links").filter(|link| from.contains(&link["from"].to_string())) {
        set(link, "policer = { rate = \"1Tbit/s\", burst = \"1GB\" }");
    }
    Some(table.to_string())
}

/// A VCP router would mark the packets of flows with ECN, and XCP's or RCP's would be asked by their laws.
fn unasked(table: Table) -> Option<String> {
    let table = without_ties(table)?;
    let asks = troubled::parsed(&table)?.laws().any(|law| law.header().is_some());
    if asks {
        return None;
    }
    with(table, &LINKS, |link| set(link, "router = { kind = \"rcp\" }"))
}

fn unused(table: Table) -> Option<String> {
    let mut table = graph(table)?;
    let link = "name = \"unused\"\nfrom = \"left\"\nto = \"right\"\nduplex = false\nrate = \"1Mbit/s\"";
    push(&mut table, "links", &format!("{link}\ndelay = \"5s\"\nqueue = {{ size = \"5 packets\" }}"));
    let at_us = 0.98 * leading(&table["duration"]);
    push(&mut table, "schedule", &format!("at = \"{at_us:.0}us\"\nlink = \"unused\"\nrate = \"2Mbit/s\""));
    Some(table.to_string())
}

fn silent(mut table: Table) -> Option<String> {
    table.get("link")?;
    for direction in ["forward", "reverse"] {
        let packet = table["flow"][0]["packet"].clone();
        let source = format!("name = \"silent-{direction}\"\ndirection = \"{direction}\"\npacket = {packet}");
        push(&mut table, "udp", &format!("{source}\nbursts = [{{ rate = \"0bit/s\" }}]"));
    }
    Some(table.to_string())
}

fn no_breakers(table: Table) -> Option<String> {
    const BREAKERS: &str = "breakers = [{ loss = 0.5, interval = \"100ms\", intervals = 1000000 }]";
    with(without_ties(table)?, &["flow", "udp"], |entry| set(entry, BREAKERS))
}

fn no_limits(table: Table) -> Option<String> {
    with(table, &["flow"], |flow| {
        set(flow, "stop = \"20000s\"");
        if !flow.contains_key("transport") && flow["law"].as_str() != Some("udt") {
            set(flow, "receive_window = \"100000000 packets\"");
        }
    })
}

/// Flows whose payload, with its headers, is more than their link can have sent. Of a run without a warm-up; links with a
/// trace or a shaper have other limits.
fn too_fast(figures: &Figures, table: &Table) -> Vec<String> {
    let of = |name: &str, key: &str| figures.get(&format!("{name}.{key}")).cloned().unwrap_or(Json::Null);
    let end_s = figures["sim_s"].as_f64().expect("a time");
    let mut found = Vec::new();
    for (i, (link, way)) in ways(table).iter().enumerate() {
        if way.contains_key("trace") || way.contains_key("shaper") {
            continue;
        }
        let rates = (0..).map(|n| format!("links[{i}].rates[{n}]"));
        let rates: Vec<(f64, f64)> = rates
            .map_while(|rate| Some((of(&rate, "from_s").as_f64()?, of(&rate, "rate_bps").as_f64()?)))
            .collect();
        let ends = rates.iter().skip(1).map(|&(from_s, _)| from_s).chain([end_s]);
        let most: f64 = rates.iter().zip(ends).map(|(&(from_s, bps), to_s)| bps * (to_s - from_s)).sum();
        let flows = (0..).map(|n| format!("flows[{n}]")).take_while(|flow| !of(flow, "id").is_null());
        let sent: f64 = flows
            .filter(|flow| of(flow, "routes[1].from_s").is_null())
            .filter(|flow| (0..9).any(|n| of(flow, &format!("routes[0].links[{n}]")) == link.as_str()))
            .map(|flow| {
                let [payload, packet, wire] = ["delivered_bytes", "segment_bytes", "wire_bytes"]
                    .map(|key| of(&flow, key).as_f64().expect("a number"));
                8.0 * payload / packet * wire
            })
            .sum();
        if sent > most + 1e-6 {
            found.push(format!("{sent} bits on {link}, which sends {most} at most"));
        }
    }
    found
}

#[test]
fn what_changes_nothing_changes_no_figure() {
    let (draws, seed) = (number("LFN_RELATIONS_DRAWS", 20), number("LFN_SEED", 1));
    println!("LFN_RELATIONS_DRAWS={draws} LFN_SEED={seed}");
    let mut tried = [0; RELATIONS.len()];
    let mut failed = String::new();
    let (mut i, mut runs) = (0, 0);
    while tried.iter().any(|&count| count < draws) {
        i += 1;
        assert!(i < 200 * draws, "{tried:?}");
        let table = troubled::scenario(seed, i, 5_000.0);
        let Some(scenario) = troubled::parsed(&table) else { continue };
        let need = scenario.predict();
        if need.packets > 20_000 || need.memory_bytes > 50_000_000 {
            continue;
        }
        let mut plain = None;
        for (j, (what, may_differ, other)) in RELATIONS.iter().enumerate() {
            let Some(other) = (tried[j] < draws).then(|| other(table.clone())).flatten() else { continue };
            let Some(other) = run(&other, Some(scenario.duration)) else { continue };
            if plain.is_none() {
                plain = run(&table.to_string(), None);
                runs += 1;
            }
            let Some(plain) = &plain else { break };
            tried[j] += 1;
            let names = plain.keys().chain(other.keys().filter(|&name| !plain.contains_key(name)));
            let mut differ: Vec<String> = names
                .filter(|&name| !may_differ.iter().any(|part| name.contains(part)))
                .filter(|&name| plain.get(name) != other.get(name))
                .map(|name| format!("{name} {:?} {:?}", plain.get(name), other.get(name)))
                .collect();
            if *what == "goodput without a warm-up" {
                differ.extend(too_fast(&other, &table));
            }
            if !differ.is_empty() {
                let some = differ[..differ.len().min(4)].join("; ");
                writeln!(failed, "draw {i}: {what}: {} differ: {some}\n{table}", differ.len()).unwrap();
            }
        }
    }
    println!("{i} draws, {runs} of them run");
    assert!(failed.is_empty(), "{failed}");
}

/// UDP over a few links, whose times are whole picoseconds. With `k` of 2 the rates are halved, and times are doubled.
fn datagrams(draws: &mut Stream, k: u64) -> String {
    let mut below = |n: u64| (draws.f64() * n as f64) as u64;
    let rate = |below: &mut dyn FnMut(u64) -> u64| {
        format!("\"{}kbit/s\"", [2000, 8000, 20_000, 50_000, 100_000][below(5) as usize] / k)
    };
    let time = |us: u64| format!("\"{}us\"", us * k);
    let hops = 1 + below(3);
    let kind = ["drop-tail", "drop-head"][below(2) as usize];
    let size = ["packets", "kB"][below(2) as usize];
    let mut text = format!(
        "schema = 1\nduration = {}\nwarmup = {}\n[parking-lot]\nhops = {hops}\nrate = {}\ndelay = {}\n\
         queue = {{ kind = \"{kind}\", size = \"{} {size}\" }}\n",
        time(1_000_000),
        time(below(500_000)),
        rate(&mut below),
        time(below(30_000)),
        10 + below(50)
    );
    let loss = 0.01 * below(5) as f64;
    let late = time(below(3000));
    for key in [
        format!("loss = {loss}"),
        format!("duplicate = {loss}"),
        format!("reorder = {{ p = {loss}, delay = {late} }}"),
        format!("jitter = {{ low = {late}, high = {late} }}"),
        format!("loss = {{ kind = \"gilbert-elliott\", p = {loss}, r = 0.3 }}"),
        format!("policer = {{ rate = {}, burst = \"20kB\" }}", rate(&mut below)),
        "mode = \"event\"".into(),
    ] {
        if below(5) == 0 && !(key.starts_with("loss") && text.contains("loss")) {
            text += &format!("{key}\n");
        }
    }
    for _ in 0..1 + below(4) {
        let from = 1 + below(hops + 1);
        let to = 1 + (from + below(hops)) % (hops + 1);
        let packet = [64, 500, 1500, 4000][below(4) as usize];
        let (start, each) = (time(below(300_000)), time(1 + below(200_000)));
        let rates = format!("[{}, \"0bit/s\", {}, {}]", rate(&mut below), rate(&mut below), rate(&mut below));
        let pattern = match below(2) {
            0 => format!("bursts = [{{ start = {start}, rate = {} }}]", rate(&mut below)),
            _ => format!("steps = {{ start = {start}, each = {each}, rates = {rates} }}"),
        };
        text += &format!("[[udp]]\nfrom = {from}\nto = {to}\npacket = \"{packet}B\"\n{pattern}\n");
    }
    for i in 0..below(5) {
        let hop = 1 + below(hops);
        let what = match below(4) {
            0 => format!("rate = {}", rate(&mut below)),
            1 => format!("delay = {}", time(below(30_000))),
            2 => format!("loss = {loss}"),
            _ => format!("down = {}", below(2) == 0),
        };
        text += &format!(
            "[[schedule]]\nat = {}\nlink = \"hop{hop}\"\n{what}\n",
            time(i * 200_000 + below(200_000))
        );
    }
    text
}

/// Only counts: in the mean of times rounding shows.
#[test]
fn half_the_rates_and_twice_the_times_give_the_same_counts() {
    let (draws, seed) = (number("LFN_RELATIONS_DRAWS", 100), number("LFN_SEED", 1));
    println!("LFN_RELATIONS_DRAWS={draws} LFN_SEED={seed}");
    let counts = |text: &str| -> Option<Figures> {
        let mut figures = run(text, None)?;
        let is_count = |name: &str| {
            ["udp[", "links["].iter().any(|of| name.starts_with(of))
                && !name.ends_with("_s")
                && !name.contains("bps")
        };
        figures.retain(|name, _| is_count(name) && !name.contains("utilization"));
        Some(figures)
    };
    let mut tried = 0;
    for i in 0..draws {
        let [one, other] = [1, 2].map(|k| datagrams(&mut Stream::new(seed, &format!("datagrams[{i}]")), k));
        if let (Some(counted), Some(again)) = (counts(&one), counts(&other)) {
            let differ = counted.iter().zip(&again).find(|(a, b)| a != b);
            assert!(differ.is_none() && counted.len() == again.len(), "{differ:?}\n{one}\n{other}");
            tried += 1;
        }
    }
    println!("{tried} of {draws} draws run");
    assert!(tried > draws / 2, "{tried}");
}
