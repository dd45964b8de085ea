//! A scenario drawn at random, with all that `drawn` leaves out: other networks, traces, token buckets, impairments, ECN,
//! limits, liars, breakers, traffic of other kinds, and several changes. Each addition that does not fit is left out again.

use std::fmt::Write;
use std::io;
use std::path::Path;

use lfn_scenario::{Outside, Scenario};
use lfn_sim::rng::Stream;
use toml::{Table, Value};

use crate::drawn;

/// The files that these scenarios name: traces of different means and gaps, connections, changes of a link.
pub struct Files;

impl Outside for Files {
    fn read(&self, file: &Path, _: u64) -> io::Result<Vec<u8>> {
        let text = match file.to_str() {
            Some("connections") => "duration 2s\nconnection 10ms\nsend 400B\nreceive 90kB after 2ms\n".into(),
            Some("losses") => "time,loss\n0s,0.01\n300ms,0\n400ms,0\n900ms,0.002\n".into(),
            Some("fast") => trace(0.4),
            _ => trace(9.0),
        };
        Ok(text.into_bytes())
    }
}

fn trace(mean_ms: f64) -> String {
    let mut draws = Stream::new(7, "traces");
    let (mut text, mut at_ms) = (String::new(), 0.0);
    for _ in 0..2000 {
        at_ms += -mean_ms * (1.0 - draws.f64()).ln() + if draws.f64() < 0.005 { 300.0 } else { 0.0 };
        writeln!(text, "{at_ms:.0}").expect("a line");
    }
    text + "999999\n"
}

/// The scenario, if there can be such.
pub fn parsed(table: &Table) -> Option<Scenario> {
    Scenario::parse_with(&table.to_string(), "drawn.toml", None, &Files).ok()
}

/// The number that a text begins with.
pub fn leading(text: &Value) -> f64 {
    let text = text.as_str().expect("a quantity");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().expect("a number")
}

/// The tables of this name, in their order.
pub fn entries<'a>(table: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    let found = table.get_mut(key).map(|found| match found {
        Value::Array(all) => all.iter_mut().filter_map(Value::as_table_mut).collect(),
        Value::Table(one) => vec![one],
        _ => Vec::new(),
    });
    found.unwrap_or_default().into_iter()
}

