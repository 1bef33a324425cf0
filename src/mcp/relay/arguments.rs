//! Do arguments fit the schema of a tool? Asked before its server is, so that a model learns all faults at once.
//!
//! Lenient: what is said here is surely wrong. Keywords that are not known, patterns among them, hold no call up; the
//! server has the last word. Nothing outside of the schema is ever looked at.

use std::cmp::Ordering;

use serde_json::Value;

/// Faults that are told at most.
const MAX_FAULTS: usize = 8;

/// How deep arguments and references are followed.
const MAX_DEPTH: usize = 64;

/// Values that are looked at, alternatives counted each time.
const MAX_STEPS: usize = 20_000;

/// What is wrong with the arguments, each with its place; empty if nothing is.
pub(in crate::mcp) fn faults(schema: &Value, arguments: &Value) -> Vec<String> {
    let mut check = Check { root: schema, steps: 0, faults: Vec::new() };
    check.value(schema, arguments, &mut String::new(), 0);
    check.faults
}

struct Check<'s> {
    root: &'s Value,
    steps: usize,
    faults: Vec<String>,
}

impl<'s> Check<'s> {
    fn fault(&mut self, place: &str, message: &str) {
        if self.faults.len() < MAX_FAULTS {
            let place = if place.is_empty() { "/" } else { place };
            self.faults.push(format!("{place}: {message}"));
        }
    }

