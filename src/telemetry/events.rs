//! What happened, once: each event is one line of the log and the metrics that go with it.

mod llm;
mod memory;
mod plugin;
mod qualify;
mod relay;

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use llm::{LlmAsked, LlmBreaker, LlmBreakerChanged, LlmOutcome};
pub use memory::MemoryOperated;
pub use plugin::{
    PluginFaulted, PluginGone, PluginReplaced, PluginSaid, PluginState, PluginStateChanged, PluginUpdateRefused,
    SandboxMissing,
};
pub use qualify::{MessageQualified, ToolMissed};
pub use relay::ToolRelayed;

use serde::Serialize;
use serde_json::json;

use super::Metrics;
use super::feed::EventType;
use super::labels::OTHER;
use crate::strict::diagnostic::{self, Diagnostic, Severity};

/// Diagnostics that one reload writes to the log; the others are in `/v1/catalog`.
const LOGGED_DIAGNOSTICS: usize = 20;

pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64())
}

/// Milliseconds for people, to a tenth.
fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e4).round() / 10.0
}

/// The catalog was brought up to date.
#[derive(Debug)]
pub struct CatalogReloaded<'r> {
    /// Why, and how it came out, as their labels say.
    pub labels: [&'static str; 2],
    /// The generation that is served now.
    pub generation: u64,
    pub tools: usize,
    /// Documents by state: good, stale, bad.
    pub documents: [usize; 3],
    /// How long it took.
    pub took: Duration,
    /// Everything that is wrong.
    pub diagnostics: &'r [Diagnostic],
    /// Are the diagnostics others than after the reload before?
    pub news: bool,
    /// Files that were faulty before and are not any more; each with whether its document is served now.
    pub mended: Vec<(String, bool)>,
}

impl CatalogReloaded<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        let Self { labels: [trigger, outcome], generation, tools, took, diagnostics, .. } = *self;
        let errors = diagnostic::errors(diagnostics);
        metrics.reloads.with_label_values(&[trigger, outcome]).inc();
        metrics.reload_duration.observe(took.as_secs_f64());
        metrics.catalog_generation.set(generation.cast_signed());
        metrics.catalog_tools.set(tools as i64);
        for (state, count) in ["good", "stale", "bad"].into_iter().zip(self.documents) {
            metrics.catalog_documents.with_label_values(&[state]).set(count as i64);
        }
        metrics.catalog_reload.record(errors == 0, now());
        let (took_ms, warnings) = (millis(took), diagnostic::warnings(diagnostics));
        // A poll that finds nothing new is no news.
        let is_told_before = outcome == "unchanged" || outcome == "rejected" && trigger == "poll";
        if !is_told_before || self.news {
            let [good, stale, bad] = self.documents;
            metrics.feed.tell(
                EventType::CatalogReloaded,
                &json!({
                    "outcome": outcome, "trigger": trigger, "generation": generation, "tools": tools,
                    "errors": errors, "warnings": warnings, "documents": {"good": good, "stale": stale, "bad": bad},
                    "took_ms": took_ms,
                }),
            );
        }
        match outcome {
            // What was wrong is not, or something else is: the last line of it must be true.
            "unchanged" if self.news => {
                tracing::info!(
                    generation,
                    tools,
                    errors,
                    warnings,
                    trigger,
                    took_ms,
                    "catalog unchanged, findings new"
                );
            }
            "unchanged" => tracing::debug!(generation, tools, trigger, took_ms, "catalog unchanged"),
            // A poll that finds what was told is no news; who asks for a reload is told each time.
            "rejected" if !self.news && trigger == "poll" => {
                tracing::debug!(generation, tools, errors, trigger, "catalog rejected; the old one is served");
            }
            "rejected" => {
                tracing::error!(generation, tools, errors, trigger, "catalog rejected; the old one is served");
            }
            _ => tracing::info!(generation, tools, errors, warnings, trigger, took_ms, "catalog reloaded"),
        }
        for (file, is_served) in &self.mended {
            if *is_served {
                tracing::info!(file, "document mended; it is served as it stands");
            } else {
                tracing::info!(file, "faulty document is gone");
            }
        }
        if self.news {
            self.list_faults();
        }
    }

    fn list_faults(&self) {
        // An error is not to be missed for all that is merely worth knowing.
        let (mut faults, hints): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            self.diagnostics.iter().partition(|fault| fault.severity != Severity::Hint);
        faults.sort_by_key(|fault| !fault.is_error());
        for fault in faults.iter().take(LOGGED_DIAGNOSTICS).chain(hints.iter().take(LOGGED_DIAGNOSTICS)) {
            let (place, hint) = (fault.place(), fault.hint.as_deref());
            if fault.is_error() {
                tracing::warn!(place, code = fault.code, hint, "document not taken: {}", fault.message);
            } else if fault.severity == Severity::Hint {
                tracing::debug!(place, code = fault.code, hint, "worth knowing: {}", fault.message);
            } else {
                tracing::info!(place, code = fault.code, hint, "document questionable: {}", fault.message);
            }
        }
        if faults.len() > LOGGED_DIAGNOSTICS {
            let more = faults.len() - LOGGED_DIAGNOSTICS;
            tracing::warn!(more, "GET /v1/catalog lists all diagnostics");
        }
    }
}

