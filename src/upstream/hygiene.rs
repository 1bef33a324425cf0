//! What a definition may not hide from the person who reads it.
//!
//! A model reads every character of a description; a person does not see control characters, directions, zero widths,
//! terminal sequences and tags, nor comments. They are removed before a definition is pinned, so that an approval is of
//! what was seen. Values that work (enums, defaults, patterns) stay as they are.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::jsonrpc::object::{self, Change, Members};

/// Longest description of a tool, in bytes; the rest is cut off.
const MAX_DESCRIPTION: usize = 8 << 10;

/// Nesting of a definition: what readers of JSON commonly bear is twice that.
const MAX_DEPTH: usize = 64;

/// Values in a definition.
const MAX_NODES: usize = 10_000;

/// Members whose texts are read by people and models.
const TEXTS: [&str; 4] = ["name", "title", "description", "$comment"];

/// Members whose values work, so that their texts are not touched.
const VALUES: [&str; 5] = ["default", "const", "enum", "examples", "pattern"];

/// A definition that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclean {
    #[error("is nested deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("has more than {MAX_NODES} values")]
    TooManyNodes,
    #[error("is no object")]
    NoObject,
}

/// The definition without what is hidden, and how many texts had some.
pub(super) fn clean(definition: &RawValue) -> Result<(Box<RawValue>, usize), Unclean> {
    let mut cleaner = Cleaner { nodes: 0, cleaned: 0 };
    let Some(cleaned) = cleaner.value(definition, 0)? else {
        return if definition.get().starts_with('{') { Ok((definition.to_owned(), 0)) } else { Err(Unclean::NoObject) };
    };
    Ok((cleaned, cleaner.cleaned))
}

struct Cleaner {
    nodes: usize,
    cleaned: usize,
}

impl Cleaner {
    /// The value anew, if something in it is another.
    fn value(&mut self, value: &RawValue, depth: usize) -> Result<Option<Box<RawValue>>, Unclean> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Unclean::TooManyNodes);
        }
        if depth > MAX_DEPTH {
            return Err(Unclean::TooDeep);
        }
        match value.get().as_bytes().first() {
            Some(b'{') => self.object(value, depth),
            Some(b'[') => self.list(value, depth),
            _ => Ok(None),
        }
    }

    fn object(&mut self, value: &RawValue, depth: usize) -> Result<Option<Box<RawValue>>, Unclean> {
        let members = Members::read(value).map_err(|_| Unclean::NoObject)?;
        let mut changes = Vec::new();
        for (name, member) in members.iter() {
            let text = if TEXTS.contains(&name) { object::text(member) } else { None };
            changes.push(match text {
                Some(text) => self.text(&text, name == "description" && depth == 0),
                None if VALUES.contains(&name) => {
                    // Counted all the same.
                    self.value(member, depth + 1)?;
                    None
                }
                None => self.value(member, depth + 1)?.map(|value| value.get().to_owned()),
            });
        }
        if changes.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut changes = changes.into_iter();
        let change = |_: &str, _: &RawValue| changes.next().flatten().map_or(Change::Keep, Change::Set);
        object::rewrite(value, change, &[]).map(Some).map_err(|_| Unclean::NoObject)
    }

    fn list(&mut self, value: &RawValue, depth: usize) -> Result<Option<Box<RawValue>>, Unclean> {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).map_err(|_| Unclean::NoObject)?;
        let mut changed = Vec::with_capacity(items.len());
        for item in &items {
            changed.push(self.value(item, depth + 1)?);
        }
        if changed.iter().all(Option::is_none) {
            return Ok(None);
        }
        let items = items.iter().zip(&changed).map(|(item, new)| new.as_deref().unwrap_or(item).get());
        let text = format!("[{}]", items.collect::<Vec<_>>().join(","));
        RawValue::from_string(text).map(Some).map_err(|_| Unclean::NoObject)
    }

    fn text(&mut self, text: &str, is_cut: bool) -> Option<String> {
        let mut cleaned = clean_text(text);
        if is_cut && cleaned.len() > MAX_DESCRIPTION {
            let end = (0..=MAX_DESCRIPTION).rev().find(|&at| cleaned.is_char_boundary(at)).unwrap_or(0);
            cleaned = Cow::Owned(cleaned[..end].to_owned());
        }
        if cleaned == text {
            return None;
        }
        self.cleaned += 1;
        Some(serde_json::Value::from(&*cleaned).to_string())
    }
}

