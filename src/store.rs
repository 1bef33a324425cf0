//! What must not be forgotten: durable before it is acknowledged, or refused.
//!
//! Operations are the domain's, never SQL, so that another database can answer the same. One thread writes; whoever
//! waits shares its commits, so the cost of one disk flush is divided by the number of writers. The queue before it is
//! bounded: a full one is said to be full, and a database that cannot be written is said to be so with its reason, and
//! tried again.

mod acknowledgement;
pub mod audit;
mod clock;
mod file_identity;
mod finding;
pub mod fleet;
mod followed;
mod forgotten_texts;
mod front;
mod journal;
pub mod memories;
mod noted;
pub mod notes;
mod null;
pub mod postgres;
mod predicted_queue;
mod projection;
mod settings;
pub mod sqlite;
#[cfg(test)]
pub(crate) mod suite;
mod told_keys;
mod trouble;

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use acknowledgement::Acknowledgement;

use crate::strict::Word;
use crate::suggest::transitions::Transition;
use crate::timing::execution::{Execution, KeyCount};
use crate::timing::{Predicted, TimedCall};
pub use audit::{
    Choice, ExecutionFilter, ExecutionPage, KeptTurn, RecordedCall, SessionFilter, SessionPage, SessionRow,
    TimedCallFilter,
};
pub use fleet::{DaemonFigures, DaemonState, Fleet, FleetDaemon};
pub use followed::{ChoicesLeft, FleetKey, Followed, FollowedPurge, Relearnt};
pub use forgotten_texts::ForgottenTexts;
pub use front::OnCommit;
pub use memories::Memories;
pub use notes::{ChoiceNote, Note, Notepad, Notes, NotesPending};
pub use null::NullStore;
pub use postgres::{Postgres, PostgresOptions, Standings};
pub use settings::Settings;
pub use sqlite::Sqlite;

/// How much of the history a start reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayLimits {
    /// Tools in their modes, failures apart: those that were called last.
    pub keys: u32,
    /// Latest rows of each of them at most.
    pub per_key: u32,
    /// Rows of all of them; where that is less, each has fewer, and none has none.
    pub in_all: u32,
    /// Latest calls that belong to a session.
    pub of_sessions: u32,
}

impl Default for ReplayLimits {
    /// As many keys as a model holds; 50 rows of a key restore the quality of its forecasts in full; 100,000 rows are
    /// learnt in a second; 20,000 calls are the sessions that are likely to go on.
    fn default() -> Self {
        Self { keys: 20_000, per_key: 50, in_all: 100_000, of_sessions: 20_000 }
    }
}

impl ReplayLimits {
    /// As many of each key as fit, and at least one: keys that have few leave their share to the others.
    fn rows_of_each(self, keys: &[KeyCount]) -> u32 {
        let all = |each: u32| keys.iter().map(|key| key.samples.min(each.into())).sum::<u64>();
        (2..=self.per_key).rev().find(|&each| all(each) <= self.in_all.into()).unwrap_or(1)
    }
}

/// What a start reads back.
#[derive(Debug, Default)]
pub struct History {
    /// The latest calls with a duration, oldest first.
    pub executions: Vec<Execution>,
    pub counts: Vec<KeyCount>,
    /// What other hosts saw.
    pub fleet: Vec<FleetKey>,
    /// The latest calls of sessions, oldest first.
    pub calls: Vec<SessionCall>,
    /// What sessions called next, the state that changed last at the end.
    pub transitions: Vec<Transition>,
    /// Where sessions stand, and what was chosen.
    pub notes: Notes,
}

/// A call as its session remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCall {
    /// Whose session it is.
    pub tenant: String,
    pub session: String,
    /// The tool that was called.
    pub tool: String,
    /// When the call ended, in ms since the epoch.
    pub at_ms: i64,
}

/// What an acknowledgement is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
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
    /// An answer was given up.
    #[error("the answer would take more than {0} s; ask for less")]
    TooLong(u64),
    /// A memory cannot be read; trying again does not help.
    #[error("the memory `{0}` is damaged in the database; restore a backup, or purge it")]
    Damaged(String),
    /// The database refuses a record for what it is; nothing of the batch was stored.
    #[error("the database cannot store it: {0}")]
    Unstorable(String),
    /// An idempotency key was used for something else; nothing of the batch was stored.
    #[error("the idempotency key `{0}` was used for another body; use a new key for another call")]
    KeyReused(String),
    /// The daemon is stopping.
    #[error("the store is closed")]
    Closed,
}

