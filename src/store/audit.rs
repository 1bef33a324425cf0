//! Looking at recorded calls one by one, for whoever audits them.

use crate::timing::execution::Execution;
use crate::timing::{Outcome, Predicted};

/// Which records are wanted; all of the tenant by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Whose calls.
    pub tenant: String,
    /// Of this tool only.
    pub tool: Option<String>,
    /// Of this session only.
    pub session: Option<String>,
    /// That ended so only.
    pub outcome: Option<Outcome>,
    /// That ended at this moment or later, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
    /// That ended before this moment.
    pub until_ms: Option<i64>,
    /// Recorded before the one of this number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// Which sessions are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Whose sessions.
    pub tenant: String,
    /// Whose last call was recorded before the one of this number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: usize,
}

/// What the latest calls say of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRow {
    pub session: String,
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that their callers gave up on.
    pub timeouts: u64,
    /// When its first and its last call ended, in milliseconds since the epoch.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// A call as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    pub execution: Execution,
    /// What the model said of it just before it learnt it, if that was kept.
    pub predicted: Option<Predicted>,
}

/// Which calls are wanted as points.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimedCallFilter {
    /// Whose calls.
    pub tenant: String,
    pub tool: String,
    /// Nothing means calls without a mode.
    pub mode: Option<String>,
    /// Those that failed, or the others?
    pub failed: bool,
    /// At most so many.
    pub limit: usize,
}

/// A tool was chosen for a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// When, microseconds since the epoch.
    pub at_us: i64,
    pub message: String,
    /// How far it is trusted, 0 to 1.
    pub trust: f32,
}

/// What is kept of a session's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTurn {
    /// Which turn of its session it is, from 1 on.
    pub number: i64,
    /// When it was first kept, microseconds since the epoch.
    pub at_us: i64,
    /// Text whose form is its owner's.
    pub state: String,
}

/// Sessions, those that called last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPage {
    pub sessions: Vec<SessionRow>,
    /// What the next page is asked for by, if there is one.
    pub next: Option<i64>,
}

/// Recorded calls, those that were recorded last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionPage {
    pub calls: Vec<RecordedCall>,
    /// What the next page is asked for by, if there is one.
    pub next: Option<i64>,
}
