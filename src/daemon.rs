//! The daemon's life: in which order things start, what happens while they run, and how they end.
//!
//! Start: configuration, log, state directory (locked), sockets, tokens, catalog, doors, rule libraries, ready. End: not ready,
//! accept no more, finish what is in flight, end the rule libraries, exit.

mod defaults;
mod limits;
mod probe;
mod signals;
mod sockets;
mod state;
mod supervisor;
mod tokens;

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

pub use defaults::DefaultsError;
use signals::{Signals, Told};
pub use sockets::SocketError;
pub use state::StateError;
pub(crate) use state::lock as lock_state;

use crate::access::{Tokens, TokensError};
use crate::catalog::load::Loaded;
use crate::catalog::reload::{Outcome, Reloader, Report, Settings, Trigger};
use crate::config::{Config, ConfigError, DaemonOverrides, Overrides};
use crate::control::{Control, Need, Parts, Readiness};
use crate::engine::proposer::Proposer;
use crate::engine::{Engine, snapshot_of};
use crate::http::accept::Doors;
use crate::http::{Context, Service};
use crate::llm::Llm;
use crate::plugin_host::{self, Host};
use crate::qualify::categories::shelf::CategoryShelf;
use crate::store::{self, Sqlite};
use crate::suggest::presets::shelf::Shelf;
use crate::telemetry::Metrics;
use crate::telemetry::events::{
    CatalogReloaded, ConfigReloaded, GroupCommitted, HistoryReplayed, Listening, PresetsLoaded, TokensLoaded,
    WatchChanged,
};
use crate::telemetry::logging::{self, LogError};

/// The daemon cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log cannot be started.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The tokens are faulty.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The durations that stand in for history are faulty.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// Something the system refused.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Two metrics or two routes of one name, which tests rule out.
    #[error("the daemon was built wrongly: {0}")]
    Build(String),
}

impl DaemonError {
    /// Is it for the operator to mend in the configuration?
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Config(_) | Self::Tokens(_) | Self::Defaults(_) | Self::Log(LogError::Level(_)) => true,
            Self::Socket(error) => matches!(error, SocketError::Exposed { .. }),
            _ => false,
        }
    }
}

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All requests in flight were answered.
    Drained,
    /// The deadline or a second signal cut some off.
    CutShort,
}

/// Runs the daemon until a signal ends it.
pub fn run(overrides: &Overrides, daemon_overrides: &DaemonOverrides) -> Result<Ending, DaemonError> {
    let mut config = Config::load(overrides, daemon_overrides)?;
    let level = logging::start(&config.log)?;
    limits::fit(&mut config.http.max_connections);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.workers)
        .thread_name("worker")
        .enable_all()
        .build()
        .map_err(|source| DaemonError::System { what: "start the worker threads", source })?;
    let signals = {
        let _inside = runtime.enter();
        // Before anything takes its time: a signal that comes too early would end the process on the spot.
        Signals::listen().map_err(|source| DaemonError::System { what: "handle signals", source })?
    };
    // Declared before all that writes there, so that it is given up after it.
    let _lock = state::lock(&config.state_dir)?;
    let metrics = Arc::new(Metrics::new().map_err(|error| DaemonError::Build(error.to_string()))?);
    ConfigReloaded { error: None, fixed: &[] }.emit(&metrics);
    let tokens = load_tokens(&config, &metrics)?;
    let sockets = sockets::open(&config, tokens.load().are_required())?;
    let engine = start_engine(&config, &metrics)?;
    let readiness = Arc::new(Readiness::default());
    let plugins = plugin_host::Settings::from(&config);
    let plugins = Host::start(plugins, Arc::clone(&metrics), runtime.handle().clone());
    let plugins = plugins.map_err(|source| DaemonError::System { what: "start the plugins' thread", source })?;
    let plugins = Arc::new(plugins);
    engine.install_proposer(Arc::clone(&plugins) as Arc<dyn Proposer>);
    let (reloader, catalog_thread) = start_catalog(&config, &engine, &plugins, &metrics)?;
    readiness.met(Need::Catalog);
    replay(&engine);
    prepare_selection(&engine)?;
    let control = Arc::new(Control::new(Parts {
        overrides: overrides.clone(),
        daemon_overrides: daemon_overrides.clone(),
        config: config.clone(),
        reloader,
        catalog_thread,
        level,
        tokens: Arc::clone(&tokens),
        engine: Arc::clone(&engine),
        plugins: Arc::clone(&plugins),
        metrics: Arc::clone(&metrics),
        readiness: Arc::clone(&readiness),
    }));
    let llm = start_llm(&config, &metrics);
    let context = Context { engine, metrics, control: Arc::clone(&control), llm };
    let service = Service::new(context, tokens, &config.http).map_err(|error| DaemonError::Build(error.to_string()))?;
    let ending = runtime.block_on(serve(&config, &Arc::new(service), &control, sockets, signals));
    // Nobody asks them any more.
    plugins.stop();
    runtime.shutdown_timeout(Duration::from_millis(100));
    ending
}

