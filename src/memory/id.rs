//! Who and what a memory is about: ids that say their namespace and type, and that round-trip through their text.
//!
//! The text form is `namespace:type:id`, then `:version` if there is one. `:` and `%` inside a part are
//! percent-escaped, and nothing else is, so exactly one text stands for an id and exactly one id for a text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::strict::decode::MAX_WHOLE;
use crate::strict::pattern::{ID, PART};
use crate::strict::{At, FromNode, Node};

/// Longest part of an id, in characters: far more than any honest name has.
pub const MAX_PART: usize = 512;

/// An id. Two are the same if all parts are; no version and version 1 differ.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct StructuredId {
    namespace: String,
    #[serde(rename = "type")]
    entity: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

/// What an id may be of. The vocabulary is open: any other word is an entity type as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityType {
    User,
    Agent,
    Chat,
    Message,
    Thought,
    Thread,
    Other(String),
}

impl EntityType {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Chat => "chat",
            Self::Message => "message",
            Self::Thought => "thought",
            Self::Thread => "thread",
            Self::Other(word) => word,
        }
    }
}

/// A text, or parts, that are no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Fewer or more parts than an id has.
    #[error("an id is namespace:type:id or namespace:type:id:version, not {0} parts; write `:` inside a part as %3A")]
    Parts(usize),
    /// A part without a character.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// A part that is too long.
    #[error("the {0} is longer than {MAX_PART} characters")]
    Long(&'static str),
    /// A part that nobody could type.
    #[error("the {part} has the control character {character:?} at {at}")]
    Control {
        part: &'static str,
        character: char,
        /// Byte offset in the part.
        at: usize,
    },
    /// A part with `:`, or `%` that is not the beginning of `%3A` or `%25`.
    #[error("the {part} has a `%` at {at} that is neither %3A nor %25; write `%` itself as %25")]
    Escape {
        part: &'static str,
        /// Byte offset in the part.
        at: usize,
    },
    /// Not a positive whole number as it is usually written.
    #[error("the version `{0}` is no whole number of 1 or more without sign and leading zeros")]
    Version(String),
}

impl StructuredId {
    /// An id of parts as they are, without escapes. A version is 1 or more.
    pub fn new(
        namespace: impl Into<String>,
        entity: impl Into<String>,
        id: impl Into<String>,
        version: Option<u64>,
    ) -> Result<Self, IdError> {
        let (namespace, entity, id) = (namespace.into(), entity.into(), id.into());
        check_part("namespace", &namespace)?;
        check_part("type", &entity)?;
        check_part("id", &id)?;
        if version == Some(0) {
            return Err(IdError::Version("0".to_owned()));
        }
        Ok(Self { namespace, entity, id, version })
    }

    /// Such as `user`, `agent`, `chat` or `system`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// What it is of, such as `user` or `thread`.
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// The name inside namespace and type.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// 1 or more, if the thing has versions.
    pub fn version(&self) -> Option<u64> {
        self.version
    }
}

fn check_part(part: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty(part));
    }
    // Bytes first: counting the characters of a hostile text is work.
    if text.len() > 4 * MAX_PART || text.chars().count() > MAX_PART {
        return Err(IdError::Long(part));
    }
    match text.char_indices().find(|(_, character)| character.is_control()) {
        Some((at, character)) => Err(IdError::Control { part, character, at }),
        None => Ok(()),
    }
}

fn escape(part: &str) -> Cow<'_, str> {
    if part.contains([':', '%']) { part.replace('%', "%25").replace(':', "%3A").into() } else { part.into() }
}

fn unescape(part: &'static str, text: &str) -> Result<String, IdError> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let from = text.len() - rest.len() + at;
        plain.push(match rest.get(at..at + 3) {
            Some("%3A") => ':',
            Some("%25") => '%',
            _ => return Err(IdError::Escape { part, at: from }),
        });
        rest = &rest[at + 3..];
    }
    plain.push_str(rest);
    Ok(plain)
}

impl fmt::Display for StructuredId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, entity, id, version } = self;
        write!(formatter, "{}:{}:{}", escape(namespace), escape(entity), escape(id))?;
        version.map_or(Ok(()), |version| write!(formatter, ":{version}"))
    }
}

impl FromStr for StructuredId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let (&[namespace, entity, id], version) = match parts.len() {
            3 => (parts.first_chunk::<3>().expect("there are three"), None),
            4 => (parts.first_chunk::<3>().expect("there are four"), Some(parse_version(parts[3])?)),
            count => return Err(IdError::Parts(count)),
        };
        let (namespace, entity) = (unescape("namespace", namespace)?, unescape("type", entity)?);
        Self::new(namespace, entity, unescape("id", id)?, version)
    }
}

fn parse_version(text: &str) -> Result<u64, IdError> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let error = || IdError::Version(text.chars().take(40).collect());
    let version = text.parse().ok().filter(|&version| canonical && version <= MAX_WHOLE);
    version.ok_or_else(error)
}

/// The parts of an id that is written as an object.
#[derive(FromNode)]
struct Parts {
    namespace: String,
    #[serde(rename = "type")]
    entity: String,
    id: String,
    version: Option<u64>,
}

