//! How often a library may fail: a failure is forgiven at once, the third within a minute is not for a while.
//!
//! Pure: the clock comes in. Kept by the library's content, so a mended file starts afresh and one that comes back does
//! not. Nothing is for ever: one client's poisonous request must not disable a rule for all, so after a growing time
//! the library is tried again, on probation.

use std::time::{Duration, Instant};

/// Failures are counted together within this time.
const WINDOW: Duration = Duration::from_secs(60);

/// So many failures within [`WINDOW`] are too many.
const TOO_MANY: usize = 3;

/// Before the second start within the window; the first is made at once.
const SECOND_START: Duration = Duration::from_millis(100);

/// The first quarantine; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(30);

const LONGEST: Duration = Duration::from_secs(60 * 60);

/// A library that held out for so long after a quarantine is as good as any other.
const PROBATION: Duration = Duration::from_secs(10 * 60);

/// The failures of one content.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    failures: Vec<Instant>,
    quarantines: u32,
    until: Option<Instant>,
}

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is started again after this time; the count of failures within the window.
    Backoff(usize, Duration),
    /// It is put aside for this time.
    Quarantine(Duration),
}

impl Record {
    pub(super) fn fail(&mut self, now: Instant) -> Verdict {
        self.failures.retain(|&failure| now.duration_since(failure) < WINDOW);
        self.failures.push(now);
        let on_probation = self.until.is_some_and(|until| now.saturating_duration_since(until) < PROBATION);
        if self.failures.len() >= TOO_MANY || on_probation {
            if !on_probation {
                self.quarantines = 0;
            }
            let time = LONGEST.min(FIRST * 2u32.saturating_pow(self.quarantines.min(16)));
            self.quarantines += 1;
            self.until = Some(now + time);
            self.failures.clear();
            return Verdict::Quarantine(time);
        }
        let count = self.failures.len();
        Verdict::Backoff(count, if count == 1 { Duration::ZERO } else { SECOND_START })
    }

    /// When it may be tried again, if it is put aside at `now`.
    pub(super) fn put_aside_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|&until| until > now)
    }

    /// Is there nothing left to hold against it?
    pub(super) fn is_clean(&self, now: Instant) -> bool {
        self.failures.iter().all(|&failure| now.saturating_duration_since(failure) >= WINDOW)
            && self.until.is_none_or(|until| now.saturating_duration_since(until) >= PROBATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails at each second, and compares the verdicts.
    fn check(failures: &[(u64, Verdict)]) {
        let start = Instant::now();
        let mut record = Record::default();
        for &(second, expected) in failures {
            assert_eq!(record.fail(start + Duration::from_secs(second)), expected, "at {second} s of {failures:?}");
        }
    }

    const FIRST_FAILURE: Verdict = Verdict::Backoff(1, Duration::ZERO);
    const SECOND_FAILURE: Verdict = Verdict::Backoff(2, SECOND_START);

    fn aside(seconds: u64) -> Verdict {
        Verdict::Quarantine(Duration::from_secs(seconds))
    }

    #[test]
    fn the_third_failure_within_a_minute_is_one_too_many() {
        check(&[(0, FIRST_FAILURE), (30, SECOND_FAILURE), (59, aside(30))]);
        check(&[(0, FIRST_FAILURE), (30, SECOND_FAILURE), (60, SECOND_FAILURE), (61, aside(30))]);
        check(&[(0, FIRST_FAILURE), (100, FIRST_FAILURE), (200, FIRST_FAILURE)]);
    }

    #[test]
    fn each_further_quarantine_is_longer() {
        let mut failures = vec![(0, FIRST_FAILURE), (0, SECOND_FAILURE), (0, aside(30))];
        failures.extend([(30, aside(60)), (95, aside(120)), (300, aside(240)), (600, aside(480))]);
        failures.extend([(1100, aside(960)), (2100, aside(1920)), (4100, aside(3600)), (8000, aside(3600))]);
        check(&failures);
        // Who held out for ten minutes is forgiven.
        check(&[(0, FIRST_FAILURE), (0, SECOND_FAILURE), (0, aside(30)), (630, FIRST_FAILURE)]);
    }

    /// Whatever fails at each start costs an hour's start after the first hours, and nothing grows.
    #[test]
    fn ninety_days_of_failures_are_few_starts() {
        let (start, mut record) = (Instant::now(), Record::default());
        let (mut now, mut starts) = (start, 0);
        while now < start + Duration::from_secs(90 * 24 * 60 * 60) {
            starts += 1;
            now += match record.fail(now) {
                Verdict::Backoff(_, time) | Verdict::Quarantine(time) => time,
            };
            assert!(record.failures.len() <= TOO_MANY);
        }
        assert!((90 * 24..90 * 24 + 12).contains(&starts), "{starts}");
    }

    #[test]
    fn a_quarantine_ends() {
        let start = Instant::now();
        let mut record = Record::default();
        assert!(record.is_clean(start));
        for _ in 0..TOO_MANY {
            record.fail(start);
        }
        assert_eq!(record.put_aside_until(start), Some(start + FIRST));
        assert_eq!(record.put_aside_until(start + FIRST), None);
        assert!(!record.is_clean(start + FIRST) && record.is_clean(start + FIRST + PROBATION));
    }
}
