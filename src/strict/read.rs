//! Text to [`Node`], under a budget.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{Node, mistakes, number, surrogates};

/// What one input may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of the text, in bytes.
    pub bytes: usize,
    /// Nesting of lists and mappings.
    pub depth: usize,
    /// Values after aliases are followed.
    pub nodes: usize,
}

impl Limits {
    /// Limits for a text of at most `bytes`; 32 levels and 20,000 values are far beyond any honest document.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self { bytes, depth: 32, nodes: 20_000 }
    }
}

/// Why a text could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// The class of the fault.
    pub kind: UnreadableKind,
    /// Lower-case sentence without the place.
    pub message: String,
    /// 1-based line, 0 when the place is the whole text.
    pub line: usize,
    /// 1-based column, 0 when the place is the whole text.
    pub column: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableKind {
    /// Not YAML or not JSON.
    Syntax,
    Encoding,
    /// Longer than [`Limits::bytes`].
    TooLarge,
    TooDeep,
    /// Beyond [`Limits::nodes`], usually by aliases.
    TooManyNodes,
    /// A key twice in one mapping.
    DuplicateKey,
}

/// Brackets open at once. The parser's time grows with their number times the text's length, so they are counted before
/// it begins; far more than any document has, even with unbalanced ones in its prose.
const MAX_BRACKETS: usize = 256;

/// Directives (`%YAML`, `%TAG`) before a document; one has two or three.
const MAX_DIRECTIVES: usize = 16;

/// Reads one YAML document. JSON that writes a character as two escapes is one, too.
pub fn yaml(text: &[u8], limits: &Limits) -> Result<Node, Unreadable> {
    let text = without_mark(utf8(text, limits)?);
    refuse_brackets(text)?;
    refuse_directives(text)?;
    yaml_text(text, limits).or_else(|unreadable| match surrogates::join(text) {
        Some(joined) if unreadable.kind == UnreadableKind::Syntax => yaml_text(&joined, limits),
        _ => Err(unreadable),
    })
}

fn yaml_text(text: &str, limits: &Limits) -> Result<Node, Unreadable> {
    let budget = Budget::new(limits, Notation::Yaml);
    let node = Seed { budget: &budget, depth: 0 }.deserialize(serde_yaml::Deserializer::from_str(text));
    let mut node = node.map_err(|error| {
        let (line, column) = error.location().map_or_else(|| second_document(text), |at| (at.line(), at.column()));
        mistakes::named(text, budget.explain(text, &error.to_string(), line, column))
    })?;
    if budget.has_floats.get() && number::may_be_respelt(text) {
        number::restore(&mut node, text);
    }
    Ok(node)
}

/// Editors of some systems begin a text with a byte order mark, which says nothing in UTF-8.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads one JSON value; nothing but white space may follow it.
pub fn json(text: &[u8], limits: &Limits) -> Result<Node, Unreadable> {
    let text = without_mark(utf8(text, limits)?);
    let budget = Budget::new(limits, Notation::Json);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Seed { budget: &budget, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|node| deserializer.end().map(|()| node))
        .map_err(|error| budget.explain(text, &error.to_string(), error.line(), error.column()))
}

fn refuse_brackets(text: &str) -> Result<(), Unreadable> {
    let (mut open, mut line, mut line_start) = (0_usize, 1, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            b'\n' => (line, line_start) = (line + 1, at + 1),
            _ => {}
        }
        if open > MAX_BRACKETS {
            let message = format!("more than {MAX_BRACKETS} brackets are open at once");
            return Err(Unreadable { kind: UnreadableKind::TooDeep, message, line, column: at - line_start + 1 });
        }
    }
    Ok(())
}

/// The parser's time grows with the square of the directives' number, too. They stand before the document.
fn refuse_directives(text: &str) -> Result<(), Unreadable> {
    let is_before = |(_, line): &(usize, &str)| {
        let line = line.trim_start_matches('\u{feff}');
        line.trim().is_empty() || line.starts_with(['%', '#'])
    };
    let directives = text.lines().enumerate().take_while(is_before).filter(|(_, line)| line.starts_with('%'));
    match directives.map(|(line, _)| line + 1).nth(MAX_DIRECTIVES) {
        Some(line) => {
            let message = format!("more than {MAX_DIRECTIVES} directives stand before the document");
            Err(Unreadable { kind: UnreadableKind::TooManyNodes, message, line, column: 1 })
        }
        None => Ok(()),
    }
}

