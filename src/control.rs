//! Running the daemon while it runs: readiness, reload, status, log level. Behind the admin socket and the signals.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::access::{self, Issuer, TokenKeeper, TokensLook};
use crate::blocking::{self, NoThread};
use crate::catalog::reload::{ReloadThreadEnded, Reloader, Report, Sources, Trigger};
use crate::engine::Engine;
use crate::plugin_host::{self, Host, HostError, LibraryCounts, Reloaded};
use crate::qualify;
use crate::strict::{LoadError, Word, diagnostic};
use crate::telemetry::Metrics;
use crate::telemetry::events::{ConfigReloaded, TokensLoaded};
use crate::telemetry::logging::{LevelError, LevelHandle};
use crate::upstream::{self, Upstreams};
use crate::usage::PriceTable;

/// What must be there before questions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    Catalog,
    Listeners,
    /// What was recorded before the start. Questions are answered without.
    History,
    /// That the catalog's thread comes to an end with what it does.
    Pass,
    /// That every rule library is ready or has failed.
    Plugins,
    /// That the daemon is not stopping.
    Running,
}

/// What is not there yet, or no longer.
#[derive(Debug)]
pub struct Readiness(ArcSwap<Vec<Need>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(ArcSwap::from_pointee(vec![Need::Catalog, Need::Listeners, Need::Plugins]))
    }
}

impl Readiness {
    /// What is missing; nothing means ready.
    pub fn missing(&self) -> Arc<Vec<Need>> {
        self.0.load_full()
    }

    /// Are questions answered? What was recorded before may be missing.
    pub fn is_ready(&self) -> bool {
        self.missing().iter().all(|need| *need == Need::History)
    }

    /// It is there now.
    pub fn met(&self, need: Need) {
        self.0.rcu(|needs| needs.iter().copied().filter(|&other| other != need).collect::<Vec<_>>());
    }

    /// It is there no longer.
    pub fn lost(&self, need: Need) {
        self.0.rcu(|needs| needs.iter().copied().filter(|&other| other != need).chain([need]).collect::<Vec<_>>());
    }
}

/// What the configuration says now of all that can change while the daemon runs.
#[derive(Debug)]
pub struct Reconfigured {
    /// Where the catalog comes from.
    pub sources: Sources,
    /// Who may ask.
    pub auth: access::Settings,
    /// How rule libraries are kept.
    pub plugins: plugin_host::Settings,
    /// Which MCP servers there are.
    pub upstreams: upstream::Settings,
    /// How tools are selected.
    pub selection: qualify::Settings,
    pub prices: PriceTable,
    /// The log's level, if it is another one.
    pub level: Option<String>,
    /// Keys that changed and which only a restart can change.
    pub fixed: Vec<String>,
}

/// Reads the configuration again. The daemon that owns it knows what it said before.
pub type Reconfigure = Box<dyn Fn() -> Result<Reconfigured, LoadError> + Send + Sync>;

/// The daemon's own controls.
pub struct Control {
    reconfigure: Reconfigure,
    prices: ArcSwap<PriceTable>,
    started: Instant,
    reloader: Reloader,
    catalog_thread: JoinHandle<()>,
    level: LevelHandle,
    tokens: Arc<TokenKeeper>,
    engine: Arc<Engine>,
    plugins: Arc<Host>,
    upstreams: Upstreams,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    /// Why the configuration was not taken when it was read last, if it was not.
    config_fault: Mutex<Option<String>>,
    /// Why the model that is configured is not asked, if so.
    llm_fault: Option<String>,
    /// Held by a reload of everything.
    reloading: tokio::sync::Mutex<()>,
}

/// What [`Control`] is made of.
pub struct Parts {
    /// Reads the configuration again.
    pub reconfigure: Reconfigure,
    pub prices: PriceTable,
    /// The catalog's reload thread.
    pub reloader: Reloader,
    pub catalog_thread: JoinHandle<()>,
    pub level: LevelHandle,
    /// The tokens that are let in.
    pub tokens: Arc<TokenKeeper>,
    pub engine: Arc<Engine>,
    pub plugins: Arc<Host>,
    pub upstreams: Upstreams,
    pub metrics: Arc<Metrics>,
    /// Whether questions are answered.
    pub readiness: Arc<Readiness>,
    /// Why the model that is configured is not asked, if so.
    pub llm_fault: Option<String>,
}

