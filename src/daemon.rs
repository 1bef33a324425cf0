//! The daemon's life: in which order things start, what happens while they run, and how they end.
//!
//! Start: configuration, log, state directory (locked), sockets, tokens, catalog, MCP servers, doors, rule libraries,
//! ready. End: not ready, accept no more, finish what is in flight, end MCP servers and rule libraries, exit.

mod config;
mod database;
mod following;
mod idle;
mod limits;
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

use tokio::runtime::Handle;
use tokio::sync::watch;

pub use config::Config;
pub(crate) use database::{named_by as database_named_by, options as database_options};
use signals::{SignalRequest, Signals};
pub use sockets::{SocketError, check as check_sockets};
pub use state::StateError;
pub(crate) use state::{Lock as StateLock, lock as lock_state};
pub use tokens::FirstTokenError;

use crate::access::TokenKeeper;
use crate::blocking;
use crate::catalog::reload::{Reloader, Trigger};
use crate::config::{DaemonOverrides, HomelessError, Overrides, UserFiles, mistyped};
use crate::control::{Control, Need, Parts, Readiness};
use crate::engine::Engine;
use crate::engine::proposer::Proposer;
use crate::engine::publisher::Publisher;
use crate::http::Context;
use crate::http::server::Service;
use crate::http::server::accept::Listeners;
use crate::llm::Llm;
use crate::mcp::{Mcp, McpParts, SessionKeyError};
use crate::plugin_host::Host;
use crate::store::postgres::PostgresStartError;
use crate::store::postgres::address::AddressError;
use crate::store::{self, OnCommit, Postgres, PostgresOptions, Sqlite, Store};
use crate::strict::LoadError;
use crate::telemetry::Metrics;
use crate::telemetry::events::{ConfigReloaded, GroupCommitted, HistoryReplayed, Listening, TokensLoaded};
use crate::telemetry::logging::{self, LogError};
use crate::timing::Defaults;
use crate::upstream::Upstreams;

