//! The JSON Schema of the format, made from the model.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::file::File;
use crate::model::{Scenario, Weight};
use crate::parse::{capture, flow, link, queue, router, schedule, traffic, udp, BACKGROUND, SCENARIO};
use crate::quantity::{Name, Quantity, Text};

impl<T: Quantity> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WHAT.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": [T::EXAMPLE] })
    }
}

impl JsonSchema for Weight {
    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "auto" }, { "type": "number", "exclusiveMinimum": 0, "maximum": 1 }] })
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
        ("/$defs/Queue/oneOf/0", queue::FIFO),
        ("/$defs/Queue/oneOf/1", queue::FIFO),
        ("/$defs/Queue/oneOf/2", queue::RED),
        ("/$defs/Queue/oneOf/3", queue::CODEL),
        ("/$defs/Queue/oneOf/4", queue::FQ_CODEL),
        ("/$defs/Queue/oneOf/5", queue::PIE),
        ("/$defs/Router/oneOf/0", router::NONE),
        ("/$defs/Router/oneOf/1", router::VCP),
        ("/$defs/Router/oneOf/2", router::GAINS),
        ("/$defs/Router/oneOf/3", router::GAINS),
        ("/$defs/Router/oneOf/4", router::JETMAX),
        ("/$defs/Flow", flow::FLOW),
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
