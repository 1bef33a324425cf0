//! Whoever proposes next tools by rules: the seam at which rule libraries join in.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::suggest::Proposal;

/// What just happened, as rules are told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// Whose session it is; rules are not told.
    pub tenant: String,
    /// The tool that was called.
    pub tool: String,
    /// Its mode, if it has modes.
    pub mode: Option<String>,
    /// What the call gave.
    pub result: CallResult,
    /// The tools that were called before, oldest first; what the session did if it is not said.
    pub history: Option<Vec<String>>,
    /// What the session is about.
    pub goal: Option<String>,
}

/// What a call gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallResult {
    /// Results, perspectives, nodes.
    pub num_outputs: u64,
    /// Did it branch?
    pub has_branches: bool,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// simple, moderate or complex, if it was said.
    pub complexity: Option<String>,
}

/// What was proposed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposals {
    /// Of each library what it proposes; libraries in a fixed order.
    pub lists: Vec<Vec<Proposal>>,
    /// Libraries that could not answer.
    pub degraded: Vec<Degraded>,
}

/// A library that could not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    /// Which one.
    pub plugin: String,
    /// Why not.
    pub reason: String,
}

/// An answer that is waited for, not for long.
pub type Proposing<'a> = Pin<Box<dyn Future<Output = Proposals> + Send + 'a>>;

/// Proposes next tools.
pub trait Proposer: Send + Sync + fmt::Debug {
    /// What should come next? `history` is the ask's, or the session's. Answers within a deadline of its own.
    fn propose<'a>(&'a self, ask: &'a Ask, history: &'a [String]) -> Proposing<'a>;
}
