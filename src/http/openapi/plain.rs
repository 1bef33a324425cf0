//! Schemas in the words that validators and generators of clients understand.
//!
//! schemars writes what JSON Schema allows. Of that, generators take less: a choice of constants is no enum to them, a
//! schema `true` no schema, and a property with a default one that is always there. What is rewritten here says the
//! same.

use serde_json::{Map, Value, json};

/// Rewrites all schemas within `value`.
pub(super) fn make_plain(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            schema.values_mut().for_each(make_plain);
            fill_blanks(schema);
            make_enum(schema);
            drop_default(schema);
            name_format(schema);
        }
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        _ => {}
    }
}

/// `true` as a schema is `{}`.
fn fill_blanks(schema: &mut Map<String, Value>) {
    if let Some(items @ Value::Bool(true)) = schema.get_mut("items") {
        *items = json!({});
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter(|property| **property == Value::Bool(true)) {
            *property = json!({});
        }
    }
}

/// A choice of constants is an enum, with their meanings in its description.
fn make_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let words: Option<Vec<&Value>> =
        choices.iter().map(|choice| choice.get("const").or_else(|| only(choice))).collect();
    let Some(words) = words else { return };
    let meanings = choices.iter().zip(&words).filter_map(|(choice, word)| {
        let meaning = choice.get("description")?.as_str()?;
        Some(format!("- `{}`: {meaning}", word.as_str()?))
    });
    let head = schema.get("description").and_then(Value::as_str).map(|head| format!("{head}\n"));
    let description: Vec<String> = head.into_iter().chain(meanings).collect();
    let words: Value = words.into_iter().cloned().collect();
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words);
    schema.insert("description".to_owned(), description.join("\n").into());
}

/// The word of an enum of one word.
fn only(choice: &Value) -> Option<&Value> {
    match choice.get("enum")?.as_array()?.as_slice() {
        [word] => Some(word),
        _ => None,
    }
}

/// A default is what leaving the key out means, and stands in its description where that is not plain. As a keyword it
/// makes generators demand the key. A property that is called `default` is none.
fn drop_default(schema: &mut Map<String, Value>) {
    let is_schema =
        ["type", "$ref", "anyOf", "allOf", "oneOf", "description"].iter().any(|key| schema.contains_key(*key));
    if is_schema
        && schema.get("default").is_some_and(|default| !default.get("description").is_some_and(Value::is_string))
    {
        schema.shift_remove("default");
    }
}

/// The formats that OpenAPI knows; an unsigned number says so by its minimum.
fn name_format(schema: &mut Map<String, Value>) {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("uint8" | "uint16" | "int8" | "int16") => "int32",
        Some("uint" | "uint32" | "uint64" | "int") => "int64",
        _ => return,
    };
    schema.insert("format".to_owned(), known.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_say_the_same_in_plain_words() {
        let check = |mut schema: Value, expected: Value| {
            let before = schema.clone();
            make_plain(&mut schema);
            assert_eq!(schema, expected, "{before}");
            make_plain(&mut schema);
            assert_eq!(schema, expected, "{before}, twice");
        };
        check(json!({"type": "array", "items": true}), json!({"type": "array", "items": {}}));
        check(json!({"type": ["string", "null"], "default": null}), json!({"type": ["string", "null"]}));
        check(json!({"type": "integer", "format": "uint64"}), json!({"type": "integer", "format": "int64"}));
        check(
            json!({"description": "How.", "oneOf": [
                {"type": "string", "const": "a", "description": "One."}, {"type": "string", "enum": ["b"]},
            ]}),
            json!({"description": "How.\n\n- `a`: One.", "type": "string", "enum": ["a", "b"]}),
        );
        let choice = json!({"oneOf": [{"type": "string"}, {"type": "integer"}]});
        check(choice.clone(), choice);
        let named_default =
            json!({"type": "object", "properties": {"default": {"type": "string", "description": "d"}}});
        check(named_default.clone(), named_default);
        check(json!({"properties": {"x": true}}), json!({"properties": {"x": {}}}));
    }
}
