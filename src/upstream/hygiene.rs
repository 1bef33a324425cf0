//! What a definition may not hide from the person who reads it.
//!
//! A model reads every character of a description; a person does not see control characters, directions, zero widths,
//! terminal sequences and tags, nor comments. They are removed before a definition is pinned, so that an approval is of
//! what was seen. Values that work (enums, defaults, patterns) stay as they are.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclean {
    #[error("is nested deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("has more than {MAX_NODES} values")]
    TooManyNodes,
    #[error("is no object")]
    NoObject,
    /// Half a surrogate pair in a value that works: who reads it strictly loses the whole list.
    #[error("has a text that is no Unicode")]
    NoUnicode,
    /// Readers differ in which of the two counts.
    #[error("has the member `{0}` twice")]
    Twice(String),
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
            Some(b'"') if object::text(value).is_none() => Err(Unclean::NoUnicode),
            _ => Ok(None),
        }
    }

    fn object(&mut self, value: &RawValue, depth: usize) -> Result<Option<Box<RawValue>>, Unclean> {
        let members = Members::read(value).map_err(|_| Unclean::NoObject)?;
        let mut names = HashSet::new();
        if let Some((twice, _)) = members.iter().find(|(name, _)| !names.insert(*name)) {
            return Err(Unclean::Twice(clean_text(twice).into_owned()));
        }
        let mut changes = Vec::new();
        for (name, member) in members.iter() {
            let is_text = TEXTS.contains(&name) && member.get().starts_with('"');
            let is_cut = name == "description" && depth == 0;
            changes.push(match object::text(member) {
                Some(text) if is_text => self.text(&text, is_cut),
                None if is_text => self.broken_text(member, is_cut)?,
                _ if VALUES.contains(&name) => {
                    // Counted all the same.
                    self.value(member, depth + 1)?;
                    None
                }
                _ => self.value(member, depth + 1)?.map(|value| value.get().to_owned()),
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

    /// A text with half a surrogate pair, as servers write it that cut between the two; with U+FFFD for it.
    fn broken_text(&mut self, text: &RawValue, is_cut: bool) -> Result<Option<String>, Unclean> {
        let TextBytes(bytes) = serde_json::from_str(text.get()).map_err(|_| Unclean::NoUnicode)?;
        let mended = String::from_utf8_lossy(&bytes);
        self.cleaned += 1;
        let cleaned = self.text(&mended, is_cut);
        Ok(Some(cleaned.unwrap_or_else(|| serde_json::Value::from(&*mended).to_string())))
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

/// A JSON string as the bytes that it stands for, half a surrogate pair as three that are no UTF-8.
struct TextBytes(Vec<u8>);

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BytesVisitor;
        impl Visitor<'_> for BytesVisitor {
            type Value = TextBytes;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<TextBytes, E> {
                Ok(TextBytes(bytes.to_owned()))
            }
        }
        deserializer.deserialize_bytes(BytesVisitor)
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
        check(r#"{"description":"cut \ud83d","n":1}"#, "{\"description\":\"cut \u{fffd}\u{fffd}\u{fffd}\",\"n\":1}", 1);
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
        let twice = |name: &str| Unclean::Twice(name.to_owned());
        check(r#"{"a":1,"a":2,"description":"x<!--y-->","title":"t"}"#, twice("a"));
        check(r#"{"inputSchema":{"default":{"k":1,"k\u200b":0,"k":2}}}"#, twice("k"));
        check(r#"{"inputSchema":{"enum":["\udfff"]}}"#, Unclean::NoUnicode);
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
