//! A value that many read and one at a time replaces.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

/// Readers take what is current without waiting; whoever changes it waits for others who do.
#[derive(Debug, Default)]
pub(super) struct Published<T> {
    current: ArcSwap<T>,
    /// Held while it is replaced.
    replacing: Mutex<()>,
}

impl<T> Published<T> {
    pub(super) fn new(first: T) -> Self {
        Self { current: ArcSwap::from_pointee(first), replacing: Mutex::default() }
    }

    /// What is current, to look at; to keep it, take [`Self::snapshot`].
    pub(super) fn load(&self) -> Guard<Arc<T>> {
        self.current.load()
    }

    /// What is current, for as long as it is needed.
    pub(super) fn snapshot(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Replaces it by what `change` makes of a copy, at once for all readers; a copy should be cheap. If `change`
    /// panics, nothing is replaced.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: Clone,
    {
        let _one_at_a_time = self.replacing.lock();
        let mut next = T::clone(&self.current.load());
        let outcome = change(&mut next);
        self.current.store(Arc::new(next));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_update_is_lost_and_a_snapshot_stays() {
        let published = Published::<Vec<u32>>::default();
        let before = published.snapshot();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let published = &published;
                scope
                    .spawn(move || (0..100).for_each(|number| published.update(|all| all.push(thread * 100 + number))));
            }
        });
        let mut all = Vec::clone(&published.load());
        all.sort_unstable();
        assert!(all.into_iter().eq(0..400));
        assert!(before.is_empty());
    }

    #[test]
    fn a_panic_replaces_nothing_and_locks_nobody_out() {
        let published = Published::<u32>::default();
        let update = std::panic::AssertUnwindSafe(|| published.update(|_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(update).is_err());
        published.update(|value| *value += 1);
        assert_eq!(**published.load(), 1);
    }
}
