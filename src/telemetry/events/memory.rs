//! Events of memories.

use std::time::Duration;

use serde::Serialize;

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

/// As listeners are told.
#[derive(Serialize)]
struct ToldOperation {
    operation: &'static str,
    outcome: &'static str,
    took_ms: f64,
}

impl MemoryOperated<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { tenant, operation, outcome, took } = self;
        metrics.memory.operations.with_label_values(&[operation, outcome]).inc();
        metrics.memory.duration.with_label_values(&[operation]).observe(took.as_secs_f64());
        let told = ToldOperation { operation, outcome, took_ms: super::millis(took) };
        metrics.feed.tell_tenant(EventType::MemoryOperated, tenant, &told);
        tracing::debug!(operation, outcome, took_us = took.as_secs_f64() * 1e6, "memories");
    }
}
