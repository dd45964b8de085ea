//! No text makes the crate panic, and the canonical TOML of a scenario is the scenario.

use std::collections::BTreeSet;

use lfn_keys::{Key, Kind, Kinds, Value};
use lfn_path::AqmConfig;
use lfn_scenario::Scenario;
use lfn_sim::Sim;
use proptest::prelude::*;

/// Values of all types, right and wrong, small and absurd.
fn value() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x}")),
        (0u32..2000).prop_map(|n| n.to_string()),
        Just("0.000001".into()),
        Just("99999999999999999999999999".into()),
    ];
    let unit = prop::sample::select(vec![
        "", "s", "ms", "ps", "h", "bit/s", "Gbit/s", "Tbit/s", "B", "kB", "TB", "KiB", "bdp", " packets",
        "packet",
    ]);
    prop_oneof![
        (number, unit).prop_map(|(number, unit)| format!("\"{number}{unit}\"")),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:e}").replace("NaN", "nan")),
        any::<bool>().prop_map(|b| b.to_string()),
        "[ -~]{0,8}".prop_map(|text| format!("{text:?}")),
        prop::sample::select(vec![
            "\"cubic\"",
            "\"hstcp:ns2\"",
            "\"off\"",
            "\"red\"",
            "\"adaptive\"",
            "\"classic\"",
            "\"ns2\"",
            "\"event\"",
            "\"auto\"",
            "\"uniform(0s, 5s)\"",
            "[\"10ms\", \"70ms\"]",
            "\"log-uniform(1MB, 1GB)\"",
            "\"uniform(\"",
            "[]",
            "{}",
            "[{}]",
            "1979-05-27",
            "\"reverse\"",
            "\"event\"",
            "\"a\"",
            "\"c\"",
            "\"forward\"",
            "\"ab\"",
            "\"delays.csv\"",
            "\"four-a-second.mahi\"",
            "[\"ab\", \"bc\"]",
            "[\"bc.reverse\", \"ab.reverse\"]",
            "[\"forward\"]",
            "[\"b\"]",
            "[\"1Mbit/s\", \"0bit/s\"]",
            "[{ stop = \"1s\", rate = \"1Mbit/s\" }, { rate = \"2Mbit/s\" }]",
            "{ each = \"1s\", rates = [\"1Mbit/s\"] }",
            "{ sources = 3 }",
            "{ kind = \"gilbert-elliott\", p = 0.1, r = 0.2 }",
            "{ high = \"1ms\" }",
            "{ kind = \"normal\", mean = \"2ms\", deviation = \"1ms\", keep_order = false }",
            "{ p = 0.1, delay = \"1ms\" }",
            "{ kind = \"drop-head\" }",
            "{ kind = \"codel\" }",
            "{ kind = \"fq-codel\", quantum = \"300B\" }",
            "{ kind = \"pie\", size = \"10 packets\" }",
        ])
        .prop_map(String::from),
    ]
}

/// All keys of a kind of table and of those in it.
fn collect(kind: Kind, keys: &mut BTreeSet<&'static str>) {
    let shapes = match kind {
        Kind::Table(shape) => vec![shape],
        Kind::Kinds(.., kinds, _) => kinds.into_iter().map(|(_, shape)| shape).collect(),
        Kind::Either(.., kinds) => return kinds.into_iter().for_each(|(_, kind)| collect(kind, keys)),
        Kind::List(of, _) | Kind::OneOrEach(of) => return collect(*of, keys),
        _ => return,
    };
    for (key, _) in shapes.into_iter().flat_map(|shape| shape.keys) {
        keys.insert(key.name);
        collect((key.kind)(), keys);
    }
}

/// A key of any table, or a wrong one.
fn line() -> impl Strategy<Value = String> {
    let mut keys = BTreeSet::from(["x", "queue.size", "reverse.rate"]);
    collect(Scenario::kind(&()), &mut keys);
    let key = prop::sample::select(keys.into_iter().collect::<Vec<_>>());
    (key, value()).prop_map(|(key, value)| format!("{key} = {value}\n"))
}

/// A table that is there with this probability: what it needs, some of what it may have, and rarely
/// something else.
fn table(
    head: &'static str,
    needs: &'static str,
    may_have: &'static [&'static str],
    often: f64,
) -> BoxedStrategy<String> {
    let some = prop::collection::vec(prop::bool::weighted(0.25), may_have.len());
    let other = prop::option::weighted(0.05, line());
    (some, other, prop::bool::weighted(0.98), prop::bool::weighted(often))
        .prop_map(move |(some, other, is_whole, is_there)| {
            if !is_there {
                return String::new();
            }
            let chosen = may_have.iter().zip(some).filter(|&(_, chosen)| chosen);
            let more: String = chosen.map(|(line, _)| format!("{line}\n")).collect();
            [head, if is_whole { needs } else { "" }, &more, &other.unwrap_or_default()].concat()
        })
        .boxed()
}

