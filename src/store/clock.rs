//! The moments that writes bear.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A writer's clock: microseconds since the epoch, never the same twice.
#[derive(Debug, Default)]
pub(super) struct Clock(i64);

impl Clock {
    /// Now, or as soon after the moment before as can be told.
    pub(super) fn tick(&mut self) -> i64 {
        self.0 = (now().as_micros() as i64).max(self.0 + 1);
        self.0
    }

    /// It is after `moment`.
    pub(super) fn pass(&mut self, moment: i64) {
        self.0 = self.0.max(moment);
    }

    /// The moment that it said last.
    pub(super) fn last(&self) -> i64 {
        self.0
    }
}

/// Since the epoch.
pub(super) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
