//! A scenario's text as it was written: its tables, and the line of every key.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::error::ScenarioError;
use crate::reader::{join, Source};
use crate::{Outside, Scenario};

/// Contents of a text, without defaults.
pub struct Document {
    /// The tables as JSON, keys in the order of the text.
    pub json: String,
    /// The line of each key, by its path.
    pub lines: BTreeMap<String, usize>,
}

impl Document {
    /// Reads a scenario. `beside` is a table that may stand in its file and is no part of it.
    ///
    /// # Errors
    /// The first fault of the scenario, or a value of `beside` that no scenario can have.
    pub fn read(
        text: &str,
        file: &str,
        beside: Option<&str>,
        outside: &dyn Outside,
    ) -> Result<Document, ScenarioError> {
        let source = Source { file, text, outside };
        let tables = source.tables()?;
        let mut scenario = tables.get_ref().clone();
        if let Some(name) = beside {
            let said = scenario.remove(name);
            if said.is_none_or(|said| said.get_ref().as_table().is_none_or(|table| table.is_empty())) {
                return Err(ScenarioError {
                    file: file.into(),
                    line: None,
                    key: String::new(),
                    found: format!("no table [{name}]"),
                    hint: "docs/sweep.md has examples".into(),
                });
            }
        }
        Scenario::of_tables(source, &scenario, None)?;
        let mut document = Document { json: String::new(), lines: BTreeMap::new() };
        document.table(&source, "", tables.get_ref())?;
        Ok(document)
    }

    fn table(&mut self, source: &Source, path: &str, table: &DeTable) -> Result<(), ScenarioError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        self.json.push('{');
        for (i, (key, value)) in entries.into_iter().enumerate() {
            let below = join(path, key.get_ref());
            self.lines.insert(below.clone(), source.line(key.span().start));
            self.json.push_str(if i > 0 { "," } else { "" });
            self.json.push_str(&Value::from(key.get_ref().as_ref()).to_string());
            self.json.push(':');
            self.value(source, &below, value)?;
        }
        self.json.push('}');
        Ok(())
    }

    fn value(&mut self, source: &Source, path: &str, value: &Spanned<DeValue>) -> Result<(), ScenarioError> {
        let refused = |found: String| {
            let hint = "allowed: a text, a number, true, false, a list, a table";
            Err(source.error(value.span().start, path, found, hint))
        };
        let plain = match value.get_ref() {
            DeValue::Table(table) => return self.table(source, path, table),
            DeValue::Array(values) => {
                self.json.push('[');
                for (i, value) in values.iter().enumerate() {
                    self.json.push_str(if i > 0 { "," } else { "" });
                    self.value(source, &format!("{path}[{i}]"), value)?;
                }
                self.json.push(']');
                return Ok(());
            }
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Boolean(value) => Value::from(*value),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::from(number),
                Err(_) => return refused(format!("found the integer {number}")),
            },
            DeValue::Float(number) => match number.as_str().parse::<f64>().map(Value::from) {
                Ok(number) if !number.is_null() => number,
                _ => return refused(format!("found the number {number}")),
            },
            DeValue::Datetime(date) => return refused(format!("found the date {date}")),
        };
        self.json.push_str(&plain.to_string());
        Ok(())
    }
}
