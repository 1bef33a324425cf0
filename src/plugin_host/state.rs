//! What is known of a library, for whoever looks at it: state, figures, faults.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use prometheus::{Histogram, IntCounter};

use super::library::Hash;
use super::note::Identity;
use super::wire::Hello;
use crate::telemetry::Metrics;

/// How a library is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its first worker is starting.
    Starting,
    /// It answers.
    Ready,
    /// It failed so many times within a minute, and is started again.
    Backoff(usize),
    /// It failed too often, and is put aside for a while.
    Quarantined,
    /// It must not be run, or is no library.
    Refused,
}

impl State {
    /// All names, for metrics.
    pub const NAMES: [&'static str; 5] = ["starting", "ready", "backoff", "quarantined", "refused"];

    /// The name on the wire and on metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Backoff(_) => "backoff",
            Self::Quarantined => "quarantined",
            Self::Refused => "refused",
        }
    }

    /// Has the start come to an end, good or bad?
    pub(super) fn is_settled(self) -> bool {
        matches!(self, Self::Ready | Self::Quarantined | Self::Refused)
    }
}

/// A fault, and when it was.
#[derive(Debug, Clone, PartialEq)]
pub struct PastFault {
    /// Its label.
    pub kind: &'static str,
    /// What happened.
    pub message: String,
    /// When.
    pub at: SystemTime,
    /// The content that was at fault.
    pub hash: Hash,
}

/// A library as it is now.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its id; its file's name as long as its note is not known.
    pub id: String,
    /// Where its file is.
    pub path: std::path::PathBuf,
    /// How it is.
    pub state: State,
    /// What the file says it is, if it can be run.
    pub file: Option<(Hash, Identity)>,
    /// What is serving, and under which sum; another than the file's while a new version starts or has failed.
    pub serving: Option<(Hash, Hello)>,
    /// The process that serves.
    pub pid: Option<u32>,
    /// Why the file is not run, if so.
    pub refusal: Option<String>,
    /// The last fault.
    pub last_fault: Option<PastFault>,
    /// When it is tried again, if it is put aside.
    pub retry_in: Option<Duration>,
    /// Workers started again, for whatever reason.
    pub restarts: u64,
}

/// How a call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With proposals, or none.
    Answered,
    /// With the library's own error.
    Failed,
    /// Not in time.
    Timeout,
    /// Not asked: earlier calls took all the time.
    Busy,
    /// Not: the library or its worker is at fault.
    Fault,
    /// Not asked: it is not ready.
    Unavailable,
}

impl Outcome {
    /// In the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Answered, Self::Failed, Self::Timeout, Self::Busy, Self::Fault, Self::Unavailable];

    /// The label on metrics and the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Fault => "fault",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The figures of one library, counted where calls are made.
pub struct Figures {
    calls: [IntCounter; Outcome::ALL.len()],
    duration: Histogram,
    /// Answered calls by the logarithm of their microseconds, in steps of a fifth.
    latencies: [AtomicU64; BUCKETS],
}

/// Up to some 60 seconds.
const BUCKETS: usize = 100;

/// From one bucket to the next.
const STEP: f64 = 1.2;

impl std::fmt::Debug for Figures {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(Outcome::ALL.map(|outcome| (outcome, self.calls(outcome)))).finish()
    }
}

impl Figures {
    pub(super) fn new(metrics: &Metrics, id: &str) -> Self {
        Self {
            calls: Outcome::ALL.map(|outcome| metrics.plugins.calls.with_label_values(&[id, outcome.as_str()])),
            duration: metrics.plugins.call_duration.with_label_values(&[id]),
            latencies: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub(super) fn count(&self, outcome: Outcome, took: Duration) {
        self.calls[outcome as usize].inc();
        if outcome == Outcome::Unavailable {
            return;
        }
        self.duration.observe(took.as_secs_f64());
        if outcome == Outcome::Answered {
            let bucket = (took.as_secs_f64() * 1e6).max(1.0).log(STEP) as usize;
            self.latencies[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls that came out like this.
    pub fn calls(&self, outcome: Outcome) -> u64 {
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
        let figures = Figures::new(&Metrics::new().unwrap(), "x");
        assert_eq!(figures.latency_us(0.5), None);
        for micros in 1..=1000 {
            figures.count(Outcome::Answered, Duration::from_micros(micros));
        }
        figures.count(Outcome::Timeout, Duration::from_secs(1));
        for (share, true_value) in [(0.5, 500.0), (0.99, 990.0), (0.001, 1.0)] {
            let told = figures.latency_us(share).unwrap() as f64;
            assert!((true_value..=true_value * STEP * STEP).contains(&told), "{share}: {told}");
        }
        assert_eq!((figures.calls(Outcome::Answered), figures.calls(Outcome::Timeout)), (1000, 1));
    }
}
