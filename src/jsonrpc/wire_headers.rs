//! Headers of HTTP that repeat what a message says, so that proxies can go by them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::HeaderValue;
use serde_json::value::RawValue;

use super::{Members, meta, object};

/// The version that is spoken.
pub(crate) const VERSION: &str = "mcp-protocol-version";
/// The session of a legacy client.
pub(crate) const SESSION: &str = "mcp-session-id";
/// The method of the body.
pub(crate) const METHOD: &str = "mcp-method";
/// What the method is about.
pub(crate) const NAME: &str = "mcp-name";
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
pub(crate) fn subject_of(method: &str) -> Option<&'static str> {
    NAMED.iter().find(|(named, _)| *named == method).map(|(_, parameter)| *parameter)
}

/// The headers of a modern request; none of a legacy one.
pub(crate) fn modern(method: &str, params: Option<&RawValue>) -> Vec<(String, String)> {
    let version = params.and_then(|params| meta::text(params, meta::PROTOCOL_VERSION));
    let (Some(params), Some(version)) = (params, version) else { return Vec::new() };
    let subject = subject_of(method).and_then(|name| object::text(Members::read(params).ok()?.get(name)?));
    let named = [(VERSION, Some(version)), (METHOD, Some(method.into())), (NAME, subject)];
    named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), encode(&value?)))).collect()
}

/// A value in ASCII, or any text as `=?base64?…?=`.
pub(crate) fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// Any text as such a value.
pub(crate) fn encode(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", BASE64_STANDARD.encode(text)) }
}