const LINK: &[&str] = &[
    "delay = \"7ms\"",
    "mode = \"event\"",
    "loss = { kind = \"gilbert-elliott\", p = 0.001, r = 0.2 }",
    "duplicate = 0.01",
    "reorder = { p = 0.1, delay = \"1ms\" }",
    "jitter = { high = \"1ms\" }",
    "router = { kind = \"vcp\", gamma = 0.9 }",
    "reverse = { loss = 0, trace = \"four-a-second.mahi\", queue = { size = \"9 packets\" }, router = { kind = \"jetmax\", interval = \"7ms\" }, jitter = { kind = \"normal\", mean = \"2ms\", deviation = \"1ms\" } }",
];
const FLOW: &[&str] = &[
    "name = \"bulk\"",
    "count = 3",
    "start = \"uniform(0s, 5s)\"",
    "stop = \"30s\"",
    "size = \"1GB\"",
    "rtt = [\"50ms\", \"80ms\"]",
    "packet = \"9000B\"",
    "receive_window = \"1MB\"",
    "send_buffer = \"linux\"",
    "ecn = true",
];
/// A queue for the table of a dumbbell's or a parking lot's link: any kind, with any of its keys.
fn queue(head: &'static str) -> impl Strategy<Value = String> {
    let line = |key: Key| {
        let value = match (key.kind)() {
            Kind::Boolean => "true".into(),
            Kind::Integer(low, _) => low.max(8).to_string(),
            Kind::Number(span) | Kind::WordOr(_, span) => {
                [1.5, 0.5, 0.002].into_iter().find(|&x| span.contains(x)).unwrap_or(0.0).to_string()
            }
            Kind::Words(words) => format!("\"{}\"", words[words.len() - 1]),
            Kind::Quantity(example, _) => format!("\"{}\"", example.replace("MB", "kB")),
            other => panic!("{other:?} in a queue"),
        };
        format!("{} = {value}", key.name)
    };
    let kinds = AqmConfig::kinds().into_iter().map(|(kind, _, config)| {
        let lines: Vec<String> = config.keys().keys().into_iter().map(line).collect();
        (kind, lines)
    });
    let some = |(kind, mut lines): (&'static str, Vec<String>)| {
        lines.push("size = \"50 packets\"".into());
        let count = lines.len();
        prop::sample::subsequence(lines, 0..=count)
            .prop_map(move |lines| format!("kind = \"{kind}\"\n{}\n", lines.join("\n")))
    };
    (prop::bool::ANY, prop::sample::select(kinds.collect::<Vec<_>>()).prop_flat_map(some)).prop_map(
        move |(is_there, kind)| {
            if is_there {
                format!("[{head}.queue]\n{kind}")
            } else {
                String::new()
            }
        },
    )
}

const SOURCES: [&str; 3] = [
    "bursts = [{ stop = \"1s\", rate = \"1Mbit/s\" }, { start = \"2s\", rate = \"2Mbit/s\" }]\n",
    "steps = { each = \"1s\", rates = [\"1Mbit/s\", \"0bit/s\"] }\n",
    "on_off = { sources = 3, shape = 1.2 }\n",
];
const MODELS: [&str; 7] = [
    "short_flows = { load = \"10Mbit/s\" }\n",
    "packmime = { connections = 10 }\n",
    "requests = { load = \"1Mbit/s\", response = { mean = \"50kB\" }, exchanges = 3 }\n",
    "webtraf = { sessions = 10 }\n",
    "surge = { users = 10 }\n",
    "vectors = { file = \"connections.txt\" }\n",
    "suite = { load = \"2Mbit/s\", reverse_load = \"1Mbit/s\", rtts = [\"50ms\", \"74ms\"] }\n",
];

