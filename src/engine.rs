//! Everything Almanac knows, with one method per question.

pub mod generation;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

pub use generation::{Generation, Listed, ToolFilter};

use crate::catalog::load::Loaded;

/// The engine. Cheap to ask from any number of threads: readers never wait for a reload.
#[derive(Debug)]
pub struct Engine {
    current: ArcSwap<Generation>,
    published: AtomicU64,
}

impl Engine {
    /// An engine that knows nothing yet; its generation is 0.
    pub fn new() -> Self {
        Self { current: ArcSwap::from_pointee(Generation::new(0, Loaded::default())), published: AtomicU64::new(0) }
    }

    /// What is known now. Whoever answers from one generation answers consistently.
    pub fn generation(&self) -> impl Deref<Target = Arc<Generation>> + use<> {
        self.current.load()
    }

    /// Replaces what is known, as one. The generation's number rises if the catalog's content changed. Called by one thread.
    pub fn publish(&self, loaded: &Loaded) -> u64 {
        let current = self.current.load();
        let first = current.number() == 0;
        let changed = first || current.loaded().catalog.hash() != loaded.catalog.hash();
        let number = self.published.fetch_add(changed.into(), Ordering::Relaxed) + u64::from(changed);
        self.current.store(Arc::new(Generation::new(number, loaded.clone())));
        number
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}
