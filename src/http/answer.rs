//! What a handler returns.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// The body of every answer.
pub(super) type Body = Full<Bytes>;

/// An answer, but for the headers that every one carries.
pub(super) type Answer = Response<Body>;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer of bytes that are rendered already.
pub(super) fn bytes(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}

/// 200 with `value` as JSON.
pub(super) fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).expect("wire types have string keys and finite numbers");
    bytes(StatusCode::OK, JSON, body)
}
