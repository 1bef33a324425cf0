//! What is learnt, by whom it is about: a key, a tool, or all keys of the daemon.

use std::sync::Arc;

use super::conformal::Offsets;
use super::histogram::{Fading, Histogram};
use super::location::{Recent, Slow};
use super::regression::Regression;
use super::residuals::Residuals;
use super::weights::{CLASSES, Evidence, Experience, Table};
use crate::timing::complexity::Covariates;

/// A key's usual covariates follow a call by at least this share.
const COVARIATE_GAIN: f64 = 0.02;
/// A tool's mean and usual covariates follow a call by at least this share.
const TOOL_GAIN: f64 = 0.01;
/// The spread assumed before anything was seen, in ln(ms).
const ASSUMED_SPREAD: f64 = 0.5;
/// Deviations that a tool's spread is taken over, at most.
const MOST_DEVIATIONS: f64 = 200.0;

/// What is learnt of a tool in one mode. Small, because there may be many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Key {
    /// Calls learnt from.
    pub(crate) calls: u32,
    /// Calls recorded in its lifetime, which may be more.
    pub(crate) samples: u64,
    pub(crate) slow: Slow,
    pub(crate) recent: Recent,
    /// The usual ones.
    pub(crate) covariates: Covariates,
    pub(crate) evidence: Evidence,
    pub(crate) offsets: Offsets,
    pub(crate) histogram: Histogram,
}

impl Key {
    /// Learns a call at `ln`, its covariates' shift taken off, that came `deviation` from where it was expected.
    pub(crate) fn count(&mut self, ln: f64, deviation: f64, covariates: Covariates, spread: f64, tool_spread: f64) {
        let earlier = f64::from(self.calls);
        if self.calls == 0 {
            self.slow = Slow::at(ln, tool_spread);
            self.covariates = covariates;
        } else {
            self.slow.follow(ln, deviation, spread, earlier);
            self.covariates.approach(covariates, (1.0 / (earlier + 1.0)).max(COVARIATE_GAIN));
        }
        self.recent.push(ln, self.calls);
        self.histogram.add(ln, Fading::KEY);
        self.calls = self.calls.saturating_add(1);
        self.samples = self.samples.saturating_add(1);
    }
}

/// What is learnt of a tool over its modes.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// Calls learnt from.
    pub(crate) calls: f64,
    /// Of ln(ms).
    pub(crate) mean: f64,
    /// Mean deviation, over so many deviations.
    pub(crate) spread: f64,
    pub(crate) deviations: f64,
    /// The usual ones.
    pub(crate) covariates: Covariates,
    pub(crate) regression: Regression,
    pub(crate) offsets: Offsets,
    pub(crate) histogram: Histogram,
}

impl Default for Tool {
    fn default() -> Self {
        Self {
            calls: 0.0,
            mean: 0.0,
            spread: ASSUMED_SPREAD,
            deviations: 0.0,
            covariates: Covariates::default(),
            regression: Regression::default(),
            offsets: Offsets::default(),
            histogram: Histogram::default(),
        }
    }
}

impl Tool {
    /// Learns a call at `ln`.
    pub(crate) fn count(&mut self, ln: f64, covariates: Covariates) {
        let gain = (1.0 / (self.calls + 1.0)).max(TOOL_GAIN);
        self.histogram.add(ln, Fading::TOOL);
        self.covariates.approach(covariates, gain);
        self.mean += gain * (ln - self.mean);
        self.calls += 1.0;
    }

    /// Learns how far a call came from where its key expected it, `scale` being what was expected of the tool.
    pub(crate) fn scatter(&mut self, deviation: f64, scale: f64) {
        self.deviations = (self.deviations + 1.0).min(MOST_DEVIATIONS);
        let gain = (1.0 / self.deviations).max(0.01);
        self.spread += gain * (deviation.abs().min(5.0 * scale) - self.spread);
    }
}

/// What is learnt over all keys.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) weights: Table,
    /// Mean deviation, in ln(ms).
    pub(crate) spread: f64,
    pub(crate) histogram: Histogram,
    /// Deviations from the slow location and from the median, by experience.
    residuals: [Arc<(Residuals, Residuals)>; CLASSES],
}

impl Default for Shared {
    fn default() -> Self {
        let residuals = std::array::from_fn(|class| {
            // A key's first calls land anywhere, later ones near.
            let width = match class {
                0 => 3.0,
                1 | 2 => 1.3,
                _ => 1.0,
            };
            Arc::new((Residuals::assuming(width), Residuals::assuming(width)))
        });
        Self { weights: Table::default(), spread: ASSUMED_SPREAD, histogram: Histogram::default(), residuals }
    }
}

impl Shared {
    /// The pools for keys of that experience: around the slow location, and around the median.
    pub(crate) fn residuals(&self, experience: Experience) -> (&Residuals, &Residuals) {
        let (slow, recent) = &*self.residuals[experience.index()];
        (slow, recent)
    }

    pub(crate) fn residuals_mut(&mut self, experience: Experience) -> (&mut Residuals, &mut Residuals) {
        let (slow, recent) = Arc::make_mut(&mut self.residuals[experience.index()]);
        (slow, recent)
    }

    /// Learns how far a call came from where its key expected it.
    pub(crate) fn scatter(&mut self, deviation: f64) {
        self.spread += 0.003 * (deviation.abs().min(3.0) - self.spread);
    }
}
