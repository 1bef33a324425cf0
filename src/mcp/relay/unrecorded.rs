//! Calls that are not recorded yet, for which a stop waits: what comes after it is not stored any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};
use tokio::time::timeout;

/// Read by each call, and written by whoever waits for all.
#[derive(Debug, Default)]
pub(super) struct UnrecordedCalls(Arc<RwLock<()>>);

impl UnrecordedCalls {
    /// A call begins, and is recorded when what this returns is dropped.
    pub(super) async fn begin(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0).read_owned().await
    }

    /// Waits until none is left, for so long at most.
    pub(super) async fn none_left(&self, limit: Duration) {
        let _ = timeout(limit, self.0.write()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn each_call_is_waited_for_until_it_is_recorded() {
        let calls = UnrecordedCalls::default();
        calls.none_left(Duration::MAX).await;
        let under_way = [calls.begin().await, calls.begin().await];
        let mut waiting = pin!(calls.none_left(Duration::from_secs(3600)));
        for call in under_way {
            tokio::select! {
                biased;
                () = &mut waiting => panic!("one is under way"),
                () = ready(()) => drop(call),
            }
        }
        waiting.await;
        let _stuck = calls.begin().await;
        calls.none_left(Duration::ZERO).await;
    }
}
