//! Events of selection.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use super::Metrics;
use crate::telemetry::feed::EventType;

/// A message was qualified; the message itself is nobody's business.
#[derive(Debug, Clone, Copy)]
pub struct MessageQualified<'r> {
    /// Whose message it was.
    pub tenant: &'r str,
    /// The session it belongs to.
    pub session: Option<&'r str>,
    /// How long it took.
    pub took: Duration,
    /// How many tools are offered.
    pub tools: usize,
    /// The categories that fit.
    pub categories: &'r [String],
    /// The best category's probability, 0 to 1.
    pub confidence: f64,
    /// Was the session's context used?
    pub is_sticky: bool,
    /// Does it need no tool?
    pub no_tool_needed: bool,
}

/// As listeners are told.
#[derive(Serialize)]
struct ToldQualified<'r> {
    session_id: Option<&'r str>,
    tools: usize,
    categories: &'r [String],
    confidence: f64,
    no_tool_needed: bool,
    took_ms: f64,
}

impl MessageQualified<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { took, tools, categories, confidence, is_sticky, no_tool_needed, .. } = self;
        metrics.qualify.duration.observe(took.as_secs_f64());
        metrics.qualify.tools.observe(tools as f64);
        let (session_id, took_ms) = (self.session, super::millis(took));
        let told = ToldQualified { session_id, tools, categories, confidence, no_tool_needed, took_ms };
        metrics.feed.tell_tenant(EventType::MessageQualified, self.tenant, &told);
        tracing::debug!(
            tools,
            categories = categories.join(","),
            confidence,
            sticky = is_sticky,
            no_tool_needed,
            took_us = took.as_secs_f64() * 1e6,
            "message qualified",
        );
    }
}

/// A tool was needed and not offered.
#[derive(Debug, Clone, Copy)]
pub struct ToolMissed<'r> {
    /// Whose message it was.
    pub tenant: &'r str,
    pub tool: &'r str,
    /// The category that was added for it.
    pub category: Option<&'r str>,
    /// Is it learnt as a choice?
    pub is_learnt: bool,
}

impl ToolMissed<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        metrics.qualify.misses.inc();
        let Self { tenant, tool, category, is_learnt } = self;
        let data = json!({"tool": tool, "category": category, "learnt": is_learnt});
        metrics.feed.tell_tenant(EventType::ToolMissed, tenant, &data);
        tracing::info!(tool, category = category.unwrap_or_default(), is_learnt, "tool missed");
    }
}
