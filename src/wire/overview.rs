//! How all is, in one answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalog::StatusAnswer;

/// `GET /v1/overview`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OverviewAnswer {
    /// How the daemon is.
    pub status: StatusAnswer,
    /// When it started, RFC 3339.
    pub started_at: String,
    pub store: StoreState,
    /// Do file events announce changes of documents? Else only the poll finds them.
    pub watching: bool,
    /// Share of recent calls that ended inside the interval that nine in ten should, 0 to 1; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// Calls that were judged so since the start.
    pub judged_calls: u64,
    /// Results that were delivered after their clients would have given up, since the start.
    pub saved_calls: u64,
    /// Calls that were recorded in the last hour, of all tenants, by minute, oldest first; a minute without calls is
    /// left out.
    pub minutes: Vec<MinuteOfCalls>,
    /// Clients that listen to events.
    pub listeners: u64,
}

/// How the store is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoreState {
    /// Can records be stored?
    pub usable: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Batches that wait to be written.
    pub queued: usize,
    /// Why what was recorded before the start is not known, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_history: Option<String>,
}

/// Calls that were recorded in one minute.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MinuteOfCalls {
    /// When it began, RFC 3339.
    pub at: String,
    /// All of them.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// Those that their callers gave up on.
    pub timeouts: u64,
}
