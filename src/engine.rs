//! Everything Almanac knows, with one method per question.

pub mod estimate;
pub mod finding;
mod following;
mod forecasts;
pub mod generation;
mod grace;
mod index_renewal;
mod lane;
pub mod learner;
mod learning_group;
pub mod memory;
mod memory_purge;
pub mod memory_relations;
pub mod memory_wrappers;
pub mod proposer;
mod published;
pub mod publisher;
mod qualifier;
pub mod recorder;
mod rules;
mod selection;
mod snapshot;
pub mod suggestions;
mod told;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, watch};

pub use estimate::{Acquaintance, Asked, Estimate};
pub use generation::{Generation, ListedTools, ToolFilter};
use learner::{DurableCalls, ForecastVerdict, Learner, Learnt};
use learning_group::LearningGroup;
use proposer::Proposer;
pub use qualifier::Missed;
use qualifier::Qualifier;
pub use selection::{Named, SelectError, Selection, UnknownName};
pub use snapshot::snapshot_of;

use crate::access::Grant;
use crate::catalog::Catalog;
use crate::catalog::load::Loaded;
use crate::llm::Llm;
use crate::qualify::{self, Categories, IntentContext, Qualification, Question, Selector};
use crate::session::days::Day;
use crate::session::turns::Used;
use crate::session::{Days, Turn};
use crate::store::{Notepad, NotesPending, NullStore, ReplayLimits, Store, StoreError};
use crate::suggest::Presets;
use crate::suggest::presets::directory;
use crate::telemetry::Metrics;
use crate::telemetry::events::{ExecutionRecorded, ToolMissed};
use crate::timing::{self, Complexity, Defaults, Execution, Forecast, Key, Plan};
use lane::Lane;
use published::Published;

/// The engine. Cheap to ask from any number of threads: readers never wait for a reload.
#[derive(Debug)]
pub struct Engine {
    current: ArcSwap<Generation>,
    published: watch::Sender<u64>,
    /// The categories of the next generation.
    categories: ArcSwap<Categories>,
    qualifier: Arc<Qualifier>,
    /// Something was purged here, which is to be followed at once.
    purged: Arc<Notify>,
    store: Arc<dyn Store>,
    learner: Learner,
    learning: LearningGroup,
    missing_history: ArcSwapOption<String>,
    /// Whoever proposes next tools by rules, once there is one.
    proposer: OnceLock<Arc<dyn Proposer>>,
    /// The model that is asked for its opinion on selections, if there is one.
    llm: OnceLock<Arc<Llm>>,
    metrics: Arc<Metrics>,
    /// What turns used since the start.
    days: Published<Days>,
    factory_timeout_ms: u64,
    /// Turns to read a few memories, which takes little, and to search.
    reads: Arc<Lane>,
    searches: Arc<Lane>,
}

