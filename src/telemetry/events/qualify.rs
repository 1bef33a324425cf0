//! Events of selection.

use std::time::Duration;

use super::Metrics;
use crate::engine::Missed;
use crate::qualify::Qualification;

/// A message was qualified.
#[derive(Debug, Clone, Copy)]
pub struct Qualified<'r> {
    /// How long it took.
    pub took: Duration,
    /// How many tools are offered.
    pub tools: usize,
    /// The answer; the message itself is nobody's business.
    pub found: &'r Qualification,
}

impl Qualified<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { took, tools, found } = self;
        metrics.qualify.duration.observe(took.as_secs_f64());
        metrics.qualify.tools.observe(tools as f64);
        tracing::debug!(
            tools,
            categories = found.categories.join(","),
            confidence = found.confidence,
            sticky = found.sticky,
            no_tool_needed = found.no_tool_needed,
            took_us = took.as_secs_f64() * 1e6,
            "message qualified",
        );
    }
}

/// A tool was needed and not offered.
#[derive(Debug, Clone, Copy)]
pub struct ToolMissed<'r> {
    /// The tool.
    pub tool: &'r str,
    /// What became of it.
    pub missed: &'r Missed,
}

impl ToolMissed<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.qualify.misses.inc();
        let Missed { category, is_learnt, .. } = self.missed;
        tracing::info!(tool = self.tool, category = category.as_deref().unwrap_or_default(), is_learnt, "tool missed");
    }
}
