//! Running the daemon while it runs: readiness, reload, status, log level. Behind the admin socket and the signals.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;
use tokio::sync::oneshot;

use crate::access::{Tokens, TokensError};
use crate::catalog::reload::{Ended, Reloader, Report, Settings, Trigger};
use crate::config::{self, Config, ConfigError, DaemonOverrides, Overrides};
use crate::engine::Engine;
use crate::plugin_host::{self, Host, HostError, Reloaded};
use crate::strict::diagnostic::{self, Diagnostic};
use crate::telemetry::Metrics;
use crate::telemetry::events::{ConfigReloaded, TokensLoaded};
use crate::telemetry::logging::{LevelError, LevelHandle};
use crate::usage::PriceTable;

/// What must be there before questions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The first catalog.
    Catalog,
    /// The doors.
    Listeners,
    /// That every rule library is ready or has failed.
    Plugins,
    /// That the daemon is not stopping.
    Running,
}

impl Need {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Listeners => "listeners",
            Self::Plugins => "plugins",
            Self::Running => "running",
        }
    }
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

    /// It is there now.
    pub fn met(&self, need: Need) {
        self.0.rcu(|needs| needs.iter().copied().filter(|&other| other != need).collect::<Vec<_>>());
    }

    /// It is there no longer.
    pub fn lost(&self, need: Need) {
        self.0.rcu(|needs| needs.iter().copied().filter(|&other| other != need).chain([need]).collect::<Vec<_>>());
    }
}

/// The daemon's own controls.
#[derive(Debug)]
pub struct Control {
    overrides: Overrides,
    daemon_overrides: DaemonOverrides,
    config: Mutex<Config>,
    started: Instant,
    reloader: Reloader,
    catalog_thread: JoinHandle<()>,
    level: LevelHandle,
    tokens: Arc<ArcSwap<Tokens>>,
    engine: Arc<Engine>,
    plugins: Arc<Host>,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
}

/// What [`Control`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// The command line.
    pub overrides: Overrides,
    /// The command line of `serve`.
    pub daemon_overrides: DaemonOverrides,
    /// The configuration at the start.
    pub config: Config,
    /// The catalog's reload thread.
    pub reloader: Reloader,
    /// That thread.
    pub catalog_thread: JoinHandle<()>,
    /// The log's level.
    pub level: LevelHandle,
    /// The tokens that are let in.
    pub tokens: Arc<ArcSwap<Tokens>>,
    /// The engine.
    pub engine: Arc<Engine>,
    /// The rule libraries.
    pub plugins: Arc<Host>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Whether questions are answered.
    pub readiness: Arc<Readiness>,
}

/// A reload that could not be made, or only in part.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration is faulty; nothing was reloaded.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tokens are faulty; the old ones hold, the rest was reloaded.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// The reload thread is gone.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The thread of the rule libraries is gone.
    #[error(transparent)]
    Plugins(#[from] HostError),
}

/// A reload of everything.
#[derive(Debug, Clone)]
pub struct ReloadedAll {
    /// The catalog.
    pub catalog: Report,
    /// The rule libraries.
    pub plugins: Reloaded,
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
    /// Tools in it.
    pub tools: usize,
    /// Tools served in their last good version.
    pub stale: usize,
    /// Rule libraries that answer, and those that are put aside or refused.
    pub plugins: (usize, usize),
    /// Errors and warnings.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// What is missing.
    pub missing: Arc<Vec<Need>>,
}

