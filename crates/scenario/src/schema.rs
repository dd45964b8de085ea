//! The JSON Schema of the format, made from the model.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;

use lfn_keys::{Keys, Kind, Said, Span};
use lfn_path::{AqmConfig, RouterConfig};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde_json::{json, Value};

use crate::file::File;
use crate::model::{Queue, Router, Scenario, Tcp};
use crate::parse::{capture, flow, link, schedule, traffic, udp, BACKGROUND, SCENARIO};
use crate::quantity::{BufferSize, Name, Quantity, Text};

impl<T: Quantity> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WHAT.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        kind(&T::KIND).try_into().expect("an object")
    }
}

/// The type of a key, with its bounds.
fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Number(span) => number(*span),
        Kind::Words(words) => json!({ "type": "string", "enum": words }),
        Kind::Quantity(example, None) => json!({ "type": "string", "examples": [example] }),
        Kind::Quantity(example, Some(range)) => {
            json!({ "type": "string", "examples": [example], "x-range": range })
        }
        Kind::WordOr(word, span) => json!({ "anyOf": [{ "const": word }, number(*span)] }),
    }
}

fn number(span: Span) -> Value {
    let mut schema = json!({ "type": "number" });
    for (bound, included, excluded) in
        [(span.low, "minimum", "exclusiveMinimum"), (span.high, "maximum", "exclusiveMaximum")]
    {
        match bound {
            Bound::Included(at) => schema[included] = json!(at),
            Bound::Excluded(at) => schema[excluded] = json!(at),
            Bound::Unbounded => {}
        }
    }
    schema
}

/// The keys of a table as properties.
fn keys_of(keys: &dyn Keys) -> serde_json::Map<String, Value> {
    let property = |key: lfn_keys::Key| {
        let mut schema = kind(&key.kind);
        schema["description"] = json!(key.about.lines().map(str::trim).collect::<Vec<_>>().join(" "));
        match keys.get(key.name) {
            // Of a default that depends on another key, the description says how.
            _ if key.about.contains("Default") => {}
            Said::Nothing => {}
            Said::Text(text) => schema["default"] = json!(text),
            Said::Integer(value) => schema["default"] = json!(value),
            Said::Number(value) => schema["default"] = json!(value),
            Said::Boolean(value) => schema["default"] = json!(value),
        }
        (key.name.to_string(), schema)
    };
    keys.keys().into_iter().map(property).collect()
}

/// A table of one kind: what it does, the keys that all kinds have, and its own.
fn table(kind: &str, about: &str, shared: &[(&str, Value)], keys: Option<&dyn Keys>) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert("kind".into(), json!({ "type": "string", "const": kind }));
    properties.extend(shared.iter().map(|(key, schema)| (key.to_string(), schema.clone())));
    properties.extend(keys.into_iter().flat_map(keys_of));
    json!({
        "type": "object",
        "description": about,
        "properties": properties,
        "required": ["kind"],
        "additionalProperties": false
    })
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut size = kind(&BufferSize::KIND);
        size["description"] = json!(
            "Room in packets, in bytes, or in products of the rate and the largest base RTT of the flows \
             that pass (of all flows if none does), one packet at least. Of a trace, the mean rate."
        );
        size["default"] = json!("1bdp");
        let shared = [("size", size)];
        let kinds = AqmConfig::kinds().into_iter();
        let tables = kinds.map(|(kind, about, config)| table(kind, about, &shared, Some(config.keys())));
        json_schema!({
            "description": "A queue and what it does when it fills. Default: drop-tail of 1bdp.",
            "oneOf": tables.collect::<Vec<_>>()
        })
    }
}

impl JsonSchema for Router {
    fn schema_name() -> Cow<'static, str> {
        "Router".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kinds = RouterConfig::kinds().into_iter();
        let tables = kinds.map(|(kind, about, config)| table(kind, about, &[], Some(config.keys())));
        let tables: Vec<_> = [table("none", "Nothing.", &[], None)].into_iter().chain(tables).collect();
        json_schema!({
            "description": "What a link tells the senders of the data that pass it.",
            "oneOf": tables
        })
    }
}

