//! How far the last calls came from the middle of their forecasts: those of a key, of a tool, of all keys. One that
//! was given up counts with the middle of what its forecast held possible beyond.

/// What is left of the mean after the next call.
const KEPT: f32 = 0.8;

/// Errors of P50, in ln(ms): above 0 where the call took longer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Errors {
    /// Of the last call; 0 before the first.
    pub(crate) last: f32,
    /// Of the last calls, the more the later; from 0.
    pub(crate) mean: f32,
}

impl Errors {
    /// Adds that of a call.
    pub(crate) fn add(&mut self, error: f64) {
        self.last = error as f32;
        self.mean = KEPT * self.mean + (1.0 - KEPT) * self.last;
    }
}