/// What became of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// For each record, in the batch's order: how many of its tool, mode and failure were ever recorded, itself
    /// included, with a duration; nothing if it was told before.
    pub samples: Vec<Option<u64>>,
    /// For each record, in the same order, what it is called by in [`Store::keep_predicted`]; nothing if it was told
    /// before.
    pub ids: Vec<Option<i64>>,
    /// The prefixes that changed with the batch, or with others that were written together with it.
    pub transitions: Arc<[Transition]>,
    /// What the acknowledgement is less worth than it should be for, if so: the records are on this machine alone.
    pub degraded: Option<Arc<str>>,
}

/// An acknowledgement that will come when the records are durable.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Acknowledgement>);

impl Pending {
    pub async fn durable(self) -> Result<Stored, StoreError> {
        self.0.await.map_err(|_| StoreError::Closed)?.outcome()
    }

    /// Waits for it on a thread that may block.
    pub fn durable_blocking(self) -> Result<Stored, StoreError> {
        self.0.blocking_recv().map_err(|_| StoreError::Closed)?.outcome()
    }
}

/// A place for what must not be forgotten.
pub trait Store: Send + Sync + fmt::Debug {
    /// Takes a batch, to be stored as a whole or not at all.
    fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError>;

    /// Takes what the model said of records just before it learnt them, to be kept beside them. It is written with what
    /// is written next, and nobody waits for it: what is lost by a kill is missing where calls are looked at.
    fn keep_predicted(&self, predicted: Vec<(i64, Predicted)>);

    /// Takes notes. Who has nothing to acknowledge need not wait for them.
    fn note(&self, notes: Vec<Note>) -> Result<NotesPending, StoreError>;

    /// Reads back what a start needs, before anything is appended. Of a store that opened late it is what it had when
    /// it opened, whatever was appended since.
    fn replay(&self, limits: ReplayLimits) -> Result<History, StoreError>;

    /// What other daemons wrote since the history was read or this was asked before. Nothing where there are none.
    fn follow(&self) -> Result<Followed, StoreError> {
        Ok(Followed::default())
    }

    /// What was followed is folded, and forgotten by all who may have noted anything of it.
    fn has_forgotten(&self) {}

    /// What was read anew is learnt.
    fn has_relearnt(&self) {}

    /// Recorded calls, those that were acknowledged before this included.
    fn executions(&self, wanted: &ExecutionFilter) -> Result<ExecutionPage, StoreError>;

    /// Calls of one tool and mode with a duration, those that were recorded last first.
    fn timed_calls(&self, wanted: &TimedCallFilter) -> Result<Vec<TimedCall>, StoreError>;

    /// When a tool was chosen, and for which messages, the latest first.
    fn choices(&self, tenant: &str, tool: &str, limit: usize) -> Result<Vec<Choice>, StoreError>;

    /// The latest choices of a tenant as a start reads them, oldest first.
    fn kept_choices(&self, tenant: &str) -> Result<Vec<ChoiceNote>, StoreError>;

    /// The turns of a session that are kept, the latest first; at most [`notes::KEPT_TURNS`].
    fn kept_turns(&self, tenant: &str, session: &str) -> Result<Vec<KeptTurn>, StoreError>;

    /// Sessions as their calls among the latest 100,000 of the daemon show them.
    fn sessions(&self, wanted: &SessionFilter) -> Result<SessionPage, StoreError>;

    /// What it does with memories.
    fn memories(&self) -> &dyn Memories;

    /// Reads what searches among many memories need, so that the first of them need not wait for it. Called on a thread
    /// that may block.
    ///
    /// # Errors
    /// If the store cannot be read; the first search reads it then.
    fn prepare_searches(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Batches that wait to be written.
    fn queued(&self) -> usize;

    /// Why nothing can be stored now, if so; records may still be kept by a journal.
    fn trouble(&self) -> Option<String>;

    /// Are records taken?
    fn takes_records(&self) -> bool {
        self.trouble().is_none()
    }

    /// Why what was stored cannot be read now, if so.
    fn unreadable(&self) -> Option<String> {
        self.trouble()
    }

    /// How it stands with a database elsewhere; nothing if all is on this machine.
    fn standings(&self) -> Option<Arc<Standings>> {
        None
    }

    /// The daemons that share the database; nothing if all is on this machine.
    fn fleet(&self) -> Option<Fleet> {
        None
    }

    /// Nothing will be asked any more: writes what was noted, closes the database, and tells the other daemons, so that
    /// nobody looks for this one. What comes later is refused. Called on a thread that may block.
    fn take_leave(&self);
}
