//! Events of memories.

use std::time::Duration;

use serde_json::json;

use crate::telemetry::Metrics;
use crate::telemetry::feed::EventType;

/// Something was done with memories, or refused.
#[derive(Debug, Clone, Copy)]
pub struct MemoryOperated {
    /// What: its operation's name.
    pub operation: &'static str,
    /// done, refused (the asker's fault) or failed (ours).
    pub outcome: &'static str,
    /// How long it took, durability included.
    pub took: Duration,
}

impl MemoryOperated {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { operation, outcome, took } = self;
        metrics.memory.operations.with_label_values(&[operation, outcome]).inc();
        metrics.memory.duration.with_label_values(&[operation]).observe(took.as_secs_f64());
        let took_ms = super::millis(took);
        metrics
            .feed
            .tell(EventType::MemoryOperated, json!({"operation": operation, "outcome": outcome, "took_ms": took_ms}));
        tracing::debug!(operation, outcome, took_us = took.as_secs_f64() * 1e6, "memories");
    }
}
