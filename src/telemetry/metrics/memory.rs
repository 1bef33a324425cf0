//! Metrics of memories.

use prometheus::{HistogramVec, IntCounterVec};

use super::{REQUEST_BUCKETS, Registered};

/// How memories are kept and found.
#[derive(Debug)]
pub struct MemoryMetrics {
    pub operations: IntCounterVec,
    pub duration: HistogramVec,
}

impl MemoryMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            operations: made.counter_vec(
                "almanac_memory_operations_total",
                "Operations on memories: done, refused (the asker's fault) or failed.",
                &["operation", "outcome"],
            )?,
            duration: made.histogram_vec(
                "almanac_memory_operation_duration_seconds",
                "Time of an operation on memories, durability included.",
                &REQUEST_BUCKETS,
                &["operation"],
            )?,
        };
        for operation in ["add", "search", "get", "update", "delete"] {
            for outcome in ["done", "refused", "failed"] {
                metrics.operations.with_label_values(&[operation, outcome]);
            }
        }
        Ok(metrics)
    }
}
