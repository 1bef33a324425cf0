//! Errors as `application/problem+json` (RFC 9457).

use std::fmt;

use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{self, Answer};
use crate::strict::{Fault, Unreadable};

/// An error on its way to the client.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    wire: Box<ProblemDocument>,
    headers: Vec<(hyper::header::HeaderName, HeaderValue)>,
}

/// The error on the wire.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// The status in words.
    pub title: String,
    /// The status.
    pub status: u16,
    /// A stable code to decide by.
    pub code: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Every fault of the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<PointedError>,
    /// Names that may have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
}

/// One fault of a request's body.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PointedError {
    /// RFC 6901 pointer into the body.
    pub pointer: String,
    /// Stable code.
    pub code: String,
    /// What is wrong there.
    pub detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let wire = ProblemDocument {
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: detail.into(),
            ..ProblemDocument::default()
        };
        Self { status, wire: Box::new(wire), headers: Vec::new() }
    }

    pub(super) fn bad_request(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub(super) fn not_found(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    pub(super) fn invalid(code: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// A body that is no JSON.
    pub(super) fn malformed(error: &Unreadable) -> Self {
        let detail = format!("{}, at line {} column {}", error.message, error.line, error.column);
        Self::bad_request("malformed-json", detail)
    }

    /// A body of the wrong shape.
    pub(super) fn faulty(faults: &[Fault]) -> Self {
        let errors = faults.iter().map(|fault| PointedError {
            pointer: fault.pointer(),
            code: fault.code.as_str().to_owned(),
            detail: match &fault.hint {
                Some(hint) => format!("{}; {hint}", fault.message),
                None => fault.message.clone(),
            },
        });
        let mut problem = Self::invalid("invalid-body", "the body is not what this call takes; see errors");
        problem.wire.errors = errors.collect();
        problem
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn with_near(mut self, near: Vec<String>) -> Self {
        self.wire.near = near;
        self
    }

    pub(super) fn method_not_allowed(allowed: &str) -> Self {
        let detail = format!("this path takes {allowed}");
        let mut problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail);
        if let Ok(allowed) = HeaderValue::from_str(allowed) {
            problem.headers.push((ALLOW, allowed));
        }
        problem
    }

    pub(super) fn unauthorized(code: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, code, detail);
        problem.headers.push((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        problem
    }

    pub(super) fn unavailable(code: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail);
        problem.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    pub(super) fn too_many(code: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail);
        problem.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        problem
    }

    /// The code.
    #[cfg(test)]
    pub(super) fn code(&self) -> &str {
        &self.wire.code
    }

    /// The rest of the request is not read, so the connection cannot be used again.
    pub(super) fn and_close(mut self) -> Self {
        self.headers.push((CONNECTION, HeaderValue::from_static("close")));
        self
    }

    pub(super) fn into_answer(self) -> Answer {
        let body = serde_json::to_vec(&self.wire).expect("a problem has string keys and whole numbers");
        let mut answer = answer::bytes(self.status, HeaderValue::from_static("application/problem+json"), body);
        answer.headers_mut().extend(self.headers);
        answer
    }
}

impl fmt::Display for ProblemDocument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.detail)?;
        for error in &self.errors {
            write!(formatter, "\n  {}: {}", error.pointer, error.detail)?;
        }
        if !self.near.is_empty() {
            write!(formatter, "\n  did you mean {}?", self.near.join(" or "))?;
        }
        Ok(())
    }
}
