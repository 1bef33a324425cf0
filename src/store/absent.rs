//! No store: for whoever only asks.

use super::{Execution, History, Note, Pending, ReplayLimits, Store, StoreError};

/// Remembers nothing, and refuses to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Absent;

impl Store for Absent {
    fn append(&self, _: Vec<Execution>) -> Result<Pending, StoreError> {
        Err(StoreError::Closed)
    }

    fn note(&self, _: Vec<Note>) -> Result<(), StoreError> {
        Ok(())
    }

    fn replay(&self, _: ReplayLimits) -> Result<History, StoreError> {
        Ok(History::default())
    }

    fn queued(&self) -> usize {
        0
    }

    fn trouble(&self) -> Option<String> {
        None
    }
}
