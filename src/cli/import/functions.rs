//! Documents from lists of functions, as OpenAI, Anthropic and Gemini take them, and from what `tools/list` answers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::tools::described;
use crate::catalog::ToolMetadata;
use crate::upstream::{MAX_NAME, public_name};

/// Members of a function that documents have a place for.
const KNOWN: [&str; 7] = ["type", "name", "description", "parameters", "input_schema", "inputSchema", "function"];

/// The same of a tool of `tools/list`.
const KNOWN_OF_MCP: [&str; 4] = ["name", "title", "description", "inputSchema"];

/// Types of values as Gemini names them.
const GEMINI_TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

/// The documents, and what could not be carried over; nothing if `value` is no such list.
pub(super) fn functions(value: &Value) -> Option<(Vec<ToolMetadata>, Vec<String>)> {
    let mut taken = Taken::default();
    for (place, item) in items(value, &["tools", "functions", "functionDeclarations", "function_declarations"])? {
        taken.function(&place, item);
    }
    Some((taken.documents, taken.left))
}

/// The documents of a server's tools, and what could not be carried over; nothing if `value` is no such list.
pub(super) fn mcp_list(value: &Value, server: &str) -> Option<(Vec<ToolMetadata>, Vec<String>)> {
    let value = if value["result"].is_object() { &value["result"] } else { value };
    let mut taken = Taken::default();
    if value["nextCursor"].is_string() {
        taken.left.push("the list goes on behind nextCursor: ask for the other pages, too".to_owned());
    }
    for (place, item) in items(value, &["tools"])? {
        let Some(name) = taken.name(&place, item) else { continue };
        taken.note_others(&name, item, &KNOWN_OF_MCP);
        let document = described(server, &name, item);
        taken.add(&place, &name, document);
    }
    Some((taken.documents, taken.left))
}

/// The list itself, or what stands under one of these keys; each item with its place.
fn items<'v>(value: &'v Value, keys: &[&str]) -> Option<Vec<(String, &'v Value)>> {
    let (key, list) = match value {
        Value::Array(list) => ("", list),
        _ => keys.iter().find_map(|key| Some((*key, value[*key].as_array()?)))?,
    };
    Some(list.iter().enumerate().map(|(index, item)| (format!("{key}[{index}]"), item)).collect())
}

#[derive(Debug, Default)]
struct Taken {
    documents: Vec<ToolMetadata>,
    names: BTreeSet<String>,
    left: Vec<String>,
}

impl Taken {
    /// A function, or a group of them as Gemini has it.
    fn function(&mut self, place: &str, item: &Value) {
        for key in ["functionDeclarations", "function_declarations"] {
            for (index, inner) in item[key].as_array().into_iter().flatten().enumerate() {
                self.function(&format!("{place}.{key}[{index}]"), inner);
            }
            if item[key].is_array() {
                return;
            }
        }
        let kind = item["type"].as_str().unwrap_or("function");
        let inner = if item["function"].is_object() { &item["function"] } else { item };
        if !["function", "custom"].contains(&kind) {
            self.left.push(format!("{place}: a tool of the type `{kind}` belongs to the model's maker, not to you"));
            return;
        }
        let Some(name) = self.name(place, inner) else { return };
        self.note_others(&name, inner, &KNOWN);
        let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| inner[*key].as_object());
        let document = ToolMetadata {
            name: public_name("", &name, MAX_NAME),
            title: title(&name),
            description: inner["description"].as_str().unwrap_or_default().trim().to_owned(),
            input_schema: schema.cloned().map(in_json_schema),
            ..ToolMetadata::default()
        };
        self.add(place, &name, document);
    }

    fn name(&mut self, place: &str, item: &Value) -> Option<String> {
        let name = item["name"].as_str().filter(|name| !name.is_empty()).map(ToOwned::to_owned);
        if name.is_none() {
            self.left.push(format!("{place}: it has no name"));
        }
        name
    }

    fn note_others(&mut self, name: &str, item: &Value, known: &[&str]) {
        let others = item.as_object().into_iter().flat_map(Map::keys).filter(|key| !known.contains(&key.as_str()));
        let others: Vec<&str> = others.map(String::as_str).collect();
        if !others.is_empty() {
            let have = if others.len() == 1 { "has" } else { "have" };
            self.left.push(format!("{name}: {} {have} no place in a document", others.join(", ")));
        }
    }

    fn add(&mut self, place: &str, name: &str, document: ToolMetadata) {
        if document.description.is_empty() {
            self.left.push(format!("{name}: there is no description; say what it does, it is chosen by that"));
        }
        if document.name != name && !document.name.ends_with(name) {
            self.left.push(format!("{name}: it is called {} here", document.name));
        }
        if self.names.insert(document.name.clone()) {
            self.documents.push(document);
        } else {
            self.left.push(format!("{place}: there is a `{name}` already; this one is left out"));
        }
    }
}

