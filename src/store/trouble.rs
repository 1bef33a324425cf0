//! Why nothing can be stored. On a full disk some writes work and others do not, many times a second; who asks is told
//! how it is at that moment, and the log tells the beginning and the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

/// It is over once everything has worked for so long.
const SETTLED: Duration = Duration::from_secs(5);

/// Why nothing can be stored, if so.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    now: ArcSwapOption<String>,
    /// No record is taken, either.
    refuses_records: AtomicBool,
    told: Mutex<Told>,
}

/// Reasons that are told at most until it is over.
const REASONS: usize = 8;

/// What the log was told since it began, and when it went wrong last.
#[derive(Debug, Default)]
struct Told {
    reasons: Vec<String>,
    last: Option<Instant>,
}

/// What the log is to be told.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Began,
    Ended,
}

impl Told {
    fn hear(&mut self, trouble: Option<&str>, now: Instant) -> Option<News> {
        let Some(reason) = trouble else {
            let is_over = self.last.is_some_and(|last| now.saturating_duration_since(last) >= SETTLED);
            return is_over.then(|| {
                *self = Self::default();
                News::Ended
            });
        };
        self.last = Some(now);
        let is_new = self.reasons.len() < REASONS && !self.reasons.iter().any(|told| told == reason);
        is_new.then(|| {
            self.reasons.push(reason.to_owned());
            News::Began
        })
    }
}

impl Trouble {
    pub(super) fn get(&self) -> Option<String> {
        self.now.load().as_deref().cloned()
    }

    pub(super) fn is_some(&self) -> bool {
        self.now.load().is_some()
    }

    /// Are records kept all the same?
    pub(super) fn takes_records(&self) -> bool {
        !self.refuses_records.load(Ordering::Relaxed)
    }

    /// Nothing was written since the last report: how long ago what failed did is looked at.
    pub(super) fn look_again(&self) {
        self.tell(self.get().as_deref());
    }

    fn tell(&self, trouble: Option<&str>) {
        match self.told.lock().hear(trouble, Instant::now()) {
            Some(News::Began) => tracing::error!(reason = trouble, "nothing can be stored"),
            Some(News::Ended) => tracing::info!("the store works again"),
            None => {}
        }
    }

    /// What came of a write: why not all can be stored, or nothing, and whether records can.
    pub(super) fn report(&self, trouble: Option<String>, takes_records: bool) {
        self.refuses_records.store(!takes_records, Ordering::Relaxed);
        self.tell(trouble.as_deref());
        if trouble.is_some() || self.is_some() {
            self.now.store(trouble.map(Arc::new));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports at tenths of a second, and compares what the log is told.
    fn check(reports: &[(u64, Option<&str>, Option<News>)]) {
        let (start, mut told) = (Instant::now(), Told::default());
        for (tenths, trouble, expected) in reports {
            let heard = told.hear(*trouble, start + Duration::from_millis(100 * tenths));
            assert_eq!(heard, *expected, "{trouble:?} at {tenths}");
        }
    }

    #[test]
    fn what_comes_and_goes_is_told_once() {
        let full = Some("full");
        check(&[(0, None, None), (1, full, Some(News::Began)), (2, None, None), (3, full, None), (4, None, None)]);
        check(&[(0, full, Some(News::Began)), (1, None, None), (51, None, Some(News::Ended)), (52, None, None)]);
        check(&[(0, full, Some(News::Began)), (40, full, None), (51, None, None), (90, None, Some(News::Ended))]);
        check(&[
            (0, full, Some(News::Began)),
            (1, Some("gone"), Some(News::Began)),
            (2, full, None),
            (3, Some("gone"), None),
        ]);
        let reasons: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let mut told = Told::default();
        let began = reasons.iter().filter(|reason| told.hear(Some(reason), Instant::now()).is_some()).count();
        assert_eq!(began, REASONS);
    }
}
