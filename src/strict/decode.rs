//! [`Node`] to typed values, collecting every fault on the way.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Number, Value};

use super::{Node, Word, spelling};
use crate::text::near;

/// Keys that are listed to who gave an unknown one; more are in the documentation.
const MOST_LISTED: usize = 16;

/// One step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Key(String),
    /// Into a list, 0-based.
    Index(usize),
}

/// Something wrong with a value that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, from the root.
    pub path: Vec<Segment>,
    /// The place is the last key itself, not its value.
    pub on_key: bool,
    /// The class of the fault.
    pub code: FaultCode,
    /// Lower-case sentence without the place.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Classes of [`Fault`], spelled on the wire as [`FaultCode::as_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCode {
    /// A required key is absent.
    MissingKey,
    /// A key that nothing reads.
    UnknownKey,
    /// One key in two spellings.
    RepeatedKey,
    /// A list where a string belongs, and so on.
    WrongType,
    /// The right type, an impossible value.
    BadValue,
}

/// Its place, unless that is the whole; what is wrong; and what to do about it.
impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(formatter, "{}: ", self.pointer())?;
        }
        formatter.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(formatter, "; {hint}"))
    }
}

impl Fault {
    /// RFC 6901 pointer to the place.
    pub fn pointer(&self) -> String {
        use fmt::Write as _;
        self.path.iter().fold(String::new(), |mut pointer, segment| {
            match segment {
                Segment::Key(key) => {
                    pointer.push('/');
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                Segment::Index(index) => {
                    let _ = write!(pointer, "/{index}");
                }
            }
            pointer
        })
    }
}

/// The place being decoded, and the faults found so far.
#[derive(Debug, Default)]
pub struct At {
    path: Vec<Segment>,
    faults: Vec<Fault>,
    /// Is it a file that people keep? Then each key has its own spelling only, and nothing is an empty list or mapping.
    is_file: bool,
}

/// A value of no more than this many faults is reported in full; beyond it, more would not help.
const MAX_FAULTS: usize = 100;

/// Decodes a whole input. The value is there only if it has no fault.
pub fn decode<T: FromNode>(node: Node) -> Result<T, Vec<Fault>> {
    decode_with(node, T::from_node)
}

/// Decodes a whole input by `read`. The value is there only if it has no fault.
pub fn decode_with<T>(node: Node, read: impl FnOnce(Node, &mut At) -> Option<T>) -> Result<T, Vec<Fault>> {
    decode_at(At::default(), node, read)
}

/// Decodes a file that people keep: unlike a request it has one spelling of each key, which editors can complete.
pub fn decode_file<T: FromNode>(node: Node) -> Result<T, Vec<Fault>> {
    decode_at(At { is_file: true, ..At::default() }, node, T::from_node)
}

fn decode_at<T>(mut at: At, node: Node, read: impl FnOnce(Node, &mut At) -> Option<T>) -> Result<T, Vec<Fault>> {
    match read(node, &mut at) {
        Some(value) if at.faults.is_empty() => Ok(value),
        _ => Err(at.faults),
    }
}

/// A type that can be decoded. `None` means a fault was reported.
pub trait FromNode: Sized {
    /// Decodes `node`, which stands at `at`.
    fn from_node(node: Node, at: &mut At) -> Option<Self>;
}

/// A mapping that can be decoded, alone or beside the fields of another.
pub trait FromFields: Sized {
    /// Decodes what it knows of `fields`. `None` means a fault was reported.
    fn from_fields(fields: &mut Fields<'_>) -> Option<Self>;

    /// Adds the keys that it knows.
    fn add_keys(keys: &mut Vec<&'static str>);
}

/// A node's kind, with its value if that is short.
fn found(node: &Node) -> String {
    let preview = node.preview();
    if preview.is_empty() { node.kind().to_owned() } else { format!("{} ({preview})", node.kind()) }
}

/// The keys that a mapping knows.
pub fn keys_of<T: FromFields>() -> Vec<&'static str> {
    let mut keys = Vec::new();
    T::add_keys(&mut keys);
    keys
}

impl At {
    /// Reports a fault here.
    pub fn fault(&mut self, code: FaultCode, message: impl Into<String>, hint: Option<String>) {
        self.push(Fault { path: self.path.clone(), on_key: false, code, message: message.into(), hint });
    }

    /// Reports an impossible value here.
    pub fn bad_value(&mut self, message: impl Into<String>) {
        self.fault(FaultCode::BadValue, message, None);
    }

