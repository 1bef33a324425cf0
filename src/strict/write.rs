//! A value as YAML that people go on writing: blocks, plain words where they are safe, long texts as lines.
//!
//! What is written is read back as it was, numbers with their text included, for which the YAML library has no way.

use serde_json::Value;

/// The value as a YAML document, ending in a line break.
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(value, 0, &mut out),
        Value::Array(items) if !items.is_empty() => block(value, 0, &mut out),
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
    out
}

/// A member of a mapping at the margin, ending in a line break.
pub fn member(key: &str, value: &Value) -> String {
    let mut out = String::new();
    put_member(key, value, 0, &mut out);
    out
}

fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.push_str(&" ".repeat(indent));
                put_member(key, value, indent, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                out.push_str(&" ".repeat(indent));
                out.push_str("- ");
                put_item(item, indent, out);
            }
        }
        _ => {}
    }
}

fn put_member(key: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(&quoted_unless_plain(key));
    out.push(':');
    match value {
        // Items stand under their key, as most people write them.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(value, indent + 2, out);
        }
        Value::String(text) if is_block(text) => put_lines(text, indent + 2, out),
        scalar => {
            out.push(' ');
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
}

/// An item behind its dash: the first line of a block follows the dash, the others stand under it.
fn put_item(item: &Value, indent: usize, out: &mut String) {
    match item {
        Value::Object(map) if !map.is_empty() => put_behind_dash(item, indent, out),
        Value::Array(items) if !items.is_empty() => put_behind_dash(item, indent, out),
        Value::String(text) if is_block(text) => {
            // The space behind the dash is there already.
            out.pop();
            put_lines(text, indent + 2, out);
        }
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
}

fn put_behind_dash(value: &Value, indent: usize, out: &mut String) {
    let mut inner = String::new();
    block(value, indent + 2, &mut inner);
    out.push_str(inner.trim_start_matches(' '));
}

/// A text of several lines, as a literal block.
fn put_lines(text: &str, indent: usize, out: &mut String) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
        out.push('\n');
    }
}

/// Can it be written as lines? Not with blanks that a reader would take for the layout, or characters that cannot be
/// seen.
fn is_block(text: &str) -> bool {
    let is_seen = |character: char| character == '\n' || is_printable(character);
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(is_seen)
        && text.lines().all(|line| line.trim_end() == line)
}

/// Characters that stand for themselves, wherever they are.
fn is_printable(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted_unless_plain(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// Words that readers of YAML, old ones included, take for something else.
const WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

fn quoted_unless_plain(text: &str) -> String {
    let begins = text.starts_with(|first: char| first.is_alphabetic() || "_/$".contains(first));
    let is_word = WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_plain = begins
        && !is_word
        && text.chars().all(is_printable)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #");
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            character if is_printable(character) => out.push(character),
            character => out.push_str(&format!("\\U{:08x}", u32::from(character))),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::strict::read::{self, Limits};

    fn read_back(text: &str) -> Value {
        let read = read::yaml(text.as_bytes(), &Limits::of_bytes(1 << 20));
        assert!(read.is_ok(), "{read:?} in\n{text}");
        read.unwrap().into()
    }

    #[test]
    fn it_reads_as_people_write_it() {
        let check = |value: Value, expected: &str| {
            assert_eq!(yaml(&value), expected);
            assert_eq!(read_back(&yaml(&value)), value);
        };
        check(
            json!({"name": "a", "list": ["x", {"k": 1, "l": [true]}], "text": "one\ntwo\n", "none": [],
                "map": {"": null}}),
            "name: a\nlist:\n- x\n- k: 1\n  l:\n  - true\ntext: |\n  one\n  two\nnone: []\nmap:\n  \"\": null\n",
        );
        check(
            json!(["1", "true", "a: b", "a #b", "- a", "~", "a:", "No"]),
            "- \"1\"\n- \"true\"\n- \"a: b\"\n- \"a #b\"\n- \"- a\"\n- \"~\"\n- \"a:\"\n- \"No\"\n",
        );
        check(json!([["a"], [], "x\n\ny"]), "- - a\n- []\n- |-\n  x\n\n  y\n");
        let wei: Value = serde_json::from_str("[1000000000000000000000000, 1.50]").unwrap();
        check(wei, "- 1000000000000000000000000\n- 1.50\n");
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[ -~äé✓\\n\\t]{0,16}", "[a-z:#\\- \\n]{0,16}", any::<String>()];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[ -~ä]{0,8}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().filter(|(key, _)| key != "<<").collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in value()) {
            let text = yaml(&value);
            prop_assert_eq!(read_back(&text), value, "{}", text);
        }
    }
}
