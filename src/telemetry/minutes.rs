//! Calls of the last hour by minute, since the start: what no row keeps.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Minutes that are kept.
const KEPT: usize = 60;

/// Calls that were recorded in one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minute {
    /// Minutes since the epoch.
    pub number: u64,
    pub calls: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Of these, those that their callers gave up on.
    pub timeouts: u64,
}

impl Minute {
    /// When it began.
    pub fn began(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.number * 60)
    }
}

/// The last hour.
#[derive(Debug, Default)]
pub struct Minutes(Mutex<VecDeque<Minute>>);

impl Minutes {
    /// Takes note of a call that was recorded at `now`.
    pub fn called(&self, now: SystemTime, outcome: &str) {
        let number = number(now);
        let kept = &mut *self.0.lock();
        if kept.back().is_none_or(|last| last.number < number) {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(Minute { number, ..Minute::default() });
        }
        // A clock that was set back counts for the minute that was the last.
        if let Some(last) = kept.back_mut() {
            last.calls += 1;
            last.errors += u64::from(outcome == "error");
            last.timeouts += u64::from(outcome == "timeout");
        }
    }

    /// Those of the hour before `now` in which something was recorded, oldest first.
    pub fn of_late(&self, now: SystemTime) -> Vec<Minute> {
        let oldest = number(now).saturating_sub(KEPT as u64 - 1);
        self.0.lock().iter().filter(|minute| minute.number >= oldest).copied().collect()
    }
}

fn number(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_minute_and_forgotten_after_an_hour() {
        let minutes = Minutes::default();
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        for (seconds, outcome) in [(0, "success"), (59, "error"), (60, "timeout"), (30, "success")] {
            minutes.called(at(seconds), outcome);
        }
        let first = Minute { number: 0, calls: 2, errors: 1, timeouts: 0 };
        let second = Minute { number: 1, calls: 2, errors: 0, timeouts: 1 };
        assert_eq!(minutes.of_late(at(61)), [first, second]);
        assert_eq!(minutes.of_late(at(60 * 60)), [second]);
        for minute in 2..200 {
            minutes.called(at(60 * minute), "success");
        }
        assert_eq!(minutes.of_late(at(60 * 199)).len(), KEPT);
    }
}