/// The one fault that comes without a place.
fn second_document(text: &str) -> (usize, usize) {
    let is_mark = |line: &str, mark: &str| line.strip_prefix(mark).is_some_and(|rest| !rest.starts_with(is_dense));
    let (mut has_begun, mut has_ended) = (false, false);
    for (number, line) in (1..).zip(without_mark(text).lines()) {
        let is_text = !line.trim().is_empty() && !line.starts_with(['#', '%']);
        if has_begun && is_mark(line, "---") || has_ended && is_text {
            return (number, 1);
        }
        has_begun |= is_text;
        has_ended |= is_mark(line, "...");
    }
    (0, 0)
}

fn is_dense(character: char) -> bool {
    !character.is_whitespace()
}

fn utf8<'t>(text: &'t [u8], limits: &Limits) -> Result<&'t str, Unreadable> {
    if text.len() > limits.bytes {
        // Of a file no more is read than tells that it is too long.
        let message = format!("it is longer than {} bytes, which is the limit", limits.bytes);
        return Err(Unreadable { kind: UnreadableKind::TooLarge, message, line: 0, column: 0 });
    }
    std::str::from_utf8(text).map_err(|error| {
        let good = &text[..error.valid_up_to()];
        let line_start = good.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        Unreadable {
            kind: UnreadableKind::Encoding,
            message: "not UTF-8 text".to_owned(),
            line: good.split(|&byte| byte == b'\n').count(),
            column: good.len() - line_start + 1,
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Yaml,
    Json,
}

/// What is left to spend, and the reason if it ran out: the deserializers carry only text in their errors.
struct Budget {
    notation: Notation,
    depth: usize,
    /// Were there numbers that the parser has no exact value of?
    has_floats: Cell<bool>,
    nodes: Cell<usize>,
    bytes: Cell<usize>,
    refusal: RefCell<Option<(UnreadableKind, String)>>,
}

impl Budget {
    fn new(limits: &Limits, notation: Notation) -> Self {
        Self {
            notation,
            depth: limits.depth,
            has_floats: Cell::new(false),
            nodes: Cell::new(limits.nodes),
            // An honest text yields fewer scalar bytes than it has; aliases may repeat some of them.
            bytes: Cell::new(limits.bytes.saturating_mul(2)),
            refusal: RefCell::new(None),
        }
    }

    fn refuse<E: de::Error>(&self, kind: UnreadableKind, message: String) -> E {
        let error = E::custom(&message);
        self.refusal.replace(Some((kind, message)));
        error
    }

    fn reserved<E: de::Error>(&self, key: &str) -> E {
        self.refuse(UnreadableKind::Syntax, format!("the key `{key}` is taken by the parser"))
    }

    fn spend<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let (nodes, left) = (self.nodes.get(), self.bytes.get());
        if nodes == 0 || left < bytes {
            let message = "too many values; aliases count each time they are used".to_owned();
            return Err(self.refuse(UnreadableKind::TooManyNodes, message));
        }
        self.nodes.set(nodes - 1);
        self.bytes.set(left - bytes);
        Ok(())
    }

    fn explain(&self, text: &str, message: &str, line: usize, column: usize) -> Unreadable {
        let (kind, message) = self.refusal.take().unwrap_or_else(|| {
            let kind = if message.contains("recursion limit exceeded") {
                UnreadableKind::TooDeep
            } else if message.contains("repetition limit exceeded") {
                UnreadableKind::TooManyNodes
            } else {
                UnreadableKind::Syntax
            };
            let place = format!(" at line {line} column {column}");
            let bare = if line == 0 { message } else { message.strip_suffix(&place).unwrap_or(message) };
            let bare = if bare.contains("more than one document") {
                "a second document starts here; a file holds one"
            } else if bare.starts_with("EOF while parsing a value") && !text.trim().is_empty() {
                "the text ends where a value should stand"
            } else if bare.starts_with("EOF while parsing a value") || bare == "EndOfStream" {
                "the text is empty"
            } else if bare == "expected ident" {
                "no value begins so: a text is quoted, and the only words are true, false and null"
            } else {
                bare
            };
            (kind, bare.to_owned())
        });
        Unreadable { kind, message, line, column }
    }
}

#[derive(Clone, Copy)]
struct Seed<'b> {
    budget: &'b Budget,
    depth: usize,
}

