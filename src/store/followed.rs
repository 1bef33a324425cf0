//! What other daemons wrote since it was asked for before, where several share a database.

use std::sync::Arc;

use super::notes::{ChoiceNote, TurnNote};
use super::{ForgottenTexts, SessionCall};
use crate::suggest::transitions::Transition;
use crate::timing::{Execution, FleetCalls, KeyCount};

/// What other hosts saw of a tool in a mode.
#[derive(Debug, Clone)]
pub struct FleetKey {
    pub tool: String,
    /// Empty without one.
    pub mode: String,
    pub failed: bool,
    pub calls: FleetCalls,
}

/// A purge, or what else makes a daemon forget.
#[derive(Debug, Clone)]
pub struct FollowedPurge {
    pub tenant: String,
    /// Sessions of the tenant whose state went.
    pub sessions: Vec<String>,
    /// What the memories said. Whoever has any of it in memory is to forget it.
    pub texts: Arc<ForgottenTexts>,
    /// If any of the tenant's choices went, or was learnt and is not written.
    pub choices: Option<ChoicesLeft>,
}

/// A tenant's choices, to be learnt instead of what is known of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoicesLeft {
    /// Oldest first.
    pub choices: Vec<ChoiceNote>,
    /// None went, so what they moved stands.
    pub are_all: bool,
}

/// To be folded into what is known, like what a start reads.
#[derive(Debug, Default)]
pub struct Followed {
    /// Calls with a duration on this host, of each key oldest first.
    pub executions: Vec<Execution>,
    /// Of these calls' keys: how many all daemons of this host counted.
    pub counts: Vec<KeyCount>,
    /// Keys that other hosts called, with all that is known of their calls there.
    pub fleet: Vec<FleetKey>,
    /// Calls of sessions, of each daemon oldest first.
    pub calls: Vec<SessionCall>,
    /// What sessions called next, at all daemons together.
    pub transitions: Vec<Transition>,
    /// They come before turns and choices.
    pub purges: Vec<FollowedPurge>,
    pub turns: Vec<TurnNote>,
    /// Choices, oldest first, but of tenants whose choices a purge says as they are left.
    pub choices: Vec<ChoiceNote>,
    /// There is more.
    pub is_partial: bool,
    /// Calls were counted here that are another's. What comes from now on is noted, to be learnt after what is read
    /// anew.
    pub is_relearning: bool,
    /// That, in place of all executions, counts and calls that are known, those beside it included.
    pub relearnt: Option<Relearnt>,
}

/// How long calls took on this host, and what sessions called, read anew while the daemon runs.
#[derive(Debug, Default)]
pub struct Relearnt {
    pub executions: Vec<Execution>,
    pub counts: Vec<KeyCount>,
    pub calls: Vec<SessionCall>,
    /// Up to which of this start's records the executions are all there.
    pub folded: i64,
    /// Up to which the calls are.
    pub through: i64,
}