    fn value(&mut self, schema: &'s Value, value: &Value, place: &mut String, depth: usize) {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS || self.faults.len() >= MAX_FAULTS {
            return;
        }
        if *schema == Value::Bool(false) {
            return self.fault(place, "nothing may stand here");
        }
        if let Some(target) = schema["$ref"].as_str().and_then(|reference| self.target(reference)) {
            self.value(target, value, place, depth + 1);
        }
        self.scalar(schema, value, place);
        self.alternatives(schema, value, place, depth);
        match value {
            Value::Object(members) => self.object(schema, members, place, depth),
            Value::Array(items) => self.list(schema, items, place, depth),
            _ => {}
        }
    }

    /// What a reference within the schema leads to.
    fn target(&self, reference: &str) -> Option<&'s Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn scalar(&mut self, schema: &Value, value: &Value, place: &str) {
        let types: Vec<&str> = match &schema["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_a(value, name)) {
            return self.fault(place, &format!("must be {}, not {}", types.join(" or "), kind(value)));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && allowed.iter().all(|allowed| is_other(allowed, value))
        {
            let shown: Vec<String> = allowed.iter().take(20).map(ToString::to_string).collect();
            return self.fault(place, &format!("must be one of {}", shown.join(", ")));
        }
        if let Some(only) = schema.get("const").filter(|only| is_other(only, value)) {
            return self.fault(place, &format!("must be {only}"));
        }
        if let Some(number) = value.as_f64() {
            if schema["minimum"].as_f64().is_some_and(|least| number < least) {
                self.fault(place, &format!("must be {} or more", schema["minimum"]));
            }
            if schema["maximum"].as_f64().is_some_and(|most| number > most) {
                self.fault(place, &format!("must be {} or less", schema["maximum"]));
            }
        }
        let (length, keys) = match value {
            Value::String(text) => (text.chars().count(), ["minLength", "maxLength"]),
            Value::Array(items) => (items.len(), ["minItems", "maxItems"]),
            _ => return,
        };
        let bound = |key: &str| schema[key].as_u64().map(|bound| bound as usize);
        if bound(keys[0]).is_some_and(|least| length < least) {
            self.fault(place, &format!("is too short: {} or more", schema[keys[0]]));
        }
        if bound(keys[1]).is_some_and(|most| length > most) {
            self.fault(place, &format!("is too long: {} at most", schema[keys[1]]));
        }
    }

    fn alternatives(&mut self, schema: &'s Value, value: &Value, place: &mut String, depth: usize) {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.value(part, value, place, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            let Some(alternatives) = schema[key].as_array().filter(|alternatives| !alternatives.is_empty()) else {
                continue;
            };
            let mut told = Vec::new();
            let fits = alternatives.iter().any(|alternative| {
                let mut other = Check { root: self.root, steps: self.steps, faults: Vec::new() };
                other.value(alternative, value, place, depth + 1);
                self.steps = other.steps;
                told.extend(other.faults.first().cloned());
                other.faults.is_empty()
            });
            if !fits {
                told.dedup();
                self.fault(place, &format!("fits none of the alternatives ({})", told.join("; ")));
            }
        }
    }

    fn object(
        &mut self,
        schema: &'s Value,
        members: &serde_json::Map<String, Value>,
        place: &mut String,
        depth: usize,
    ) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.fault(place, &format!("`{name}` is missing"));
            }
        }
        let properties = schema["properties"].as_object();
        let has_patterns = schema["patternProperties"].as_object().is_some_and(|patterns| !patterns.is_empty());
        for (name, member) in members {
            let known = properties.and_then(|properties| properties.get(name));
            let length = place.len();
            place.push('/');
            place.push_str(&name.replace('~', "~0").replace('/', "~1"));
            match known {
                Some(known) => self.value(known, member, place, depth + 1),
                None if has_patterns => {}
                None if schema["additionalProperties"] == false => {
                    let names = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
                    let near = crate::text::near::nearest(name, names);
                    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    self.fault(place, &format!("there is no such parameter{hint}"));
                }
                None => {
                    if let Some(other) = schema.get("additionalProperties").filter(|other| other.is_object()) {
                        self.value(other, member, place, depth + 1);
                    }
                }
            }
            place.truncate(length);
        }
    }

    fn list(&mut self, schema: &'s Value, items: &[Value], place: &mut String, depth: usize) {
        let Some(each) = schema.get("items").filter(|each| each.is_object()) else { return };
        let first = schema["prefixItems"].as_array().map_or(0, Vec::len);
        for (number, item) in items.iter().enumerate().skip(first) {
            let length = place.len();
            place.push_str(&format!("/{number}"));
            self.value(each, item, place, depth + 1);
            place.truncate(length);
        }
    }
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // One beyond all that is read here may well be whole.
        "integer" => value.is_number() && value.as_f64().is_none_or(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Are the two surely not the same? Numbers are as they were written, so 1 and 1.0 are other texts; and those that no
/// double tells apart may be the same to the server.
fn is_other(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => {
            let doubles = one.as_f64().zip(two.as_f64());
            doubles.and_then(|(one, two)| one.partial_cmp(&two)).is_some_and(Ordering::is_ne)
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() != two.len() || one.iter().zip(two).any(|(one, two)| is_other(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() != two.len() || one.iter().any(|(name, one)| two.get(name).is_none_or(|two| is_other(one, two)))
        }
        (one, two) => one != two,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_surely_wrong_is_told_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "mode": {"enum": ["r", "w"]},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
                "to": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/who"}]},
                "size": {"type": ["integer", "null"]},
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": {"who": {"type": "object", "required": ["id"]}},
        });
        let check = |arguments: Value, expected: &[&str]| {
            let found = faults(&schema, &arguments);
            assert_eq!(found.len(), expected.len(), "{arguments}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{arguments}: {found}");
            }
        };
        check(json!({"path": "x", "mode": "r", "lines": [1, 2.0], "to": {"id": 1}, "size": null}), &[]);
        check(json!({}), &["/: `path` is missing"]);
        check(json!([]), &["/: must be object, not array"]);
        check(json!({"path": 1}), &["/path: must be string, not number"]);
        check(json!({"path": "", "mode": "x"}), &["/path: is too short", "/mode: must be one of \"r\", \"w\""]);
        check(
            json!({"path": "x", "lines": [0, 1.5, 3]}),
            &["is too long: 2", "/lines/0: must be 1", "/lines/1: must be integer"],
        );
        check(json!({"path": "x", "to": {}}), &["/to: fits none of the alternatives"]);
        check(json!({"path": "x", "moed": "r"}), &["/moed: there is no such parameter; did you mean `mode`?"]);
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let check = |schema: &str, argument: &str, fits: bool| {
            let [schema, value] = [schema, argument].map(|text| serde_json::from_str::<Value>(text).unwrap());
            assert_eq!(faults(&schema, &value).is_empty(), fits, "{schema} {argument}");
        };
        check(r#"{"enum": [1]}"#, "1.0", true);
        check(r#"{"enum": [1]}"#, "10e-1", true);
        check(r#"{"enum": [1]}"#, "2", false);
        check(r#"{"enum": [1]}"#, r#""1""#, false);
        check(r#"{"const": 1.50}"#, "1.5", true);
        check(r#"{"const": 1.50}"#, "1.51", false);
        check(r#"{"const": 0}"#, "-0.0", true);
        check(r#"{"const": [{"a": 1}, 2]}"#, r#"[{"a": 1.0}, 2e0]"#, true);
        check(r#"{"const": [{"a": 1}, 2]}"#, r#"[{"a": 1.0}, 3]"#, false);
        check(r#"{"const": {"a": 1}}"#, r#"{"b": 1}"#, false);
        check(r#"{"const": {"a": 1}}"#, r#"{"a": 1, "b": 1}"#, false);
        // Nobody knows how exactly the server reads them.
        check(r#"{"const": 9007199254740992}"#, "9007199254740993", true);
        check(r#"{"const": 1e400}"#, "2e400", true);
        check(r#"{"const": 1e400}"#, r#""2e400""#, false);
        check(r#"{"type": "integer"}"#, "1e400", true);
        check(r#"{"type": "integer"}"#, "1.5", false);
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let schema = json!({"$ref": "#", "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}]});
        faults(&schema, &json!({"a": 1}));
        assert!(faults(&json!({"$ref": "http://example.com/schema"}), &json!({"a": 1})).is_empty());
        assert!(faults(&json!(true), &json!({})).is_empty() && !faults(&json!(false), &json!({})).is_empty());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf =
            prop_oneof![Just(json!(null)), any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("(type|properties|items|anyOf|required|enum|a)", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn argument() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (-2_i8..4).prop_map(Value::from),
            Just(json!(1.5)),
            "[a-c]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Schemas of keywords that are known here.
    fn schema() -> impl Strategy<Value = Value> {
        let kinds = ["object", "array", "string", "number", "integer", "boolean", "null"];
        let kind = || prop::sample::select(kinds.to_vec());
        let leaf = prop_oneof![
            Just(json!(true)),
            kind().prop_map(|kind| json!({"type": kind})),
            prop::collection::btree_set(kind(), 1..3).prop_map(|kinds| json!({"type": kinds})),
            prop::collection::vec(argument(), 1..4).prop_map(|all| json!({"enum": all})),
            argument().prop_map(|only| json!({"const": only})),
            (0_u8..3, 1_u8..4).prop_map(|(least, most)| json!({"minLength": least, "maxLength": most})),
            (0_u8..3, 1_u8..4).prop_map(|(least, most)| json!({"minItems": least, "maxItems": most})),
            (-2_i8..2, 0_i8..4).prop_map(|(least, most)| json!({"minimum": least, "maximum": most})),
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            let some = || prop::collection::vec(inner.clone(), 1..3);
            let members = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
            let rest = prop_oneof![Just(json!(false)), inner.clone()];
            prop_oneof![
                some().prop_map(|all| json!({"allOf": all})),
                some().prop_map(|all| json!({"anyOf": all})),
                inner.clone().prop_map(|each| json!({"items": each})),
                (members, prop::collection::btree_set("[a-c]", 0..2), rest).prop_map(|(members, required, rest)| {
                    json!({"properties": members, "required": required, "additionalProperties": rest})
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_fault_is_of_a_value_that_is_there(
            schema in prop_oneof![value(), schema()],
            arguments in prop_oneof![value(), argument()],
        ) {
            let found = faults(&schema, &arguments);
            prop_assert!(found.len() <= MAX_FAULTS);
            for fault in found {
                let (place, _) = fault.split_once(": ").unwrap();
                prop_assert!(place == "/" || arguments.pointer(place).is_some(), "{} of {}", fault, arguments);
            }
        }

        #[test]
        fn what_is_told_is_wrong(schema in schema(), all in prop::collection::vec(argument(), 10)) {
            let validator = jsonschema::validator_for(&schema).unwrap();
            for arguments in all {
                let told = faults(&schema, &arguments);
                let fits = validator.is_valid(&arguments);
                prop_assert_eq!(told.is_empty(), fits, "{} {}: {:?}", schema, arguments, told);
            }
        }
    }
}
