//! Answers that come as the events of a chat stream where a client asks for that.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use super::answer::{self, Answer};
use super::handler::Request;
use super::operation::{Parameter, query_word};
use super::problem::Problem;
use crate::stream::{Protocol, render};

/// By which a request asks for a stream.
pub(super) const PARAMETERS: [Parameter; 1] = [query_word(
    "stream",
    &Protocol::WORDS,
    "data-v1 or ui-v1: answer as the events of that chat stream; also by `Accept: text/event-stream`.",
)];

/// The protocol in which the request wants its answer; nothing if it wants JSON.
///
/// # Errors
/// If it names a protocol that is none.
pub(super) fn wanted(request: &Request) -> Result<Option<Protocol>, Problem> {
    if let Some(name) = request.query.get("stream") {
        return Protocol::parse(name).map(Some).ok_or_else(|| Problem::unknown_protocol("stream", name));
    }
    let accepts = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let wants_events =
        accepts.flat_map(|value| value.split(',')).any(|range| range.trim().starts_with("text/event-stream"));
    Ok(wants_events.then_some(Protocol::UiV1))
}

/// A whole stream of events. Each has a string `type`, by which the UI message stream calls it (`token_usage` is
/// `data-token-usage` there).
pub(super) fn stream(protocol: Protocol, events: impl IntoIterator<Item = Value>) -> Answer {
    let named = events.into_iter().map(|event| {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        (kind.replace('_', "-"), event)
    });
    let body = render::data(protocol, named);
    let content_type = HeaderValue::from_static(protocol.content_type());
    let mut answer = answer::bytes(StatusCode::OK, content_type.clone(), Bytes::from(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(HeaderName::from_static(protocol.header()), HeaderValue::from_static("v1"));
    answer
}
