//! Everything Almanac knows, with one method per question.

pub mod generation;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

pub use generation::{Generation, Listed, ToolFilter};

use crate::catalog::load::Loaded;
use crate::catalog::search::Search;

/// The engine. Cheap to ask from any number of threads: readers never wait for a reload.
#[derive(Debug)]
pub struct Engine {
    current: ArcSwap<Generation>,
    published: AtomicU64,
    /// Made when it is first asked for, and kept up with the catalog from then on.
    search: ArcSwapOption<Search>,
}

impl Engine {
    /// An engine that knows nothing yet; its generation is 0.
    pub fn new() -> Self {
        Self {
            current: ArcSwap::from_pointee(Generation::new(0, Loaded::default())),
            published: AtomicU64::new(0),
            search: ArcSwapOption::empty(),
        }
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
        self.current.store(Arc::new(current.successor(number, loaded.clone())));
        number
    }

    /// Which tools exist, and which match? A ranked list may be ranked by the catalog of a moment ago while a new index is made;
    /// what it lists is of this `generation`. The first ranked list makes the index, which takes time.
    pub fn tools(&self, generation: &Generation, filter: &ToolFilter) -> Listed {
        let Some(query) = &filter.query else { return generation.tools(filter) };
        let search = self.search.load_full().unwrap_or_else(|| {
            let search = Arc::new(Search::build(&generation.loaded().catalog));
            self.search.store(Some(Arc::clone(&search)));
            search
        });
        generation.ranked(&search, query, filter)
    }

    /// Makes a new index if there is one that is no longer that of the catalog. Called by the thread that publishes.
    pub fn renew_search(&self) {
        let generation = self.current.load();
        let catalog = &generation.loaded().catalog;
        if self.search.load().as_ref().is_some_and(|search| !search.is_of(catalog)) {
            self.search.store(Some(Arc::new(Search::build(catalog))));
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}
