//! The JSON Schema of the format, made from the model.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::model::{Scenario, Weight};
use crate::parse::{BACKGROUND, DROP_TAIL, FLOW, LINK, RED, REVERSE, SCENARIO};
use crate::quantity::{Quantity, Text};

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

/// The schema of a TOML file: no value is null, and a queue without a kind is drop-tail.
fn schema() -> Value {
    let toml = RecursiveTransform(|schema: &mut Schema| {
        if let Some([kind, Value::String(_)]) =
            schema.get("type").and_then(Value::as_array).map(Vec::as_slice)
        {
            let kind = kind.clone();
            schema.insert("type".into(), kind);
        }
        if schema.pointer("/properties/kind/const").is_some_and(|kind| kind == "drop-tail") {
            schema.remove("required");
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

#[test]
fn the_schema_has_the_keys_that_are_read() {
    let schema = schema();
    for (table, keys) in [
        ("", SCENARIO),
        ("/$defs/Link", LINK),
        ("/$defs/Reverse", REVERSE),
        ("/$defs/Queue/oneOf/0", DROP_TAIL),
        ("/$defs/Queue/oneOf/1", RED),
        ("/$defs/Flow", FLOW),
        ("/$defs/Background", BACKGROUND),
    ] {
        let properties = schema.pointer(&format!("{table}/properties")).unwrap().as_object().unwrap();
        let described: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(described, keys.iter().copied().collect(), "{table}");
    }
}
