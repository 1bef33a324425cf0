//! Recorded calls on the wire, one by one.

use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::turns::TurnSummary;
use crate::store::{Choice, ExecutionPage, KeptTurn, RecordedCall, SessionPage, SessionRow};
use crate::timing::{Execution, Outcome, Predicted, TimedCall};

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
    /// P05, P25, P50, P75 and P95 of its duration as the model said them just before it learnt the call, in ms; absent
    /// if they were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<[u64; 5]>,
}

impl From<RecordedCall> for ExecutionItem {
    fn from(RecordedCall { execution, predicted }: RecordedCall) -> Self {
        let Execution { tool, mode, outcome, duration_ms, session, at_ms, measures, .. } = execution;
        Self {
            tool_name: tool,
            mode_name: mode,
            outcome,
            duration_ms,
            session_id: session,
            timestamp: timestamp(at_ms),
            content_length: measures.content_length,
            predicted_ms: predicted.map(Predicted::whole_ms),
        }
    }
}

impl From<ExecutionPage> for ExecutionList {
    fn from(page: ExecutionPage) -> Self {
        let next_cursor = page.next.map(|next| next.to_string());
        Self { items: page.calls.into_iter().map(ExecutionItem::from).collect(), next_cursor }
    }
}

/// Answer of `GET /v1/timing/{name}/calls`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallPoints {
    /// Calls in the order of their times, 10,000 at most.
    pub items: Vec<CallPoint>,
    /// How many calls they stand for: the latest, 100,000 at most.
    pub total: usize,
    /// Were there too many? Then of each stretch of them the shortest and the longest are here.
    pub thinned: bool,
}

/// A call as a point over time.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallPoint {
    /// When it ended, in ms since the epoch.
    pub at_ms: i64,
    /// How long it took, or was waited for, in ms.
    pub duration_ms: u64,
    /// success, error, timeout or cancelled.
    pub outcome: Outcome,
    /// P05, P25, P50, P75 and P95 as the model said them just before it learnt the call, in ms; absent if they were not
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<[u64; 5]>,
}

impl From<TimedCall> for CallPoint {
    fn from(call: TimedCall) -> Self {
        let TimedCall { at_ms, duration_ms, outcome, predicted } = call;
        Self { at_ms, duration_ms, outcome, predicted_ms: predicted.map(Predicted::whole_ms) }
    }
}

/// Answer of `GET /v1/tools/{name}/choices`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceList {
    /// Choices, the latest first.
    pub items: Vec<ChoiceItem>,
}

/// A tool was chosen for a message.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceItem {
    /// When: RFC 3339, in UTC.
    pub at: String,
    /// How far it is trusted, 0 to 1: what was reported as missing counts more than what was merely called.
    pub trust: f64,
    /// The message; absent without the scope `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ChoiceItem {
    /// A choice, with its message only if that may be seen.
    pub fn of(choice: Choice, shows_message: bool) -> Self {
        let Choice { at_us, message, trust } = choice;
        // To three digits: what is trusted comes in tenths, of half the precision.
        let trust = (f64::from(trust) * 1e3).round() / 1e3;
        Self { at: timestamp(at_us / 1000), trust, message: shows_message.then_some(message) }
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

/// A session, as its calls among the latest 100,000 of the daemon show it.
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

/// Answer of `GET /v1/sessions/{name}/turns`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnList {
    /// The last 20 turns at most, the latest first.
    pub items: Vec<TurnItem>,
}

/// A turn of a session: what was made of a message, and what was suggested until the next.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnItem {
    /// Which turn of its session it is, from 1 on.
    pub number: i64,
    /// When its message was qualified first: RFC 3339, in UTC.
    pub at: String,
    /// What the user was after, as a phrase; absent if nothing said so, and without the scope `memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Categories of its context.
    pub categories: Vec<String>,
    /// How sure they are, 0 to 1.
    pub confidence: f32,
    /// Tools that were suggested, 32 at most.
    pub suggested: Vec<String>,
    /// Those of them that were called after that.
    pub taken: Vec<String>,
}

impl TurnItem {
    /// A turn as it was kept, with its intent only if that may be seen; nothing if it cannot be read.
    pub fn of(turn: KeptTurn, shows_intent: bool) -> Option<Self> {
        let KeptTurn { number, at_us, state } = turn;
        let summary: TurnSummary = serde_json::from_str(&state).ok()?;
        let TurnSummary { categories, intent, confidence, suggested, taken } = summary;
        let intent = intent.filter(|_| shows_intent);
        Some(Self { number, at: timestamp(at_us / 1000), intent, categories, confidence, suggested, taken })
    }
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
