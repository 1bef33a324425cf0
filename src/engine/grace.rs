//! Waiting for those who may still look at what was replaced, which keeps nobody else waiting: a grace period, as
//! McKenney and Slingwine, "Read-Copy Update", 1998, have it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, oneshot};

/// One period after the other.
#[derive(Debug)]
pub(super) struct GracePeriods {
    current: ArcSwap<Period>,
    /// The end of the current one. Whoever waits for an earlier one holds it.
    end: Mutex<oneshot::Receiver<()>>,
}

/// It ends with the last who began in it.
#[derive(Debug)]
pub(super) struct Period {
    number: u64,
    _end: oneshot::Sender<()>,
}

impl Period {
    fn new(number: u64) -> (Arc<Self>, oneshot::Receiver<()>) {
        let (sender, end) = oneshot::channel();
        (Arc::new(Self { number, _end: sender }), end)
    }
}

impl Default for GracePeriods {
    fn default() -> Self {
        let (first, end) = Period::new(0);
        Self { current: ArcSwap::new(first), end: Mutex::new(end) }
    }
}

impl GracePeriods {
    /// To be held while something is looked at that may be replaced.
    pub(super) fn enter(&self) -> Arc<Period> {
        self.current.load_full()
    }

    /// Of the current period; each has the next.
    pub(super) fn number(&self) -> u64 {
        self.current.load().number
    }

    /// Waits until all are done who began before.
    pub(super) async fn pass(&self) {
        let mut end = self.end.lock().await;
        let (next, its_end) = Period::new(self.number() + 1);
        drop(self.current.swap(next));
        let ended = std::mem::replace(&mut *end, its_end);
        // It is never sent, only dropped with its period.
        let _ = ended.await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn those_who_began_before_are_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let periods = GracePeriods::default();
            periods.pass().await;
            let before = [periods.enter(), periods.enter()];
            let mut passing = std::pin::pin!(periods.pass());
            assert!(timeout(Duration::ZERO, &mut passing).await.is_err());
            let after = periods.enter();
            let [first, second] = before;
            drop(first);
            assert!(timeout(Duration::ZERO, &mut passing).await.is_err());
            drop(second);
            passing.await;
            assert_eq!(periods.number(), 2);
            assert!(timeout(Duration::ZERO, periods.pass()).await.is_err());
            drop(after);
        });
    }
}
