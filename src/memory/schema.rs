//! Versions of the metadata format. An older one is brought up to date by registered steps, wherever it is met: on its
//! way in and when a stored memory is read. A newer major is refused, because nobody here knows what it means.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::kind::Kind;
use super::legacy;
use super::merge::respelt;
use crate::strict::{FromNode, Node, Violation, spelling};

/// A semantic version. The default is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, FromNode)]
#[node(try_from = "String")]
pub struct SchemaVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// The version that is written.
pub const CURRENT: SchemaVersion = SchemaVersion { major: 1, minor: 0, patch: 0 };

/// One step from any version before `to` to it.
struct Migration {
    to: SchemaVersion,
    step: fn(Kind, &mut Map<String, Value>),
}

/// All steps, oldest first. One that shipped is never changed.
const MIGRATIONS: &[Migration] = &[Migration { to: CURRENT, step: legacy::modernise }];

impl SchemaVersion {
    /// `MAJOR.MINOR.PATCH`, digits only and without leading zeros; nothing otherwise.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |part: &str| {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
            if plain { part.parse().ok() } else { None }
        };
        let mut parts = text.splitn(4, '.').map(number);
        let version = Self { major: parts.next()??, minor: parts.next()??, patch: parts.next()?? };
        parts.next().is_none().then_some(version)
    }
}

impl Default for SchemaVersion {
    fn default() -> Self {
        CURRENT
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Serialize for SchemaVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<String> for SchemaVersion {
    type Error = Violation;

    fn try_from(text: String) -> Result<Self, Violation> {
        match Self::parse(&text) {
            Some(version) if version.major > CURRENT.major => {
                Err(format!("{version} is newer than {CURRENT}, which is the newest that is understood here").into())
            }
            Some(version) => Ok(version),
            None => {
                Err(format!("`{}` is no version, such as {CURRENT}", text.chars().take(40).collect::<String>()).into())
            }
        }
    }
}

impl JsonSchema for SchemaVersion {
    fn schema_name() -> Cow<'static, str> {
        "SchemaVersion".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": r"^\d+\.\d+\.\d+$"})
    }
}

/// The node brought up to date, if it says that it is of an older version.
pub(super) fn migrated(kind: Kind, node: Node) -> Node {
    let is_older = |text: &str| SchemaVersion::parse(text).is_some_and(|version| version < CURRENT);
    let says_older = |entries: &[(String, Node)]| {
        let says = |(key, value): &(String, Node)| {
            spelling::is_same(key, "schemaVersion") && matches!(value, Node::String(text) if is_older(text))
        };
        entries.iter().any(says)
    };
    match node {
        Node::Map(entries) if says_older(&entries) => {
            let Value::Object(mut metadata) = Value::from(Node::Map(entries)) else { return Node::Null };
            metadata = respelt(metadata, &kind.keys());
            migrate(kind, &mut metadata);
            Value::Object(metadata).into()
        }
        node => node,
    }
}

/// Brings stored metadata up to date; does nothing if it is.
pub fn migrate(kind: Kind, metadata: &mut Map<String, Value>) {
    let version = metadata.get("schemaVersion").and_then(Value::as_str).and_then(SchemaVersion::parse);
    let Some(version) = version.filter(|version| *version < CURRENT) else { return };
    for migration in MIGRATIONS.iter().filter(|migration| version < migration.to) {
        (migration.step)(kind, metadata);
        metadata.insert("schemaVersion".to_owned(), migration.to.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strict::decode::decode;

    #[test]
    fn versions_are_semantic() {
        for (text, is_version) in [
            ("1.0.0", true),
            ("0.10.2", true),
            ("1.0", false),
            ("v1.0.0", false),
            ("1.0.0.0", false),
            ("1.0.0-beta", false),
            ("01.0.0", false),
            ("1.0.", false),
            ("", false),
            ("1.0.99999999999", false),
        ] {
            assert_eq!(SchemaVersion::parse(text).is_some(), is_version, "{text}");
        }
        assert!(SchemaVersion::parse("0.10.0") > SchemaVersion::parse("0.9.9"));
    }

    #[test]
    fn a_newer_minor_is_kept_and_a_newer_major_refused() {
        let version = |text: &str| decode::<SchemaVersion>(Node::String(text.to_owned()));
        assert_eq!(version("1.7.3").unwrap().to_string(), "1.7.3");
        assert!(version("2.0.0").unwrap_err()[0].message.contains("newer than 1.0.0"));
    }

    #[test]
    fn an_older_version_is_brought_up_to_date() {
        let Value::Object(mut metadata) = json!({"agentId": "bot", "processType": "THOUGHT", "schemaVersion": "0.9.0"})
        else {
            unreachable!()
        };
        migrate(Kind::CognitiveProcess, &mut metadata);
        assert_eq!(metadata["schemaVersion"], "1.0.0");
        assert_eq!(metadata["agentId"]["namespace"], "agent");
        let before = metadata.clone();
        migrate(Kind::CognitiveProcess, &mut metadata);
        assert_eq!(metadata, before, "the current version is left alone");
    }
}
