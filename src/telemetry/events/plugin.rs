//! What happened to rule libraries.

use std::fmt;

use serde_json::json;

use super::Metrics;
use crate::strict::Word;
use crate::telemetry::feed::EventType;

/// How a rule library is, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum PluginState {
    /// Its first worker is starting.
    Starting,
    Ready,
    /// It failed, and is started again.
    Backoff,
    /// It failed too often, and is put aside for a while.
    Quarantined,
    /// It must not be run, or is no library.
    Refused,
}

/// A library is in another state than before.
#[derive(Debug)]
pub struct PluginStateChanged<'r> {
    pub plugin: &'r str,
    /// The state it was in, if it was known.
    pub from: Option<PluginState>,
    /// The state it is in.
    pub to: PluginState,
    /// Failures of late, if it is started again for them.
    pub failures: usize,
    /// The sum and version of its content, if it can be run.
    pub content: Option<(&'r str, &'r str)>,
    /// Why, if it is not ready.
    pub reason: Option<&'r str>,
}

impl PluginStateChanged<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        let Self { plugin, from, to, failures, reason, .. } = *self;
        for state in PluginState::ALL {
            metrics.plugins.state.with_label_values(&[plugin, state.as_str()]).set((state == to).into());
        }
        // A counter that begins with its first event shows no increase.
        metrics.plugins.refused_updates.with_label_values(&[plugin]);
        let (from, (hash, version)) = (from.map(PluginState::as_str), self.content.unwrap_or_default());
        metrics.feed.tell(
            EventType::PluginStateChanged,
            &json!({"plugin": plugin, "from": from, "to": to.as_str(), "version": version, "reason": reason}),
        );
        match to {
            PluginState::Starting => tracing::debug!(plugin, from, hash, version, "rule library starting"),
            PluginState::Ready => tracing::info!(plugin, from, hash, version, "rule library ready"),
            PluginState::Backoff => {
                tracing::warn!(plugin, from, hash, version, failures, reason, "rule library failed, starting it again");
            }
            PluginState::Quarantined => {
                tracing::error!(plugin, from, hash, version, reason, "rule library quarantined");
            }
            PluginState::Refused => tracing::error!(plugin, from, reason, "rule library refused"),
        }
    }
}

/// A library was removed.
#[derive(Debug, Clone, Copy)]
pub struct PluginGone<'r> {
    pub plugin: &'r str,
}

impl PluginGone<'_> {
    /// Logs it, and takes its state off the metrics.
    pub fn emit(self, metrics: &Metrics) {
        for state in PluginState::WORDS {
            // It fails if the state was never shown.
            let _ = metrics.plugins.state.remove_label_values(&[self.plugin, state]);
        }
        let _ = metrics.plugins.is_outdated.remove_label_values(&[self.plugin]);
        metrics.feed.tell(EventType::PluginGone, &json!({"plugin": self.plugin}));
        tracing::info!(plugin = self.plugin, "rule library removed");
    }
}

/// A worker of a library was at fault.
#[derive(Clone, Copy)]
pub struct PluginFaulted<'r> {
    pub plugin: &'r str,
    /// What happened, as the metrics' label says.
    pub kind: &'static str,
    /// What happened, for people.
    pub fault: &'r dyn fmt::Display,
    /// The sum of its content.
    pub hash: &'r str,
    /// Does an earlier version go on serving?
    pub old_serves: bool,
}

impl PluginFaulted<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { plugin, kind, fault, hash, .. } = self;
        if !self.old_serves {
            metrics.plugins.restarts.with_label_values(&[plugin, kind]).inc();
        }
        metrics.feed.tell(
            EventType::PluginFaulted,
            &json!({"plugin": plugin, "kind": kind, "fault": fault.to_string(), "old_serves": self.old_serves}),
        );
        if self.old_serves {
            metrics.plugins.refused_updates.with_label_values(&[plugin]).inc();
            tracing::error!(plugin, %fault, hash, "new version of a rule library failed; the old one serves");
        } else {
            tracing::warn!(plugin, %fault, hash, "rule library at fault");
        }
    }
}

/// The file of a library that serves holds what must not be run.
#[derive(Debug, Clone, Copy)]
pub struct PluginUpdateRefused<'r> {
    pub plugin: &'r str,
    /// Why.
    pub reason: &'r str,
}

impl PluginUpdateRefused<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { plugin, reason } = self;
        metrics.plugins.refused_updates.with_label_values(&[plugin]).inc();
        metrics.feed.tell(EventType::PluginUpdateRefused, &json!({"plugin": plugin, "reason": reason}));
        tracing::error!(plugin, reason, "update of a rule library refused; the old version serves");
    }
}

/// A worker took another's place.
#[derive(Debug, Clone, Copy)]
pub struct PluginReplaced<'r> {
    pub plugin: &'r str,
    /// The version that serves now.
    pub version: &'r str,
    /// The sum of its content.
    pub hash: &'r str,
}

impl PluginReplaced<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { plugin, version, hash } = self;
        metrics.plugins.restarts.with_label_values(&[plugin, "update"]).inc();
        metrics.feed.tell(EventType::PluginReplaced, &json!({"plugin": plugin, "version": version}));
        tracing::info!(plugin, version, hash, "rule library replaced");
    }
}

/// A library logged or printed something.
#[derive(Debug, Clone, Copy)]
pub struct PluginSaid<'r> {
    pub plugin: &'r str,
    /// 1 for an error to 5 for a trace.
    pub level: u8,
    pub text: &'r str,
}

impl PluginSaid<'_> {
    pub fn emit(self) {
        let Self { plugin, level, text } = self;
        match level {
            1 => tracing::error!(plugin, "{text}"),
            2 => tracing::warn!(plugin, "{text}"),
            3 => tracing::info!(plugin, "{text}"),
            4 => tracing::debug!(plugin, "{text}"),
            _ => tracing::trace!(plugin, "{text}"),
        }
    }
}

/// The kernel cannot confine what workers open.
#[derive(Debug, Clone, Copy)]
pub struct SandboxMissing {
    /// Is no library run for that?
    pub refused: bool,
}

impl SandboxMissing {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.plugins.sandbox.set(0);
        if self.refused {
            tracing::error!(
                "THIS KERNEL HAS NO LANDLOCK: no rule library is run, since `plugins.require_sandbox` demands it"
            );
        } else {
            tracing::error!(
                "THIS KERNEL HAS NO LANDLOCK: rule libraries can read every file that the daemon can; \
                 `plugins.require_sandbox: true` would not run them"
            );
        }
    }
}