fn load_tokens(config: &Config, metrics: &Metrics) -> Result<Arc<ArcSwap<Tokens>>, DaemonError> {
    let Some(file) = &config.tokens_file else { return Ok(Arc::default()) };
    let tokens = Tokens::read(file)?;
    TokensLoaded { file, outcome: Ok(tokens.len()) }.emit(metrics);
    Ok(Arc::new(ArcSwap::from_pointee(tokens)))
}

/// The engine on its store. A store that cannot be used is said, and tried again with each record.
fn start_engine(config: &Config, metrics: &Arc<Metrics>) -> Result<Arc<Engine>, DaemonError> {
    let defaults = defaults::read(config)?;
    let options = store::sqlite::Options {
        durability: config.store.durability,
        retention: config.store.retention,
        queue: config.store.max_queue,
        ..store::sqlite::Options::file(store::sqlite::file_in(&config.state_dir))
    };
    let on_commit = {
        let metrics = Arc::clone(metrics);
        Box::new(move |took, records| GroupCommitted { took, records }.emit(&metrics))
    };
    let store = Sqlite::start(options, on_commit)
        .map_err(|source| DaemonError::System { what: "start the store's thread", source })?;
    let engine = Engine::with_store(Arc::new(store), defaults, config.timing.factory_timeout_ms);
    engine.set_qualifier(config.qualifier.clone());
    Ok(Arc::new(engine))
}

fn replay(engine: &Engine) {
    let start = Instant::now();
    let outcome = engine.replay().map_err(|error| error.to_string());
    HistoryReplayed { outcome: outcome.as_ref().map(|calls| *calls).map_err(String::as_str), took: start.elapsed() }
        .emit();
}

/// The model that is asked for its opinion, if one is configured and can be.
fn start_llm(config: &Config, metrics: &Arc<Metrics>) -> Option<Arc<Llm>> {
    let llm = Llm::new(config.qualifier.llm.clone()?, Arc::clone(metrics));
    if let Err(error) = &llm {
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        tracing::error!(%error, reason, "no model is asked; selection answers without");
    }
    llm.ok().map(Arc::new)
}

/// Tools up to which the index of selection is made before anybody asks: more of them would take memory that an idle daemon
/// need not have.
const PREPARED_TOOLS: usize = 2000;

/// Makes the index beside the start, so that the first message need not wait for it.
fn prepare_selection(engine: &Arc<Engine>) -> Result<(), DaemonError> {
    if engine.generation().catalog().len() > PREPARED_TOOLS {
        return Ok(());
    }
    let engine = Arc::clone(engine);
    let prepare = move || drop(engine.desk(&engine.generation()));
    let started = std::thread::Builder::new().name("selection".into()).spawn(prepare);
    started.map(drop).map_err(|source| DaemonError::System { what: "start the selection's thread", source })
}

