//! Values that several kinds of metadata have: moments, scores, references.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;

use super::id::MAX_PART;
use crate::strict::bounds::length;
use crate::strict::pattern::PART;
use crate::strict::values::{OneOrMany, moment};
use crate::strict::{At, FromNode, Node, Violation};

/// A moment as its writer spelt it, in RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, FromNode)]
#[schemars(extend("format" = "date-time"))]
#[node(try_from = "String")]
pub struct Moment(String);

impl Moment {
    /// A text that is RFC 3339 with a time and an offset; nothing otherwise.
    pub fn parse(text: &str) -> Option<Self> {
        micros(text).map(|_| Self(text.to_owned()))
    }

    /// As it was spelt.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Microseconds since the epoch of a moment in RFC 3339.
pub fn micros(text: &str) -> Option<i64> {
    i64::try_from(moment(text)?.unix_timestamp_nanos() / 1000).ok()
}

/// The moment so many microseconds after the epoch, in RFC 3339 and UTC.
pub fn rfc3339(micros: i64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000);
    let format =
        time::macros::format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    moment.ok().and_then(|moment| moment.format(format).ok()).unwrap_or_default()
}

impl TryFrom<String> for Moment {
    type Error = Violation;

    fn try_from(text: String) -> Result<Self, Violation> {
        Self::parse(&text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            format!("`{shown}` is no moment in RFC 3339, such as 2026-01-31T12:00:00Z").into()
        })
    }
}

/// A share, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, JsonSchema, FromNode)]
#[node(try_from = "f64")]
pub struct Share(#[schemars(range(min = 0.0, max = 1.0))] f64);

impl Share {
    /// A number of 0 to 1; nothing otherwise.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = Violation;

    fn try_from(share: f64) -> Result<Self, Violation> {
        Self::new(share).ok_or_else(|| format!("must be 0 to 1, not {share}").into())
    }
}

/// A number of milliseconds or the like: 0 or more, not necessarily whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Amount(serde_json::Number);

impl FromNode for Amount {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::Number(number) if number.as_f64().is_some_and(|amount| amount >= 0.0) => Some(Self(number)),
            other => {
                at.wrong_type("a number of 0 or more", &other);
                None
            }
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0})
    }
}

impl From<u64> for Amount {
    fn from(amount: u64) -> Self {
        Self(amount.into())
    }
}

/// Names of other things: memories, contexts, threads. One or a list is read, a list is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromNode)]
#[node(try_from = "OneOrMany<Reference>")]
pub struct References(Vec<Reference>);

impl References {
    /// The names, in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Reference::as_str)
    }
}

impl FromIterator<Reference> for References {
    fn from_iter<I: IntoIterator<Item = Reference>>(references: I) -> Self {
        Self(references.into_iter().collect())
    }
}

/// Most names of one list.
const MAX_REFERENCES: usize = 1000;

impl TryFrom<OneOrMany<Reference>> for References {
    type Error = Violation;

    fn try_from(OneOrMany(names): OneOrMany<Reference>) -> Result<Self, Violation> {
        length(&names, None, Some(MAX_REFERENCES)).map(|()| Self(names))
    }
}

impl JsonSchema for References {
    fn schema_name() -> Cow<'static, str> {
        "References".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let name = json!({"type": "string", "minLength": 1, "maxLength": MAX_PART, "pattern": PART});
        json_schema!({
            "description": "One name or a list of names; answers have a list.",
            "anyOf": [name, {"type": "array", "items": name, "maxItems": MAX_REFERENCES}],
        })
    }
}

/// The name of another thing: 1 to [`MAX_PART`] characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema, FromNode)]
#[node(try_from = "String")]
pub struct Reference(#[schemars(length(min = 1, max = MAX_PART), regex(pattern = PART))] String);

impl Reference {
    /// A name that could be typed; nothing otherwise.
    pub fn new(name: &str) -> Option<Self> {
        let is_short = name.len() <= 4 * MAX_PART && (1..=MAX_PART).contains(&name.chars().count());
        (is_short && !name.chars().any(char::is_control)).then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Reference {
    type Error = Violation;

    fn try_from(name: String) -> Result<Self, Violation> {
        Self::new(&name)
            .ok_or_else(|| format!("a name has 1 to {MAX_PART} characters, none of them a control character").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_rfc_3339() {
        for good in ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456+02:00", "2024-02-29T23:59:59-11:30"] {
            assert_eq!(Moment::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "tomorrow", "2026-01-31", "2026-02-30T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T25:00:00Z"]
        {
            assert_eq!(Moment::parse(bad), None, "{bad}");
        }
        assert_eq!(micros("1970-01-01T01:00:00.000001+01:00"), Some(1));
        assert_eq!(rfc3339(1_769_860_800_123_456), "2026-01-31T12:00:00.123456Z");
        assert_eq!(micros(&rfc3339(-1)), Some(-1));
    }

    #[test]
    fn names_can_be_typed() {
        assert!(Reference::new("a:b%c d").is_some());
        for bad in ["", "a\0", "a\nb", &"x".repeat(MAX_PART + 1), &"x".repeat(100_000)] {
            assert!(Reference::new(bad).is_none());
        }
    }
}
