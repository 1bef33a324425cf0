//! The moments that writes bear.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A writer's clock: microseconds since the epoch, never the same twice.
#[derive(Debug, Default)]
pub(super) struct Clock {
    last: i64,
    /// How far this machine's is ahead of the one that it goes by.
    ahead: i64,
}

impl Clock {
    /// It goes by another machine's clock, which says `now`.
    pub(super) fn by(now_us: i64) -> Self {
        Self { last: 0, ahead: now().as_micros() as i64 - now_us }
    }

    /// Now, or as soon after the moment before as can be told.
    pub(super) fn tick(&mut self) -> i64 {
        self.last = (now().as_micros() as i64 - self.ahead).max(self.last + 1);
        self.last
    }

    /// It is after `moment`.
    pub(super) fn pass(&mut self, moment: i64) {
        self.last = self.last.max(moment);
    }

    /// The moment that it said last.
    pub(super) fn last(&self) -> i64 {
        self.last
    }
}

/// Since the epoch.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
