//! Headers that a modern request repeats of its body, so that proxies can go by them. What they say must be what the
//! body says: else a proxy and we would see two requests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::HeaderMap;
use hyper::header::HeaderValue;

use super::error::RpcError;

/// The version that is spoken.
pub(super) const VERSION: &str = "mcp-protocol-version";
/// The session of a legacy client.
pub(super) const SESSION: &str = "mcp-session-id";
/// The method of the body.
pub(super) const METHOD: &str = "mcp-method";
/// What the method is about.
pub(super) const NAME: &str = "mcp-name";
/// Methods whose subject a header names, and the parameter that is the subject.
const NAMED: [(&str, &str); 6] = [
    ("tools/call", "name"),
    ("prompts/get", "name"),
    ("resources/read", "uri"),
    ("tasks/get", "taskId"),
    ("tasks/update", "taskId"),
    ("tasks/cancel", "taskId"),
];

/// The parameter that `Mcp-Name` repeats, if the method has one.
pub(super) fn subject_of(method: &str) -> Option<&'static str> {
    NAMED.iter().find(|(named, _)| *named == method).map(|(_, parameter)| *parameter)
}

/// Does the version's header say what the body does?
pub(super) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), RpcError> {
    check(headers, VERSION, version)
}

/// Do the headers say what the body does? `subject` is that of the method, if it has one.
pub(super) fn check_method(headers: &HeaderMap, method: &str, subject: Option<&str>) -> Result<(), RpcError> {
    check(headers, METHOD, method)?;
    subject.map_or(Ok(()), |subject| check(headers, NAME, subject))
}

fn check(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    if only(headers, name)? == expected { Ok(()) } else { Err(differs(name)) }
}

fn differs(name: &str) -> RpcError {
    RpcError::header_mismatch(format!("the header {name} says something else than the body"))
}

/// The header's value, which must be there once.
fn only(headers: &HeaderMap, name: &str) -> Result<String, RpcError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => decode(value)
            .ok_or_else(|| RpcError::header_mismatch(format!("the header {name} is neither ASCII nor =?base64?…?="))),
        (None, _) => Err(RpcError::header_mismatch(format!("the header {name} is missing"))),
        (Some(_), Some(_)) => Err(RpcError::header_mismatch(format!("the header {name} stands there twice"))),
    }
}

/// A value in ASCII, or any text as `=?base64?…?=`.
fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// Any text as such a value.
pub(super) fn encode(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    #[test]
    fn a_header_says_what_the_body_does_and_only_once() {
        let check = |pairs: &[(&'static str, &str)], method: &str, subject: Option<&str>, expected: bool| {
            assert_eq!(check_method(&headers(pairs), method, subject).is_ok(), expected, "{pairs:?}");
        };
        check(&[("mcp-method", "tools/list")], "tools/list", None, true);
        check(&[("mcp-method", "TOOLS/LIST")], "tools/list", None, false);
        check(&[], "tools/list", None, false);
        check(&[("mcp-method", "ping"), ("mcp-method", "ping")], "ping", None, false);
        let call = ("mcp-method", "tools/call");
        check(&[call, ("mcp-name", "  a ")], "tools/call", Some("a"), true);
        check(&[call], "tools/call", Some("a"), false);
        check(&[call, ("mcp-name", "=?base64?w7w=?=")], "tools/call", Some("ü"), true);
        check(&[call, ("mcp-name", "=?base64?w7w?=")], "tools/call", Some("ü"), false);
        assert_eq!(subject_of("tools/call"), Some("name"));
        assert_eq!(subject_of("tools/list"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_encoded_is_decoded_again(text in "\\PC{0,40}") {
            let value = HeaderValue::from_str(&encode(&text)).unwrap();
            prop_assert_eq!(decode(&value), Some(text));
        }
    }
}
