//! Keeps the interval honest: whatever the experts believe, calls should fall below P05 and above P95 one time in
//! twenty.
//!
//! After each call the level that is read off the distribution moves a little: outwards by .95 steps after a miss,
//! inwards by .05 steps after a hit, which is at rest when one call in twenty misses (Gibbs & Candès, "Adaptive
//! Conformal Inference Under Distribution Shift", 2021). A tool learns a slow offset for all its modes, a key a quicker
//! one of its own.

/// The share of calls that may miss on each side.
pub(crate) const MISSES: f64 = 0.05;

/// How far offsets move and reach.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The size of a step, as a probability.
    pub(crate) step: f64,
    /// Reach of the lower offset.
    pub(crate) low: (f64, f64),
    /// Reach of the upper offset.
    pub(crate) high: (f64, f64),
}

/// The pace of a tool's offsets.
pub(crate) const TOOL: Pace = Pace { step: 0.0015, low: (-0.0495, 0.04), high: (-0.1, 0.0495) };
/// The pace of a key's offsets.
pub(crate) const KEY: Pace = Pace { step: 0.02, low: (-0.0495, 0.03), high: (-0.05, 0.0495) };

/// What is added to the levels of P05 (`low`) and of P90 and P95 (`high`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offsets {
    low: f32,
    high: f32,
}

/// Levels to read P05, P90 and P95 at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels {
    pub(crate) p05: f64,
    pub(crate) p90: f64,
    pub(crate) p95: f64,
}

impl Levels {
    /// The nominal levels, moved by the offsets of the tool and of the key.
    pub(crate) fn moved_by(tool: Offsets, key: Offsets) -> Self {
        let low = f64::from(tool.low) + f64::from(key.low);
        let high = f64::from(tool.high) + f64::from(key.high);
        Self {
            p05: (0.05 + low).clamp(0.0005, 0.45),
            p90: (0.9 + high).clamp(0.52, 0.999),
            p95: (0.95 + high).clamp(0.55, 0.9995),
        }
    }
}

impl Offsets {
    /// The same without what narrows the interval.
    #[must_use]
    pub(crate) fn outwards(self) -> Self {
        Self { low: self.low.min(0.0), high: self.high.max(0.0) }
    }

    /// Learns whether a call fell below P05 or above P95: 0 or 1, or the probability where it is not known.
    pub(crate) fn learn(&mut self, pace: Pace, was_below: f64, was_above: f64) {
        let step = |missed: f64| pace.step * (MISSES - missed);
        self.low = (f64::from(self.low) + step(was_below)).clamp(pace.low.0, pace.low.1) as f32;
        self.high = (f64::from(self.high) - step(was_above)).clamp(pace.high.0, pace.high.1) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(missed: f64, expected: (f64, f64)) {
        let (mut tool, mut key) = (Offsets::default(), Offsets::default());
        for _ in 0..10_000 {
            tool.learn(TOOL, missed, missed);
            key.learn(KEY, missed, missed);
        }
        let levels = Levels::moved_by(tool, key);
        assert!((levels.p05 - expected.0).abs() < 1e-6 && (levels.p95 - expected.1).abs() < 1e-6, "{levels:?}");
        assert!(levels.p05 < 0.5 && levels.p90 <= levels.p95);
    }

    #[test]
    fn the_interval_widens_after_misses_and_narrows_after_hits() {
        check(1.0, (0.0005, 0.9995));
        check(0.0, (0.05 + 0.04 + 0.03, 0.95 - 0.1 - 0.05));
    }

    #[test]
    fn one_miss_in_twenty_is_at_rest() {
        let mut key = Offsets::default();
        for call in 0..20_000 {
            key.learn(KEY, f64::from(u8::from(call % 20 == 0)), f64::from(u8::from(call % 20 == 10)));
        }
        assert!(key.low.abs() < 0.02 && key.high.abs() < 0.02, "{key:?}");
    }
}