    /// Reports a word that a closed vocabulary does not have.
    pub fn unknown_word(&mut self, noun: &str, word: &str, known: &[&'static str]) {
        let shown: String = word.chars().take(40).collect();
        let hint = near::nearest(word, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
        self.fault(FaultCode::BadValue, format!("{noun} is one of {}, not `{shown}`", known.join(", ")), hint);
    }

    /// Reports that `node` is no word, of a closed vocabulary.
    pub fn no_word(&mut self, noun: &str, node: &Node, known: &[&'static str]) {
        if self.is_file {
            return self.wrong_type("a string", node);
        }
        let message = format!("{noun} is one of {}, not {}", known.join(", "), found(node));
        self.fault(FaultCode::WrongType, message, None);
    }

    /// Reports that `node` is not `expected` (with an article).
    pub fn wrong_type(&mut self, expected: &str, node: &Node) {
        let hint = match node {
            Node::Bool(_) | Node::Number(_) if expected == "a string" && self.is_file => {
                Some("put the value in quotes".to_owned())
            }
            Node::String(_) if expected == "a list" && self.is_file => {
                Some("write it as a list, each item after a dash".to_owned())
            }
            _ => None,
        };
        self.fault(FaultCode::WrongType, format!("expected {expected}, found {}", found(node)), hint);
    }

    /// Runs `body` one step further in.
    pub fn within<T>(&mut self, segment: Segment, body: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let value = body(self);
        self.path.pop();
        value
    }

    /// Decodes a mapping: `body` asks for its fields, whatever it did not ask for is unknown.
    pub fn map<T>(&mut self, node: Node, body: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let Node::Map(entries) = node else {
            self.wrong_type("a mapping", &node);
            return None;
        };
        let mut fields = Fields { entries, asked: Vec::new(), given: Vec::new(), renamed: Vec::new(), at: self };
        let value = body(&mut fields);
        fields.refuse_the_rest();
        Some(value)
    }

    /// Who writes a key and nothing behind it means that there are none.
    fn takes_nothing(&self, node: &Node) -> bool {
        self.is_file && *node == Node::Null
    }

    fn push(&mut self, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }
}

/// The fields of a mapping that is being decoded.
#[derive(Debug)]
pub struct Fields<'a> {
    entries: Vec<(String, Node)>,
    asked: Vec<&'static str>,
    /// What was asked for and was there.
    given: Vec<&'static str>,
    /// What stood there under another name: the key, and how it was written.
    renamed: Vec<(&'static str, String)>,
    at: &'a mut At,
}

impl Fields<'_> {
    /// A field that must be there. `None` means a fault was reported.
    pub fn needed<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        self.needed_part(key, T::from_node)
    }

    /// A field that must be there, decoded by `read`.
    pub fn needed_part<T>(&mut self, key: &'static str, read: impl FnOnce(Node, &mut At) -> Option<T>) -> Option<T> {
        let Some(node) = self.take(key) else {
            self.at.fault(FaultCode::MissingKey, format!("the key `{key}` is missing"), None);
            return None;
        };
        self.at_key(key, |at| read(node, at))
    }

    /// Runs `body` at the place of the field `key`, as it was written.
    pub fn at_key<T>(&mut self, key: &str, body: impl FnOnce(&mut At) -> T) -> T {
        let written = self.renamed.iter().find(|(name, _)| *name == key).map_or(key, |(_, written)| written);
        self.at.within(Segment::Key(written.to_owned()), body)
    }

    /// Lets the field `key` also be written as `alias`, in requests. Comes before the field is asked for.
    pub fn alias(&mut self, key: &'static str, alias: &str) {
        if self.at.is_file {
            return;
        }
        while let Some(index) = self.entries.iter().position(|(name, _)| spelling::is_same(name, alias)) {
            let (written, node) = self.entries.remove(index);
            if self.entries.iter().any(|(name, _)| spelling::is_same(name, key)) {
                self.refuse_twice(&written, key);
            } else {
                self.entries.insert(index, (key.to_owned(), node));
                self.renamed.push((key, written));
            }
        }
    }

    /// A field that may be absent, but not null.
    pub fn given<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        self.given_part(key, T::from_node)
    }

    /// A field that may be absent, but not null unless `read` takes it.
    pub fn given_part<T>(&mut self, key: &'static str, read: impl FnOnce(Node, &mut At) -> Option<T>) -> Option<T> {
        let node = self.take(key)?;
        self.at_key(key, |at| read(node, at))
    }

    /// A field that may be absent or null.
    pub fn optional<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        self.part(key, T::from_node)
    }

    /// A field that may be absent or null, decoded by `read`.
    pub fn part<T>(&mut self, key: &'static str, read: impl FnOnce(Node, &mut At) -> Option<T>) -> Option<T> {
        match self.take(key)? {
            Node::Null => None,
            node => self.at_key(key, |at| read(node, at)),
        }
    }

