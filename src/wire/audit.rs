//! Recorded calls on the wire, one by one.

use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::store::{ExecutionPage, SessionPage, SessionRow};
use crate::timing::{Execution, Outcome};

/// Answer of `GET /v1/executions`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionList {
    /// Calls, those that were recorded last first.
    pub items: Vec<ExecutionItem>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A call that was recorded.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionItem {
    /// The tool's name.
    pub tool_name: String,
    /// Its mode; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_name: Option<String>,
    /// success, error, timeout or cancelled.
    pub outcome: Outcome,
    /// How long it took, or was waited for, in ms; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The session it belongs to; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When it ended: RFC 3339, in UTC.
    pub timestamp: String,
    /// Size of its input, in characters; absent if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_length: Option<u64>,
}

impl From<Execution> for ExecutionItem {
    fn from(execution: Execution) -> Self {
        let Execution { tool, mode, outcome, duration_ms, session, at_ms, measures, .. } = execution;
        Self {
            tool_name: tool,
            mode_name: mode,
            outcome,
            duration_ms,
            session_id: session,
            timestamp: timestamp(at_ms),
            content_length: measures.content_length,
        }
    }
}

impl From<ExecutionPage> for ExecutionList {
    fn from(page: ExecutionPage) -> Self {
        let next_cursor = page.next.map(|next| next.to_string());
        Self { items: page.executions.into_iter().map(ExecutionItem::from).collect(), next_cursor }
    }
}

/// Answer of `GET /v1/sessions`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// Sessions, those that called last first.
    pub items: Vec<SessionItem>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A session, as its calls among the latest 100,000 show it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionItem {
    /// The session.
    pub session_id: String,
    /// Its calls.
    pub calls: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Of these, those that their callers gave up on.
    pub timeouts: u64,
    /// When its first call ended: RFC 3339, in UTC.
    pub first_at: String,
    /// When its last call ended.
    pub last_at: String,
}

impl From<SessionRow> for SessionItem {
    fn from(row: SessionRow) -> Self {
        let SessionRow { session, calls, errors, timeouts, first_ms, last_ms } = row;
        let (first_at, last_at) = (timestamp(first_ms), timestamp(last_ms));
        Self { session_id: session, calls, errors, timeouts, first_at, last_at }
    }
}

impl From<SessionPage> for SessionList {
    fn from(page: SessionPage) -> Self {
        let next_cursor = page.next.map(|next| next.to_string());
        Self { items: page.sessions.into_iter().map(SessionItem::from).collect(), next_cursor }
    }
}

fn timestamp(at_ms: i64) -> String {
    let moment = UNIX_EPOCH + Duration::from_millis(at_ms.max(0).cast_unsigned());
    humantime::format_rfc3339_millis(moment).to_string()
}
