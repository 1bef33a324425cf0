//! One request of each bucket, by its identity: from a slow bucket to the log lines of what was slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Name of the label that says which request it was.
pub(super) const LABEL: &str = "request_id";

/// Characters that the labels of an exemplar may have together, names and values.
/// Source: OpenMetrics 1.0, *Exemplars*.
const LONGEST: usize = 128;

/// A request that fell into a bucket.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exemplar {
    pub(super) request_id: Box<str>,
    pub(super) seconds: f64,
    /// Since the epoch.
    pub(super) at: Duration,
}

/// Those of one series, by bucket.
#[derive(Debug)]
pub struct SeriesExemplars {
    wanted: Arc<AtomicBool>,
    buckets: &'static [f64],
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The second of the latest one, since the epoch: one a second is enough, and costs the others nothing.
    second: AtomicU64,
    latest: Mutex<Option<Exemplar>>,
}

impl SeriesExemplars {
    /// Takes note of a request that took so many seconds and is answered now.
    pub fn observe(&self, seconds: f64, now: impl FnOnce() -> SystemTime, request_id: &str) {
        if !self.wanted.load(Ordering::Relaxed) || LABEL.len() + request_id.len() > LONGEST {
            return;
        }
        let at = now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let slot = &self.slots[self.buckets.partition_point(|bound| *bound < seconds)];
        if slot.second.swap(at.as_secs(), Ordering::Relaxed) != at.as_secs() {
            *slot.latest.lock() = Some(Exemplar { request_id: request_id.into(), seconds, at });
        }
    }

    /// The latest in the bucket that ends at `bound`, which may be infinite.
    pub(super) fn latest(&self, bound: f64) -> Option<Exemplar> {
        self.slots[self.buckets.partition_point(|other| *other < bound)].latest.lock().clone()
    }
}

/// Those of a histogram by one label. Nothing is kept until somebody asked for them.
#[derive(Debug)]
pub struct Exemplars {
    wanted: Arc<AtomicBool>,
    buckets: &'static [f64],
    series: Mutex<BTreeMap<Box<str>, Arc<SeriesExemplars>>>,
}

impl Exemplars {
    /// Of a histogram with these upper bounds, ascending.
    pub(super) fn new(buckets: &'static [f64]) -> Self {
        Self { wanted: Arc::default(), buckets, series: Mutex::default() }
    }

    /// Those of the series with this label.
    pub fn of(&self, label: &str) -> Arc<SeriesExemplars> {
        let made = || {
            let slots = (0..=self.buckets.len()).map(|_| Slot::default()).collect();
            Arc::new(SeriesExemplars { wanted: Arc::clone(&self.wanted), buckets: self.buckets, slots })
        };
        Arc::clone(self.series.lock().entry(label.into()).or_insert_with(made))
    }

    /// Keeps them from now on.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_has_its_latest() {
        let exemplars = Exemplars::new(&[0.1, 1.0]);
        let series = exemplars.of("/v1/tools");
        let observe = |seconds: f64, at: u64, id: &str| {
            series.observe(seconds, || UNIX_EPOCH + Duration::from_secs(at), id);
        };
        let latest = |bound: f64| exemplars.of("/v1/tools").latest(bound).map(|exemplar| exemplar.request_id);
        observe(0.1, 1, "unasked");
        assert_eq!(latest(0.1), None);
        exemplars.want();
        for (seconds, at, id) in [(0.1, 1, "fast"), (0.05, 1, "same second"), (0.2, 1, "middle"), (1.5, 1, "slow")] {
            observe(seconds, at, id);
        }
        observe(9.0, 2, "slower");
        observe(9.0, 3, &"x".repeat(LONGEST));
        for (bound, id) in [(0.1, "fast"), (1.0, "middle"), (f64::INFINITY, "slower")] {
            assert_eq!(latest(bound).as_deref(), Some(id), "{bound}");
        }
        assert_eq!(exemplars.of("/v1/other").latest(0.1), None);
    }
}
