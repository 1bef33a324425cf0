//! What happened with the model that is asked for its opinion.

use std::error::Error;
use std::time::Duration;

use super::Metrics;
use crate::llm::{BreakerState, LlmError};

/// The model was asked for its opinion, or was not although it should have been.
#[derive(Debug, Clone, Copy)]
pub struct LlmAsked<'r> {
    /// How it came out.
    pub outcome: LlmOutcome<'r>,
    /// How long it took.
    pub took: Duration,
}

/// How a question came out.
#[derive(Debug, Clone, Copy)]
pub enum LlmOutcome<'r> {
    /// With an opinion.
    Answered {
        /// Names in it that no candidate has, and which were left out.
        dropped: usize,
    },
    /// With none.
    Failed(&'r LlmError),
    /// Nobody waited for it any longer.
    Abandoned,
}

impl LlmOutcome<'_> {
    /// Labels of all outcomes.
    pub const LABELS: [&'static str; 12] = [
        "answered",
        "deadline",
        "unreachable",
        "broken",
        "redirected",
        "status",
        "too_large",
        "malformed",
        "declined",
        "open",
        "busy",
        "abandoned",
    ];

    fn label(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Failed(error) => error.label(),
            Self::Abandoned => "abandoned",
        }
    }
}

impl LlmAsked<'_> {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        let outcome = self.outcome.label();
        let took_ms = super::millis(self.took);
        metrics.llm.calls.with_label_values(&[outcome]).inc();
        if !matches!(self.outcome, LlmOutcome::Failed(LlmError::Open { .. } | LlmError::Busy { .. })) {
            metrics.llm.duration.observe(self.took.as_secs_f64());
        }
        match self.outcome {
            LlmOutcome::Answered { dropped } => {
                metrics.llm.names_dropped.inc_by(dropped as u64);
                tracing::debug!(took_ms, dropped, "model asked");
            }
            LlmOutcome::Abandoned => tracing::debug!(took_ms, "model asked, nobody waits for the answer"),
            // One line for each message would say no more than the counter.
            LlmOutcome::Failed(LlmError::Open { .. } | LlmError::Busy { .. }) => {
                tracing::debug!(outcome, "model not asked");
            }
            LlmOutcome::Failed(error) => {
                let cause = cause(error);
                tracing::warn!(outcome, took_ms, cause, "no opinion of the model: {error}");
            }
        }
    }
}

/// The innermost reason: the ones around it say less.
fn cause(error: &LlmError) -> Option<String> {
    let mut innermost = error.source()?;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Some(innermost.to_string())
}

/// The model is asked from now on, or no longer.
#[derive(Debug, Clone, Copy)]
pub struct LlmBreakerChanged {
    /// The state that holds now.
    pub state: BreakerState,
}

impl LlmBreakerChanged {
    /// Logs and counts it.
    pub fn emit(self, metrics: &Metrics) {
        for state in BreakerState::NAMES {
            metrics.llm.breaker.with_label_values(&[state]).set((state == self.state.as_str()).into());
        }
        match self.state {
            BreakerState::Closed => tracing::info!("the model is asked"),
            BreakerState::Open { pause } => tracing::warn!(?pause, "the model is not asked for now"),
            BreakerState::HalfOpen => tracing::debug!("the model is tried again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hyper::StatusCode;

    use super::*;

    #[test]
    fn every_outcome_is_announced() {
        let pause = Duration::ZERO;
        let broken = || "x".into();
        let errors = [
            LlmError::Deadline { after: pause },
            LlmError::Unreachable(broken()),
            LlmError::Broken(broken()),
            LlmError::Redirected(StatusCode::FOUND),
            LlmError::Status { status: StatusCode::NOT_FOUND, wait: None },
            LlmError::TooLarge { limit: 1 },
            LlmError::Malformed { what: "answer", reason: "x" },
            LlmError::Declined,
            LlmError::Open { pause },
            LlmError::Busy { limit: 1 },
        ];
        let outcomes = errors.iter().map(LlmOutcome::Failed);
        let outcomes = outcomes.chain([LlmOutcome::Answered { dropped: 0 }, LlmOutcome::Abandoned]);
        let labels: BTreeSet<&str> = outcomes.map(|outcome| outcome.label()).collect();
        assert_eq!(labels, LlmOutcome::LABELS.into_iter().collect());
    }
}