impl Seed<'_> {
    fn deeper<E: de::Error>(self) -> Result<Self, E> {
        if self.depth == self.budget.depth {
            let message = format!("nested deeper than {} levels", self.budget.depth);
            return Err(self.budget.refuse(UnreadableKind::TooDeep, message));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value without a tag")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        self.budget.spend(0)?;
        Ok(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        self.budget.spend(0)?;
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        self.budget.spend(0)?;
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        self.budget.spend(0)?;
        Ok(Node::Number(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Node, E> {
        self.number(&value.to_string())
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Node, E> {
        self.number(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        self.budget.spend(0)?;
        self.budget.has_floats.set(true);
        Number::from_f64(value)
            .map(Node::Number)
            .ok_or_else(|| self.budget.refuse(UnreadableKind::Syntax, format!("{value} is not a finite number")))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        self.budget.spend(value.len())?;
        Ok(Node::String(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Node, E> {
        self.budget.spend(value.len())?;
        Ok(Node::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        self.budget.spend(0)?;
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut seen = Seen::default();
        let mut next = access.next_key_seed(KeySeed { budget: self.budget, entries: &entries, seen: &mut seen })?;
        if let Some(Key::Number) = next {
            return self.exact(access);
        }
        self.budget.spend(0)?;
        let inner = self.deeper()?;
        while let Some(Key::Name(key)) = next {
            let value = access.next_value_seed(inner)?;
            entries.push((key, value));
            next = access.next_key_seed(KeySeed { budget: self.budget, entries: &entries, seen: &mut seen })?;
        }
        Ok(Node::Map(entries))
    }
}

impl Seed<'_> {
    fn number<E: de::Error>(self, text: &str) -> Result<Node, E> {
        self.budget.spend(text.len())?;
        let refuse =
            || self.budget.refuse(UnreadableKind::Syntax, format!("{} is not a finite number", head(text, 40)));
        number::exact(text).map(Node::Number).ok_or_else(refuse)
    }

    /// The number that the JSON parser hands over as a mapping of one key.
    fn exact<'de, A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let text: String = access.next_value()?;
        let node = self.number(&text)?;
        match access.next_key::<IgnoredAny>()? {
            None => Ok(node),
            Some(_) => Err(self.budget.reserved(number::TOKEN)),
        }
    }
}

/// Keys so far; a set only once scanning the entries would cost more.
#[derive(Default)]
struct Seen(Option<HashSet<String>>);

impl Seen {
    const SCAN: usize = 32;

    fn is_new(&mut self, key: &str, entries: &[(String, Node)]) -> bool {
        if entries.len() < Self::SCAN {
            return entries.iter().all(|(name, _)| name != key);
        }
        self.0.get_or_insert_with(|| entries.iter().map(|(name, _)| name.clone()).collect()).insert(key.to_owned())
    }
}

/// Reads a key and refuses it there and then if it is a duplicate, so that the error points at the second one.
struct KeySeed<'s, 'b> {
    budget: &'b Budget,
    entries: &'s [(String, Node)],
    seen: &'s mut Seen,
}

enum Key {
    Name(String),
    /// No key of the text: a number follows.
    Number,
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_, '_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_, '_> {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string as key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        let notation = self.budget.notation;
        if key == number::TOKEN && notation == Notation::Json && self.entries.is_empty() {
            return Ok(Key::Number);
        }
        if number::RESERVED.contains(&key) {
            return Err(self.budget.reserved(key));
        }
        if key == "<<" && notation == Notation::Yaml {
            let message = "merge keys (`<<`) are not read: write the keys out, or give a whole value an alias";
            return Err(self.budget.refuse(UnreadableKind::Syntax, message.to_owned()));
        }
        self.budget.spend(key.len())?;
        if !self.seen.is_new(key, self.entries) {
            return Err(self
                .budget
                .refuse(UnreadableKind::DuplicateKey, format!("the key `{key}` stands here a second time")));
        }
        Ok(Key::Name(key.to_owned()))
    }
}

fn head(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

#[cfg(test)]
mod tests;
