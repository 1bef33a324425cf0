//! What went wrong, as the wire says it.

use serde::Serialize;
use serde_json::value::RawValue;

/// Codes of errors.
pub mod code {
    /// Not JSON.
    pub const PARSE: i64 = -32700;
    /// JSON, but no message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// A method that is not known here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Parameters that the method does not take, or that name nothing.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Whatever else went wrong on this side.
    pub const INTERNAL: i64 = -32603;
    /// No such resource, up to 2025-11-25.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Headers that say other than the body, from 2026-07-28 on.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// A capability that the client lacks, from 2026-07-28 on.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// A version that is not spoken, from 2026-07-28 on.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// A URL must be visited first, in 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// An error that is made here. One that is relayed stays raw.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorObject {
    /// One of [`code`].
    pub code: i64,
    /// For people.
    pub message: String,
    /// More, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(self, data: serde_json::Value) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Code and message of an error that somebody else made; an error without them says so itself.
    pub fn read(raw: &RawValue) -> Self {
        #[derive(serde::Deserialize)]
        struct Known {
            code: i64,
            #[serde(default)]
            message: String,
            #[serde(default)]
            data: Option<serde_json::Value>,
        }
        match serde_json::from_str(raw.get()) {
            Ok(Known { code, message, data }) => Self { code, message, data },
            Err(_) => Self::new(code::INTERNAL, "an error that does not say which"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_others_are_read() {
        let check = |json: &str, code: i64, message: &str| {
            let read = ErrorObject::read(serde_json::from_str(json).unwrap());
            assert_eq!((read.code, read.message.as_str()), (code, message), "{json}");
        };
        check(r#"{"code": -32601, "message": "no", "data": {"a": 1}}"#, -32601, "no");
        check(r#"{"code": 1}"#, 1, "");
        check(r#""broken""#, code::INTERNAL, "an error that does not say which");
    }
}