/// Keys and their values.
pub fn keys(text: &str) -> Table {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

struct Trouble {
    table: Table,
    draws: Stream,
}

impl Trouble {
    /// With probability `p` something changes, unless it does not fit.
    fn perhaps(&mut self, p: f64, change: impl FnOnce(&mut Table)) {
        if self.draws.f64() < p {
            let before = self.table.clone();
            change(&mut self.table);
            if parsed(&self.table).is_none() {
                self.table = before;
            }
        }
    }

    /// Each of the tables `of` gets, with its probability, each of these keys.
    fn keys(&mut self, of: &str, rows: &[(f64, String)]) {
        for i in 0..entries(&mut self.table, of).count() {
            for (p, keys) in rows {
                self.perhaps(*p, |table| {
                    let entry = entries(table, of).nth(i).expect("as many as before");
                    entry.extend(self::keys(keys));
                });
            }
        }
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.draws.f64()
    }
}

/// Draw `number` of a series, about as long as `most_packets` take.
pub fn scenario(seed: u64, number: u64, most_packets: f64) -> Table {
    let table = keys(&drawn::scenario(seed, number, most_packets));
    let mut it = Trouble { table, draws: Stream::new(seed, &format!("troubled[{number}]")) };
    let duration_us = leading(&it.table["duration"]);
    let link = if it.table.contains_key("link") { "link" } else { "parking-lot" };
    let rate_bps = leading(&it.table[link]["rate"]);
    let at = |draws: &mut Trouble, low, high| format!("\"{:.0}us\"", duration_us * draws.between(low, high));
    let (warmup, stop) = (at(&mut it, 0.05, 0.9), at(&mut it, 0.2, 0.8));
    it.perhaps(0.5, |table| table.extend(keys(&format!("warmup = {warmup}"))));
    let buckets = |share: f64| format!("{{ rate = \"{:.0}bit/s\", burst = \"100kB\" }}", rate_bps * share);
    let low = it.between(0.0, 30.0);
    let links = [
        (0.07, format!("shaper = {}", buckets(0.3))),
        (0.07, format!("policer = {}", buckets(0.3))),
        (0.1, "acks = { loss = 0.1, aggregate = \"5ms\" }".into()),
        (0.05, "acks = { jitter = { high = \"2ms\" }, reorder = { p = 0.1, delay = \"1ms\" } }".into()),
        (0.05, "loss = { kind = \"gilbert-elliott\", p = 0.001, r = 0.2 }".into()),
        (0.05, "jitter = { kind = \"normal\", mean = \"2ms\", deviation = \"1ms\" }".into()),
        (0.05, format!("jitter = {{ low = \"{low:.0}us\", high = \"3ms\", keep_order = false }}")),
        (0.1, "bleach = true".into()),
        (0.1, "queue = { kind = \"codel\", ecn = true, target = \"2ms\" }".into()),
        (0.05, "queue = { kind = \"red\", rules = \"linux\", ecn = true, mark_p = 1.0 }".into()),
        (0.05, "queue = { kind = \"pie\", size = \"80kB\", byte_mode = true }".into()),
    ];
    it.keys(link, &links);
    it.perhaps(0.1, |table| {
        let of = entries(table, link).next().expect("a link");
        of.remove("rate");
        of.insert("trace".into(), if rate_bps > 5e7 { "fast" } else { "slow" }.into());
    });
    it.perhaps(0.2, graph);
    let packet =
        it.table["flow"][0]["packet"].as_str().map_or(1500.0, |_| leading(&it.table["flow"][0]["packet"]));
    it.keys(
        "flow",
        &[
            (0.25, "direction = \"reverse\"".into()),
            (0.15, format!("stop = {stop}")),
            (0.2, "ecn = true".into()),
            (0.1, "law = \"dctcp\"".into()),
            (0.1, "accecn = \"counter\"\necn = true".into()),
            (0.1, "receiver_ecn = \"classic\"\necn = true".into()),
            (0.05, "receiver_ecn = \"off\"\necn = true".into()),
            (0.05, "misbehaves = \"splits-acks\"".into()),
            // Nothing else keeps its sender back.
            (0.05, "misbehaves = \"optimistic\"\nreceive_window = \"500 packets\"".into()),
            (0.05, "misbehaves = \"hides-marks\"\necn = true".into()),
            (0.05, "application = { rate = \"3Mbit/s\" }".into()),
            (0.05, "application = { rate = \"3Mbit/s\", on = \"100ms\", off = \"300ms\" }".into()),
            (0.05, format!("burst = \"{:.0}B\"", 5.0 * packet)),
            (0.05, "initial_ssthresh = \"40 packets\"".into()),
            (0.05, "slow_start = \"hystart++\"".into()),
            (0.05, "slow_start = \"search\"".into()),
            (
                0.05,
                "slow_start = \"careful-resume\"\nsaved_window = \"90 packets\"\nsaved_rtt = \"20ms\"".into(),
            ),
            (0.05, "breakers = [{ loss = 0.1, interval = \"200ms\", intervals = 2 }]".into()),
            (0.05, "send_buffer = \"linux 100kB 2MB\"".into()),
            (0.05, "send_buffer = \"60 packets\"".into()),
        ],
    );
    others(&mut it, rate_bps);
    if it.draws.f64() < 0.2 {
        calm(&mut it.table);
    }
    changes(&mut it, rate_bps, duration_us);
    it.table
}

/// Next to nothing is left to chance.
fn calm(table: &mut Table) {
    for of in ["link", "parking-lot", "links", "flow"] {
        for entry in entries(table, of) {
            for key in ["loss", "duplicate", "reorder", "jitter", "acks", "router", "start", "transport"] {
                entry.remove(key);
            }
            if entry
                .get("queue")
                .is_some_and(|queue| !queue["kind"].as_str().is_some_and(|it| it.starts_with("drop")))
            {
                entry.insert("queue".into(), keys("kind = \"codel\"").into());
            }
            if entry.get("law").and_then(Value::as_str) == Some("udt") {
                entry.insert("law".into(), "cubic".into());
            }
        }
    }
    for random in ["background", "traffic", "udp"] {
        table.remove(random);
    }
}

/// A dumbbell becomes two links in a row, and a third beside them. Their rates differ: else packets of different flows
/// reach a link in the same picosecond, and which comes first is for the engine to say.
fn graph(table: &mut Table) {
    let Some(Value::Table(link)) = table.remove("link") else { return };
    let slower =
        link.get("rate").map_or(String::new(), |rate| format!("rate = \"{:.0}bit/s\"", 0.93 * leading(rate)));
    let named = |name: &str, from: &str, to: &str, more: &str| {
        let mut link = link.clone();
        link.extend(keys(&format!("name = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{more}")));
        Value::Table(link)
    };
    let links = vec![
        named("forward", "a", "b", "delay = \"100us\""),
        named("second", "b", "c", &format!("{slower}\ndelay = \"20us\"\nreverse = {{ delay = \"30us\" }}")),
        named("over", "a", "c", "delay = \"200us\"\nduplex = false"),
    ];
    table.insert("links".into(), Value::Array(links));
    for link in entries(table, "links").filter(|link| link.contains_key("duplex")) {
        link.remove("reverse");
    }
    let ways = [
        "from = \"a\"\nto = \"b\"",
        "from = \"a\"\nto = \"c\"\nvia = [\"b\"]",
        "route = [\"over\"]",
        "from = \"c\"\nto = \"a\"",
    ];
    let way = |i: usize| keys(ways[i % ways.len()]);
    for of in ["flow", "udp", "traffic", "background"] {
        entries(table, of).enumerate().for_each(|(i, entry)| entry.extend(way(i + of.len())));
    }
    for change in entries(table, "capture") {
        change.insert("links".into(), Value::Array(vec!["over".into(), "second.reverse".into()]));
    }
}

/// UDP, and traffic of the kinds that `drawn` has not.
fn others(it: &mut Trouble, rate_bps: f64) {
    let place = match (it.table.contains_key("links"), it.table.contains_key("link")) {
        (true, _) => "from = \"b\"\nto = \"c\"",
        (_, true) => "direction = \"reverse\"",
        _ => "",
    };
    let [tenth, half] = [0.1, 0.5].map(|share| format!("\"{:.0}bit/s\"", rate_bps * share));
    for (p, of, text) in [
        (0.05, "udp", format!("{place}\npacket = \"700B\"\nbursts = [{{ start = \"100ms\", stop = \"200ms\", rate = {half} }}, {{ rate = {tenth} }}]")),
        (0.05, "udp", format!("{place}\nsteps = {{ each = \"150ms\", rates = [{tenth}, \"0bit/s\", {half}] }}")),
        (0.05, "udp", format!("{place}\nbreakers = [{{ loss = 0.2, interval = \"100ms\" }}]\non_off = {{ sources = 3, rate = {tenth}, burst = \"60ms\" }}")),
        (0.05, "traffic", format!("{place}\nvectors = {{ file = \"connections\" }}")),
        (0.03, "traffic", format!("{place}\nlaw = \"cubic\"\nwebtraf = {{ sessions = 10 }}")),
        (0.03, "traffic", format!("{place}\nsuite = {{ load = {half}, reverse_load = {tenth}, rtts = [\"30ms\"] }}")),
    ] {
        it.perhaps(if of == "udp" || rate_bps < 1e9 { p } else { 0.0 }, |table| {
            let entry = Value::Table(keys(&text));
            let all = table.entry(of).or_insert_with(|| Value::Array(Vec::new()));
            all.as_array_mut().expect("tables").push(entry);
        });
    }
}

/// Several changes instead of those of `drawn`.
fn changes(it: &mut Trouble, rate_bps: f64, duration_us: f64) {
    if it.draws.f64() > 0.4 {
        return;
    }
    it.table.remove("schedule");
    for i in 1..6 {
        let at_us = duration_us * f64::from(i) / 7.0;
        let link = match (i == 4, it.table.contains_key("parking-lot")) {
            (true, false) if it.table.contains_key("link") => "reverse",
            (true, false) => "forward.reverse",
            (_, false) => "forward",
            (_, true) => "hop1",
        };
        let what = match (it.draws.f64() * 7.0) as u32 {
            0 => format!("link = \"{link}\"\ndown = true"),
            1 => format!("link = \"{link}\"\nrate = \"{:.0}bit/s\"", rate_bps * 0.2 * f64::from(i)),
            2 => format!("link = \"{link}\"\ndelay = \"{}us\"", 1000 * i),
            3 => format!("link = \"{link}\"\nloss = 0.1"),
            4 => format!("link = \"{link}\"\ndown = false\nloss = 0.0"),
            5 => "flow = 0\nroute = [\"over\"]\nack_route = [\"second.reverse\", \"forward.reverse\"]".into(),
            _ => format!("link = \"{link}\"\nfile = \"losses\""),
        };
        it.perhaps(1.0, |table| {
            let at = if what.contains("file") { String::new() } else { format!("at = \"{at_us:.0}us\"\n") };
            let all = table.entry("schedule").or_insert_with(|| Value::Array(Vec::new()));
            all.as_array_mut().expect("tables").push(Value::Table(keys(&(at + &what))));
        });
    }
}
