//! Everything Almanac knows, with one method per question.

pub mod estimate;
pub mod generation;
pub mod learner;
pub mod memory;
pub mod memory_wrappers;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::Semaphore;

pub use estimate::{Asked, Estimate};
pub use generation::{Generation, Listed, ToolFilter};
use learner::{Learner, Learnt, Verdict};

use crate::catalog::load::Loaded;
use crate::catalog::search::Search;
use crate::config;
use crate::store::{Absent, Execution, ReplayLimits, Store, StoreError};
use crate::timing::{Complexity, Defaults, Forecast, Key, Plan};

/// The engine. Cheap to ask from any number of threads: readers never wait for a reload.
#[derive(Debug)]
pub struct Engine {
    current: ArcSwap<Generation>,
    published: AtomicU64,
    /// Made when it is first asked for, and kept up with the catalog from then on.
    search: ArcSwapOption<Search>,
    store: Arc<dyn Store>,
    learner: Learner,
    factory_timeout_ms: u64,
    /// Turns to read memories: more readers than that would only wait for each other's processor.
    reads: Arc<Semaphore>,
}

/// Readers of memories at once.
const MAX_READS: usize = 8;

impl Engine {
    /// An engine that knows nothing yet, and can record nothing; its generation is 0.
    pub fn new() -> Self {
        Self::with_store(Arc::new(Absent), Defaults::default(), config::Timing::default().factory_timeout_ms)
    }

    /// An engine that records to `store`. `factory_timeout_ms` is the limit of callers that name none.
    pub fn with_store(store: Arc<dyn Store>, defaults: Defaults, factory_timeout_ms: u64) -> Self {
        Self {
            current: ArcSwap::from_pointee(Generation::new(0, Loaded::default())),
            published: AtomicU64::new(0),
            search: ArcSwapOption::empty(),
            store,
            learner: Learner::new(defaults),
            factory_timeout_ms,
            reads: Arc::new(Semaphore::new(MAX_READS)),
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

    /// Learns again what the store remembers. Called once, when the first catalog is published.
    pub fn replay(&self) -> Result<usize, StoreError> {
        let history = self.store.replay(ReplayLimits::default())?;
        self.learner.replay(&history, self.current.load().catalog());
        Ok(history.executions.len())
    }

    /// What was learnt so far. Whoever answers from one state answers consistently.
    pub fn learnt(&self) -> Arc<Learnt> {
        self.learner.learnt()
    }

    /// How long will this call take?
    pub fn estimate(&self, generation: &Generation, learnt: &Learnt, asked: &Asked) -> Estimate {
        let Asked { tool, mode, complexity, .. } = asked;
        let key = Key::new(tool, mode.as_deref().unwrap_or_default());
        Estimate::new(self.forecast_key(generation, learnt, key, complexity), asked, self.factory_timeout_ms)
    }

    /// What is known of a tool's calls in one mode, or of those that failed?
    pub fn forecast_key(
        &self,
        generation: &Generation,
        learnt: &Learnt,
        key: Key<'_>,
        complexity: &Complexity,
    ) -> Forecast {
        self.learner.forecast(learnt, generation.catalog(), key, complexity)
    }

    /// How long will these calls take, one after the other? Nothing without a step.
    pub fn estimate_plan(&self, generation: &Generation, learnt: &Learnt, steps: &[Asked]) -> Option<Plan> {
        let forecasts: Vec<_> = steps.iter().map(|step| self.estimate(generation, learnt, step).forecast).collect();
        Plan::of(&forecasts)
    }

    /// The limit of callers that name none, in ms.
    pub fn factory_timeout_ms(&self) -> u64 {
        self.factory_timeout_ms
    }

    /// Records calls that ended: all of them durably, or none. Returns those that were new with how each compares with what
    /// would have been said of it.
    pub async fn record(&self, batch: Vec<Execution>) -> Result<Vec<(Execution, Option<Verdict>)>, StoreError> {
        let stored = self.store.append(batch.clone())?.durable().await?;
        let (new, samples): (Vec<Execution>, Vec<u64>) =
            batch.into_iter().zip(stored).filter_map(|(execution, samples)| Some((execution, samples?))).unzip();
        let verdicts = self.learner.observe(&new, &samples, self.current.load().catalog());
        Ok(new.into_iter().zip(verdicts).collect())
    }

    /// The store, for its state.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}
