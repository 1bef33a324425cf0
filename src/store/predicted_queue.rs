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
        bound(&mut waiting);
    }

    /// Puts back what was taken, and could not be written.
    pub(super) fn put_back(&self, predicted: Vec<(i64, Predicted)>) {
        let mut waiting = self.0.lock();
        waiting.splice(..0, predicted);
        bound(&mut waiting);
    }

    /// All that waits, in the order of the ids.
    pub(super) fn take(&self) -> Vec<(i64, Predicted)> {
        let mut waiting = mem::take(&mut *self.0.lock());
        waiting.sort_unstable_by_key(|(id, _)| *id);
        waiting
    }
}

fn bound(waiting: &mut Vec<(i64, Predicted)>) {
    let beyond = waiting.len().saturating_sub(MAX_WAITING);
    waiting.drain(..beyond);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_waits_again_and_the_oldest_are_given_up() {
        let queue = PredictedQueue::default();
        let put = |ids: std::ops::Range<i64>| queue.put(ids.map(|id| (id, Predicted::sketch([1; 5]))).collect());
        let ids = |taken: &[(i64, Predicted)]| (taken.len(), taken.first().map(|(id, _)| *id));
        put(0..3);
        let taken = queue.take();
        put(3..5);
        queue.put_back(taken);
        assert_eq!(ids(&queue.take()), (5, Some(0)));
        put(0..10);
        let taken = queue.take();
        put(10..MAX_WAITING as i64 + 5);
        queue.put_back(taken);
        assert_eq!(ids(&queue.take()), (MAX_WAITING, Some(5)));
    }
}