/// The schema with the names of JSON Schema for types, which Gemini writes in capitals.
fn in_json_schema(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::String(name)) = schema.get_mut("type")
        && GEMINI_TYPES.contains(&name.as_str())
    {
        name.make_ascii_lowercase();
    }
    for (key, value) in &mut schema {
        match value {
            Value::Object(inner) if key == "properties" => inner.values_mut().for_each(make_json_schema),
            Value::Object(_) if ["items", "additionalProperties"].contains(&key.as_str()) => make_json_schema(value),
            Value::Array(all) if ["anyOf", "prefixItems"].contains(&key.as_str()) => {
                all.iter_mut().for_each(make_json_schema);
            }
            _ => {}
        }
    }
    schema
}

fn make_json_schema(schema: &mut Value) {
    if let Value::Object(inner) = schema {
        *inner = in_json_schema(std::mem::take(inner));
    }
}

/// A name as people read it: `getUserById` and `get_user_by_id` are "Get user by id".
pub(super) fn title(name: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for character in name.chars() {
        if character.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            words.push(' ');
        }
        let is_gap = !character.is_alphanumeric();
        words.extend(if is_gap { vec![' '] } else { character.to_lowercase().collect() });
        before = character;
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut letters = words.chars();
    letters.next().map_or_else(|| name.to_owned(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, expected: &[&str], left: &[&str]) {
        let (documents, said) = functions(value).unwrap();
        let got: Vec<String> = documents
            .iter()
            .map(|document| {
                let fields = document.input_schema.as_ref().and_then(|schema| schema["properties"].as_object());
                let fields: Vec<&str> = fields.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                format!("{}: {} ({})", document.name, document.description, fields.join(" "))
            })
            .collect();
        assert_eq!(got, expected);
        assert_eq!(said, left);
    }

    #[test]
    fn every_maker_s_list_is_read() {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let openai = json!([{"type": "function", "function": {
            "name": "find", "description": "Finds.", "parameters": schema,
            "strict": true}}, {"type": "web_search"}]);
        let left = [
            "find: strict has no place in a document",
            "[1]: a tool of the type `web_search` belongs to the model's \
            maker, not to you",
        ];
        check(&openai, &["find: Finds. (q)"], &left);
        let responses = json!({"tools": [{"type": "function", "name": "find", "parameters": schema}]});
        check(&responses, &["find:  (q)"], &["find: there is no description; say what it does, it is chosen by that"]);
        let anthropic =
            json!([{"name": "find", "description": "Finds.", "input_schema": schema}, {"description": "x"}]);
        check(&anthropic, &["find: Finds. (q)"], &["[1]: it has no name"]);
        let gemini =
            json!([{"functionDeclarations": [{"name": "find", "description": "Finds.", "parameters": schema}]}]);
        check(&gemini, &["find: Finds. (q)"], &[]);
        let twice = json!([{"name": "a", "description": "d"}, {"name": "a", "description": "d"}]);
        check(&twice, &["a: d ()"], &["[1]: there is a `a` already; this one is left out"]);
        assert!(functions(&json!({"paths": {}})).is_none());
    }

    #[test]
    fn types_in_capitals_are_those_of_json_schema() {
        let parameters = json!({
            "type": "OBJECT",
            "properties": {
                "type": {"type": "STRING", "enum": ["OBJECT"]},
                "sizes": {"type": "ARRAY", "items": {"anyOf": [{"type": "INTEGER"}, {"type": "NULL"}]}},
            },
        });
        let (documents, _) =
            functions(&json!([{"name": "find", "description": "d", "parameters": parameters}])).unwrap();
        let expected = json!({
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["OBJECT"]},
                "sizes": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            },
        });
        assert_eq!(documents[0].input_schema.clone().map(Value::Object), Some(expected));
    }

    #[test]
    fn what_a_server_lists_is_read() {
        let list = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [
            {"name": "read", "title": "Read", "description": "Reads.", "inputSchema": {"type": "object"},
             "outputSchema": {}, "annotations": {"readOnlyHint": true}}], "nextCursor": "x"}});
        let (documents, left) = mcp_list(&list, "files").unwrap();
        let first = &documents[0];
        assert_eq!(
            (first.name.as_str(), first.title.as_str(), first.backend.as_str()),
            ("files_read", "Read", "mcp:files")
        );
        assert_eq!(
            left,
            [
                "the list goes on behind nextCursor: ask for the other pages, too",
                "read: outputSchema, annotations have no place in a document",
            ]
        );
        let (documents, _) = mcp_list(&list, "").unwrap();
        assert_eq!((documents[0].name.as_str(), documents[0].backend.as_str()), ("read", ""));
    }

    #[test]
    fn names_become_titles() {
        let check = |name: &str, expected: &str| assert_eq!(title(name), expected);
        check("getUserById", "Get user by id");
        check("get_user-by.id", "Get user by id");
        check("listURLs", "List urls");
        check("x", "X");
        check("", "");
    }
}
