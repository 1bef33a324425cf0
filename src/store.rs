//! What must not be forgotten: durable before it is acknowledged, or refused.
//!
//! Operations are the domain's, never SQL, so that another database can answer the same. One thread writes; whoever waits
//! shares its commits, so the cost of one disk flush is divided by the number of writers. The queue before it is bounded: a
//! full one is said to be full, and a database that cannot be written is said to be so with its reason, and tried again.

mod absent;
mod database;
mod fold;
mod journal;
pub mod memories;
mod migrations;
pub mod notes;
pub mod sqlite;
pub mod trail;
mod writer;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

pub use absent::Absent;
pub use memories::Memories;
pub use notes::{Note, Notepad, Notes, NotesPending};
pub use sqlite::Sqlite;
use trail::Followed;

/// Longest duration of a call: a day, in milliseconds.
pub const MAX_DURATION_MS: u64 = 24 * 60 * 60 * 1000;

/// How a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// It answered.
    #[default]
    Success,
    /// It failed.
    Error,
    /// The caller gave up on it.
    Timeout,
    /// The caller changed its mind.
    Cancelled,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Success, Self::Error, Self::Timeout, Self::Cancelled];

    /// The name on the wire and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The outcome of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    /// Is the duration only a lower bound of what the call would have taken?
    pub fn is_censored(self) -> bool {
        matches!(self, Self::Timeout | Self::Cancelled)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What makes a call long, as its caller said it; nothing is derived, so that it can be learnt from anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// Characters of the input.
    pub content_length: Option<u64>,
    /// Perspectives asked for.
    pub num_perspectives: Option<u64>,
    /// Branches asked for.
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
    /// The tool.
    pub tool: String,
    /// Its mode, if it has modes.
    pub mode: Option<String>,
    /// 0 to [`MAX_DURATION_MS`]; nothing if it is not known, and then the call is its session's and teaches no duration.
    pub duration_ms: Option<u64>,
    /// How it ended.
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
    /// The tool.
    pub tool: String,
    /// Its mode.
    pub mode: Option<String>,
    /// Were these calls errors? They are counted apart.
    pub failed: bool,
    /// Records, those that retention removed included.
    pub samples: u64,
}

/// How much of the history a start reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Latest rows of each tool, mode and failure.
    pub per_key: u32,
    /// Latest rows of each tool.
    pub per_tool: u32,
    /// Latest calls that belong to a session.
    pub of_sessions: u32,
}

impl Default for ReplayLimits {
    /// 50 rows of a key restore the quality of its forecasts in full; 400 of a tool its mode-independent part; 20,000 calls the
    /// sessions that are likely to go on.
    fn default() -> Self {
        Self { per_key: 50, per_tool: 400, of_sessions: 20_000 }
    }
}

/// What a start reads back.
#[derive(Debug, Default)]
pub struct History {
    /// The latest calls with a duration, oldest first.
    pub executions: Vec<Execution>,
    /// Lifetime counts.
    pub counts: Vec<KeyCount>,
    /// The latest calls of sessions, oldest first.
    pub calls: Vec<SessionCall>,
    /// What sessions called next, the state that changed last at the end.
    pub followed: Vec<Followed>,
    /// Where sessions stand, and what was chosen.
    pub notes: Notes,
}

/// A call as its session remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCall {
    /// Whose session it is.
    pub tenant: String,
    /// The session.
    pub session: String,
    /// The tool that was called.
    pub tool: String,
}

/// What an acknowledgement is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives the loss of power: flushed to the disk before it is given.
    Power,
    /// It survives the daemon's end, also by `kill -9`; the operating system flushes it within seconds.
    Crash,
}

/// A batch of records was not stored; none of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// More waits than the queue holds; try again soon.
    #[error("the store is busy: {0} batches wait already")]
    Busy(usize),
    /// The database cannot be used now.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// The daemon is stopping.
    #[error("the store is closed")]
    Closed,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// For each record, in the batch's order: how many of its tool, mode and failure were ever recorded, itself included,
    /// with a duration; nothing if it was told before.
    pub samples: Vec<Option<u64>>,
    /// The trails that changed with the batch, or with others that were written together with it.
    pub followed: Arc<[Followed]>,
}

/// An acknowledgement that will come when the records are durable.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Result<Stored, StoreError>>);

impl Pending {
    /// Waits for it.
    pub async fn durable(self) -> Result<Stored, StoreError> {
        self.0.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits for it on a thread that may block.
    pub fn durable_blocking(self) -> Result<Stored, StoreError> {
        self.0.blocking_recv().map_err(|_| StoreError::Closed)?
    }
}

/// A place for what must not be forgotten.
pub trait Store: Send + Sync + fmt::Debug {
    /// Takes a batch, to be stored as a whole or not at all.
    fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError>;

    /// Takes notes. Who has nothing to acknowledge need not wait for them.
    fn note(&self, notes: Vec<Note>) -> Result<NotesPending, StoreError>;

    /// Reads back what a start needs, before anything is appended.
    fn replay(&self, limits: ReplayLimits) -> Result<History, StoreError>;

    /// What it does with memories.
    fn memories(&self) -> &dyn Memories;

    /// Batches that wait to be written.
    fn queued(&self) -> usize;

    /// Why nothing can be stored now, if so.
    fn trouble(&self) -> Option<String>;
}
