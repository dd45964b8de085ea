//! No text makes the crate panic, and the canonical TOML of a scenario is the scenario.

use lfn_scenario::Scenario;
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
            "\"uniform(\"",
            "[]",
            "{}",
            "[{}]",
            "1979-05-27",
            "\"reverse\"",
        ])
        .prop_map(String::from),
    ]
}

/// A key of any table, or a wrong one.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "schema",
        "name",
        "seed",
        "duration",
        "warmup",
        "sample",
        "compat",
        "rate",
        "mode",
        "loss",
        "kind",
        "size",
        "preset",
        "min_th",
        "max_th",
        "target_delay",
        "weight",
        "max_p",
        "wait",
        "ecn",
        "law",
        "count",
        "rtt",
        "start",
        "stop",
        "direction",
        "packet",
        "receive_window",
        "initial_window",
        "initial_ssthresh",
        "slow_start",
        "delayed_ack",
        "sack",
        "pacing",
        "level",
        "long_flows",
        "queue.size",
        "reverse.rate",
        "x",
    ]);
    (key, value()).prop_map(|(key, value)| format!("{key} = {value}\n"))
}

/// Any scenario: the keys of each table may be replaced or joined by others.
fn document() -> impl Strategy<Value = String> {
    let lines = || prop::collection::vec(line(), 0..3).prop_map(|lines| lines.concat());
    let tables = [
        ("", "schema = 1\nduration = \"60s\"\n"),
        ("[link]\n", "rate = \"10Gbit/s\"\n"),
        ("[link.queue]\n", "size = \"1bdp\"\n"),
        ("[link.reverse]\n", "rate = \"1Gbit/s\"\n"),
        ("[[flow]]\n", "law = \"cubic\"\nrtt = \"100ms\"\n"),
        ("[background]\n", "level = 1\n"),
    ];
    tables
        .map(|(head, usual)| {
            (prop::bool::weighted(0.8), lines(), prop::bool::weighted(0.8)).prop_map(
                move |(has_usual, more, is_there)| {
                    let body = [if has_usual { usual } else { "" }, &more].concat();
                    if is_there || head.is_empty() {
                        head.to_string() + &body
                    } else {
                        String::new()
                    }
                },
            )
        })
        .prop_map(|parts| parts.concat())
}

/// Parses, and uses what was parsed unless it is too large to build.
fn exercise(text: &str) {
    match Scenario::parse(text, "any.toml", Some(100_000_000)) {
        Ok(scenario) => {
            let canonical = scenario.to_toml().unwrap();
            assert_eq!(
                Scenario::parse(&canonical, "canonical.toml", None),
                Ok(scenario.clone()),
                "{canonical}"
            );
            serde_json::to_string(&scenario).unwrap();
            let config = scenario.config(scenario.seed);
            assert!(config.links.iter().all(|link| link.limit_packets > 0 || link.limit_bytes > 0));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("any.toml:") && !text.contains('\n'), "{text}");
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
