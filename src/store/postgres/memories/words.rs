//! What a memory is found by, as PostgreSQL keeps it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::memory::field::micros;
use crate::memory::stored::SearchKeys;
use crate::store::finding::term_counts::{Count, counts};

/// So often a term's saying is counted: it has a position for each.
const MOST: u32 = 250;

/// A term as a lexeme of a `tsvector`, or of what is looked for in one.
pub(super) fn lexeme(term: &str) -> String {
    format!("'{}'", term.replace('\\', "\\\\").replace('\'', "''"))
}

/// Each term with a position for each time it is said, those of the speaker's name apart by their weight.
pub(super) fn vector(index: &SearchKeys) -> String {
    let counted: BTreeMap<&str, Count> = counts(&index.words, &index.speaker).into_iter().collect();
    let mut text = String::new();
    for (term, Count { words, speaker }) in counted {
        let words = words.min(MOST);
        let of_words = (1..=words).map(|position| position.to_string());
        let of_speaker = (words + 1..=words + speaker).map(|position| format!("{position}A"));
        let positions: Vec<String> = of_words.chain(of_speaker).collect();
        text.push_str(&format!("{}:{} ", lexeme(term), positions.join(",")));
    }
    text
}

/// The moments of a memory's metadata, by their paths.
pub(super) fn moments(metadata: &str) -> String {
    let mut found = Map::new();
    if let Ok(value) = serde_json::from_str::<Value>(metadata) {
        note(&value, &mut Vec::new(), &mut found);
    }
    Value::Object(found).to_string()
}

fn note(value: &Value, path: &mut Vec<String>, found: &mut Map<String, Value>) {
    match value {
        Value::String(text) => {
            if let Some(moment) = micros(text) {
                found.insert(path.join("."), moment.into());
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                path.push(key.clone());
                note(value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::embedding::Quantized;

    #[test]
    fn terms_are_told_apart_by_their_positions() {
        let check = |words: &str, speaker: &str, expected: &str| {
            let index = SearchKeys { words: words.into(), speaker: speaker.into(), vector: Quantized::ZERO };
            assert_eq!(vector(&index).trim_end(), expected);
        };
        check("tea milk tea", "", "'milk':1 'tea':1,2");
        check("tea", "tea ann", "'ann':1A 'tea':1,2A");
        check("it's a\\b", "", r"'a\\b':1 'it''s':1");
        check("", "", "");
    }

    #[test]
    fn moments_are_found_in_metadata() {
        let metadata = r#"{"due": "1970-01-01T00:00:01Z", "a": {"b": "1970-01-01T01:00:00+01:00"}, "c": "x"}"#;
        assert_eq!(moments(metadata), r#"{"due":1000000,"a.b":0}"#);
        assert_eq!(moments("no json"), "{}");
    }
}
