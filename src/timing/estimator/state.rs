//! What is learnt, by whom it is about: a key, a tool, or all keys of the daemon.

use std::sync::Arc;

use super::Tuning;
use super::conformal::Offsets;
use super::errors::Errors;
use super::histogram::Fading;
use super::last::Last;
use super::location::{Recent, Slow};
use super::regression::Regression;
use super::residuals::Residuals;
use super::sizes::{Sizes, Usual};
use super::survival::Durations;
use super::weights::{CLASSES, Evidence, Experience, WeightTable};
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
pub(crate) struct KeyState {
    /// Calls learnt from that ended.
    pub(crate) calls: u32,
    /// Calls learnt from that were given up.
    pub(crate) given_up: u32,
    /// After the last call that ended, do its calls lie elsewhere than most of its history?
    pub(crate) is_moving: bool,
    /// Calls recorded in its lifetime, which may be more.
    pub(crate) samples: u64,
    pub(crate) slow: Slow,
    pub(crate) recent: Recent,
    pub(crate) last: Last,
    pub(crate) usual: Usual,
    pub(crate) sizes: Sizes,
    pub(crate) evidence: Evidence,
    pub(crate) offsets: Offsets,
    pub(crate) errors: Errors,
    pub(crate) durations: Durations,
}

impl KeyState {
    /// Learns a call at `ln`, its covariates' shift taken off, that came `deviation` from where it was expected.
    /// `spreads` are those of the key and of its tool.
    pub(crate) fn count(
        &mut self,
        ln: f64,
        deviation: f64,
        covariates: &Covariates,
        (spread, tool_spread): (f64, f64),
        tuning: Tuning,
    ) {
        if self.calls == 0 {
            self.slow = Slow::at(ln, tool_spread);
        } else {
            // How far a key that moves is from where it was says nothing of how far its calls scatter.
            let is_elsewhere = self.is_moving && tuning.is_refined;
            let deviation = if is_elsewhere { ln - self.recent.median(self.calls) } else { deviation };
            self.slow.follow(ln, deviation, spread, f64::from(self.calls));
        }
        self.last.push(ln, self.learnt());
        self.recent.push(ln, self.calls);
        self.durations.add(ln, tuning.key_fading);
        self.calls = self.calls.saturating_add(1);
        self.recorded(covariates);
    }

    /// Takes the place of the last calls for the key's own.
    pub(crate) fn settle(&mut self) {
        if let Some(recent) = self.recent.sorted(self.calls) {
            let middle = recent[recent.len() / 2];
            let deviations: f64 = recent.iter().map(|ln| (ln - middle).abs()).sum();
            self.slow = Slow::at(middle, deviations / (recent.len() - 1) as f64);
        }
    }

    /// Learns a call that was given up at `ln` and would probably have ended at `end`, its covariates' shift taken off.
    pub(crate) fn give_up(&mut self, ln: f64, end: f64, covariates: &Covariates, tuning: Tuning) {
        self.last.push(end, self.learnt());
        self.durations.add_given_up(ln, tuning.key_fading);
        self.given_up = self.given_up.saturating_add(1);
        self.recorded(covariates);
    }

    fn recorded(&mut self, covariates: &Covariates) {
        self.usual.follow(covariates, COVARIATE_GAIN);
        self.sizes.push(covariates, &self.usual);
        self.samples = self.samples.saturating_add(1);
    }

    /// Calls learnt from, however they came out.
    pub(crate) fn learnt(&self) -> u32 {
        self.calls.saturating_add(self.given_up)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.durations.heap_bytes() + self.sizes.heap_bytes()
    }
}

/// What is learnt of a tool over its modes.
#[derive(Debug, Clone)]
pub(crate) struct ToolState {
    /// Calls learnt from that ended.
    pub(crate) calls: f64,
    /// Of ln(ms).
    pub(crate) mean: f64,
    /// Mean deviation, over so many deviations.
    pub(crate) spread: f64,
    pub(crate) deviations: f64,
    pub(crate) usual: Usual,
    pub(crate) regression: Regression,
    pub(crate) offsets: Offsets,
    pub(crate) errors: Errors,
    pub(crate) durations: Durations,
}

impl Default for ToolState {
    fn default() -> Self {
        Self {
            calls: 0.0,
            mean: 0.0,
            spread: ASSUMED_SPREAD,
            deviations: 0.0,
            usual: Usual::default(),
            regression: Regression::default(),
            offsets: Offsets::default(),
            errors: Errors::default(),
            durations: Durations::default(),
        }
    }
}

impl ToolState {
    /// Learns a call at `ln`.
    pub(crate) fn count(&mut self, ln: f64, covariates: &Covariates) {
        let gain = (1.0 / (self.calls + 1.0)).max(TOOL_GAIN);
        self.durations.add(ln, Fading::TOOL);
        self.usual.follow(covariates, TOOL_GAIN);
        self.mean += gain * (ln - self.mean);
        self.calls += 1.0;
    }

    /// Learns a call that was given up at `ln`.
    pub(crate) fn give_up(&mut self, ln: f64, covariates: &Covariates) {
        self.durations.add_given_up(ln, Fading::TOOL);
        self.usual.follow(covariates, TOOL_GAIN);
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
    pub(crate) weights: WeightTable,
    /// Mean deviation, in ln(ms).
    pub(crate) spread: f64,
    pub(crate) errors: Errors,
    pub(crate) durations: Durations,
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
        Self {
            weights: WeightTable::default(),
            spread: ASSUMED_SPREAD,
            errors: Errors::default(),
            durations: Durations::default(),
            residuals,
        }
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
