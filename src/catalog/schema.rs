//! The JSON Schema of a tool document, for editors and for programs that write documents.
//!
//! It takes what the strict reader takes and nothing else: keys that nothing reads are refused, and a key with nothing
//! behind it is an optional one left out, or an empty list or mapping. A test changes a document in every place and
//! asks both.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::document::{MAX_NAME, ToolMetadata};
use crate::strict::decode::MAX_WHOLE;
use crate::strict::pattern::CONTROL;

/// The schema of a tool document, draft 2020-12.
pub fn schema() -> Value {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<ToolMetadata>().to_value();
    schema["title"] = json!("Almanac tool document");
    adapt(&mut schema);
    for definition in schema["$defs"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        adapt(definition);
    }
    schema["properties"]["name"]["pattern"] = json!(format!("^[^/{CONTROL}]{{1,{MAX_NAME}}}$"));
    for relation in ["Conflict", "Alternative", "Complement"] {
        let pattern = format!("^(?!mcp:$)(mcp:)?[^/{CONTROL}]{{1,{MAX_NAME}}}$");
        schema["$defs"][relation]["properties"]["tool"]["pattern"] = json!(pattern);
    }
    schema
}

/// The schema as text, as `docs/schema/tool.json` has it.
pub fn text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("a schema has string keys and finite numbers");
    text.push('\n');
    text
}

/// Makes the schema of a mapping as strict as its reader, and no stricter.
fn adapt(schema: &mut Value) {
    let required: Vec<String> = serde_json::from_value(schema["required"].clone()).unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (key, property) in properties {
        let is_list = property["type"] == "array" || property["type"] == "object";
        if is_list || !required.contains(key) {
            take_nothing(property);
        }
        if let Some(members) = property.get_mut("additionalProperties").filter(|members| members.is_object()) {
            drop_format(members);
        }
        drop_format(property);
        if let Some(property) = property.as_object_mut() {
            property.remove("default");
        }
    }
    schema["additionalProperties"] = json!(false);
}

/// Whole numbers are told by their type; what `format` adds is no vocabulary of JSON Schema.
fn drop_format(schema: &mut Value) {
    if schema["format"].as_str().is_some_and(|format| format.starts_with("uint"))
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("format");
        schema.entry("maximum").or_insert_with(|| json!(MAX_WHOLE));
    }
}

fn take_nothing(property: &mut Value) {
    let Some(object) = property.as_object_mut() else { return };
    match object.get_mut("type") {
        Some(Value::String(kind)) => {
            let kind = kind.clone();
            object.insert("type".to_owned(), json!([kind, "null"]));
        }
        Some(Value::Array(kinds)) if !kinds.contains(&json!("null")) => kinds.push(json!("null")),
        Some(_) => {}
        None => {
            if let Some(reference) = object.remove("$ref") {
                object.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::decode_file;
    use crate::strict::read::{Limits, yaml};
    use crate::strict::{Node, Segment};

    const FULL: &str = include_str!("../../tests/golden/every_field.yaml");

    #[test]
    fn the_file_is_what_the_code_says() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema/tool.json");
        let written = std::fs::read_to_string(file).unwrap();
        assert_eq!(written, text(), "almanacd schema > docs/schema/tool.json");
    }

    /// All places of a value, the innermost last.
    fn places(value: &Value, here: &[Segment], found: &mut Vec<Vec<Segment>>) {
        found.push(here.to_vec());
        let mut step = |segment: Segment, inner: &Value| {
            let place: Vec<Segment> = here.iter().cloned().chain([segment]).collect();
            places(inner, &place, found);
        };
        match value {
            Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| step(Segment::Index(index), item)),
            Value::Object(map) => map.iter().for_each(|(key, inner)| step(Segment::Key(key.clone()), inner)),
            _ => {}
        }
    }

    fn at<'v>(value: &'v mut Value, place: &[Segment]) -> &'v mut Value {
        place.iter().fold(value, |value, segment| match segment {
            Segment::Key(key) => &mut value[key],
            Segment::Index(index) => &mut value[*index],
        })
    }

    #[test]
    fn what_one_takes_the_other_takes() {
        let full = Value::from(yaml(FULL.as_bytes(), &Limits::of_bytes(1 << 18)).unwrap());
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let mut told = [0_usize; 2];
        let mut check = |value: &Value, why: &str| {
            let read = decode_file::<ToolMetadata>(Node::from(value.clone()));
            let valid = validator.is_valid(value);
            let faults: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
            assert_eq!(valid, read.is_ok(), "{why}\nthe schema: {faults:?}\nthe reader: {:?}", read.err());
            told[usize::from(valid)] += 1;
        };
        check(&full, "the whole document");
        let odd = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-1),
            json!(86_400_000),
            json!(86_400_001),
            json!("x"),
            json!(""),
            json!("a/b"),
            json!("mcp:"),
            json!("mcp:x"),
            json!("a\nb"),
            json!("a\u{80}b"),
            json!("ä".repeat(128)),
            json!("ä".repeat(129)),
            json!("mcp:".to_owned() + &"b".repeat(128)),
            json!("mcp:".to_owned() + &"b".repeat(129)),
            json!([]),
            json!([null]),
            json!(["x"]),
            json!([{}]),
            json!({}),
            json!({"x": 1}),
            json!({"x": null}),
            json!("high"),
            json!("High"),
        ];
        let mut found = Vec::new();
        places(&full, &[], &mut found);
        for place in &found {
            for odd in &odd {
                let mut changed = full.clone();
                *at(&mut changed, place) = odd.clone();
                check(&changed, &format!("{odd} at {place:?}"));
            }
            let mut changed = full.clone();
            if let Some(map) = at(&mut changed, place).as_object_mut() {
                map.insert("no_such_key".to_owned(), json!(1));
                check(&changed, &format!("another key at {place:?}"));
            }
            if let Some((Segment::Key(key), outer)) = place.split_last() {
                let mut changed = full.clone();
                at(&mut changed, outer).as_object_mut().unwrap().shift_remove(key);
                check(&changed, &format!("without {place:?}"));
            }
        }
        assert!(told.iter().all(|&told| told > 300), "both answers are frequent: {told:?}");
    }

    #[test]
    fn what_ships_is_valid() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tool_metadata");
        let files = super::super::files::list(&[directory.into()]).documents;
        assert_eq!(files.len(), 210);
        for place in files.keys() {
            let text = std::fs::read(&place.path).unwrap();
            let value = Value::from(yaml(&text, &Limits::of_bytes(1 << 18)).unwrap());
            assert!(validator.is_valid(&value), "{}", place.path.display());
        }
    }
}
