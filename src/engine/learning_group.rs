//! Calls of several requests that became durable together are learnt together.
//!
//! What is learnt is copied and published anew for each lesson, which costs as much as the lesson itself. The store
//! acknowledges a group of requests at once, and whoever of them goes on first learns the calls of all.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use super::learner::{DurableCalls, LearntCall};

/// Calls that wait to be learnt.
#[derive(Debug, Default)]
pub(super) struct LearningGroup(Mutex<Vec<Waiting>>);

#[derive(Debug)]
struct Waiting {
    calls: Arc<DurableCalls>,
    learnt: oneshot::Sender<Vec<LearntCall>>,
}

impl LearningGroup {
    /// Has `calls` learnt by `learn`, together with those of others, whose own then does nothing. Returns what was
    /// found out of each call; of all of them nothing if whoever learnt them panicked.
    pub(super) async fn learn(
        &self,
        calls: &Arc<DurableCalls>,
        learn: impl FnOnce(&[Arc<DurableCalls>]) -> Vec<Vec<LearntCall>>,
    ) -> Vec<LearntCall> {
        let (sender, learnt) = oneshot::channel();
        self.0.lock().push(Waiting { calls: Arc::clone(calls), learnt: sender });
        // The others that were acknowledged with this come in meanwhile.
        yield_now().await;
        self.learn_all(learn);
        learnt.await.unwrap_or_else(|_| vec![LearntCall::default(); calls.executions.len()])
    }

    fn learn_all(&self, learn: impl FnOnce(&[Arc<DurableCalls>]) -> Vec<Vec<LearntCall>>) {
        let group = mem::take(&mut *self.0.lock());
        if group.is_empty() {
            return;
        }
        let (calls, waiting): (Vec<_>, Vec<_>) = group.into_iter().map(|each| (each.calls, each.learnt)).unzip();
        let learnt = learn(&calls);
        drop(calls);
        for (waiting, learnt) in waiting.into_iter().zip(learnt) {
            // Whoever does not wait any more has its calls learnt all the same.
            let _ = waiting.send(learnt);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::{Context, Waker};

    use futures_util::future::join_all;

    use super::*;
    use crate::store::suite::records::execution;

    fn calls(count: usize) -> Arc<DurableCalls> {
        let executions = vec![execution("a", None, 500, None); count];
        Arc::new(DurableCalls { samples: vec![1; count], executions, ..DurableCalls::default() })
    }

    fn lessons(group: &[Arc<DurableCalls>]) -> Vec<Vec<LearntCall>> {
        group.iter().map(|calls| vec![LearntCall::default(); calls.executions.len()]).collect()
    }

    #[tokio::test]
    async fn one_learns_for_all_and_each_hears_of_its_own() {
        let (group, rounds) = (LearningGroup::default(), Cell::new(0));
        let learn = |count: usize| {
            let (group, rounds) = (&group, &rounds);
            async move {
                let calls = calls(count);
                let learn = |waiting: &[Arc<DurableCalls>]| {
                    rounds.set(rounds.get() + 1);
                    lessons(waiting)
                };
                group.learn(&calls, learn).await.len()
            }
        };
        assert_eq!(join_all([3, 1, 4].map(learn)).await, [3, 1, 4]);
        assert_eq!(rounds.get(), 1);
        assert_eq!((learn(2).await, rounds.get()), (2, 2));
    }

    #[tokio::test]
    async fn calls_of_who_went_are_learnt() {
        let (group, learnt) = (LearningGroup::default(), Cell::new(0));
        let (gone, here) = (calls(5), calls(1));
        let mut first = Box::pin(group.learn(&gone, |_| unreachable!("it does not go on")));
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(first);
        let learn = |waiting: &[Arc<DurableCalls>]| {
            learnt.set(waiting.iter().map(|calls| calls.executions.len()).sum());
            lessons(waiting)
        };
        assert_eq!((group.learn(&here, learn).await.len(), learnt.get()), (1, 6));
    }
}