/// A reload that could not be made, or only in part.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is faulty; nothing was reloaded.
    #[error(transparent)]
    Config(LoadError),
    /// The tokens are faulty; the old ones hold, the rest was reloaded.
    #[error(transparent)]
    Tokens(LoadError),
    /// The reload thread is gone.
    #[error(transparent)]
    ReloadThreadEnded(#[from] ReloadThreadEnded),
    /// The thread of the rule libraries is gone.
    #[error(transparent)]
    Plugins(#[from] HostError),
    /// Nobody could do it now.
    #[error(transparent)]
    NoThread(#[from] NoThread),
}

/// A reload of everything.
#[derive(Debug, Clone)]
pub struct ReloadedAll {
    pub catalog: Report,
    pub plugins: Reloaded,
    /// Keys of the configuration that changed and need a restart.
    pub waiting: Vec<String>,
}

/// What of a configuration that was read is still to be acted on.
struct Applied {
    sources: Sources,
    plugins: plugin_host::Settings,
    upstreams: upstream::Settings,
    waiting: Vec<String>,
}

/// How the daemon is.
#[derive(Debug, Clone)]
pub struct Status {
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// The generation that is served.
    pub generation: u64,
    /// When it was published.
    pub loaded_at: SystemTime,
    pub tools: usize,
    /// Tools served in their last good version.
    pub stale: usize,
    /// Rule libraries.
    pub plugins: LibraryCounts,
    pub errors: usize,
    pub warnings: usize,
    /// Are questions answered?
    pub is_ready: bool,
    pub missing: Arc<Vec<Need>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Control").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Control {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let Parts { reconfigure, prices, reloader, catalog_thread, .. } = parts;
        let Parts { level, tokens, engine, plugins, upstreams, metrics, readiness, llm_fault, .. } = parts;
        Self {
            reconfigure,
            prices: ArcSwap::from_pointee(prices),
            started: Instant::now(),
            reloader,
            catalog_thread,
            level,
            tokens,
            engine,
            plugins,
            upstreams,
            metrics,
            readiness,
            config_fault: Mutex::default(),
            llm_fault,
            reloading: tokio::sync::Mutex::default(),
        }
    }

    /// What is asked.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn plugins(&self) -> &Arc<Host> {
        &self.plugins
    }

    /// The MCP servers.
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// Whether questions are answered.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// What models cost, by their names.
    pub fn prices(&self) -> Arc<PriceTable> {
        self.prices.load_full()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Do the threads live that keep the catalog and the rule libraries? If not, the daemon is not ready any more.
    pub fn check_threads(&self) -> bool {
        let (keeps_catalog, keeps_plugins) = (self.check_catalog_thread(), self.check_plugins_thread());
        keeps_catalog && keeps_plugins
    }

    fn check_catalog_thread(&self) -> bool {
        let lives = !self.catalog_thread.is_finished();
        if !lives && !self.readiness.missing().contains(&Need::Catalog) {
            tracing::error!("the catalog's thread has ended; changes are not noticed any more");
            self.readiness.lost(Need::Catalog);
        }
        self.check_pass(Instant::now());
        lives
    }

    /// A pass that does not end is no readiness: what is served may be old. It is no reason to start again.
    fn check_pass(&self, now: Instant) {
        let is_stuck = self.reloader.is_stuck(now);
        let is_said = self.readiness.missing().contains(&Need::Pass);
        if is_stuck && !is_said {
            tracing::error!("the catalog's thread does not come to an end; changes are not noticed");
            self.readiness.lost(Need::Pass);
        } else if is_said && !is_stuck {
            self.readiness.met(Need::Pass);
        }
    }

    fn check_plugins_thread(&self) -> bool {
        let lives = self.plugins.lives();
        if !lives && !self.readiness.missing().contains(&Need::Plugins) {
            tracing::error!("the thread of the rule libraries has ended; they are not kept any more");
            self.readiness.lost(Need::Plugins);
        }
        lives
    }

    /// Reads the configuration, the tokens, the catalog and the rule libraries again, and waits until the outcome is
    /// served.
    pub async fn reload(self: &Arc<Self>, trigger: Trigger) -> Result<ReloadedAll, ReloadError> {
        // What was read last holds.
        let _one_at_a_time = self.reloading.lock().await;
        let (send, receive) = oneshot::channel();
        let (control, runtime) = (Arc::clone(self), Handle::current());
        let configured = blocking::run(move || {
            let Applied { sources, plugins, upstreams, waiting } =
                control.reload_config().map_err(ReloadError::Config)?;
            control.reloader.reload(trigger, Some(sources), |report| {
                // Whoever asked may have gone; the reload holds all the same.
                let _ = send.send(report.clone());
            })?;
            // Hot, and nobody waits for a server to start.
            runtime.block_on(control.upstreams.reload(upstreams));
            Ok::<_, ReloadError>((plugins, waiting, control.look_at_tokens(true)))
        });
        let (plugin_settings, waiting, tokens) = configured.await??;
        let catalog = receive.await.map_err(|_| ReloadThreadEnded)?;
        // After the catalog, so that what starts knows the new one.
        let plugins = self.plugins.reload(Some(plugin_settings)).await?;
        tokens.map_err(ReloadError::Tokens)?;
        Ok(ReloadedAll { catalog, plugins, waiting })
    }

    fn reload_config(&self) -> Result<Applied, LoadError> {
        let taken = self.take_config();
        let fault = taken.as_ref().err().map(|error| error.describe("; "));
        if let Some(error) = &fault {
            ConfigReloaded { error: Some(error), fixed: &[] }.emit(&self.metrics);
        }
        *self.config_fault.lock() = fault;
        taken
    }

    fn take_config(&self) -> Result<Applied, LoadError> {
        let reconfigured = (self.reconfigure)()?;
        let Reconfigured { sources, auth, plugins, upstreams, selection, prices, level, fixed } = reconfigured;
        if let Some(level) = level
            && let Err(error) = self.level.set(&level)
        {
            tracing::error!(%error, "log level not changed");
        }
        self.prices.store(Arc::new(prices));
        self.tokens.configure(auth);
        self.engine.set_qualifier(selection);
        ConfigReloaded { error: None, fixed: &fixed }.emit(&self.metrics);
        Ok(Applied { sources, plugins, upstreams, waiting: fixed })
    }

    /// The authorization server whose tokens are let in, if there is one.
    pub fn issuer(&self) -> Option<Arc<Issuer>> {
        self.tokens.issuer()
    }

    /// Brings the tokens in line with their file, if that changed or `is_asked`. If it is faulty, the old ones hold for
    /// a time.
    pub fn look_at_tokens(&self, is_asked: bool) -> Result<(), LoadError> {
        let Some(TokensLook { file, outcome, holds }) = self.tokens.look(Instant::now(), is_asked) else {
            return Ok(());
        };
        let described = outcome.as_ref().map_err(|error| error.describe("; "));
        let loaded = described.as_ref().map(|count| **count).map_err(String::as_str);
        TokensLoaded { file: &file, outcome: loaded, holds }.emit(&self.metrics);
        outcome.map(drop)
    }

    /// Sets the log's level until the next reload that changes it.
    pub fn set_log_level(&self, level: &str) -> Result<(), LevelError> {
        self.level.set(level)
    }

    /// What goes wrong now, a line each.
    pub fn troubles(&self) -> Vec<String> {
        let store = self.engine.store();
        let stored = store.trouble().map(|why| format!("nothing can be stored: {why}"));
        let database = store.standings().and_then(|standings| {
            Some(database_trouble(standings.trouble.as_ref()?, standings.is_refusing, standings.waiting))
        });
        let clock = store.standings().and_then(|standings| Some(standings.clock?.to_string()));
        let kept = |why: &String| format!("the configuration is the one of before, since the new one is faulty: {why}");
        let config = self.config_fault.lock().as_ref().map(kept);
        let llm = self.llm_fault.as_ref().map(|why| format!("no model is asked: {why}"));
        let tokens = self.tokens.trouble().map(Arc::unwrap_or_clone);
        let servers = Arc::unwrap_or_clone(self.upstreams.troubles());
        let held_back = self.held_back();
        let stored = stored.into_iter().chain(held_back);
        stored.chain(database).chain(clock).chain(config).chain(tokens).chain(llm).chain(servers).collect()
    }

    /// That a whole catalog waits for its errors to be mended, if one does.
    fn held_back(&self) -> Option<String> {
        let generation = self.engine.generation();
        let loaded = generation.loaded();
        let errors = diagnostic::errors(&loaded.diagnostics);
        loaded.holds_back.then(|| {
            let them = if errors == 1 { "an error".to_owned() } else { format!("{errors} errors") };
            format!("the catalog is the one of before, since the new one has {them} (catalog.strict_reload)")
        })
    }

    /// How the daemon is.
    pub fn status(&self) -> Status {
        let generation = self.engine.generation();
        let loaded = generation.loaded();
        let errors = diagnostic::errors(&loaded.diagnostics);
        Status {
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            generation: generation.number(),
            loaded_at: generation.loaded_at(),
            tools: loaded.catalog.len(),
            stale: loaded.stale.len(),
            plugins: self.plugins.counts(),
            errors,
            warnings: diagnostic::warnings(&loaded.diagnostics),
            is_ready: self.readiness.is_ready(),
            missing: self.readiness.missing(),
        }
    }
}

impl Status {
    /// One line for people, as systemd shows it.
    pub fn line(&self) -> String {
        let LibraryCounts { ready, quarantined, refused, outdated } = self.plugins;
        let said = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (tools, plugins) = (said(self.tools, "tool"), said(ready, "plugin"));
        let mut line = format!("generation {}, {tools}, {plugins} ready", self.generation);
        let counts = [
            (outdated, format!("{} refused", said(outdated, "update"))),
            (quarantined, format!("{quarantined} quarantined")),
            (refused, format!("{refused} refused")),
            (self.stale, format!("{} stale", self.stale)),
            (self.errors, said(self.errors, "error")),
        ];
        for (_, said) in counts.iter().filter(|(count, _)| *count > 0) {
            line.push_str(&format!(", {said}"));
        }
        if self.missing.contains(&Need::History) {
            line.push_str(", without what was recorded before");
        }
        line
    }
}

/// What is said of a database that cannot be used.
fn database_trouble(why: &str, is_refusing: bool, waiting: usize) -> String {
    match (is_refusing, waiting) {
        (true, 0) => format!("the database cannot be used ({why}); records are refused"),
        (true, _) => {
            format!("the database cannot be used ({why}); records are refused, {waiting} wait on this machine")
        }
        (false, _) => format!("the database cannot be used ({why}); records that wait on this machine: {waiting}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_are_refused_are_not_said_to_wait() {
        let check = |is_refusing: bool, waiting: usize, expected: &str| {
            let said = database_trouble("gone", is_refusing, waiting);
            assert_eq!(said, format!("the database cannot be used (gone); {expected}"));
        };
        check(false, 3, "records that wait on this machine: 3");
        check(true, 0, "records are refused");
        check(true, 2, "records are refused, 2 wait on this machine");
    }

    #[test]
    fn readiness_names_what_is_missing() {
        let readiness = Readiness::default();
        assert_eq!(*readiness.missing(), [Need::Catalog, Need::Listeners, Need::Plugins]);
        readiness.met(Need::Plugins);
        readiness.met(Need::Catalog);
        readiness.met(Need::Listeners);
        assert!(readiness.missing().is_empty());
        readiness.lost(Need::History);
        assert!(readiness.is_ready());
        readiness.met(Need::History);
        readiness.lost(Need::Running);
        readiness.lost(Need::Running);
        assert!(!readiness.is_ready());
        assert_eq!(*readiness.missing(), [Need::Running]);
    }
}
