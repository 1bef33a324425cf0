//! What happened to rule libraries.

use super::Metrics;
use crate::plugin_host::{Fault, State};

/// A library is in another state than before.
#[derive(Debug)]
pub struct PluginStateChanged<'r> {
    /// Its id.
    pub plugin: &'r str,
    /// The state it was in, if it was known.
    pub from: Option<State>,
    /// The state it is in.
    pub to: State,
    /// The sum and version of its content, if it can be run.
    pub content: Option<(&'r str, &'r str)>,
    /// Why, if it is not ready.
    pub reason: Option<&'r str>,
}

impl PluginStateChanged<'_> {
    /// Logs and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        let Self { plugin, reason, .. } = *self;
        for state in State::NAMES {
            metrics.plugins.state.with_label_values(&[plugin, state]).set((state == self.to.as_str()).into());
        }
        let (from, (hash, version)) = (self.from.map(State::as_str), self.content.unwrap_or_default());
        match self.to {
            State::Starting => tracing::debug!(plugin, from, hash, version, "rule library starting"),
            State::Ready => tracing::info!(plugin, from, hash, version, "rule library ready"),
            State::Backoff(failures) => {
                tracing::warn!(plugin, from, hash, version, failures, reason, "rule library failed, starting it again");
            }
            State::Quarantined => {
                tracing::error!(plugin, from, hash, version, reason, "rule library quarantined");
            }
            State::Refused => tracing::error!(plugin, from, reason, "rule library refused"),
        }
    }
}

/// A library was removed.
#[derive(Debug, Clone, Copy)]
pub struct PluginGone<'r> {
    /// Its id.
    pub plugin: &'r str,
}

impl PluginGone<'_> {
    /// Logs it, and takes its state off the metrics.
    pub fn emit(self, metrics: &Metrics) {
        for state in State::NAMES {
            // It fails if the state was never shown.
            let _ = metrics.plugins.state.remove_label_values(&[self.plugin, state]);
        }
        tracing::info!(plugin = self.plugin, "rule library removed");
    }
}

/// A worker of a library was at fault.
#[derive(Debug, Clone, Copy)]
pub struct PluginFaulted<'r> {
    /// Its id.
    pub plugin: &'r str,
    /// What happened.
    pub fault: &'r Fault,
    /// The sum of its content.
    pub hash: &'r str,
    /// Does an earlier version go on serving?
    pub old_serves: bool,
}

impl PluginFaulted<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { plugin, fault, hash, .. } = self;
        metrics.plugins.restarts.with_label_values(&[plugin, fault.label()]).inc();
        if self.old_serves {
            tracing::error!(plugin, %fault, hash, "new version of a rule library failed; the old one serves");
        } else {
            tracing::warn!(plugin, %fault, hash, "rule library at fault");
        }
    }
}

/// A worker took another's place.
#[derive(Debug, Clone, Copy)]
pub struct PluginReplaced<'r> {
    /// Its id.
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
        tracing::info!(plugin, version, hash, "rule library replaced");
    }
}

/// A library logged or printed something.
#[derive(Debug, Clone, Copy)]
pub struct PluginSaid<'r> {
    /// Its id.
    pub plugin: &'r str,
    /// 1 for an error to 5 for a trace.
    pub level: u8,
    /// What it said.
    pub text: &'r str,
}

impl PluginSaid<'_> {
    /// Logs it.
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