/// Readers of a few memories at once.
const MAX_READS: usize = 8;

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl Engine {
    /// An engine that knows nothing yet, and can record nothing; its generation is 0.
    pub fn new() -> Self {
        Self::on(Arc::new(NullStore))
    }

    /// An engine that records to `store`, for whoever needs nothing else of a daemon.
    pub fn on(store: Arc<dyn Store>) -> Self {
        let metrics = Metrics::new().expect("no two metrics have one name, which a test sees to");
        Self::with_store(store, Defaults::default(), &timing::Settings::default(), Arc::new(metrics))
    }

    /// An engine that records to `store`, and says durations as `timing` has it.
    pub fn with_store(
        store: Arc<dyn Store>,
        defaults: Defaults,
        timing: &timing::Settings,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            current: ArcSwap::from_pointee(Generation::new(0, Loaded::default(), Arc::default(), Arc::default())),
            published: watch::Sender::new(0),
            categories: ArcSwap::from_pointee(Categories::shipped()),
            qualifier: Arc::default(),
            purged: Arc::default(),
            store,
            learner: Learner::new(defaults, timing.blank()),
            learning: LearningGroup::default(),
            missing_history: ArcSwapOption::empty(),
            proposer: OnceLock::new(),
            llm: OnceLock::new(),
            metrics,
            days: Published::default(),
            factory_timeout_ms: timing.factory_timeout_ms,
            reads: Lane::new(MAX_READS, MAX_READS / 2),
            // Who searches keeps a processor busy; the last of the turns is never the same tenant's as all others.
            searches: Lane::new(processors() + 1, processors()),
        }
    }

    /// What is known now. Whoever answers from one generation answers consistently.
    pub fn generation(&self) -> impl Deref<Target = Arc<Generation>> + use<> {
        self.current.load()
    }

    /// Told of each new generation's number.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    /// Asks `proposer` from now on, unless there is one already.
    pub fn install_proposer(&self, proposer: Arc<dyn Proposer>) {
        // The first one stays; there is no reason to install two.
        let _ = self.proposer.set(proposer);
    }

    /// Tells whoever proposes by rules that the catalog is another one.
    fn announce_catalog(&self, generation: u64, catalog: Arc<Catalog>) {
        if let Some(proposer) = self.proposer.get() {
            proposer.catalog_changed(generation, catalog);
        }
    }

    /// How selection is set up from now on.
    pub fn set_qualifier(&self, settings: qualify::Settings) {
        self.qualifier.set(settings);
    }

    /// How selection is set up.
    pub fn qualifier_settings(&self) -> Arc<qualify::Settings> {
        self.qualifier.settings()
    }

    /// The next generation has these categories. Called by the thread that publishes.
    pub fn offer_categories(&self, categories: Categories) {
        if **self.categories.load() != categories {
            self.categories.store(Arc::new(categories));
        }
    }

    /// Replaces what is known, with the built-in presets.
    pub fn publish(&self, loaded: &Loaded) -> u64 {
        let presets = directory::built_in(|tool| loaded.catalog.get(tool).is_some());
        self.publish_with(loaded, presets)
    }

    /// Replaces what is known, as one. The generation's number rises if the content of the catalog or of the presets
    /// changed. Called by one thread.
    pub fn publish_with(&self, loaded: &Loaded, presets: Presets) -> u64 {
        let current = self.current.load();
        let first = current.number() == 0;
        let categories = self.categories.load_full();
        let changed = first
            || current.loaded().catalog.hash() != loaded.catalog.hash()
            || *current.presets() != presets
            || *current.categories() != categories;
        let number = current.number() + u64::from(changed);
        self.current.store(Arc::new(current.successor(number, loaded.clone(), Arc::new(presets), categories)));
        self.published.send_if_modified(|published| std::mem::replace(published, number) != number);
        number
    }

    /// Which tools exist, and which match? A ranked list may be ranked by the catalog of a moment ago while a new index
    /// is made; what it lists is of this `generation`. The first ranked list makes the index, which takes time. It is
    /// ranked as the tenant's messages are.
    pub fn tools(&self, generation: &Generation, tenant: &str, filter: &ToolFilter) -> ListedTools {
        let Some(query) = &filter.query else { return generation.tools(filter) };
        let selector = self.qualifier.selector(generation);
        generation.ranked(selector.index(), &self.qualifier.usage(tenant), query, filter)
    }

    /// Is ranking for `text` done in some 100 µs? Not in a large catalog, for a pasted text, or without an index.
    pub fn ranks_shortly(&self, text: &str) -> bool {
        const MAX_TOOLS: usize = 500;
        const MAX_TEXT_BYTES: usize = 512;
        text.len() <= MAX_TEXT_BYTES && self.qualifier.indexed_tools().is_some_and(|tools| tools <= MAX_TOOLS)
    }

    /// Makes a new index if there is one that is no longer that of the catalog. Called by the thread that publishes.
    pub fn renew_search(&self) {
        self.qualifier.renew(&self.current.load());
    }

    /// The index and the categories with their tools; possibly of a moment ago. Made if there is none, which takes
    /// time.
    pub fn selector(&self, generation: &Generation) -> Arc<Selector> {
        self.qualifier.selector(generation)
    }

    /// Which tools fit this message? Without a context in the question that of the session counts; it is replaced. What
    /// was learnt is the tenant's own. Where the session stands is noted, and not waited for.
    pub fn qualify(
        &self,
        generation: &Generation,
        grant: &Grant,
        session: Option<&str>,
        question: &Question<'_>,
    ) -> Qualification {
        self.qualifier.qualify(generation, &mut Notepad::new(&*self.store), grant, session, question)
    }

    /// A tool was needed and not offered. `message` is the session's last one by default. What was noted of it is to be
    /// waited for before it is acknowledged.
    pub fn miss(
        &self,
        generation: &Generation,
        grant: &Grant,
        session: Option<&str>,
        message: Option<&str>,
        tool: &str,
    ) -> (Missed, Result<NotesPending, StoreError>) {
        let mut notes = Notepad::new(&*self.store);
        let missed = self.qualifier.miss(generation, &mut notes, grant, session, message, tool);
        let (category, is_learnt) = (missed.category.as_deref(), missed.is_learnt);
        ToolMissed { tenant: &grant.tenant, tool, category, is_learnt }.emit(&self.metrics);
        (missed, notes.close())
    }

    /// The tool was chosen for what somebody looked for at the time of [`Self::purges`], and did it. Learnt, and noted;
    /// nobody waits for that. What was looked for before another purge may be what that removed.
    pub fn choose(&self, tenant: &str, looked_for: (&str, u64), tool: &str) {
        let mut notes = Notepad::new(&*self.store);
        self.qualifier.choose(&self.generation(), &mut notes, tenant, looked_for, tool);
    }

    /// Grows with each purge of the tenant's that selection hears of.
    pub fn purges(&self, tenant: &str) -> u64 {
        self.qualifier.purges(tenant)
    }

    /// A session's stream told what the session is about, or it or a report what it used.
    pub fn hear(&self, grant: &Grant, session: &str, intent: Option<IntentContext>, used: Used) {
        self.qualifier.hear(&mut Notepad::new(&*self.store), grant, session, intent, used);
    }

    /// Turns used so much now, of which so many reached their threshold of tokens.
    pub fn spent(&self, tenant: &str, used: Used, over: u64) {
        self.days.update(|days| days.spent(tenant, SystemTime::now(), used, over));
    }

    /// What the tenant's turns used by day since the start, and its sessions, those that were heard of last first.
    pub fn used(&self, tenant: &str, most_sessions: usize) -> (Vec<Day>, Vec<(String, Used)>) {
        (self.days.load().of(tenant), self.qualifier.used(tenant, most_sessions))
    }

    /// Where a session stands, if the tenant has it; without what was said in it for whoever may not read that.
    pub fn turn(&self, grant: &Grant, session: &str) -> Option<Arc<Turn>> {
        let turn = self.qualifier.turn(&grant.tenant, session)?;
        Some(if grant.reads_what_was_said() { turn } else { Arc::new(turn.without_words()) })
    }

    /// Learns again what the store remembers. Called when the first catalog is published; and if it fails then, when
    /// the store has come back.
    pub fn replay(&self) -> Result<usize, StoreError> {
        let history = self.store.replay(ReplayLimits::default()).inspect_err(|error| {
            self.learner.await_history();
            self.qualifier.await_notes();
            self.missing_history.store(Some(Arc::new(error.to_string())));
        })?;
        self.learner.replay(&history, self.current.load().catalog());
        self.qualifier.restore(history.notes);
        self.missing_history.store(None);
        Ok(history.executions.len())
    }

    /// Why what was recorded before the start is not known, if it is not.
    pub fn missing_history(&self) -> Option<Arc<String>> {
        self.missing_history.load_full()
    }

    /// What was learnt so far. Whoever answers from one state answers consistently.
    pub fn learnt(&self) -> Arc<Learnt> {
        self.learner.learnt()
    }

    /// How long will this call take?
    pub fn estimate(&self, generation: &Generation, learnt: &Learnt, asked: &Asked) -> Estimate {
        let Asked { tool, mode, complexity, .. } = asked;
        let key = Key::new(tool, mode.as_deref().unwrap_or_default());
        let forecast = self.forecast_key(generation, learnt, key, complexity);
        let acquaintance = match forecast.fleet_samples() {
            0 => self.acquaintance(generation, learnt, tool),
            _ => Acquaintance::Known,
        };
        Estimate::new(forecast, asked, self.factory_timeout_ms, acquaintance, self.missing_history())
    }

    /// What is known of a tool's calls in one mode, or of those that failed?
    pub fn forecast_key(
        &self,
        generation: &Generation,
        learnt: &Learnt,
        key: Key<'_>,
        complexity: &Complexity,
    ) -> Arc<Forecast> {
        self.learner.forecast(learnt, generation.catalog(), key, complexity)
    }

    /// How long will these calls take, one after the other? Nothing without a step.
    pub fn estimate_plan(&self, generation: &Generation, learnt: &Learnt, steps: &[Asked]) -> Option<Plan> {
        let forecasts: Vec<_> = steps.iter().map(|step| self.estimate(generation, learnt, step).forecast).collect();
        Plan::of(forecasts.iter().map(|forecast| &**forecast))
    }

    /// The limit of callers that name none, in ms.
    pub fn factory_timeout_ms(&self) -> u64 {
        self.factory_timeout_ms
    }

    /// Records calls that ended: all of them durably, or none, and what they teach with them unless the store is in
    /// trouble by then. Returns those that were new with how each compares with what would have been said of it.
    pub async fn record(&self, batch: Vec<Execution>) -> Result<RecordedCalls, StoreError> {
        let stored = self.store.append(batch.clone())?.durable().await?;
        let ids: Vec<i64> = stored.ids.iter().copied().flatten().collect();
        let (executions, samples): (Vec<Execution>, Vec<u64>) = batch
            .into_iter()
            .zip(stored.samples)
            .filter_map(|(execution, samples)| Some((execution, samples?)))
            .unzip();
        let new = Arc::new(DurableCalls { executions, samples, ids, transitions: stored.transitions });
        let learn = |group: &[Arc<DurableCalls>]| self.learner.observe(group, self.current.load().catalog());
        let lessons = self.learning.learn(&new, learn).await;
        let predicted = new.ids.iter().copied().zip(&lessons).filter_map(|(id, lesson)| Some((id, lesson.predicted?)));
        self.store.keep_predicted(predicted.collect());
        let mut notes = Notepad::new(&*self.store);
        self.qualifier.observe(&self.current.load(), &mut notes, &new.executions);
        if let Ok(noted) = notes.close() {
            // The calls are durable, which is what was promised; the store says itself what troubles it.
            let _ = noted.durable().await;
        }
        for (execution, lesson) in new.executions.iter().zip(&lessons) {
            ExecutionRecorded {
                tenant: &execution.tenant,
                session: execution.session.as_deref(),
                tool: &execution.tool,
                mode: execution.mode.as_deref(),
                duration_ms: execution.duration_ms,
                outcome: execution.outcome.as_str(),
                verdict: lesson.verdict.map(|verdict| (verdict.ratio, verdict.is_covered)),
            }
            .emit(&self.metrics);
        }
        let calls = Arc::unwrap_or_clone(new).executions;
        let calls = calls.into_iter().zip(lessons.into_iter().map(|lesson| lesson.verdict)).collect();
        Ok(RecordedCalls { calls, degraded: stored.degraded })
    }

    /// The store, for its state.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }
}

/// Calls that were recorded.
#[derive(Debug, Default)]
pub struct RecordedCalls {
    /// Those that were new, with how each compares with what would have been said of it.
    pub calls: Vec<(Execution, Option<ForecastVerdict>)>,
    /// Why they are less safe than they should be, if so.
    pub degraded: Option<Arc<str>>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}
