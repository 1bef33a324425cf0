//! What happened with the model that is asked for its opinion.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use super::Metrics;
use crate::strict::Word;
use crate::telemetry::feed::EventType;

/// The model was asked for its opinion, or was not although it should have been.
#[derive(Clone, Copy)]
pub struct LlmAsked<'r> {
    /// How it came out.
    pub outcome: LlmOutcome,
    /// How long it took.
    pub took: Duration,
    /// Names in its answer that no candidate has, and which were left out.
    pub dropped: usize,
    /// Why there is no opinion, if there is none for a reason, and the innermost cause of that.
    pub error: Option<(&'r dyn fmt::Display, Option<&'r str>)>,
}

/// How a question came out, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub enum LlmOutcome {
    Answered,
    Deadline,
    /// There is no connection.
    Unreachable,
    Broken,
    Redirected,
    /// Refused by its status.
    Status,
    /// The answer is too long.
    TooLarge,
    /// The answer is no opinion.
    Malformed,
    /// It would not say.
    Declined,
    /// It was not asked, since it failed of late.
    Open,
    /// It was not asked, since others are asking.
    Busy,
    /// Nobody waited for it any longer.
    Abandoned,
}

impl LlmAsked<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { outcome, took, dropped, error } = self;
        let (took_ms, label) = (super::millis(took), outcome.as_str());
        let was_sent = !matches!(outcome, LlmOutcome::Open | LlmOutcome::Busy);
        metrics.llm.calls.with_label_values(&[label]).inc();
        metrics.llm.names_dropped.inc_by(dropped as u64);
        if was_sent {
            metrics.llm.duration.observe(took.as_secs_f64());
        }
        match error {
            Some((error, cause)) if was_sent => {
                tracing::warn!(outcome = label, took_ms, cause, "no opinion of the model: {error}");
            }
            // One line for each message would say no more than the counter.
            Some(_) => tracing::debug!(outcome = label, "model not asked"),
            None => tracing::debug!(outcome = label, took_ms, dropped, "model asked"),
        }
    }
}

/// Whether the model is asked, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub enum LlmBreaker {
    Closed,
    Open,
    HalfOpen,
}

/// The model is asked from now on, or no longer.
#[derive(Debug, Clone, Copy)]
pub struct LlmBreakerChanged {
    /// The state that holds now.
    pub state: LlmBreaker,
    /// For how long it is not asked.
    pub pause: Option<Duration>,
}

impl LlmBreakerChanged {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let Self { state, pause } = self;
        for known in LlmBreaker::ALL {
            metrics.llm.breaker.with_label_values(&[known.as_str()]).set((known == state).into());
        }
        metrics.feed.tell(EventType::LlmBreakerChanged, &json!({"state": state.as_str()}));
        match state {
            LlmBreaker::Closed => tracing::info!("the model is asked"),
            LlmBreaker::Open => tracing::warn!(?pause, "the model is not asked for now"),
            LlmBreaker::HalfOpen => tracing::debug!("the model is tried again"),
        }
    }
}
