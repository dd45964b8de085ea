//! The JSON Schema of the format, made from the model.

use std::borrow::Cow;
use std::path::Path;

use schemars::{json_schema, schema_for, JsonSchema, Schema, SchemaGenerator};

use crate::model::{Scenario, Weight};
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

/// With LFN_REGENERATE set, writes the file instead.
#[test]
fn the_schema_in_the_reference_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.schema.json");
    let current = serde_json::to_string_pretty(&schema_for!(Scenario)).unwrap() + "\n";
    if std::env::var_os("LFN_REGENERATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &current).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap();
    assert!(stored == current, "stale: run LFN_REGENERATE=1 cargo test -p lfn-scenario");
}
