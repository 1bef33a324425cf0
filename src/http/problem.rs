//! Errors as `application/problem+json` (RFC 9457).

use super::answer::{self, Answer};
use crate::access::Scope;
use crate::blocking::NoThread;
use crate::strict::{Fault, Unreadable};
use crate::wire::problem::{Code, PointedError, ProblemDocument};
use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

const TYPE: &str = "application/problem+json";

/// An error on its way to the client.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    document: Box<ProblemDocument>,
    headers: Vec<(hyper::header::HeaderName, HeaderValue)>,
}

impl From<NoThread> for Problem {
    fn from(error: NoThread) -> Self {
        Self::unavailable(Code::TooBusy, error.to_string())
    }
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: Code, detail: impl Into<String>) -> Self {
        let document = ProblemDocument {
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            errors: Vec::new(),
            near: Vec::new(),
        };
        Self { status, document: Box::new(document), headers: Vec::new() }
    }

    pub(super) fn bad_request(code: Code, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(super) fn not_found(code: Code, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(super) fn invalid(code: Code, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// A body that is no JSON.
    pub(super) fn malformed(error: &Unreadable) -> Self {
        let detail = format!("{}, at line {} column {}", error.message, error.line, error.column);
        Self::bad_request(Code::MalformedJson, detail)
    }

    /// A body of the wrong shape.
    pub(super) fn faulty(faults: &[Fault]) -> Self {
        let mut problem = Self::invalid(Code::InvalidBody, "the body is not what this call takes; see errors");
        problem.document.errors = faults.iter().map(PointedError::from).collect();
        problem
    }

    /// A chat stream of a protocol that is not spoken here.
    pub(super) fn unknown_protocol(parameter: &str, name: &str) -> Self {
        let detail = format!("`{parameter}` is data-v1 (AI SDK 4) or ui-v1 (AI SDK 5 and later), not `{name}`");
        Self::invalid(Code::UnknownProtocol, detail)
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn with_near(mut self, near: Vec<String>) -> Self {
        self.document.near = near;
        self
    }

    pub(super) fn method_not_allowed(path: &str, allowed: &str) -> Self {
        let detail = format!("{path} takes {allowed}");
        let mut problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, Code::MethodNotAllowed, detail);
        if let Ok(allowed) = HeaderValue::from_str(allowed) {
            problem.headers.push((ALLOW, allowed));
        }
        problem
    }

    pub(super) fn unauthorized(code: Code, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, code, detail);
        problem.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        problem
    }

    /// With what the sender is told of tokens.
    pub(super) fn with_challenge(mut self, challenge: &str) -> Self {
        if let Ok(challenge) = HeaderValue::try_from(challenge) {
            self.headers.retain(|(name, _)| *name != WWW_AUTHENTICATE);
            self.headers.push((WWW_AUTHENTICATE, challenge));
        }
        self
    }

    /// The token does not allow it.
    pub(super) fn missing_scope(scope: Scope) -> Self {
        Self::new(StatusCode::FORBIDDEN, Code::MissingScope, format!("this token has not the scope {scope}"))
    }

    /// There are no tokens, and without one nobody may over TCP.
    pub(super) fn needs_token(scope: Scope) -> Self {
        let detail = format!(
            "this needs the scope {scope}, which nobody has without a token; make one with `almanacd token new --name \
             me --scopes {scope}`, or use the administrator's socket"
        );
        Self::new(StatusCode::FORBIDDEN, Code::MissingScope, detail)
    }

    pub(super) fn unavailable(code: Code, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        problem.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    pub(super) fn too_many(code: Code, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
        problem.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> Code {
        self.document.code
    }

    /// The rest of the request is not read, so the connection cannot be used again.
    pub(super) fn and_close(mut self) -> Self {
        self.headers.push((CONNECTION, HeaderValue::from_static("close")));
        self
    }

    /// The whole answer as it is sent, for whoever is not served.
    pub(super) fn to_http(&self) -> Vec<u8> {
        let body = self.body();
        let mut text = format!("HTTP/1.1 {}\r\ncontent-type: {TYPE}\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        [text.as_bytes(), &body].concat()
    }

    fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.document).expect("a problem has string keys and whole numbers")
    }

    pub(super) fn into_answer(self) -> Answer {
        let mut answer = answer::bytes(self.status, HeaderValue::from_static(TYPE), self.body());
        answer.headers_mut().extend(self.headers);
        answer
    }
}