/// An object of the parts, or the text form.
impl FromNode for StructuredId {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let parsed = match node {
            Node::String(text) => text.parse(),
            node @ Node::Map(_) => {
                let Parts { namespace, entity, id, version } = Parts::from_node(node, at)?;
                Self::new(namespace, entity, id, version)
            }
            other => {
                at.wrong_type(
                    "an id, such as {\"namespace\":\"user\",\"type\":\"user\",\"id\":\"x\"} or user:user:x",
                    &other,
                );
                return None;
            }
        };
        parsed.map_err(|error| at.bad_value(error.to_string())).ok()
    }
}

impl JsonSchema for StructuredId {
    fn schema_name() -> Cow<'static, str> {
        "StructuredId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An id: its parts, or its text form `namespace:type:id[:version]`. Answers have the parts.",
            "anyOf": [
                {"type": "string", "pattern": ID},
                {
                    "type": "object",
                    "properties": {
                        "namespace": {"type": "string", "minLength": 1, "maxLength": MAX_PART, "pattern": PART},
                        "type": {"type": "string", "minLength": 1, "maxLength": MAX_PART, "pattern": PART},
                        "id": {"type": "string", "minLength": 1, "maxLength": MAX_PART, "pattern": PART},
                        "version": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_WHOLE},
                    },
                    "required": ["namespace", "type", "id"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::strict::decode::decode;

    fn check(text: &str, expected: Result<(&str, &str, &str, Option<u64>), &str>) {
        let parsed = text.parse::<StructuredId>();
        match (&parsed, expected) {
            (Ok(id), Ok(parts)) => {
                assert_eq!((id.namespace(), id.entity(), id.id(), id.version()), parts, "{text}");
                assert_eq!(id.to_string(), text);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
            _ => panic!("{text}: {parsed:?}, not {expected:?}"),
        }
    }

    #[test]
    fn exactly_what_is_written_is_read() {
        check("user:user:john", Ok(("user", "user", "john", None)));
        check("user:user:john:2", Ok(("user", "user", "john", Some(2))));
        check("chat:thread:a%3Ab%25c", Ok(("chat", "thread", "a:b%c", None)));
        check("system:böse:東京", Ok(("system", "böse", "東京", None)));
        check("user:user:john:abc", Err("version `abc`"));
        check("user:user:john:2abc", Err("version `2abc`"));
        check("user:user:john:-1", Err("version `-1`"));
        check("user:user:john:+1", Err("version `+1`"));
        check("user:user:john:0", Err("version `0`"));
        check("user:user:john:01", Err("version `01`"));
        check("user:user:john:", Err("version ``"));
        check("user:user:john:99999999999999999999", Err("no whole number"));
        check("chat:thread:a:b:c", Err("not 5 parts"));
        check("a:b", Err("not 2 parts"));
        check("", Err("not 1 parts"));
        check("::", Err("namespace is empty"));
        check("a::b", Err("type is empty"));
        check("a:b:", Err("id is empty"));
        check("a:b:c%3ad", Err("at 1"));
        check("a:b:100%", Err("at 3"));
        check("a:b:%é", Err("at 0"));
        check("a:b:c\0", Err("control character '\\0' at 1"));
        check(&format!("a:b:{}", "x".repeat(10_000)), Err("longer than 512"));
    }

    #[test]
    fn an_object_and_its_text_are_the_same() {
        let object = |text: &str| {
            let limits = crate::strict::Limits::of_bytes(1000);
            decode::<StructuredId>(crate::strict::read::json(text.as_bytes(), &limits).unwrap())
        };
        let id = object(r#"{"namespace":"user","type":"user","id":"a:b","version":3}"#).unwrap();
        assert_eq!(object(r#""user:user:a%3Ab:3""#), Ok(id.clone()));
        let wire = serde_json::to_string(&id).unwrap();
        assert_eq!(wire, r#"{"namespace":"user","type":"user","id":"a:b","version":3}"#);
        let faults = object(r#"{"namespace":"user","typ":"user","id":7}"#).unwrap_err();
        let pointers: Vec<String> = faults.iter().map(crate::strict::Fault::pointer).collect();
        assert_eq!(pointers, ["", "/id", "/typ"]);
        for bad in
            [r#"{"namespace":"","type":"a","id":"b"}"#, "7", r#"{"namespace":"a","type":"b","id":"c","version":0}"#]
        {
            assert_eq!(object(bad).unwrap_err().len(), 1, "{bad}");
        }
        assert_ne!(object(r#""a:b:c""#), object(r#""a:b:c:1""#), "no version is not version 1");
    }

    proptest! {
        #[test]
        fn every_id_round_trips(
            namespace in "\\PC{1,20}", entity in "[a-z:%3A]{1,9}", id in "(\\PC|:|%|%3A|%25){1,30}",
            version in prop::option::of(1..=MAX_WHOLE),
        ) {
            let id = StructuredId::new(namespace, entity, id, version).unwrap();
            prop_assert_eq!(id.to_string().parse::<StructuredId>(), Ok(id));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(text in "([a-b:%0-9]|%3A|%25){0,20}") {
            if let Ok(id) = text.parse::<StructuredId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
