//! A call that ended, as it is recorded and learnt from.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;

/// Longest duration of a call: a day, in milliseconds.
pub const MAX_DURATION_MS: u64 = 24 * 60 * 60 * 1000;

/// What makes a call long, as its caller said it; nothing is derived, so that it can be learnt from anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// Characters of the input.
    pub content_length: Option<u64>,
    pub num_perspectives: Option<u64>,
    pub num_branches: Option<u64>,
    /// Thinking budget, in tokens.
    pub thinking_budget: Option<u64>,
    /// Tokens of context.
    pub context_tokens: Option<u64>,
}

/// One call that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Whose call it was.
    pub tenant: String,
    pub tool: String,
    /// Its mode, if it has modes.
    pub mode: Option<String>,
    /// 0 to [`MAX_DURATION_MS`]; nothing if it is not known, and then the call is its session's and teaches no
    /// duration.
    pub duration_ms: Option<u64>,
    pub outcome: Outcome,
    /// What made it long.
    pub measures: Measures,
    /// The session it belongs to.
    pub session: Option<String>,
    /// When it ended, milliseconds since the epoch.
    pub at_ms: i64,
    /// A second record with this key is the same call told again.
    pub idempotency_key: Option<String>,
}

/// How often a tool and mode were recorded with a duration, ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCount {
    pub tool: String,
    pub mode: Option<String>,
    /// Were these calls errors? They are counted apart.
    pub failed: bool,
    /// Records, those that retention removed included.
    pub samples: u64,
}