impl Control {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            overrides,
            daemon_overrides,
            config,
            reloader,
            catalog_thread,
            level,
            tokens,
            engine,
            plugins,
            metrics,
            readiness,
        } = parts;
        Self {
            overrides,
            daemon_overrides,
            config: Mutex::new(config),
            started: Instant::now(),
            reloader,
            catalog_thread,
            level,
            tokens,
            engine,
            plugins,
            metrics,
            readiness,
        }
    }

    /// The rule libraries.
    pub fn plugins(&self) -> &Arc<Host> {
        &self.plugins
    }

    /// Whether questions are answered.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// What models cost, by their names.
    pub fn prices(&self) -> PriceTable {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).prices.clone()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Does the thread that keeps the catalog current live? If not, the daemon is not ready any more.
    pub fn check_catalog_thread(&self) -> bool {
        let lives = !self.catalog_thread.is_finished();
        if !lives && !self.readiness.missing().contains(&Need::Catalog) {
            tracing::error!("the catalog's thread has ended; changes are not noticed any more");
            self.readiness.lost(Need::Catalog);
        }
        lives
    }

    /// Does the thread that keeps the rule libraries live? If not, the daemon is not ready any more.
    pub fn check_plugins_thread(&self) -> bool {
        let lives = self.plugins.lives();
        if !lives && !self.readiness.missing().contains(&Need::Plugins) {
            tracing::error!("the thread of the rule libraries has ended; they are not kept any more");
            self.readiness.lost(Need::Plugins);
        }
        lives
    }

    /// Reads the configuration, the tokens, the catalog and the rule libraries again, and waits until the outcome is served.
    pub async fn reload(self: &Arc<Self>, trigger: Trigger) -> Result<ReloadedAll, ReloadError> {
        let (send, receive) = oneshot::channel();
        let control = Arc::clone(self);
        let configured = tokio::task::spawn_blocking(move || {
            let (settings, plugin_settings) = control.reload_config()?;
            control.reloader.reload(trigger, Some(settings), |report| {
                // Whoever asked may have gone; the reload holds all the same.
                let _ = send.send(report.clone());
            })?;
            control.reload_tokens().map_err(ReloadError::from).map(|()| plugin_settings)
        });
        let tokens = configured.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        match tokens {
            Ok(plugin_settings) => {
                let catalog = receive.await.map_err(|_| Ended)?;
                // After the catalog, so that what starts knows the new one.
                let plugins = self.plugins.reload(Some(plugin_settings)).await?;
                Ok(ReloadedAll { catalog, plugins })
            }
            Err(error @ ReloadError::Tokens(_)) => {
                receive.await.map_err(|_| Ended)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn reload_config(&self) -> Result<(Settings, plugin_host::Settings), ConfigError> {
        let fresh = Config::load(&self.overrides, &self.daemon_overrides).inspect_err(|error| {
            ConfigReloaded { error: Some(&describe(error, "; ")), fixed: &[] }.emit(&self.metrics);
        })?;
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let fixed = config.fixed_differences(&fresh);
        if fresh.log.level != config.log.level
            && let Err(error) = self.level.set(&fresh.log.level)
        {
            tracing::error!(%error, "log level not changed");
        }
        config.tool_metadata.clone_from(&fresh.tool_metadata);
        config.catalog = fresh.catalog.clone();
        // Where they run is settled at the start.
        let isolation = config.plugins.isolation;
        config.plugins = config::Plugins { isolation, ..fresh.plugins.clone() };
        config.prices.clone_from(&fresh.prices);
        config.qualifier.clone_from(&fresh.qualifier);
        self.engine.set_qualifier(fresh.qualifier.clone());
        config.log.level.clone_from(&fresh.log.level);
        ConfigReloaded { error: None, fixed: &fixed }.emit(&self.metrics);
        Ok((Settings::from(&fresh), plugin_host::Settings::from(&fresh)))
    }

    /// Reads the tokens again; if they are faulty, the old ones hold.
    pub fn reload_tokens(&self) -> Result<(), TokensError> {
        let Some(file) = self.tokens_file() else { return Ok(()) };
        let outcome = Tokens::read(&file).map(|tokens| {
            let count = tokens.len();
            self.tokens.store(Arc::new(tokens));
            count
        });
        let described = outcome.as_ref().map_err(|error| describe_tokens(error, "; "));
        TokensLoaded { file: &file, outcome: described.as_ref().map(|count| **count).map_err(String::as_str) }
            .emit(&self.metrics);
        outcome.map(drop)
    }

    /// The file of tokens, if one is configured.
    pub fn tokens_file(&self) -> Option<PathBuf> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).tokens_file.clone()
    }

    /// Sets the log's level until the next reload that changes it.
    pub fn set_log_level(&self, level: &str) -> Result<(), LevelError> {
        self.level.set(level)
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
            warnings: loaded.diagnostics.len() - errors,
            missing: self.readiness.missing(),
        }
    }
}

impl Status {
    /// One line for people, as systemd shows it.
    pub fn line(&self) -> String {
        let mut line = format!("generation {}, {} tools", self.generation, self.tools);
        let (ready, aside) = self.plugins;
        line.push_str(&format!(", {ready} plugins ready"));
        for (count, what) in [(aside, "quarantined"), (self.stale, "stale"), (self.errors, "errors")] {
            if count > 0 {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        line
    }
}

/// An error of the configuration with its places, each after `separator`.
pub fn describe(error: &ConfigError, separator: &str) -> String {
    with_places(error, error.diagnostics(), separator)
}

/// An error of the tokens with its places, each after `separator`.
pub fn describe_tokens(error: &TokensError, separator: &str) -> String {
    match error {
        TokensError::Faulty { diagnostics, .. } => with_places(error, diagnostics, separator),
        TokensError::Unreadable { source, .. } => format!("{error}: {source}"),
    }
}

fn with_places(error: &dyn std::error::Error, diagnostics: &[Diagnostic], separator: &str) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        text.push_str(&format!(": {source}"));
    }
    for fault in diagnostics {
        text.push_str(&format!("{separator}{}: {}", fault.place(), fault.message));
        if let Some(hint) = &fault.hint {
            text.push_str(&format!(" ({hint})"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_is_missing() {
        let readiness = Readiness::default();
        assert_eq!(*readiness.missing(), [Need::Catalog, Need::Listeners, Need::Plugins]);
        readiness.met(Need::Plugins);
        readiness.met(Need::Catalog);
        readiness.met(Need::Listeners);
        assert!(readiness.missing().is_empty());
        readiness.lost(Need::Running);
        readiness.lost(Need::Running);
        assert_eq!(*readiness.missing(), [Need::Running]);
    }
}
