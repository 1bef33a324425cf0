//! What was predicted of records, until the next transaction takes it along: nobody wakes the writer for it.

use std::mem;

use parking_lot::Mutex;

use crate::timing::Predicted;

/// Records whose prediction waits; of more, while the database cannot be written, the oldest are given up.
const MAX_WAITING: usize = 1 << 16;

/// By the ids of the records.
#[derive(Debug, Default)]
pub(super) struct PredictedQueue(Mutex<Vec<(i64, Predicted)>>);

impl PredictedQueue {
    pub(super) fn put(&self, predicted: Vec<(i64, Predicted)>) {
        let mut waiting = self.0.lock();
        waiting.extend(predicted);
        let beyond = waiting.len().saturating_sub(MAX_WAITING);
        waiting.drain(..beyond);
    }

    /// All that waits, in the order of the ids.
    pub(super) fn take(&self) -> Vec<(i64, Predicted)> {
        let mut waiting = mem::take(&mut *self.0.lock());
        waiting.sort_unstable_by_key(|(id, _)| *id);
        waiting
    }
}
