//! Errors as this door answers them: of JSON-RPC, each with the HTTP status that carries it.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::access::Scope;
use crate::jsonrpc::{Era, ErrorObject, MessageError, Version, code};

/// An error that is answered.
#[derive(Debug, Clone)]
pub(super) struct RpcError {
    /// What the message says.
    pub(super) object: ErrorObject,
    /// What carries it over HTTP.
    pub(super) status: StatusCode,
    /// What the token would need.
    pub(super) scope: Option<Scope>,
}

impl RpcError {
    fn new(code: i64, status: StatusCode, message: impl Into<String>) -> Self {
        Self { object: ErrorObject::new(code, message), status, scope: None }
    }

    /// The token has not the scope that this needs.
    pub(super) fn missing_scope(scope: Scope) -> Self {
        let message = format!("this token has not the scope {scope}");
        Self { scope: Some(scope), ..Self::new(code::INVALID_REQUEST, StatusCode::FORBIDDEN, message) }
    }

    /// What needs a token where there are none: the client is not sent to log in, which it could not.
    pub(super) fn no_token(message: &str) -> Self {
        Self::new(code::INVALID_REQUEST, StatusCode::OK, message)
    }

    /// No message that may be sent like this.
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, StatusCode::BAD_REQUEST, message)
    }

    /// A session that is none, or no longer.
    pub(super) fn unknown_session() -> Self {
        let message = "this session is not known here, or not to this token; send `initialize` anew";
        Self::new(code::INVALID_REQUEST, StatusCode::NOT_FOUND, message)
    }

    /// A method that is not there. 404 ends a legacy session, so there it is 200.
    pub(super) fn unknown_method(method: &str, version: Version) -> Self {
        let shown: String = method.chars().take(80).collect();
        let status = match version.era() {
            Era::Modern => StatusCode::NOT_FOUND,
            Era::Legacy => StatusCode::OK,
        };
        Self::new(code::METHOD_NOT_FOUND, status, format!("there is no method `{shown}` here"))
    }

    /// A method that is there for other servers.
    pub(super) fn cannot(message: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, StatusCode::OK, message)
    }

    /// Parameters that do not do.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, StatusCode::OK, message)
    }

    /// What every modern request carries in `_meta` is missing.
    pub(super) fn missing_meta(key: &str) -> Self {
        let message = format!("every request needs `{key}` in params._meta");
        Self::new(code::INVALID_PARAMS, StatusCode::BAD_REQUEST, message)
    }

    /// A header is missing, or says something else than the body.
    pub(super) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(code::HEADER_MISMATCH, StatusCode::BAD_REQUEST, message)
    }

    /// The client has not declared what this needs.
    pub(super) fn missing_capability(message: &str, required: &Value) -> Self {
        let error = Self::new(code::MISSING_CAPABILITY, StatusCode::BAD_REQUEST, message);
        error.with_data(json!({"requiredCapabilities": required}))
    }

    /// A version that is not spoken. Versions of the older era are agreed on by `initialize`, so they are not named.
    pub(super) fn unsupported_version(requested: &str) -> Self {
        let shown: String = requested.chars().take(80).collect();
        let data = json!({"supported": [Version::LATEST_MODERN.as_str()], "requested": shown});
        let error =
            Self::new(code::UNSUPPORTED_VERSION, StatusCode::BAD_REQUEST, format!("`{shown}` is not spoken here"));
        error.with_data(data)
    }

    /// More is asked at once than can be answered.
    pub(super) fn busy(what: &str) -> Self {
        let message = format!("too many {what} at once; try again in a second");
        Self::new(code::INTERNAL, StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// An error of a server, as it is.
    pub(super) fn relayed(object: ErrorObject) -> Self {
        // What the request lacks is said by the status too.
        let is_lacking = object.code == code::MISSING_CAPABILITY;
        let status = if is_lacking { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Self { object, status, scope: None }
    }

    /// What must not happen.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, StatusCode::OK, message)
    }

    fn with_data(self, data: Value) -> Self {
        Self { object: self.object.with_data(data), ..self }
    }
}

impl From<&MessageError> for RpcError {
    fn from(error: &MessageError) -> Self {
        Self { object: error.to_object(), status: StatusCode::BAD_REQUEST, scope: None }
    }
}
