//! The log: its format, and its level, which can be changed while the daemon runs.

mod targets;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::strict::{FromNode, Word};
pub use targets::doubts;

/// The section `log` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    pub format: Format,
    /// A level, or directives such as `info,almanac::http=debug`.
    #[node(check = check_level)]
    pub level: String,
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a log format")]
pub enum Format {
    /// The journal's fields under systemd, else text.
    Auto,
    /// Lines for people.
    Text,
    /// A JSON object per line.
    Json,
    /// Fields for systemd's journal.
    Journald,
}

impl Default for Settings {
    fn default() -> Self {
        Self { format: Format::Auto, level: "info".to_owned() }
    }
}

/// From nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Changes the level of a log.
#[derive(Clone)]
pub struct LevelHandle(Arc<SetLevel>);

type SetLevel = dyn Fn(&str) -> Result<(), LevelError> + Send + Sync;

/// A level that cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum LevelError {
    /// Neither a level nor one of a part of the program.
    #[error("`{word}` is no log level: {}, or a part's, such as almanac::http=debug", LEVELS.join(", "))]
    Unknown { word: String },
    /// Not directives.
    #[error("`{level}` is no log level and no list of directives")]
    Parse { level: String, source: ParseError },
    /// The log is gone.
    #[error("the log cannot be changed")]
    Gone(#[source] reload::Error),
}

/// The log cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The level is wrong.
    #[error(transparent)]
    Level(#[from] LevelError),
    /// No journal to write to.
    #[error("cannot reach the journal")]
    Journal(#[source] io::Error),
    /// There is a log already.
    #[error("cannot start the log")]
    Init(#[from] TryInitError),
}

impl LevelHandle {
    /// Sets the level: one word, or directives such as `info,almanac::http=debug`.
    pub fn set(&self, level: &str) -> Result<(), LevelError> {
        (self.0)(level)
    }
}

impl std::fmt::Debug for LevelHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LevelHandle")
    }
}

/// Is it a level, or directives?
fn check_level(level: &str) -> Result<(), LevelError> {
    filter(level).map(drop)
}

fn filter(level: &str) -> Result<EnvFilter, LevelError> {
    // A word alone would be a part of the program, of which everything is logged, and nothing else: it is mistyped.
    // What is within a span has commas of its own.
    let unknown = level.split(',').filter(|_| !level.contains('[')).find(|directive| {
        !directive.contains('=') && !LEVELS.iter().any(|level| level.eq_ignore_ascii_case(directive.trim()))
    });
    if let Some(unknown) = unknown {
        return Err(LevelError::Unknown { word: unknown.to_owned() });
    }
    // The watcher's own words are about what happens all the time; ours say what it means.
    EnvFilter::builder()
        .parse(format!("notify=error,{level}"))
        .map_err(|source| LevelError::Parse { level: level.to_owned(), source })
}

/// Is there a log that is read by programs?
static IS_FOR_PROGRAMS: AtomicBool = AtomicBool::new(false);

/// Was a log started that programs read, so that lines for people do not belong beside it?
pub fn is_for_programs() -> bool {
    IS_FOR_PROGRAMS.load(Ordering::Relaxed)
}

/// Starts the process's log, on standard error.
pub fn start(log: &Settings) -> Result<LevelHandle, LogError> {
    filter(&log.level)?;
    // The level is set below, so that what is doubtful about it is logged whatever it leaves.
    let (filter_layer, handle) = reload::Layer::new(filter("info")?);
    let resolved = resolve(log.format)?;
    let is_for_programs = !matches!(resolved, Resolved::Text);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match resolved {
        Resolved::Journal(journal) => {
            Box::new(journal.with_syslog_identifier("almanacd".into()).with_filter(filter_layer))
        }
        Resolved::Json => {
            Box::new(fmt::layer().json().flatten_event(true).with_writer(io::stderr).with_filter(filter_layer))
        }
        Resolved::Text => {
            let colour = io::stderr().is_terminal();
            Box::new(
                fmt::layer().with_ansi(colour).with_target(false).with_writer(io::stderr).with_filter(filter_layer),
            )
        }
    };
    tracing_subscriber::registry().with(layer).try_init()?;
    IS_FOR_PROGRAMS.store(is_for_programs, Ordering::Relaxed);
    let handle = LevelHandle(Arc::new(move |level| {
        let filter = filter(level)?;
        for doubt in doubts(level) {
            tracing::warn!(log_level = level, "{doubt}");
        }
        handle.reload(filter).map_err(LevelError::Gone)
    }));
    handle.set(&log.level)?;
    Ok(handle)
}

enum Resolved {
    Text,
    Json,
    Journal(tracing_journald::Layer),
}

fn resolve(format: Format) -> Result<Resolved, LogError> {
    // systemd sets it when standard error is the journal; whoever inherited it may have no journal.
    let announced = std::env::var_os("JOURNAL_STREAM").is_some() && !io::stderr().is_terminal();
    match format {
        Format::Json => Ok(Resolved::Json),
        Format::Journald => tracing_journald::layer().map(Resolved::Journal).map_err(LogError::Journal),
        Format::Auto if announced => Ok(tracing_journald::layer().map_or(Resolved::Text, Resolved::Journal)),
        Format::Auto | Format::Text => Ok(Resolved::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_none_is_refused() {
        let check = |level: &str, expected: Option<&str>| {
            let said = check_level(level).err().map(|error| error.to_string());
            assert_eq!(said.as_deref().map(|said| &said[..said.find(':').unwrap_or(said.len())]), expected, "{level}");
        };
        for level in
            ["info", "WARN", "off", "info,almanac::http=debug", "almanac=trace", "warn,hyper=off", "[span]=debug"]
        {
            check(level, None);
        }
        check("wran", Some("`wran` is no log level"));
        check("", Some("`` is no log level"));
        check("info,verbose", Some("`verbose` is no log level"));
        check("a=b=c", Some("`a=b=c` is no log level and no list of directives"));
    }
}
