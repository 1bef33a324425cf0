//! Decoders of values that configurations and requests share: times, paths, addresses, labels.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{At, FromNode, Node, Violation};

/// The moment that a text tells in RFC 3339, with a time and an offset.
pub fn moment(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// The same of who may leave the offset away, as many programs do, and means UTC.
pub fn moment_or_utc(text: &str) -> Option<OffsetDateTime> {
    moment(text).or_else(|| moment(&format!("{text}Z")))
}

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;

impl FromNode for PathBuf {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        if text.is_empty() {
            at.bad_value("a path must not be empty");
        }
        Some(text.into())
    }
}

impl FromNode for SocketAddr {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if let Node::Number(port) = &node {
            at.bad_value(format!("`{port}` has no address; write 127.0.0.1:{port} for this machine alone"));
            return None;
        }
        let text = String::from_node(node, at)?;
        let address = text.parse().ok();
        if address.is_none() {
            at.bad_value(format!("`{text}` is no address and port, such as 127.0.0.1:7311 or [::1]:7311"));
        }
        address
    }
}

/// A time from 1 ms to a day, written like `10s` or `1m 30s`.
impl FromNode for Duration {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if let Node::Number(number) = &node {
            at.bad_value(format!("`{number}` has no unit; write {number}s for seconds, {number}ms for milliseconds"));
            return None;
        }
        let text = String::from_node(node, at)?;
        match humantime::parse_duration(&text) {
            Ok(time) if (Self::from_millis(1)..=Self::from_secs(DAY)).contains(&time) => Some(time),
            Ok(_) => {
                at.bad_value("a time is 1ms to 24h");
                None
            }
            Err(error) => {
                at.bad_value(format!("`{text}` is no time, such as 10s or 500ms: {error}"));
                None
            }
        }
    }
}

/// A time from an hour to ten years, written like `30days`.
pub fn retention(node: Node, at: &mut At) -> Option<Duration> {
    if let Node::Number(number) = &node {
        at.bad_value(format!("`{number}` has no unit; write {number}days for days, {number}h for hours"));
        return None;
    }
    let text = String::from_node(node, at)?;
    let time = humantime::parse_duration(&text)
        .ok()
        .filter(|time| (Duration::from_secs(DAY / 24)..=Duration::from_secs(3660 * DAY)).contains(time));
    if time.is_none() {
        at.bad_value(format!("`{text}` is no time from 1h to 10years, such as 183days"));
    }
    time
}

/// Longest label, in characters.
pub const MAX_LABEL: usize = 256;

/// Holds the name of a mode or a session, or the like, to what can be shown in a line.
pub fn check_label(text: &str) -> Result<(), Violation> {
    let characters = text.chars().count();
    if characters > MAX_LABEL {
        return Err(format!("must have at most {MAX_LABEL} characters, not {characters}").into());
    }
    let control = text.chars().find(|character| character.is_control());
    control.map_or(Ok(()), |control| Err(format!("must have no control characters, not {control:?}").into()))
}

/// A label; an empty one counts as absent.
pub fn label(node: Node, at: &mut At) -> Option<String> {
    let text = String::from_node(node, at).filter(|text| !text.is_empty())?;
    if let Err(violation) = check_label(&text) {
        at.bad_value(violation.to_string());
    }
    Some(text)
}

/// One text, or a list of them.
#[derive(Debug)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: FromNode> FromNode for OneOrMany<T> {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::List(_) => Vec::from_node(node, at).map(Self),
            Node::String(_) => T::from_node(node, at).map(|one| Self(vec![one])),
            other => {
                at.wrong_type("a string, or a list of strings", &other);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::{decode, decode_with};

    fn text(text: &str) -> Node {
        Node::String(text.to_owned())
    }

    #[test]
    fn labels_can_be_shown_in_a_line() {
        let read = |label_text: &str| {
            decode_with(text(label_text), |node, at| Some(label(node, at)))
                .map_err(|faults| faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; "))
        };
        assert_eq!(read(""), Ok(None));
        let longest = "ä".repeat(MAX_LABEL);
        assert_eq!(read(&longest), Ok(Some(longest.clone())));
        assert_eq!(read(&format!("{longest}a")), Err("must have at most 256 characters, not 257".to_owned()));
        assert_eq!(read("a\nb"), Err("must have no control characters, not '\\n'".to_owned()));
    }

    #[test]
    fn one_text_is_a_list_of_it() {
        let read = |node: Node| decode::<OneOrMany<String>>(node).map(|OneOrMany(texts)| texts.join(" "));
        assert_eq!(read(text("a")), Ok("a".to_owned()));
        assert_eq!(read(Node::List(vec![text("a"), text("b")])), Ok("a b".to_owned()));
        let faults = read(Node::Bool(true)).unwrap_err();
        assert_eq!(faults[0].message, "expected a string, or a list of strings, found a boolean (true)");
    }
}
