//! The JSON Schema of the format, made from the declarations of the keys.

use std::ops::Bound;
use std::path::Path;

use lfn_keys::{Key, Kind, Said, Shape, Span, Value as _};
use serde_json::{json, Map, Value};

use crate::model::Scenario;

/// The definitions that a schema refers to, by name.
#[derive(Default)]
struct Definitions(Map<String, Value>);

impl Definitions {
    /// The type of a key, with its bounds.
    fn kind(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Boolean => json!({ "type": "boolean" }),
            Kind::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
            Kind::Number(span) => number(span),
            Kind::Words(words) => json!({ "type": "string", "enum": words }),
            Kind::Quantity(example, None) => json!({ "type": "string", "examples": [example] }),
            Kind::Quantity(example, Some(range)) => {
                json!({ "type": "string", "examples": [example], "x-range": zero(&range) })
            }
            Kind::OneOrEach(of) => {
                let mut one = self.kind(*of);
                let range = one.as_object_mut().and_then(|one| one.remove("x-range"));
                let mut schema = json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] });
                if let Some(range) = range {
                    schema["x-range"] = range;
                }
                schema
            }
            Kind::WordOr(word, span) => json!({ "anyOf": [{ "const": word }, number(span)] }),
            Kind::Text => json!({ "type": "string" }),
            Kind::Name => json!({ "anyOf": [
                { "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$" },
                { "type": "integer", "minimum": 0 }
            ] }),
            Kind::File => json!({ "anyOf": [
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
            ] }),
            Kind::List(of, 0) => json!({ "type": "array", "items": self.kind(*of) }),
            Kind::List(of, least) => json!({ "type": "array", "items": self.kind(*of), "minItems": least }),
            Kind::Table(shape) => self.define(shape.name, |all| all.table(shape, None)),
            Kind::Kinds(name, about, kinds, must) => self.define(name, |all| {
                let table =
                    |(i, (kind, shape)): (usize, (_, Shape))| all.table(shape, Some((kind, must || i > 0)));
                let tables: Vec<_> = kinds.into_iter().enumerate().map(table).collect();
                json!({ "description": about, "oneOf": tables })
            }),
            Kind::Either(name, about, kinds) => self.define(name, |all| {
                let other = |(about, kind)| described(all.kind(kind), about);
                json!({ "description": about, "anyOf": kinds.into_iter().map(other).collect::<Vec<_>>() })
            }),
        }
    }

    /// A reference to a definition, which is made the first time.
    fn define(&mut self, name: &'static str, make: impl FnOnce(&mut Definitions) -> Value) -> Value {
        if !self.0.contains_key(name) {
            self.0.insert(name.into(), Value::Null);
            let made = make(self);
            self.0.insert(name.into(), made);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// A table, of which kind, and whether its kind must be said.
    fn table(&mut self, shape: Shape, kind: Option<(&str, bool)>) -> Value {
        let mut properties = Map::new();
        let mut required: Vec<&str> = Vec::new();
        if let Some((kind, must)) = kind {
            properties.insert("kind".into(), json!({ "type": "string", "const": kind }));
            required.extend(must.then_some("kind"));
        }
        required.extend(shape.keys.iter().filter(|(key, _)| key.needed.is_some()).map(|(key, _)| key.name));
        for (key, default) in shape.keys {
            properties.insert(key.name.into(), self.property(key, &default));
        }
        let mut table = json!({
            "type": "object",
            "description": lines(shape.about),
            "properties": properties,
            "required": required,
            "additionalProperties": false
        });
        if !shape.one_of.is_empty() {
            table["oneOf"] = shape.one_of.iter().map(|key| json!({ "required": [key] })).collect();
        }
        table
    }

    fn property(&mut self, key: Key, default: &Said) -> Value {
        let mut schema = described(self.kind((key.kind)()), key.about);
        // Of a default that depends on other keys the description says how; keys that must be there have none.
        if key.about.contains("Default") || key.needed.is_some() {
            return schema;
        }
        match plain(default) {
            Value::Null => {}
            default => schema["default"] = default,
        }
        schema
    }
}

/// A description of several lines in one.
fn lines(about: &str) -> String {
    about.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A time of 0 as people write it.
fn zero(text: &str) -> String {
    text.strip_prefix("0ps").map_or(text.into(), |rest| format!("0s{rest}"))
}

fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = json!(lines(about));
    schema
}

fn plain(said: &Said) -> Value {
    match said {
        Said::Nothing => Value::Null,
        Said::Text(text) if text.is_empty() => Value::Null,
        Said::Text(text) => json!(zero(text)),
        Said::Integer(value) => json!(value),
        Said::Number(value) if value.fract() == 0.0 => json!(*value as i64),
        Said::Number(value) => json!(value),
        Said::Boolean(value) => json!(value),
        Said::List(values) => values.iter().map(plain).collect(),
        Said::Table(keys) => keys.iter().map(|(key, value)| (key.to_string(), plain(value))).collect(),
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

fn schema() -> Value {
    let Kind::Table(shape) = Scenario::kind(&()) else { unreachable!("a scenario is a table") };
    let mut definitions = Definitions::default();
    let mut schema = definitions.table(shape, None);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Scenario");
    schema["$defs"] = Value::Object(definitions.0);
    schema
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