/// File events come, or stopped coming.
#[derive(Debug)]
pub struct WatchChanged<'r> {
    /// Why changes are found by the poll only, if so.
    pub polling: Option<&'r str>,
}

impl WatchChanged<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.catalog_watching.set(self.polling.is_none().into());
        metrics
            .feed
            .tell(EventType::WatchChanged, &json!({"watching": self.polling.is_none(), "reason": self.polling}));
        match self.polling {
            None => tracing::info!("file events announce changes of the catalog"),
            Some(reason) => tracing::warn!(reason, "changes of the catalog are found by the poll only"),
        }
    }
}

/// The configuration, or what it names, was read again.
#[derive(Debug)]
pub struct ConfigReloaded<'r> {
    /// What is wrong with it, if anything; then the old one holds.
    pub error: Option<&'r str>,
    /// Keys that changed and need a restart.
    pub fixed: &'r [String],
}

impl ConfigReloaded<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.config_reload.record(self.error.is_none(), now());
        // What a configuration says, its faults included, is the administrator's.
        let taken = self.error.is_none();
        metrics.feed.tell(EventType::ConfigReloaded, &json!({"taken": taken, "waiting": self.fixed}));
        if let Some(error) = self.error {
            tracing::error!(error, "configuration not taken; the old one holds");
        } else {
            tracing::debug!("configuration read");
        }
        if !self.fixed.is_empty() {
            tracing::warn!(keys = self.fixed.join(", "), "changed keys take effect at the next start only");
        }
    }
}

/// The tokens were read.
#[derive(Debug)]
pub struct TokensLoaded<'r> {
    pub file: &'r Path,
    /// How many, or why not.
    pub outcome: Result<usize, &'r str>,
    /// If not: do those of the last good version hold?
    pub holds: bool,
}

impl TokensLoaded<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        let file = self.file.display();
        let taken = self.outcome.is_ok();
        metrics.feed.tell(EventType::TokensLoaded, &json!({"taken": taken, "old_hold": self.holds}));
        match self.outcome {
            Ok(tokens) => {
                if tokens == 0 {
                    tracing::warn!(%file, "the file of tokens is empty or gone; nobody is let in");
                }
                metrics.tokens.set(tokens as i64);
                metrics.tokens_reload.record(true, now());
                tracing::info!(%file, tokens, "tokens loaded");
            }
            Err(error) => {
                metrics.tokens_reload.record(false, now());
                if self.holds {
                    tracing::error!(%file, error, "tokens not taken; the old ones hold for a while");
                } else {
                    metrics.tokens.set(0);
                    tracing::error!(%file, error, "tokens not taken for too long; nobody is let in");
                }
            }
        }
    }
}

/// A call that ended was recorded, durably.
#[derive(Debug)]
pub struct ExecutionRecorded<'r> {
    /// Whose call it was.
    pub tenant: &'r str,
    /// The session it belongs to.
    pub session: Option<&'r str>,
    pub tool: &'r str,
    /// Its mode, if it has modes.
    pub mode: Option<&'r str>,
    /// How long it took, in ms, if that is known.
    pub duration_ms: Option<u64>,
    pub outcome: &'static str,
    /// Its duration divided by the estimated one, and whether it was inside the interval; nothing of a call that was
    /// given up, or whose duration is not known.
    pub verdict: Option<(f64, bool)>,
}

/// What a past call counts for less in the coverage with each new one.
const COVERAGE_FADE: f64 = 0.99;

/// As listeners are told.
#[derive(Serialize)]
struct ToldExecution<'r> {
    tool: &'r str,
    mode: Option<&'r str>,
    duration_ms: Option<u64>,
    outcome: &'static str,
    session_id: Option<&'r str>,
    inside: Option<bool>,
}