/// The daemon cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is faulty, or a file that it names.
    #[error(transparent)]
    Config(#[from] LoadError),
    /// The user who is to be served has no files.
    #[error(transparent)]
    Homeless(#[from] HomelessError),
    /// The log cannot be started.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The key of MCP sessions cannot be used.
    #[error(transparent)]
    SessionKey(#[from] SessionKeyError),
    /// The database that several daemons share cannot be used.
    #[error(transparent)]
    Database(#[from] PostgresStartError),
    /// The URL of that database, from the environment or the command line.
    #[error(transparent)]
    DatabaseUrl(#[from] AddressError),
    /// The first token cannot be let in.
    #[error(transparent)]
    FirstToken(#[from] FirstTokenError),
    /// Something the system refused.
    #[error("cannot {what}")]
    System { what: &'static str, source: io::Error },
    /// Two metrics or two routes of one name, which tests rule out.
    #[error("the daemon was built wrongly: {0}")]
    Build(String),
}

impl DaemonError {
    /// Is it for the operator to mend in the configuration?
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Homeless(_)
            | Self::Log(LogError::Level(_))
            | Self::FirstToken(_)
            | Self::DatabaseUrl(_)
            | Self::Database(PostgresStartError::Setting(_)) => true,
            Self::Socket(error) => error.is_configuration(),
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

/// With the files of the user, if that is who is served.
fn with_user_files(
    mut overrides: Overrides,
    mut daemon: DaemonOverrides,
) -> Result<(Overrides, DaemonOverrides), HomelessError> {
    if daemon.user {
        let files = UserFiles::find().ok_or(HomelessError)?;
        files.fill(&mut overrides, &mut daemon);
        // Without a document there are no tools, which is no fault; the first one is served when it is saved.
        if let Some(own) = files.documents().first() {
            let _ = std::fs::create_dir_all(own);
        }
    }
    Ok((overrides, daemon))
}

/// Says which variables of the environment are near to one of ours, unless the configuration names them.
fn tell_of_variables(config: &Config) {
    let key = config.qualifier.llm.as_ref().and_then(|llm| llm.api_key_env.as_deref());
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, near) in mistyped(names.filter(|name| Some(name.as_str()) != key)) {
        tracing::warn!("{name} is in the environment and no variable of the daemon; did you mean {near}?");
    }
}

/// Runs the daemon until a signal ends it.
pub fn run(overrides: &Overrides, daemon_overrides: &DaemonOverrides) -> Result<Ending, DaemonError> {
    let (overrides, daemon_overrides) = &with_user_files(overrides.clone(), daemon_overrides.clone())?;
    let mut config = Config::load(overrides, daemon_overrides)?;
    let level = logging::start(&config.log)?;
    tell_of_variables(&config);
    // What is compared at a reload is what the file says.
    let said = config.clone();
    limits::fit(&mut config.http.max_connections, &mut config.http.max_streams);
    let runtime = blocking::runtime(config.workers)
        .map_err(|source| DaemonError::System { what: "start the worker threads", source })?;
    let signals = {
        let _inside = runtime.enter();
        // Before anything takes its time: a signal that comes too early would end the process on the spot.
        Signals::listen().map_err(|source| DaemonError::System { what: "handle signals", source })?
    };
    // Declared before all that writes there, so that it is given up after it.
    if config.until_idle.is_some() {
        // Whoever started this may end, and its terminal with it; who leads a session already need not.
        let _ = rustix::process::setsid();
    }
    let mut lock = state::take(&config.state_dir, config.until_idle.is_some())?;
    if let (Some(lock), Some(_)) = (&mut lock, config.until_idle) {
        lock.give_way();
    }
    let metrics = Arc::new(Metrics::new().map_err(|error| DaemonError::Build(error.to_string()))?);
    ConfigReloaded { error: None, fixed: &[] }.emit(&metrics);
    if let Some(token) = &daemon_overrides.first_token {
        tokens::make_first(&config, token)?;
    }
    let tokens = load_tokens(&config, &metrics)?;
    let sockets = sockets::open(&config, tokens.are_required())?;
    let engine = start_engine(&config, database::told(&config, daemon_overrides)?, &metrics)?;
    let readiness = Arc::new(Readiness::default());
    let plugins = Host::start(config.plugin_host(), Arc::clone(&metrics), runtime.handle().clone());
    let plugins = plugins.map_err(|source| DaemonError::System { what: "start the plugins' thread", source })?;
    let plugins = Arc::new(plugins);
    engine.install_proposer(Arc::clone(&plugins) as Arc<dyn Proposer>);
    let (reloader, catalog_thread) = start_catalog(&config, &engine, &metrics)?;
    readiness.met(Need::Catalog);
    let upstreams = start_upstreams(&config, &metrics, runtime.handle())?;
    let door_settings = watch::Sender::new(Arc::new(config.mcp.door.clone()));
    let mcp = Mcp::open(
        McpParts {
            engine: Arc::clone(&engine),
            metrics: Arc::clone(&metrics),
            tokens: Arc::clone(&tokens),
            upstreams: upstreams.clone(),
            settings: door_settings.subscribe(),
        },
        &config.state_dir,
        config.http.max_streams,
    )?;
    let mcp = Arc::new(mcp);
    // What servers listed last is there before anybody asks, whether they run or not.
    mcp.offer_first(&reloader);
    runtime.spawn(Arc::clone(&mcp).follow(reloader.clone()));
    if !replay(&engine) {
        readiness.lost(Need::History);
    }
    let llm = start_llm(&config, &metrics);
    let control = Arc::new(Control::new(Parts {
        reconfigure: said.reconfigure(overrides.clone(), daemon_overrides.clone(), door_settings),
        prices: config.usage.prices.clone(),
        reloader,
        catalog_thread,
        level,
        tokens: Arc::clone(&tokens),
        engine: Arc::clone(&engine),
        plugins: Arc::clone(&plugins),
        upstreams: upstreams.clone(),
        metrics: Arc::clone(&metrics),
        readiness: Arc::clone(&readiness),
        llm_fault: llm.as_ref().err().cloned(),
    }));
    if let Ok(Some(llm)) = llm {
        engine.install_llm(llm);
    }
    let context = Context::new(engine, metrics, Arc::clone(&control), Arc::clone(&mcp));
    let service = Service::new(context, tokens, &config.http).map_err(|error| DaemonError::Build(error.to_string()))?;
    let ending = runtime.block_on(serve(&config, &Arc::new(service), &control, sockets, signals));
    runtime.block_on(upstreams.stop(Duration::ZERO));
    plugins.stop();
    // Nobody asks any more.
    runtime.block_on(mcp.all_recorded(CUT_SHORT));
    control.engine().store().take_leave();
    runtime.shutdown_timeout(Duration::from_millis(100));
    ending
}

fn load_tokens(config: &Config, metrics: &Metrics) -> Result<Arc<TokenKeeper>, DaemonError> {
    let tokens = TokenKeeper::start(config.auth.clone())?;
    if let Some(file) = tokens.file() {
        TokensLoaded { file: &file, outcome: Ok(tokens.load().len()), holds: true }.emit(metrics);
    }
    Ok(Arc::new(tokens))
}

/// The MCP servers, which start beside all that follows.
fn start_upstreams(config: &Config, metrics: &Arc<Metrics>, runtime: &Handle) -> Result<Upstreams, DaemonError> {
    let program = config.plugins.launch.program.clone();
    Upstreams::start(config.upstreams(), Arc::clone(metrics), runtime, program)
        .map_err(|source| DaemonError::System { what: "start the thread that starts MCP servers", source })
}

/// The engine on its store. A store that cannot be used is said, and tried again with each record.
fn start_engine(
    config: &Config,
    database: Option<PostgresOptions>,
    metrics: &Arc<Metrics>,
) -> Result<Arc<Engine>, DaemonError> {
    let defaults = Defaults::read(config.timing_defaults.as_deref())?;
    let store = start_store(config, database, metrics)?;
    let engine = Engine::with_store(store, defaults, &config.timing, Arc::clone(metrics));
    engine.set_qualifier(config.qualifier.selection.clone());
    Ok(Arc::new(engine))
}

/// Where everything is kept. A database that cannot be reached is said, and tried again; a wrong setting is not waited
/// for.
fn start_store(
    config: &Config,
    database: Option<PostgresOptions>,
    metrics: &Arc<Metrics>,
) -> Result<Arc<dyn Store>, DaemonError> {
    let on_commit: OnCommit = {
        let metrics = Arc::clone(metrics);
        Box::new(move |took, records| GroupCommitted { took, records }.emit(&metrics))
    };
    database::tell_of_another(&config.state_dir, database.is_some());
    if let Some(options) = database {
        return Ok(Arc::new(Postgres::start(options, on_commit)?));
    }
    let waiting = store::postgres::spool::waiting_in(&config.state_dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "what waits here for a database cannot be read");
        0
    });
    if waiting > 0 {
        tracing::warn!(
            waiting,
            directory = %config.state_dir.display(),
            "records wait here for a database that several daemons share, and none is named; a start with its URL, or \
             `almanacd spool forward`, sends them"
        );
    }
    let options = store::sqlite::Options {
        settings: config.store.clone(),
        ..store::sqlite::Options::file(store::sqlite::file_in(&config.state_dir))
    };
    let store = Sqlite::start(options, on_commit)
        .map_err(|source| DaemonError::System { what: "start the store's thread", source })?;
    Ok(Arc::new(store))
}

/// Learns again what the store remembers. Did that work?
fn replay(engine: &Engine) -> bool {
    let start = Instant::now();
    let outcome = engine.replay().map_err(|error| error.to_string());
    HistoryReplayed { outcome: outcome.as_ref().map(|calls| *calls).map_err(String::as_str), took: start.elapsed() }
        .emit();
    outcome.is_ok()
}

/// How long calls that were cut short may take to be recorded.
const CUT_SHORT: Duration = Duration::from_secs(1);

/// Between two looks whether a store that could not be opened has come back; it tries once a second itself.
const HISTORY_LOOK: Duration = Duration::from_millis(250);

/// Reads the history of a store that could not be opened, once it can be.
async fn await_history(control: Arc<Control>) {
    let mut ticks = tokio::time::interval(HISTORY_LOOK);
    while control.engine().store().unreadable().is_some() {
        ticks.tick().await;
    }
    let replayed = blocking::run({
        let control = Arc::clone(&control);
        move || replay(control.engine())
    });
    if replayed.await.is_ok_and(|is_known| is_known) {
        control.readiness().met(Need::History);
    }
}

/// The model that is asked for its opinion, if one is configured, or why it cannot be.
fn start_llm(config: &Config, metrics: &Arc<Metrics>) -> Result<Option<Arc<Llm>>, String> {
    let Some(settings) = config.qualifier.llm.clone() else { return Ok(None) };
    Llm::new(settings, Arc::clone(metrics)).map(Arc::new).map(Some).map_err(|error| {
        let reason = error.source().map(ToString::to_string).unwrap_or_default();
        tracing::error!(%error, reason, "no model is asked; selection answers without");
        if reason.is_empty() { error.to_string() } else { format!("{error}: {reason}") }
    })
}

/// Tools up to which the index of selection is made before anybody asks: more of them would take memory that an idle
/// daemon need not have.
const PREPARED_TOOLS: usize = 5000;

/// Makes the index beside the start, so that the first message need not wait for it.
fn prepare_selection(engine: &Engine) {
    let generation = engine.generation();
    if generation.catalog().len() <= PREPARED_TOOLS {
        drop(engine.selector(&generation));
    }
}

/// Reads beside the start what searches among many memories need. A store that cannot be read yet is read by the first
/// search.
fn prepare_searches(engine: &Engine) {
    if let Err(error) = engine.store().prepare_searches() {
        tracing::debug!(%error, "the first search will read what it needs");
    }
}

/// Starts a thread that prepares something.
fn beside(name: &str, engine: &Arc<Engine>, prepare: fn(&Engine)) -> Result<(), DaemonError> {
    let engine = Arc::clone(engine);
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || prepare(&engine));
    started.map(drop).map_err(|source| DaemonError::System { what: "start a thread that prepares answers", source })
}

fn start_catalog(
    config: &Config,
    engine: &Arc<Engine>,
    metrics: &Arc<Metrics>,
) -> Result<(Reloader, JoinHandle<()>), DaemonError> {
    let (presets, categories) = (config.presets.clone(), config.categories.clone());
    let mut publisher = Publisher::new(Arc::clone(engine), Arc::clone(metrics), presets, categories);
    Reloader::start(config.reloading(), move |report| publisher.publish(report))
        .map_err(|source| DaemonError::System { what: "start the catalog's thread", source })
}

/// Ready is the daemon once every rule library is, or has failed.
async fn await_plugins(control: Arc<Control>) {
    control.plugins().settled().await;
    control.readiness().met(Need::Plugins);
    supervisor::ready(&control.status());
}

/// What to do next: as signals say, or to stop when nobody has asked for long.
async fn next(signals: &mut Signals, config: &Config, service: &Arc<Service>) -> SignalRequest {
    tokio::select! {
        request = signals.next() => request,
        () = idle::wait(service, config.until_idle) => SignalRequest::Stop,
    }
}

async fn serve(
    config: &Config,
    service: &Arc<Service>,
    control: &Arc<Control>,
    sockets: sockets::Sockets,
    mut signals: Signals,
) -> Result<Ending, DaemonError> {
    let system = |what| move |source| DaemonError::System { what, source };
    let sockets::Sockets { listeners, addresses, admin, mcp } = sockets;
    let listeners = sockets::register(listeners).map_err(system("listen"))?;
    let listening = Listeners::open(service, listeners).map_err(system("listen"))?;
    control.readiness().met(Need::Listeners);
    let mcp_path = mcp.as_ref().map(ToString::to_string).unwrap_or_default();
    Listening { http: &addresses, admin: &admin.to_string(), mcp: &mcp_path }.emit();
    // What few answers need takes no processor from the start.
    beside("selection", control.engine(), prepare_selection)?;
    beside("searches", control.engine(), prepare_searches)?;
    if control.readiness().missing().contains(&Need::History) {
        // It comes to its end with the store's trouble, or is dropped with the runtime.
        tokio::spawn(await_history(Arc::clone(control)));
    }
    let background = [
        tokio::spawn(await_plugins(Arc::clone(control))),
        tokio::spawn(following::follow(Arc::clone(control))),
        tokio::spawn(tokens::follow(Arc::clone(control))),
        tokio::spawn(tokens::follow_issuer(Arc::clone(control))),
        tokio::spawn(supervisor::watchdog(Arc::clone(control), admin.path().map(ToOwned::to_owned), listening.probe())),
    ];
    while next(&mut signals, config, service).await == SignalRequest::Reload {
        tracing::info!("SIGHUP: everything is read again");
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
        drained = listening.drain(config.drain_timeout) => drained,
        () = signals.stop() => false,
    };
    admin.remove();
    mcp.iter().for_each(sockets::SocketFile::remove);
    if drained {
        tracing::info!("stopped");
        Ok(Ending::Drained)
    } else {
        tracing::warn!("stopped with requests in flight");
        Ok(Ending::CutShort)
    }
}