fn start_catalog(
    config: &Config,
    engine: &Arc<Engine>,
    plugins: &Arc<Host>,
    metrics: &Arc<Metrics>,
) -> Result<(Reloader, JoinHandle<()>), DaemonError> {
    let (engine, plugins, metrics) = (Arc::clone(engine), Arc::clone(plugins), Arc::clone(metrics));
    let mut watched: Option<Option<String>> = None;
    let mut presets = Shelf::new(config.presets.clone());
    let mut categories = CategoryShelf::new(config.categories.clone());
    let publish = move |report: &mut Report| {
        let before = Arc::clone(&engine.generation());
        let catalog = Arc::clone(&report.loaded.catalog);
        if report.whole {
            presets.read();
            categories.read();
        }
        let (offered, faults) = presets.offer(|tool| catalog.get(tool).is_some());
        report.loaded.add(faults);
        let (groups, faults) = categories.offer();
        report.loaded.add(faults);
        let news = *before.loaded().diagnostics != *report.loaded.diagnostics;
        let (count, is_other) = (offered.len(), *before.presets() != offered);
        let has_other_groups = **before.categories() != groups;
        engine.offer_categories(groups);
        let generation = engine.publish_with(&report.loaded, offered);
        if is_other {
            PresetsLoaded { presets: count }.emit(&metrics);
        }
        if (is_other || has_other_groups) && report.outcome == Outcome::Unchanged {
            report.outcome = Outcome::Changed;
        }
        let Loaded { catalog, diagnostics, documents, .. } = &report.loaded;
        if generation != before.number() {
            let catalog = Arc::clone(catalog);
            plugins.publish(move || snapshot_of(generation, &catalog));
        }
        CatalogReloaded {
            labels: [report.trigger.as_str(), report.outcome.as_str()],
            generation,
            tools: catalog.len(),
            documents: [documents.good, documents.stale, documents.bad],
            took: report.took,
            diagnostics,
            news,
        }
        .emit(&metrics);
        if report.trigger != Trigger::Start {
            engine.renew_search();
        }
        if watched.as_ref() != Some(&report.polling) {
            WatchChanged { polling: report.polling.as_deref() }.emit(&metrics);
            watched = Some(report.polling.clone());
        }
    };
    Reloader::start(Settings::from(config), publish)
        .map_err(|source| DaemonError::System { what: "start the catalog's thread", source })
}

/// Ready is the daemon once every rule library is, or has failed.
async fn await_plugins(control: Arc<Control>) {
    control.plugins().settled().await;
    control.readiness().met(Need::Plugins);
    supervisor::ready(&control.status());
}

async fn serve(
    config: &Config,
    service: &Arc<Service>,
    control: &Arc<Control>,
    sockets: sockets::Sockets,
    mut signals: Signals,
) -> Result<Ending, DaemonError> {
    let system = |what| move |source| DaemonError::System { what, source };
    let sockets::Sockets { listeners, addresses, admin } = sockets;
    let listeners = sockets::register(listeners).map_err(system("listen"))?;
    let doors = Doors::open(service, listeners).map_err(system("listen"))?;
    control.readiness().met(Need::Listeners);
    Listening { http: &addresses, admin: &admin.to_string() }.emit();
    let background = [
        tokio::spawn(await_plugins(Arc::clone(control))),
        tokio::spawn(tokens::follow(Arc::clone(control))),
        tokio::spawn(supervisor::watchdog(Arc::clone(control), admin.path().map(ToOwned::to_owned))),
    ];
    while signals.next().await == Told::Reload {
        let control = Arc::clone(control);
        // Not waited for here, so that a stop need not wait for it either.
        tokio::spawn(async move {
            supervisor::reloading();
            if let Err(error) = control.reload(Trigger::Signal).await {
                tracing::error!(%error, "reload failed");
            }
            supervisor::ready(&control.status());
        });
    }
    control.readiness().lost(Need::Running);
    tracing::info!("stopping");
    supervisor::stopping();
    background.iter().for_each(tokio::task::JoinHandle::abort);
    let drained = tokio::select! {
        drained = doors.drain(config.drain_timeout) => drained,
        () = signals.stop() => false,
    };
    admin.remove();
    if drained {
        tracing::info!("stopped");
        Ok(Ending::Drained)
    } else {
        tracing::warn!("stopped with requests in flight");
        Ok(Ending::CutShort)
    }
}