impl ExecutionRecorded<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        let Self { tool, duration_ms, outcome, .. } = *self;
        let mode = self.mode.unwrap_or_default();
        let (tool_label, mode_label) = if metrics.tool_labels.lets_through(&format!("{tool}\n{mode}")) {
            (tool, mode)
        } else {
            metrics.labels_folded.inc();
            (OTHER, "")
        };
        if let Some(duration_ms) = duration_ms {
            metrics.tool_duration.with_labels(tool_label, mode_label).observe(duration_ms as f64 / 1e3);
        }
        metrics.tool_calls.with_labels(tool_label, outcome).inc();
        if let Some((ratio, inside)) = self.verdict {
            metrics.estimate_ratio.observe(ratio);
            metrics.interval_calls.with_label_values(&[if inside { "true" } else { "false" }]).inc();
            let hit = f64::from(u8::from(inside));
            let before = metrics.interval_coverage.get();
            metrics.interval_coverage.set(before * COVERAGE_FADE + hit * (1.0 - COVERAGE_FADE));
        }
        metrics.minutes.called(SystemTime::now(), outcome);
        let (session_id, inside) = (self.session, self.verdict.map(|(_, inside)| inside));
        let told = ToldExecution { tool, mode: self.mode, duration_ms, outcome, session_id, inside };
        metrics.feed.tell_tenant(EventType::ExecutionRecorded, self.tenant, &told);
        tracing::debug!(tool, mode, duration_ms, outcome, "call recorded");
    }
}

#[derive(Debug)]
pub struct ToolsSuggested<'r> {
    /// Who was told of them.
    pub tenant: &'r str,
    /// Of each, where it came from.
    pub sources: &'r [&'static str],
    /// Rule libraries that could not be asked.
    pub degraded: usize,
}

/// As listeners are told.
#[derive(Serialize)]
struct ToldSuggestions<'r> {
    tools: usize,
    sources: &'r [&'static str],
    degraded: usize,
}

impl ToolsSuggested<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        for source in self.sources {
            metrics.suggest.tools.with_label_values(&[source]).inc();
        }
        if self.degraded > 0 {
            metrics.suggest.degraded.inc();
        }
        let (tools, degraded) = (self.sources.len(), self.degraded);
        let told = ToldSuggestions { tools, sources: self.sources, degraded };
        metrics.feed.tell_tenant(EventType::ToolsSuggested, self.tenant, &told);
        tracing::debug!(tools, degraded, "tools suggested");
    }
}

#[derive(Debug, Clone, Copy)]
pub struct PresetsLoaded {
    /// How many are offered.
    pub presets: usize,
}

impl PresetsLoaded {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.suggest.presets.set(self.presets as i64);
        metrics.feed.tell(EventType::PresetsLoaded, &json!({"presets": self.presets}));
        tracing::info!(presets = self.presets, "presets loaded");
    }
}

/// A group of records became durable.
#[derive(Debug, Clone, Copy)]
pub struct GroupCommitted {
    /// How long it took.
    pub took: Duration,
    /// How many records it had.
    pub records: usize,
}

impl GroupCommitted {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.store_commit.observe(self.took.as_secs_f64());
        tracing::trace!(records = self.records, took_us = self.took.as_secs_f64() * 1e6, "records committed");
    }
}

/// The history was read back at the start.
#[derive(Debug, Clone, Copy)]
pub struct HistoryReplayed<'r> {
    /// How many calls were learnt again, or why none.
    pub outcome: Result<usize, &'r str>,
    /// How long it took.
    pub took: Duration,
}

impl HistoryReplayed<'_> {
    pub fn emit(self) {
        let took_ms = millis(self.took);
        match self.outcome {
            Ok(calls) => tracing::info!(calls, took_ms, "history replayed"),
            Err(reason) => tracing::error!(reason, "history not read; estimates come from hints and defaults"),
        }
    }
}

/// A connection was closed for a limit.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionClosed {
    pub reason: &'static str,
}

impl ConnectionClosed {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.http_closed.with_label_values(&[self.reason]).inc();
        tracing::debug!(reason = self.reason, "connection closed");
    }
}

/// The doors are open.
#[derive(Debug)]
pub struct Listening<'r> {
    /// Addresses of the HTTP door.
    pub http: &'r [SocketAddr],
    /// The admin socket, or that it was passed in.
    pub admin: &'r str,
    /// The socket of MCP clients; empty if there is none.
    pub mcp: &'r str,
}

impl Listening<'_> {
    pub fn emit(&self) {
        let version = env!("CARGO_PKG_VERSION");
        let http: Vec<String> = self.http.iter().map(|address| format!("http://{address}")).collect();
        tracing::info!(version, http = http.join(" "), admin = self.admin, mcp = self.mcp, "listening");
    }
}