impl JsonSchema for Tcp {
    fn schema_name() -> Cow<'static, str> {
        "Tcp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": keys_of(&Tcp::default()),
            "required": [],
            "additionalProperties": false
        })
    }
}

impl<T> JsonSchema for File<T> {
    fn schema_name() -> Cow<'static, str> {
        "File".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "hash": { "type": "string", "pattern": "^[0-9a-f]{16}$" }
                },
                "required": ["path"],
                "additionalProperties": false
            }
        ] })
    }
}

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$" },
            { "type": "integer", "minimum": 0 }
        ] })
    }
}

/// The schema of a TOML file: no value is null, and some kinds need not be said.
fn schema() -> Value {
    let toml = RecursiveTransform(|schema: &mut Schema| {
        if let Some([kind, Value::String(_)]) =
            schema.get("type").and_then(Value::as_array).map(Vec::as_slice)
        {
            let kind = kind.clone();
            schema.insert("type".into(), kind);
        }
        if let Some(alternatives) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
            alternatives.retain(|alternative| alternative.get("type").is_none_or(|kind| kind != "null"));
        }
        let kind = schema.pointer("/properties/kind/const").and_then(Value::as_str);
        if kind.is_some_and(|kind| ["drop-tail", "uniform"].contains(&kind)) {
            if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|key| key != "kind");
            }
        }
    });
    let settings = SchemaSettings::draft2020_12().with_transform(toml);
    settings.into_generator().into_root_schema_for::<Scenario>().to_value()
}

/// With LFN_REGENERATE set, writes the file instead.
#[test]
fn the_schema_in_the_reference_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.schema.json");
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("LFN_REGENERATE").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap();
    assert!(stored == current, "stale: run LFN_REGENERATE=1 cargo test -p lfn-scenario");
}

/// The properties of an object, with those of the alternatives that are part of it.
fn keys(object: &Value) -> BTreeSet<&str> {
    let alternatives = object.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let objects = [object].into_iter().chain(alternatives);
    let properties = objects.filter_map(|object| object.get("properties")?.as_object());
    properties.flat_map(|properties| properties.keys().map(String::as_str)).collect()
}

#[test]
fn the_schema_has_the_keys_that_are_read() {
    let schema = schema();
    for (table, read) in [
        ("", SCENARIO),
        ("/$defs/Link", link::LINK),
        ("/$defs/ParkingLot", link::PARKING_LOT),
        ("/$defs/NamedLink", link::NAMED_LINK),
        ("/$defs/OneWay", link::ONE_WAY),
        ("/$defs/BurstLoss/oneOf/0", link::GILBERT_ELLIOTT),
        ("/$defs/Reorder", link::REORDER),
        ("/$defs/Jitter/oneOf/0", link::UNIFORM_JITTER),
        ("/$defs/Jitter/oneOf/1", link::NORMAL_JITTER),
        ("/$defs/Flow", &flow::keys()),
        ("/$defs/Udp", udp::UDP),
        ("/$defs/Burst", udp::BURST),
        ("/$defs/Steps", udp::STEPS),
        ("/$defs/OnOff", udp::ON_OFF),
        ("/$defs/Background", BACKGROUND),
        ("/$defs/Traffic", traffic::TRAFFIC),
        ("/$defs/ShortFlows", traffic::SHORT_FLOWS),
        ("/$defs/Requests", traffic::REQUESTS),
        ("/$defs/ParetoSize", traffic::PARETO_SIZE),
        ("/$defs/LognormalSize", traffic::LOGNORMAL_SIZE),
        ("/$defs/Packmime", traffic::PACKMIME),
        ("/$defs/Webtraf", traffic::WEBTRAF),
        ("/$defs/Surge", traffic::SURGE),
        ("/$defs/Vectors", traffic::VECTORS),
        ("/$defs/Suite", traffic::SUITE),
        ("/$defs/LinkChange", schedule::LINK_CHANGE),
        ("/$defs/FileChange", schedule::FILE_CHANGE),
        ("/$defs/RouteChange", schedule::ROUTE_CHANGE),
        ("/$defs/Capture", capture::CAPTURE),
    ] {
        let object = schema.pointer(table).unwrap_or_else(|| panic!("no {table}"));
        assert_eq!(keys(object), read.iter().copied().collect(), "{table}");
    }
}
