//! Errors on the wire: problem documents (RFC 9457) and their codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::{Fault, Word};

/// What a client can decide by. A code keeps its meaning for as long as the interface has its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A thread of that name is in several chats; name the chat.
    AmbiguousThread,
    /// The answer would take too long; ask for less.
    AnswerTooLong,
    /// Not exactly one `Host` header.
    BadHost,
    /// The body is larger than is taken.
    BodyTooLarge,
    /// The body broke off.
    BrokenBody,
    /// The given cost is not what the tokens and prices come to.
    CostDisagrees,
    /// The memory cannot be read from the database; trying again does not help.
    DamagedMemory,
    /// The body is compressed.
    EncodedBody,
    /// The configuration is faulty; nothing was reloaded.
    FaultyConfiguration,
    /// The tokens are faulty; the old ones hold.
    FaultyTokens,
    /// Not addressed to a host that is served here.
    ForeignHost,
    /// Sent by a page of another origin.
    ForeignOrigin,
    /// A tenant is named on the admin socket only.
    ForeignTenant,
    /// A moment that is yet to come.
    FutureTimestamp,
    /// The idempotency key was used for something else.
    IdempotencyKeyReused,
    /// The body is not what the call takes; `errors` says where.
    InvalidBody,
    /// The cursor is none of this list's.
    InvalidCursor,
    /// An idempotency key is too long, or has odd characters.
    InvalidIdempotencyKey,
    /// An `If-Match` header that names no version.
    InvalidIfMatch,
    /// Not a level of the log.
    InvalidLevel,
    /// A name in the path is no percent-encoded UTF-8.
    InvalidName,
    /// A parameter of the query has an impossible value.
    InvalidParameter,
    /// The issuer's keys, which a token is checked with, cannot be had now; try again.
    IssuerUnavailable,
    /// The body is no JSON.
    MalformedJson,
    /// The query is no percent-encoded UTF-8.
    MalformedQuery,
    /// No line of the stream is of its protocol.
    MalformedStream,
    /// Another memory of that id is there.
    MemoryExists,
    /// The given message is not what its figures say.
    MessageDisagrees,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The stream's protocol is not named.
    MissingProtocol,
    /// The token has not the scope that is needed.
    MissingScope,
    /// Nothing was recorded of the tool.
    NoHistory,
    /// A token is needed.
    NoToken,
    /// The body is not sent as JSON.
    NotJson,
    /// Another message stands at that position of the thread.
    PositionTaken,
    /// A parameter of the query stands there twice.
    RepeatedParameter,
    /// The body did not arrive in time.
    SlowBody,
    /// The daemon stops.
    Stopping,
    /// More waits to be stored than the queue holds; try again.
    StoreBusy,
    /// Nothing can be stored or read now; try again.
    StoreUnavailable,
    /// The console was asked for through a proxy, and there are no tokens.
    TokensNeeded,
    /// More waits to be computed than there are threads for; try again.
    TooBusy,
    /// No place for another connection.
    TooManyConnections,
    /// No place for another stream.
    TooManyStreams,
    /// No category of that name.
    UnknownCategory,
    /// The tenant has no such memory.
    UnknownMemory,
    /// No price of that model is configured.
    UnknownModel,
    /// No network of that name.
    UnknownNetwork,
    /// The path does not take this parameter.
    UnknownParameter,
    /// Nothing is served at this path.
    UnknownPath,
    /// No rule library of that id.
    UnknownPlugin,
    /// No preset of that id.
    UnknownPreset,
    /// No protocol of that name.
    UnknownProtocol,
    /// No MCP server of that name.
    UnknownServer,
    /// The tenant has no such session.
    UnknownSession,
    /// The tenant has no such thread.
    UnknownThread,
    /// The token is not known.
    UnknownToken,
    /// The catalog has no such tool.
    UnknownTool,
    /// A text has the character U+0000, or is longer than the store keeps.
    UnstorableText,
    /// The memory is at another version by now.
    VersionChanged,
}

/// An error on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What to decide by.
    pub code: Code,
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
    /// A stable code.
    pub code: String,
    /// What is wrong there.
    pub detail: String,
}

impl From<&Fault> for PointedError {
    fn from(fault: &Fault) -> Self {
        Self {
            pointer: fault.pointer(),
            code: fault.code.as_str().to_owned(),
            detail: match &fault.hint {
                Some(hint) => format!("{}; {hint}", fault.message),
                None => fault.message.clone(),
            },
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_errors_lists_every_code() {
        let page = include_str!("../../docs/ERRORS.md");
        let schema = schemars::schema_for!(Code);
        let codes = schema.get("oneOf").and_then(|codes| codes.as_array()).unwrap();
        assert!(codes.len() > 40);
        for code in codes {
            let means = code["description"].as_str().unwrap().replace('\n', " ");
            let row = format!("| `{}` | {means} |", code["const"].as_str().unwrap());
            assert!(page.contains(&row), "docs/ERRORS.md lacks this row:\n{row}");
        }
    }
}
