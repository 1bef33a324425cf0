//! What a correction is read off.

use super::super::Location;
use super::super::errors::Errors;
use super::super::grid::Distribution;

/// How many there are.
pub(crate) const FEATURES: usize = 22;
/// The narrowest interval that distances are measured in, in ln.
const NARROWEST: f64 = 0.1;

/// A forecast before it is corrected, relative to its middle and in units of its own interval: what is learnt of
/// forecasts of all durations holds for one of any.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Features([f32; FEATURES]);

/// What they are taken of.
pub(crate) struct Readings<'a> {
    /// The mixture of all experts.
    pub(crate) mixture: &'a Distribution,
    /// What the key's history says alone.
    pub(crate) history: &'a Distribution,
    /// The key's last three calls, the latest first, in ln(ms), shifted.
    pub(crate) last: [f64; 3],
    pub(crate) location: &'a Location,
    /// Of the key, its tool, and all.
    pub(crate) errors: [Errors; 3],
}

impl Features {
    /// Their names.
    pub(crate) const NAMES: [&'static str; FEATURES] = [
        "width",
        "p05",
        "p25",
        "p75",
        "p90",
        "p95",
        "last",
        "last_but_one",
        "last_but_two",
        "recent",
        "slow",
        "history_p50",
        "history_p90",
        "spread",
        "tool_spread",
        "shift",
        "error",
        "mean_error",
        "tool_error",
        "tool_mean_error",
        "shared_error",
        "shared_mean_error",
    ];

    pub(crate) fn of(readings: &Readings<'_>) -> Self {
        let Readings { mixture, history, last, location, errors } = readings;
        let [low, middle, high] = [0.05, 0.5, 0.95].map(|level| mixture.quantile(level));
        let width = (high - low).max(NARROWEST);
        let place = |ln: f64| (ln - middle) / width;
        let quantile = |level: f64| place(mixture.quantile(level));
        let [key, tool, shared] = errors;
        let features = [
            width,
            place(low),
            quantile(0.25),
            quantile(0.75),
            quantile(0.9),
            place(high),
            place(last[0]),
            place(last[1]),
            place(last[2]),
            place(location.recent),
            place(location.slow),
            place(history.quantile(0.5)),
            place(history.quantile(0.9)),
            location.spread / width,
            location.tool_spread / width,
            location.shift / width,
            f64::from(key.last) / width,
            f64::from(key.mean) / width,
            f64::from(tool.last) / width,
            f64::from(tool.mean) / width,
            f64::from(shared.last) / width,
            f64::from(shared.mean) / width,
        ];
        Self(features.map(|feature| feature as f32))
    }

    /// In the order of [`Self::NAMES`].
    pub(crate) fn values(&self) -> &[f32; FEATURES] {
        &self.0
    }
}

#[cfg(test)]
impl From<[f32; FEATURES]> for Features {
    fn from(values: [f32; FEATURES]) -> Self {
        Self(values)
    }
}
