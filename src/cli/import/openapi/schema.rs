//! Schemas of an OpenAPI description as JSON Schema, with what they refer to beside them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

/// Values of the schemas that one document takes along; what is beyond is described by its name only.
const MAX_VALUES: usize = 4000;

/// Nesting of one schema; a document takes 32 levels in all.
const MAX_DEPTH: usize = 20;

/// Keys of OpenAPI that JSON Schema has not.
const FOREIGN: [&str; 4] = ["discriminator", "xml", "externalDocs", "example"];

/// The schemas that one operation needs.
#[derive(Debug)]
pub(super) struct Schemas<'d> {
    description: &'d Value,
    place: &'d str,
    /// Definitions that are wanted, by their reference; the name of each.
    names: BTreeMap<String, String>,
    wanted: VecDeque<String>,
    /// How much has been taken along.
    values: usize,
    left: BTreeSet<String>,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(description: &'d Value, place: &'d str) -> Self {
        let (names, wanted, left) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Self { description, place, names, wanted, values: 0, left }
    }

    /// The schema, in the words of JSON Schema.
    pub(super) fn adapted(&mut self, schema: &Value) -> Value {
        if schema.is_object() || schema.is_boolean() { self.schema(schema, 0) } else { json!({}) }
    }

    /// What the schemas refer to, by name, and what could not be taken along.
    pub(super) fn finish(mut self) -> (Map<String, Value>, Vec<String>) {
        let mut definitions = BTreeMap::new();
        while let Some(reference) = self.wanted.pop_front() {
            let name = self.names[&reference].clone();
            let found = reference.strip_prefix('#').and_then(|pointer| self.description.pointer(pointer));
            let definition = match found {
                Some(_) if self.values > MAX_VALUES => {
                    self.left.insert(format!("the schema `{name}` and what it refers to: it would be too much"));
                    json!({"description": format!("{name}, of which the description says more.")})
                }
                Some(schema) => self.schema(schema, 0),
                None => {
                    self.left.insert(format!("`{reference}`, which leads nowhere in this file"));
                    json!({})
                }
            };
            definitions.insert(name, definition);
        }
        let place = self.place;
        let left = self.left.into_iter().map(|left| format!("{place}: left out {left}")).collect();
        (definitions.into_iter().collect(), left)
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(object) = schema.as_object() else { return schema.clone() };
        if depth > MAX_DEPTH {
            self.left.insert(format!("what is nested deeper than {MAX_DEPTH} levels"));
            return json!({});
        }
        self.values += object.len() + 1;
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let mut target = Map::new();
            target.insert("$ref".to_owned(), format!("#/$defs/{}", self.name_of(reference)).into());
            // Beside a reference, only what people read says anything.
            if let Some(description) = object.get("description") {
                target.insert("description".to_owned(), description.clone());
            }
            return Value::Object(target);
        }
        let mut adapted = Map::new();
        for (key, value) in object {
            match key.as_str() {
                "nullable" => {}
                "example" => drop(adapted.insert("examples".to_owned(), json!([value]))),
                "discriminator" => {
                    self.left
                        .insert("discriminator: JSON Schema has none; the schemas to choose from are there".to_owned());
                }
                key if FOREIGN.contains(&key) || key.starts_with("x-") => {}
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {}
                "minimum" if object.get("exclusiveMinimum") == Some(&json!(true)) => {
                    adapted.insert("exclusiveMinimum".to_owned(), value.clone());
                }
                "maximum" if object.get("exclusiveMaximum") == Some(&json!(true)) => {
                    adapted.insert("exclusiveMaximum".to_owned(), value.clone());
                }
                "properties" | "patternProperties" | "$defs" | "dependentSchemas" => {
                    let inner = value.as_object().into_iter().flatten();
                    let inner: Map<String, Value> =
                        inner.map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1))).collect();
                    adapted.insert(key.clone(), Value::Object(inner));
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    let inner = value.as_array().into_iter().flatten();
                    let inner: Vec<Value> = inner.map(|schema| self.schema(schema, depth + 1)).collect();
                    adapted.insert(key.clone(), Value::Array(inner));
                }
                "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                    adapted.insert(key.clone(), self.schema(value, depth + 1));
                }
                _ => drop(adapted.insert(key.clone(), value.clone())),
            }
        }
        if object.get("nullable") == Some(&json!(true)) { or_null(adapted) } else { Value::Object(adapted) }
    }

    /// The name by which a definition is taken along.
    fn name_of(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let base: String =
            last.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect();
        let is_taken = |name: &String| self.names.values().any(|known| known == name);
        let mut name = base.clone();
        let mut number = 2;
        while is_taken(&name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.names.insert(reference.to_owned(), name.clone());
        self.wanted.push_back(reference.to_owned());
        name
    }
}

/// OpenAPI 3.0 says `nullable` where JSON Schema has a type of its own.
fn or_null(mut schema: Map<String, Value>) -> Value {
    match schema.get_mut("type") {
        Some(Value::String(kind)) => {
            let kinds = json!([kind, "null"]);
            schema.insert("type".to_owned(), kinds);
            if let Some(Value::Array(words)) = schema.get_mut("enum")
                && !words.contains(&Value::Null)
            {
                words.push(Value::Null);
            }
            Value::Object(schema)
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}
