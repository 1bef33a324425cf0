//! No store: for whoever only asks.

use super::memories::{
    Acknowledged, Added, Forgotten, IdempotencyKey, Imported, Linked, Memories, Purge, SessionsOf, Thread,
};
use super::{
    Choice, ChoiceNote, ExecutionFilter, ExecutionPage, History, KeptTurn, Note, NotesPending, Pending, ReplayLimits,
    SessionFilter, SessionPage, Store, StoreError, TimedCallFilter,
};
use crate::memory::query::{Found, Search};
use crate::memory::stored::{Draft, StoredMemory, StoredVersion};
use crate::timing::{Execution, Predicted, TimedCall};

/// Remembers nothing, and refuses to.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullStore;

impl Store for NullStore {
    fn append(&self, _: Vec<Execution>) -> Result<Pending, StoreError> {
        Err(StoreError::Closed)
    }

    fn replay(&self, _: ReplayLimits) -> Result<History, StoreError> {
        Ok(History::default())
    }

    fn keep_predicted(&self, _: Vec<(i64, Predicted)>) {}

    fn note(&self, _: Vec<Note>) -> Result<NotesPending, StoreError> {
        Ok(NotesPending::default())
    }

    fn executions(&self, _: &ExecutionFilter) -> Result<ExecutionPage, StoreError> {
        Ok(ExecutionPage::default())
    }

    fn timed_calls(&self, _: &TimedCallFilter) -> Result<Vec<TimedCall>, StoreError> {
        Ok(Vec::new())
    }

    fn choices(&self, _: &str, _: &str, _: usize) -> Result<Vec<Choice>, StoreError> {
        Ok(Vec::new())
    }

    fn kept_turns(&self, _: &str, _: &str) -> Result<Vec<KeptTurn>, StoreError> {
        Ok(Vec::new())
    }

    fn sessions(&self, _: &SessionFilter) -> Result<SessionPage, StoreError> {
        Ok(SessionPage::default())
    }

    fn memories(&self) -> &dyn Memories {
        self
    }

    fn queued(&self) -> usize {
        0
    }

    fn take_leave(&self) {}

    fn kept_choices(&self, _: &str) -> Result<Vec<ChoiceNote>, StoreError> {
        Ok(Vec::new())
    }

    fn trouble(&self) -> Option<String> {
        None
    }
}

impl Memories for NullStore {
    fn add(&self, _: &str, _: Draft, _: Option<IdempotencyKey>) -> Result<Acknowledged<Added>, StoreError> {
        Err(StoreError::Closed)
    }

    fn revise(&self, _: &str, _: &str, _: u64, _: Draft) -> Result<Acknowledged<StoredMemory>, StoreError> {
        Err(StoreError::Closed)
    }

    fn import(&self, _: &str, _: Vec<Imported>) -> Result<Acknowledged<u64>, StoreError> {
        Err(StoreError::Closed)
    }

    fn purge(&self, _: &str, _: Purge, _: SessionsOf) -> Result<Acknowledged<Forgotten>, StoreError> {
        Err(StoreError::Closed)
    }

    fn get(&self, _: &str, _: &str) -> Result<Option<StoredMemory>, StoreError> {
        Err(StoreError::Closed)
    }

    fn history(&self, _: &str, _: &str, _: u64, _: usize) -> Result<(Vec<StoredVersion>, u64), StoreError> {
        Err(StoreError::Closed)
    }

    fn search(&self, _: &str, _: &Search) -> Result<Found, StoreError> {
        Err(StoreError::Closed)
    }

    fn thread(&self, _: &str, _: Option<&str>, _: &str, _: u64, _: usize) -> Result<Thread, StoreError> {
        Err(StoreError::Closed)
    }

    fn links(&self, _: &str, _: &[String], _: usize) -> Result<Vec<Linked>, StoreError> {
        Err(StoreError::Closed)
    }

    fn export(&self, _: &str, _: &str, _: usize) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, StoreError> {
        Err(StoreError::Closed)
    }
}
