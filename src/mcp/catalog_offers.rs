//! Offers of servers' tools to the catalog, counted until what is shown has them: whoever asks meanwhile would be told
//! that there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

/// Those that were made, taken and shown so far.
#[derive(Debug, Default)]
pub(super) struct CatalogOffers {
    made: AtomicU64,
    taken: Arc<TakenOffers>,
    shown: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct TakenOffers {
    count: AtomicU64,
    wake: Notify,
}

/// One that is taken when this goes, also if the catalog's thread has ended.
#[derive(Debug)]
pub(super) struct CatalogOffer(Arc<TakenOffers>);

impl Drop for CatalogOffer {
    fn drop(&mut self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        self.0.wake.notify_one();
    }
}

impl CatalogOffers {
    pub(super) fn make(&self) -> CatalogOffer {
        self.made.fetch_add(1, Ordering::AcqRel);
        CatalogOffer(Arc::clone(&self.taken))
    }

    /// How many the catalog has.
    pub(super) fn taken(&self) -> u64 {
        self.taken.count.load(Ordering::Acquire)
    }

    /// Waits until the catalog has one more.
    pub(super) async fn one_taken(&self) {
        self.taken.wake.notified().await;
    }

    /// So many are shown now.
    pub(super) fn show(&self, taken: u64) {
        self.shown.send_replace(taken);
    }

    pub(super) fn are_shown(&self) -> bool {
        *self.shown.borrow() >= self.made.load(Ordering::Acquire)
    }

    /// Waits for those that were made until now.
    pub(super) async fn all_shown(&self) {
        let made = self.made.load(Ordering::Acquire);
        let _ = self.shown.subscribe().wait_for(|shown| *shown >= made).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_was_offered_is_waited_for_until_it_is_shown() {
        let offers = CatalogOffers::default();
        assert!(offers.are_shown());
        let (one, other) = (offers.make(), offers.make());
        drop(one);
        offers.one_taken().await;
        offers.show(offers.taken());
        assert!(!offers.are_shown());
        assert!(timeout(Duration::ZERO, offers.all_shown()).await.is_err());
        drop(other);
        offers.one_taken().await;
        assert!(!offers.are_shown(), "it is taken, and not shown");
        offers.show(offers.taken());
        offers.all_shown().await;
    }
}