/// The text without what is hidden.
pub(super) fn clean_text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) && !text.contains("<!--") {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(character) = rest.chars().next() {
        let skipped = if character == '\u{1b}' {
            terminal_sequence(rest)
        } else if rest.starts_with("<!--") {
            // Without an end it hides all that follows.
            rest.find("-->").map_or(rest.len(), |end| end + 3)
        } else if is_hidden(character) {
            character.len_utf8()
        } else {
            shown.push(character);
            rest = &rest[character.len_utf8()..];
            continue;
        };
        rest = &rest[skipped..];
    }
    // What is left may be a comment only now.
    if shown.contains("<!--") { Cow::Owned(clean_text(&shown).into_owned()) } else { Cow::Owned(shown) }
}

/// The length of the escape sequence that the text begins with, in bytes: ECMA-48 5.4.
fn terminal_sequence(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '[')) => characters
            .find(|(_, character)| ('@'..='~').contains(character))
            .map_or(text.len(), |(at, last)| at + last.len_utf8()),
        // Of a command to the terminal, up to BEL or ESC \.
        Some((_, ']')) => match text.find(['\u{7}', '\u{9c}']) {
            Some(end) => end + text[end..].chars().next().map_or(1, char::len_utf8),
            None => text[1..].find("\u{1b}\\").map_or(text.len(), |end| end + 3),
        },
        Some((at, other)) => at + other.len_utf8(),
        None => text.len(),
    }
}

/// U+200C and U+200D stay: scripts need them.
fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_hidden_goes() {
        let check = |text: &str, expected: &str| assert_eq!(clean_text(text), expected, "{text:?}");
        check("plain\n\ttext é ✓", "plain\n\ttext é ✓");
        check("a\u{200b}b\u{202e}c\u{e0041}d\u{0}e\r", "abcde");
        check("x\u{1b}[31mred\u{1b}[0m y", "xred y");
        check("x\u{1b}]0;title\u{7}y", "xy");
        check("x\u{1b}]8;;http://e\u{1b}\\y", "xy");
        check("ends \u{1b}", "ends ");
        check("a<!-- do\nevil -->b<!-- open", "ab");
        check("<!-\u{200b}- x -->y", "y");
        check("می\u{200c}خواهم", "می\u{200c}خواهم");
    }

    #[test]
    fn values_that_work_stay() {
        let check = |json: &str, expected: &str, cleaned: usize| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let got = clean(raw).map(|(raw, count)| (raw.get().to_owned(), count));
            assert_eq!(got, Ok((expected.to_owned(), cleaned)), "{json}");
        };
        check(r#"{"name": "a", "n": 1.50}"#, r#"{"name": "a", "n": 1.50}"#, 0);
        let schema = |text: &str| {
            format!(r#""inputSchema":{{"properties":{{"p\u200b":{{"description":"{text}", "enum":["a\u200b"]}}}}}}}}"#)
        };
        check(
            &format!(r#"{{"name":"a","description":"x\u200by", {}"#, schema("\\u001bcz")),
            &format!(r#"{{"name":"a","description":"xy", {}"#, schema("z")),
            2,
        );
        check(r#"{"anyOf":[{"title":"a\u0007"}, 1]}"#, r#"{"anyOf":[{"title":"a"},1]}"#, 1);
        let long = format!(r#"{{"description":"{}"}}"#, "ä".repeat(5000));
        check(&long, &format!(r#"{{"description":"{}"}}"#, "ä".repeat(4096)), 1);
    }

    #[test]
    fn a_definition_has_bounds() {
        let check = |json: &str, expected: Unclean| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(clean(raw).map(drop), Err(expected));
        };
        check(&format!("{{\"a\":{}{}}}", "[".repeat(80), "]".repeat(80)), Unclean::TooDeep);
        check(&format!("{{\"default\":[{}]}}", vec!["0"; 10_000].join(",")), Unclean::TooManyNodes);
        check("[]", Unclean::NoObject);
    }

    proptest! {
        #[test]
        fn cleaning_again_changes_nothing(text in any::<String>(), more in "[<!\\-> \u{1b}\u{200b}a\\[\\]m]{0,30}") {
            let text = text + &more;
            let once = clean_text(&text).into_owned();
            prop_assert!(!once.contains(is_hidden) && !once.contains("<!--"), "{:?}", once);
            prop_assert_eq!(clean_text(&once), once.as_str());
        }
    }
}
