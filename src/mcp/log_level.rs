//! How grave a log message is, as the protocol says it (RFC 5424), and which ones a client wants of its servers.

use serde_json::Map;
use serde_json::value::RawValue;

use super::Mcp;
use super::error::RpcError;
use super::request::{McpRequest, RpcAnswer, complete};
use crate::jsonrpc::{Era, Members, meta};
use crate::strict::Word;

/// A level, the least grave first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a level")]
pub(super) enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// As it should be.
    Info,
    /// As it should be, and worth to be known.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must do something now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Mcp {
    /// Notes from which level on a legacy session wants log messages.
    pub(super) fn set_log_level(&self, request: &McpRequest) -> RpcAnswer {
        let said = request.text("level").unwrap_or_default();
        let Some(level) = LogLevel::parse(&said) else {
            let known = LogLevel::WORDS.join(", ");
            return Err(RpcError::invalid_params(format!("`level` is one of {known}, not `{said}`")));
        };
        if let Some(session) = request.caller.session {
            self.sessions.set_log_level(session, level);
        }
        complete(&request.caller, Map::new())
    }

    /// From which level on a request wants log messages, if it or its session said.
    pub(super) fn log_level(&self, request: &McpRequest) -> Option<LogLevel> {
        match request.caller.era() {
            Era::Modern => LogLevel::parse(&meta::text(request.params.as_deref()?, meta::LOG_LEVEL)?),
            Era::Legacy => self.sessions.log_level(request.caller.session?),
        }
    }

    /// Does a request want a server's log message, as its notification says it?
    pub(super) fn wants_log(&self, request: &McpRequest, message: &RawValue) -> bool {
        is_wanted(request.caller.era(), self.log_level(request), message)
    }
}

/// Who says nothing gets none (2026-07-28), or all (before). Of a message that does not say how grave it is nothing is
/// known, so it is let through.
fn is_wanted(era: Era, least: Option<LogLevel>, message: &RawValue) -> bool {
    let Some(least) = least else { return era == Era::Legacy };
    let level = Members::read(message).ok().and_then(|message| LogLevel::parse(&message.text("level")?));
    level.is_none_or(|level| level >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_wants() {
        let check = |era: Era, least: Option<&str>, said: &str, expected: bool| {
            let message = RawValue::from_string(format!(r#"{{"level": "{said}", "data": 1}}"#)).unwrap();
            let least = least.and_then(LogLevel::parse);
            assert_eq!(is_wanted(era, least, &message), expected, "{least:?} {said}");
        };
        check(Era::Legacy, None, "debug", true);
        check(Era::Modern, None, "emergency", false);
        for era in [Era::Legacy, Era::Modern] {
            check(era, Some("warning"), "info", false);
            check(era, Some("warning"), "warning", true);
            check(era, Some("warning"), "error", true);
            check(era, Some("warning"), "loud", true);
        }
    }
}
