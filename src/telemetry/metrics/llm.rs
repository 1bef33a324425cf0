//! Metrics of the model that is asked for its opinion.

use prometheus::{Histogram, IntCounter, IntCounterVec, IntGaugeVec};

use super::Registered;
use crate::telemetry::events::{LlmBreaker, LlmOutcome};

/// Seconds; from a model on the same machine to the longest deadline.
const CALL_BUCKETS: [f64; 10] = [0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0];

/// How a model is asked.
#[derive(Debug)]
pub struct LlmMetrics {
    pub calls: IntCounterVec,
    pub duration: Histogram,
    pub names_dropped: IntCounter,
    /// `almanac_llm_breaker_state{state}`; without a model all are 0.
    pub breaker: IntGaugeVec,
}

impl LlmMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            calls: made.counter_vec(
                "almanac_llm_calls_total",
                "Questions for the model by outcome; open and busy ones were not sent.",
                &["outcome"],
            )?,
            duration: made.histogram(
                "almanac_llm_call_duration_seconds",
                "Time to the model's answer, or to giving up.",
                &CALL_BUCKETS,
            )?,
            names_dropped: made
                .counter("almanac_llm_names_dropped_total", "Names in the model's answers that no candidate has.")?,
            breaker: made.gauge_vec(
                "almanac_llm_breaker_state",
                "1 for the state that holds: closed (the model is asked), open (it is not), half_open (it is tried).",
                &["state"],
            )?,
        };
        for outcome in LlmOutcome::WORDS {
            metrics.calls.with_label_values(&[outcome]);
        }
        for state in LlmBreaker::WORDS {
            metrics.breaker.with_label_values(&[state]);
        }
        Ok(metrics)
    }
}
