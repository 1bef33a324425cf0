//! What a plan will take: several calls, one after the other.
//!
//! Quantiles do not add up: ten steps that each exceed their P95 one time in twenty all but never do so together.
//! Distributions do, by convolution, on the assumption that steps are slow independently of each other.

use super::estimator::grid::{Distribution, ln_ms, whole_ms};
use super::forecast::{Basis, Confidence, Forecast, Quantiles, timeout_probability};

/// The total of a plan's steps.
#[derive(Debug, Clone)]
pub struct Plan {
    estimated_ms: u64,
    quantiles: Quantiles,
    distribution: Distribution,
    confidence: Confidence,
    basis: Basis,
    samples: u64,
}

impl Plan {
    /// The total of `steps`; there is none of no steps.
    pub fn of<'f>(steps: impl IntoIterator<Item = &'f Forecast>) -> Option<Self> {
        let mut steps = steps.into_iter();
        let first = steps.next()?;
        let mut distribution = first.distribution().clone();
        let mut added = first.estimated_duration_ms();
        let mut is_cold = is_cold(first);
        let mut is_single = true;
        let (mut confidence, mut basis, mut samples) = (first.confidence(), first.basis(), first.samples());
        for step in steps {
            confidence = confidence.min(step.confidence());
            basis = basis.max(step.basis());
            samples = samples.min(step.samples());
            distribution = distribution.plus(step.distribution());
            added = added.saturating_add(step.estimated_duration_ms());
            is_cold |= self::is_cold(step);
            is_single = false;
        }
        // An estimate that comes from a document is no property of the distribution; the plan's keeps to it.
        let estimated_ms = if is_cold || is_single { added } else { whole_ms(distribution.densest()) };
        let quantiles = match Quantiles::of(&distribution) {
            // One step is what was said of it.
            _ if is_single => first.quantiles(),
            total if is_cold => total.around(ln_ms(added)),
            total => total,
        };
        Some(Self { estimated_ms, quantiles, distribution, confidence, basis, samples })
    }

    /// What [`Plan::estimated_duration_ms`] says of `steps`, without adding up distributions where it does not need them; 0 of
    /// no steps.
    pub fn estimate_of(steps: &[Forecast]) -> u64 {
        let is_sum = steps.len() == 1 || steps.iter().any(is_cold);
        let plan = if is_sum { None } else { Self::of(steps) };
        let sum = || steps.iter().map(Forecast::estimated_duration_ms).fold(0, u64::saturating_add);
        plan.map_or_else(sum, |plan| plan.estimated_ms)
    }

    /// The duration that the plan is likeliest to come within 20 % of, in ms; the sum of the steps' if one of them has
    /// no history.
    pub fn estimated_duration_ms(&self) -> u64 {
        self.estimated_ms
    }

    /// How far the total can be relied on: no further than its least reliable step.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What the total rests on: what its step that is known least rests on.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Calls that were recorded of the step that was recorded least.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The distribution of the total.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// P05, P50, P90 and P95 of the total, in ms.
    pub fn quantiles_ms(&self) -> [u64; 4] {
        self.quantiles.whole_ms()
    }

    /// The probability that the total exceeds `limit_ms`.
    pub fn timeout_probability(&self, limit_ms: u64) -> f64 {
        timeout_probability(&self.distribution, limit_ms)
    }
}

fn is_cold(step: &Forecast) -> bool {
    matches!(step.basis(), Basis::Hint | Basis::Default)
}