    /// Replaces `slot` if the field is there.
    pub fn set<T: FromNode>(&mut self, key: &'static str, slot: &mut T) {
        if let Some(value) = self.optional(key) {
            *slot = value;
        }
    }

    /// Was the field `key` there, and not null? Known once it was asked for.
    pub fn was_given(&self, key: &str) -> bool {
        self.given.contains(&key)
    }

    /// How many faults were found so far, here and elsewhere.
    pub fn faults(&self) -> usize {
        self.at.faults.len()
    }

    /// Reports an impossible value of the field `key`.
    pub fn bad_value(&mut self, key: &str, message: impl Into<String>) {
        self.at_key(key, |at| at.bad_value(message));
    }

    /// Whatever was not asked for, as it is; but a key that is nearly one that was asked for is a fault. Comes last.
    pub fn rest(&mut self) -> Map<String, Value> {
        let entries = std::mem::take(&mut self.entries);
        let (near, rest): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(key, _)| self.near(key).is_some());
        self.entries = near;
        rest.into_iter().map(|(key, node)| (key, node.into())).collect()
    }

    /// Reports a key that nothing reads.
    pub fn unknown(&mut self, key: &str, hint: Option<String>) {
        let mut path = self.at.path.clone();
        path.push(Segment::Key(key.to_owned()));
        let message = format!("unknown key `{key}`");
        self.at.push(Fault { path, on_key: true, code: FaultCode::UnknownKey, message, hint });
    }

    fn near(&self, key: &str) -> Option<&'static str> {
        let begins = |known: &&str| {
            known
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(|next: char| next == '_' || next.is_uppercase()))
        };
        let other = self.asked.iter().copied().find(|known| spelling::is_same(known, key));
        // Who leaves out the end of a key is further away than who mistypes it.
        other
            .or_else(|| near::nearest(key, self.asked.iter().copied()))
            .or_else(|| self.asked.iter().copied().find(begins))
    }

    /// What it takes, if that can be said in a line.
    fn known_keys(&self) -> Option<String> {
        let mut known: Vec<&str> = Vec::new();
        for key in &self.asked {
            if !known.contains(key) {
                known.push(key);
            }
        }
        (1..=MOST_LISTED).contains(&known.len()).then(|| format!("it takes {}", known.join(", ")))
    }

    fn take(&mut self, key: &'static str) -> Option<Node> {
        self.asked.push(key);
        let node = self.find(key)?;
        if node != Node::Null {
            self.given.push(key);
        }
        Some(node)
    }

    fn find(&mut self, key: &'static str) -> Option<Node> {
        let index = self.entries.iter().position(|(name, _)| name == key);
        let other = if self.at.is_file { None } else { self.other_spelling(key) };
        match (index, other) {
            // Order is kept, so that unknown keys are reported as they stand.
            (Some(index), None) => Some(self.entries.remove(index).1),
            (None, Some(other)) => {
                let (written, node) = self.entries.remove(other);
                self.renamed.push((key, written));
                Some(node)
            }
            (Some(_), Some(other)) => {
                let (written, _) = self.entries.remove(other);
                self.refuse_twice(&written, key);
                self.entries.iter().position(|(name, _)| name == key).map(|index| self.entries.remove(index).1)
            }
            (None, None) => None,
        }
    }

    fn other_spelling(&self, key: &str) -> Option<usize> {
        self.entries.iter().position(|(name, _)| name != key && spelling::is_same(name, key))
    }

    fn refuse_twice(&mut self, written: &str, key: &str) {
        let mut path = self.at.path.clone();
        path.push(Segment::Key(written.to_owned()));
        let message = format!("`{written}` is another spelling of `{key}`, which is there as well");
        self.at.push(Fault { path, on_key: true, code: FaultCode::RepeatedKey, message, hint: None });
    }

    fn refuse_the_rest(mut self) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let hint = self.near(&key).map(|name| format!("did you mean `{name}`?"));
            self.unknown(&key, hint.or_else(|| self.known_keys()));
        }
    }
}

impl FromNode for String {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::String(value) => Some(value),
            other => {
                at.wrong_type("a string", &other);
                None
            }
        }
    }
}

impl FromNode for bool {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::Bool(value) => Some(value),
            other => {
                at.wrong_type("true or false", &other);
                None
            }
        }
    }
}

/// The largest whole number that is read as one: databases and most languages have no larger.
pub const MAX_WHOLE: u64 = i64::MAX as u64;

impl FromNode for u64 {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match &node {
            Node::Number(number) if number.as_u64().is_some_and(|number| number > MAX_WHOLE) => {
                at.bad_value(format!("a whole number is at most {MAX_WHOLE}"));
                None
            }
            Node::Number(number) if number.as_u64().is_some() => number.as_u64(),
            Node::Number(number) if whole(number).is_some() => whole(number),
            other => {
                at.wrong_type("a whole number of 0 or more", other);
                None
            }
        }
    }
}