/// The tables of traffic. `ends`: where all of it begins and ends.
fn traffic(ends: &'static str, more: &'static [&'static str]) -> impl Strategy<Value = String> {
    let udp = |source| table("[[udp]]\n", source, &["name = \"u\"", "packet = \"100B\""], 0.3);
    let model = |model| table("[[traffic]]\n", model, &["law = \"evcp:n1=3\"", "rtt = \"150ms\""], 0.3);
    let tables = (
        table("[[flow]]\n", "law = \"cubic\"\nrtt = \"100ms\"\n", more, 0.9),
        table("[[flow]]\n", "law = \"reno\"\nrtt = \"150ms\"\n", FLOW, 0.5),
        prop::sample::select(SOURCES.to_vec()).prop_flat_map(udp),
        table("[background]\n", "level = 1\n", &["long_flows = 3"], 0.3),
        prop::sample::select(MODELS.to_vec()).prop_flat_map(model),
    );
    tables.prop_map(move |tables| {
        let tables = [tables.0, tables.1, tables.2, tables.3, tables.4];
        tables.map(|table| if table.is_empty() { table } else { table + ends }).concat()
    })
}

/// The tables of what changes and of what is recorded, on this link and along this route.
fn rest(link: &'static str, route: &'static str) -> impl Strategy<Value = String> {
    const CHANGES: &[&str] = &["rate = \"1Mbit/s\"", "delay = \"1ms\"", "loss = 0.1"];
    let place = move |text: &str| text.replace("LINK", link).replace("ROUTE", route);
    let tables = (
        table("[[schedule]]\n", "at = \"1s\"\nflow = 0\nroute = ROUTE\n", &[], 0.3),
        table("[[schedule]]\n", "at = \"2s\"\nlink = LINK\ndelay = \"5ms\"\n", &["down = true"], 0.3),
        table("[[schedule]]\n", "link = LINK\nfile = \"delays.csv\"\n", &[], 0.3),
        table("[[schedule]]\n", "at = \"2s\"\nlink = LINK\n", CHANGES, 0.3),
        table("[capture]\n", "", &["links = [LINK]", "max_rows = 10", "to = \"3s\""], 0.3),
    );
    tables.prop_map(move |tables| place(&[tables.0, tables.1, tables.2, tables.3, tables.4].concat()))
}

/// Any scenario.
fn document() -> impl Strategy<Value = String> {
    let join = |tables: (String, String, String, String)| tables.0 + &tables.1 + &tables.2 + &tables.3;
    let top: &[&str] = &["compat = \"ns2\"", "sample = \"off\"", "warmup = \"1s\"", "seed = 7"];
    let dumbbell = (
        table("[link]\n", "rate = \"10Gbit/s\"\n", LINK, 1.0),
        queue("link"),
        traffic("", FLOW),
        rest("\"reverse\"", "[\"forward\"]"),
    );
    let lot = (
        table("[parking-lot]\n", "hops = 3\nrate = \"10Gbit/s\"\n", LINK, 1.0),
        queue("parking-lot"),
        traffic("", &["from = 2\nto = 4", "count = 7", "ecn = true"]),
        rest("\"hop2.reverse\"", "[\"hop1\", \"hop2\", \"hop3\"]"),
    );
    let graph = (
        table("[[links]]\n", "name = \"ab\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Gbit/s\"\n", LINK, 1.0),
        table("[[links]]\n", "name = \"bc\"\nfrom = \"b\"\nto = \"c\"\nrate = \"1Gbit/s\"\n", LINK, 1.0),
        table(
            "[[links]]\n",
            "name = \"ac\"\nfrom = \"a\"\nto = \"c\"\ntrace = \"four-a-second.mahi\"\nqueue = { size = \"9 packets\" }\n",
            &["duplex = false"],
            0.6,
        ),
        (
            traffic("from = \"a\"\nto = \"c\"\n", &["via = [\"b\"]", "ack_route = [\"bc.reverse\", \"ab.reverse\"]"]),
            rest("\"ab\"", "[\"ab\", \"bc\"]"),
        )
            .prop_map(|(traffic, rest)| traffic + &rest),
    );
    let network = prop_oneof![dumbbell.prop_map(join), lot.prop_map(join), graph.prop_map(join)];
    (table("", "schema = 1\nduration = \"60s\"\n", top, 1.0), network).prop_map(|(top, rest)| top + &rest)
}

/// Files are named from here.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/any.toml");

/// Parses, and uses what was parsed unless it is too large to build.
fn exercise(text: &str) {
    match Scenario::parse(text, FILE, Some(1_000_000_000)) {
        Ok(scenario) => {
            let canonical = scenario.to_toml().unwrap();
            assert_eq!(Scenario::parse(&canonical, FILE, None), Ok(scenario.clone()), "{canonical}");
            serde_json::to_string(&scenario).unwrap();
            let config = scenario.config(scenario.seed);
            assert!(config.links.iter().all(|link| link.limit_packets > 0 || link.limit_bytes > 0));
            if scenario.predict().memory_bytes < 100_000_000 {
                Sim::new(&config).unwrap_or_else(|error| panic!("{error}: {canonical}"));
            }
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with(FILE) && !text.contains('\n'), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn toml(text in document()) {
        exercise(&text);
    }
}
