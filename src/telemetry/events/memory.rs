//! Events of memories.

use std::time::Duration;

use serde_json::json;

use crate::telemetry::Metrics;
use crate::telemetry::feed::EventType;

/// Something was done with memories, or refused.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOperated<'r> {
    /// Whose memories.
    pub tenant: &'r str,
    /// What: its operation's name.
    pub operation: &'static str,
    /// done, refused (the asker's fault) or failed (ours).
    pub outcome: &'static str,
    /// How long it took, durability included.
    pub took: Duration,
}

impl MemoryOperated<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { tenant, operation, outcome, took } = self;
        metrics.memory.operations.with_label_values(&[operation, outcome]).inc();
        metrics.memory.duration.with_label_values(&[operation]).observe(took.as_secs_f64());
        let took_ms = super::millis(took);
        let data = json!({"operation": operation, "outcome": outcome, "took_ms": took_ms});
        metrics.feed.tell_tenant(EventType::MemoryOperated, tenant, data);
        tracing::debug!(operation, outcome, took_us = took.as_secs_f64() * 1e6, "memories");
    }
}
