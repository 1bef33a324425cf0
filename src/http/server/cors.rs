//! Pages of other origins, as browsers ask for them: who may read answers, and what may be sent (Fetch, CORS).
//!
//! Only origins that the configuration names are let in. A preflight says which methods and headers a page may use; it
//! carries no token, and changes nothing.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue,
    ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::http::answer::{self, Answer};

/// Headers that a page may send beside those that it always may.
const SENT: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, mcp-method, mcp-name, \
     mcp-protocol-version, mcp-session-id, traceparent, x-request-id",
);

/// Headers of answers that a page may read.
const READ: HeaderValue =
    HeaderValue::from_static("etag, mcp-session-id, retry-after, x-almanac-generation, x-request-id");

/// For how long a browser may keep what a preflight said, in seconds.
const KEPT: HeaderValue = HeaderValue::from_static("600");

/// The origins whose pages may ask.
#[derive(Debug, Default)]
pub(super) struct Cors {
    /// In lower case, as browsers send them.
    origins: Vec<String>,
}

impl Cors {
    pub(super) fn new(origins: &[String]) -> Self {
        Self { origins: origins.iter().map(|origin| origin.to_ascii_lowercase()).collect() }
    }

    /// Is it one of the configured origins?
    pub(super) fn allows(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    /// The origin of a request from a page that may read the answer.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.origins.is_empty() {
            return None;
        }
        headers.get(ORIGIN).filter(|origin| self.allows(origin)).cloned()
    }

    /// Does an answer depend on who asks? Then whoever keeps it has to know.
    pub(super) fn mark(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        }
    }

    /// Does a browser ask what a page may do, and may this page do something?
    pub(super) fn is_preflight(&self, parts: &Parts) -> bool {
        parts.method == Method::OPTIONS
            && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
            && self.origin(&parts.headers).is_some()
    }
}

/// The answer to a preflight of a path that takes `methods`.
pub(super) fn preflight(methods: &str) -> Answer {
    let mut answer = answer::bytes(StatusCode::NO_CONTENT, HeaderValue::from_static("text/plain"), Vec::new());
    let headers = answer.headers_mut();
    headers.remove(hyper::header::CONTENT_TYPE);
    if let Ok(methods) = HeaderValue::from_str(methods) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
    headers.insert(ACCESS_CONTROL_MAX_AGE, KEPT);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_let_in_as_it_is_named() {
        let check = |origin: &str, expected: bool| {
            let cors = Cors::new(&["https://App.example".to_owned(), "http://localhost:3000".to_owned()]);
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_str(origin).unwrap())]);
            assert_eq!(cors.origin(&headers).is_some(), expected, "{origin}");
        };
        check("https://app.example", true);
        check("http://localhost:3000", true);
        check("http://app.example", false);
        check("https://app.example:444", false);
        check("https://app.example.evil", false);
        check("null", false);
    }
}
