//! What an answer is joined to its request by.

use std::fmt;

use serde_json::value::RawValue;

/// The id of a request: a number or a text, as its JSON.
///
/// Kept as it was written, so that it goes back as it came: a client may tell `1` from `1.0`. Texts are spelt one way,
/// so that equal ones compare equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// The id of that number.
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// The id of that text.
    pub fn text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().into())
    }

    /// What is no number and no text is no id.
    pub fn read(raw: &RawValue) -> Option<Self> {
        let json = raw.get();
        match json.as_bytes().first()? {
            b'"' if json.contains('\\') => serde_json::from_str::<String>(json).ok().map(|text| Self::text(&text)),
            b'-' | b'0'..=b'9' | b'"' => Some(Self(json.into())),
            _ => None,
        }
    }

    /// Its JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The number that it is, also of a server that made a text of it.
    pub fn as_number(&self) -> Option<u64> {
        self.0.trim_matches('"').parse().ok()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_back_as_they_came() {
        let check = |json: &str, expected: Option<&str>| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(Id::read(raw).as_ref().map(Id::as_json), expected, "{json}");
        };
        check("1", Some("1"));
        check("1.0", Some("1.0"));
        check("-7", Some("-7"));
        check("123456789012345678901234567890", Some("123456789012345678901234567890"));
        check(r#""a""#, Some(r#""a""#));
        check(r#""\u0061\n""#, Some(r#""a\n""#));
        check("null", None);
        check("true", None);
        check("[1]", None);
        check("{}", None);
        assert_eq!(Id::number(5).as_number(), Some(5));
        assert_eq!(Id::text("5").as_number(), Some(5));
        assert_eq!(Id::text("x").as_number(), None);
    }
}
