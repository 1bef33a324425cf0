//! One text for equal JSON, so that what is hashed or compared is told apart by nothing but its content.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::object::{self, Members};

/// The same text for any order of keys, any space and any escapes: keys in the order of their bytes, of equal ones the
/// last, nothing between tokens, exponents with their sign. Digits stay as they are written, as do texts that are no
/// Unicode.
///
/// It goes as deep as the JSON does; whoever took it from outside bounded that.
pub fn canonical(json: &RawValue) -> String {
    let mut text = String::with_capacity(json.get().len());
    write(json, &mut text);
    text
}

fn write(json: &RawValue, text: &mut String) {
    let written = match json.get().as_bytes().first() {
        Some(b'{') => write_object(json, text),
        Some(b'[') => write_list(json, text),
        Some(b'"') => object::text(json).map(|string| write_text(&string, text)),
        Some(b'-' | b'0'..=b'9') => write_number(json, text),
        _ => None,
    };
    if written.is_none() {
        text.push_str(json.get());
    }
}

fn write_object(json: &RawValue, text: &mut String) -> Option<()> {
    let members = Members::read(json).ok()?;
    let members: BTreeMap<&str, &RawValue> = members.iter().collect();
    text.push('{');
    for (place, (name, value)) in members.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write_text(name, text);
        text.push(':');
        write(value, text);
    }
    text.push('}');
    Some(())
}

fn write_list(json: &RawValue, text: &mut String) -> Option<()> {
    let items: Vec<&RawValue> = serde_json::from_str(json.get()).ok()?;
    text.push('[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(']');
    Some(())
}

fn write_text(string: &str, text: &mut String) {
    text.push_str(&Value::from(string).to_string());
}

fn write_number(json: &RawValue, text: &mut String) -> Option<()> {
    let number: Number = serde_json::from_str(json.get()).ok()?;
    text.push_str(number.as_str());
    Some(())
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use proptest::prelude::*;

    use super::super::object::tests::value;
    use super::*;

    fn of(json: &str) -> String {
        canonical(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn it_is_this_text() {
        let check = |json: &str, expected: &str| assert_eq!(of(json), expected, "{json}");
        check(r#"{ "b" : [1, {"d":null,"c":"\u0078"}], "a":true }"#, r#"{"a":true,"b":[1,{"c":"x","d":null}]}"#);
        check(r#"{"ä":1,"z":2,"Z":3,"":4}"#, r#"{"":4,"Z":3,"z":2,"ä":1}"#);
        check(r#"{"\u0061":1,"b":{"x":1,"x":2},"a":3}"#, r#"{"a":3,"b":{"x":2}}"#);
        check(r#""\u00e4\/\u001f\n\"\u007f""#, "\"ä/\\u001f\\n\\\"\u{7f}\"");
        check("[ ]", "[]");
        check("{ }", "{}");
        check("[1E5, 1e+5, 1e-7]", "[1e+5,1e+5,1e-7]");
        for number in ["1", "-0", "1.50", "100000000000000000000000000001", "1e+400"] {
            check(number, number);
        }
    }

    #[test]
    fn what_is_no_unicode_is_told_apart() {
        let lone = r#"{"b":"\ud800","a":1}"#;
        assert_eq!(of(lone), r#"{"a":1,"b":"\ud800"}"#);
        assert_ne!(of(lone), of(r#"{"b":"\ud801","a":1}"#));
    }

    /// The same with its keys in the order that their hashes have.
    fn shuffled(value: &Value, seed: u64) -> Value {
        let hash = |key: &str| {
            let mut hasher = DefaultHasher::new();
            (seed, key).hash(&mut hasher);
            hasher.finish()
        };
        match value {
            Value::Array(items) => items.iter().map(|item| shuffled(item, seed)).collect(),
            Value::Object(map) => {
                let mut members: Vec<_> = map.iter().collect();
                members.sort_by_key(|(key, _)| hash(key));
                members.into_iter().map(|(key, value)| (key.clone(), shuffled(value, seed))).collect()
            }
            other => other.clone(),
        }
    }

    fn is_in_order(value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().all(is_in_order),
            Value::Object(map) => map.keys().is_sorted() && map.values().all(is_in_order),
            _ => true,
        }
    }

    proptest! {
        #[test]
        fn equal_values_are_one_text_that_reads_back(value in value(), seed: u64) {
            let text = of(&value.to_string());
            let other = shuffled(&value, seed);
            prop_assert_eq!(&of(&serde_json::to_string_pretty(&other).unwrap()), &text);
            prop_assert_eq!(&of(&text), &text);
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(is_in_order(&read), "{}", text);
            prop_assert_eq!(&read.to_string(), &text);
            prop_assert_eq!(read, value);
        }

        #[test]
        fn other_values_are_other_texts(one in value(), other in value()) {
            prop_assert_eq!(of(&one.to_string()) == of(&other.to_string()), one == other);
        }
    }
}
