//! What is known of a library, for whoever looks at it: state, figures, faults.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use prometheus::{Histogram, IntCounter};

use super::elf_note::Identity;
use super::wire::Hello;
use crate::strict::Word;
use crate::sum::Sum;
use crate::telemetry::Metrics;
use crate::telemetry::events::PluginState;

/// How a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its first worker is starting.
    Starting,
    Ready,
    /// It failed so many times within a minute, and is started again.
    Backoff(usize),
    /// It failed too often, and is put aside for a while.
    Quarantined,
    /// It must not be run, or is no library.
    Refused,
}

impl State {
    /// The same, as metrics name it.
    pub(super) fn label(self) -> PluginState {
        match self {
            Self::Starting => PluginState::Starting,
            Self::Ready => PluginState::Ready,
            Self::Backoff(_) => PluginState::Backoff,
            Self::Quarantined => PluginState::Quarantined,
            Self::Refused => PluginState::Refused,
        }
    }

    /// The name on the wire and on metrics.
    pub fn as_str(self) -> &'static str {
        self.label().as_str()
    }

    /// Failures of late, if it is started again for them.
    pub(super) fn failures(self) -> usize {
        if let Self::Backoff(failures) = self { failures } else { 0 }
    }

    /// Has the start come to an end, good or bad?
    pub(super) fn is_settled(self) -> bool {
        matches!(self, Self::Ready | Self::Quarantined | Self::Refused)
    }
}

/// A fault, and when it was.
#[derive(Debug, Clone, PartialEq)]
pub struct PastFault {
    pub kind: &'static str,
    pub message: String,
    pub at: SystemTime,
    /// The content that was at fault.
    pub hash: Sum,
    /// Its version, if its note told.
    pub version: Option<String>,
}

/// A library as it is now.
#[derive(Debug, Clone)]
pub struct LibraryStatus {
    /// Its id; its file's name as long as its note is not known.
    pub id: String,
    /// Where its file is.
    pub path: std::path::PathBuf,
    pub state: State,
    /// What the file says it is, if it can be run.
    pub file: Option<(Sum, Identity)>,
    /// What is serving, and under which sum; another than the file's while a new version starts or has failed.
    pub serving: Option<(Sum, Hello)>,
    /// The process that serves.
    pub pid: Option<u32>,
    /// Why the file is not run, if so.
    pub refusal: Option<String>,
    pub last_fault: Option<PastFault>,
    /// When it is tried again, if it is put aside.
    pub retry_in: Option<Duration>,
    /// Workers started again, for whatever reason.
    pub restarts: u64,
}

impl LibraryStatus {
    /// Why what the file holds does not serve although it was tried, while an earlier content does.
    pub fn update_refused(&self) -> Option<&str> {
        let (serving, _) = self.serving.as_ref()?;
        if let Some(refusal) = &self.refusal {
            return Some(refusal);
        }
        let (file, _) = self.file.as_ref().filter(|(file, _)| file != serving)?;
        self.last_fault.as_ref().filter(|fault| fault.hash == *file).map(|fault| fault.message.as_str())
    }
}

/// How many libraries are how.
#[derive(Debug, Clone, Copy, Default)]
pub struct LibraryCounts {
    pub ready: usize,
    /// Put aside for their faults.
    pub quarantined: usize,
    /// Whose file is not run.
    pub refused: usize,
    /// Of those that are ready, whose file holds what is refused.
    pub outdated: usize,
}

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    /// With proposals, or none.
    Answered,
    /// With the library's own error.
    Failed,
    Timeout,
    /// Not asked: earlier calls took all the time.
    Busy,
    /// Not: the library or its worker is at fault.
    #[serde(rename = "fault")]
    LibraryFault,
    /// Not asked: it is not ready.
    Unavailable,
}

/// The figures of one library, counted where calls are made.
pub struct CallFigures {
    calls: [IntCounter; CallOutcome::ALL.len()],
    duration: Histogram,
    /// Answered calls by the logarithm of their microseconds, in steps of a fifth.
    latencies: [AtomicU64; BUCKETS],
}

/// Up to some 60 seconds.
const BUCKETS: usize = 100;

/// From one bucket to the next.
const STEP: f64 = 1.2;

impl std::fmt::Debug for CallFigures {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(CallOutcome::ALL.map(|outcome| (outcome, self.calls(outcome)))).finish()
    }
}

impl CallFigures {
    pub(super) fn new(metrics: &Metrics, id: &str) -> Self {
        Self {
            calls: CallOutcome::ALL.map(|outcome| metrics.plugins.calls.with_label_values(&[id, outcome.as_str()])),
            duration: metrics.plugins.call_duration.with_label_values(&[id]),
            latencies: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub(super) fn count(&self, outcome: CallOutcome, took: Duration) {
        self.calls[outcome as usize].inc();
        if outcome == CallOutcome::Unavailable {
            return;
        }
        self.duration.observe(took.as_secs_f64());
        if outcome == CallOutcome::Answered {
            let bucket = (took.as_secs_f64() * 1e6).max(1.0).log(STEP) as usize;
            self.latencies[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls that came out like this.
    pub fn calls(&self, outcome: CallOutcome) -> u64 {
        self.calls[outcome as usize].get()
    }

    /// Microseconds within which this share of the answered calls were, to a fifth; nothing before the first.
    pub fn latency_us(&self, share: f64) -> Option<u64> {
        let counts: Vec<u64> = self.latencies.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut sum = 0;
        let bucket = counts.iter().position(|count| {
            sum += count;
            wanted > 0 && sum >= wanted
        })?;
        Some(STEP.powi(bucket as i32 + 1).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_told_to_a_fifth() {
        let figures = CallFigures::new(&Metrics::new().unwrap(), "x");
        assert_eq!(figures.latency_us(0.5), None);
        for micros in 1..=1000 {
            figures.count(CallOutcome::Answered, Duration::from_micros(micros));
        }
        figures.count(CallOutcome::Timeout, Duration::from_secs(1));
        for (share, true_value) in [(0.5, 500.0), (0.99, 990.0), (0.001, 1.0)] {
            let shown = figures.latency_us(share).unwrap() as f64;
            assert!((true_value..=true_value * STEP * STEP).contains(&shown), "{share}: {shown}");
        }
        assert_eq!((figures.calls(CallOutcome::Answered), figures.calls(CallOutcome::Timeout)), (1000, 1));
    }
}