/// What JSON Schema takes for an integer as well: a number without a fraction, such as 1.0.
fn whole(number: &Number) -> Option<u64> {
    // Beyond this, not every whole number is one that a float can be.
    const EXACT: f64 = (1_u64 << 53) as f64;
    number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number)).map(|number| number as u64)
}

impl FromNode for f64 {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let number = if let Node::Number(number) = &node { number.as_f64() } else { None };
        if number.is_none() {
            at.wrong_type("a number", &node);
        }
        // -0 is 0, and should read like it.
        number.map(|number| number + 0.0)
    }
}

impl FromNode for usize {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        u64::from_node(node, at).and_then(|value| Self::try_from(value).ok())
    }
}

impl FromNode for Value {
    fn from_node(node: Node, _: &mut At) -> Option<Self> {
        Some(node.into())
    }
}

impl FromNode for Map<String, Value> {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if at.takes_nothing(&node) {
            return Some(Self::new());
        }
        if !matches!(node, Node::Map(_)) {
            at.wrong_type("a mapping", &node);
        }
        match Value::from(node) {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if at.takes_nothing(&node) {
            return Some(Self::new());
        }
        let Node::List(items) = node else {
            at.wrong_type("a list", &node);
            return None;
        };
        let decode = |(index, item)| at.within(Segment::Index(index), |at| T::from_node(item, at));
        Some(items.into_iter().enumerate().filter_map(decode).collect())
    }
}

impl<T: FromNode> FromNode for BTreeMap<String, T> {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if at.takes_nothing(&node) {
            return Some(Self::new());
        }
        let Node::Map(entries) = node else {
            at.wrong_type("a mapping", &node);
            return None;
        };
        let decode = |(key, value): (String, Node)| {
            let value = at.within(Segment::Key(key.clone()), |at| T::from_node(value, at))?;
            Some((key, value))
        };
        Some(entries.into_iter().filter_map(decode).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::FromNode;
    use crate::strict::read::{Limits, json};

    #[derive(Debug, PartialEq, FromNode)]
    struct Pet {
        name: String,
        #[node(default)]
        #[schemars(length(min = 1, max = 3))]
        tags: Vec<String>,
        age: Option<u64>,
        owner_name: Option<String>,
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let node = json(text.as_bytes(), &Limits::of_bytes(1000)).unwrap();
        let faults = decode::<Vec<Pet>>(node).err().unwrap_or_default();
        let got: Vec<(String, &str)> = faults.iter().map(|fault| (fault.pointer(), fault.code.as_str())).collect();
        let got: Vec<(&str, &str)> = got.iter().map(|(pointer, code)| (pointer.as_str(), *code)).collect();
        assert_eq!(got, expected, "decoding {text}");
    }

    #[test]
    fn every_fault_is_found_at_its_place() {
        check(r#"[{"name":"a"},{"name":"b","age":null}]"#, &[]);
        check(
            r#"[{"nme":"a"},{"name":1,"tags":["x",2],"age":-1}]"#,
            &[
                ("/0", "missing-key"),
                ("/0/nme", "unknown-key"),
                ("/1/name", "wrong-type"),
                ("/1/tags/1", "wrong-type"),
                ("/1/age", "wrong-type"),
            ],
        );
        check(
            r#"[{"name":"a","tags":[1]},{"name":"b","tags":[]}]"#,
            &[("/0/tags/0", "wrong-type"), ("/1/tags", "bad-value")],
        );
        check(r#"{"a/b~c":1}"#, &[("", "wrong-type")]);
        check(r#"[{"name":"a","a/b~c":1}]"#, &[("/0/a~1b~0c", "unknown-key")]);
    }

    #[test]
    fn a_near_key_is_suggested() {
        let check = |key: &str, hint: &str| {
            let text = format!(r#"[{{"name":"a","{key}":["x"]}}]"#);
            let node = json(text.as_bytes(), &Limits::of_bytes(1000)).unwrap();
            let faults = decode::<Vec<Pet>>(node).unwrap_err();
            assert_eq!(faults[0].hint.as_deref(), Some(hint), "{key}");
        };
        check("tgas", "did you mean `tags`?");
        check("owner", "did you mean `owner_name`?");
        check("own", "it takes name, tags, age, owner_name");
        check("colour", "it takes name, tags, age, owner_name");
    }

    #[test]
    fn faults_are_bounded() {
        let text = format!("[{}]", vec!["1"; 500].join(","));
        let node = json(text.as_bytes(), &Limits::of_bytes(10_000)).unwrap();
        assert_eq!(decode::<Vec<String>>(node).unwrap_err().len(), MAX_FAULTS);
    }
}
