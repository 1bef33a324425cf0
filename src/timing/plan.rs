//! What a plan will take: several calls, one after the other.
//!
//! Quantiles do not add up: ten steps that each exceed their P95 one time in twenty all but never do so together.
//! Distributions do, by convolution, if steps are slow independently of each other. They are not: a machine under load
//! is slow for all of them, and a session's calls are alike. So the steps of a plan share a factor, which scatters the
//! more the longer the plan is, by as much as real runs of calls did.

use std::borrow::Borrow;

use super::estimator::grid::{Distribution, ln_ms, whole_ms};
use super::forecast::{Basis, Confidence, Forecast, Quantiles, timeout_probability};

/// What the steps of a plan have in common, per e-fold of their number: the standard deviation of a normal factor, in
/// ln, and how far its centre lies below 1, since sessions repeat what is quick. Fitted on runs of 3, 10 and 30 calls
/// of public traces: nine in ten of their totals are in the interval, of tools and of model calls alike.
const COMMON_SPREAD: f64 = 0.08;
const COMMON_SHIFT: f64 = -0.028;
/// Runs of more calls were not looked at: their centre lies no lower.
const SHIFTED_TO: f64 = 30.0;
/// Steps that scatter less than this, as a standard deviation in ln, are repeated for their quickness as much less:
/// none of their calls is much quicker than the others.
const SHIFTED_FROM: f64 = 0.2;
/// P05 and P95 of a normal distribution are so many standard deviations apart.
const APART: f64 = 3.29;
/// The deciles' centres of a standard normal distribution.
const NORMAL: [f64; 10] = [-1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645];

/// The total of a plan's steps.
#[derive(Debug, Clone)]
pub struct Plan {
    estimated_ms: u64,
    quantiles: Quantiles,
    distribution: Distribution,
    confidence: Confidence,
    basis: Basis,
    samples: u64,
    fleet_samples: u64,
}

impl Plan {
    /// The total of `steps`; there is none of no steps.
    pub fn of<'f>(steps: impl IntoIterator<Item = &'f Forecast>) -> Option<Self> {
        let mut steps = steps.into_iter();
        let first = steps.next()?;
        let mut distribution = first.distribution().clone();
        let mut added = first.estimated_duration_ms();
        let mut is_cold = is_cold(first);
        let mut count = 1_u32;
        let (mut basis, mut samples, mut ended) = (first.basis(), first.samples(), first.ended());
        let mut fleet_samples = first.fleet_samples();
        let mut scatter = Scatter::default();
        scatter.add(first.distribution());
        for step in steps {
            ended = ended.min(step.ended());
            basis = basis.max(step.basis());
            samples = samples.min(step.samples());
            fleet_samples = fleet_samples.min(step.fleet_samples());
            distribution = distribution.plus(step.distribution());
            scatter.add(step.distribution());
            added = added.saturating_add(step.estimated_duration_ms());
            is_cold |= self::is_cold(step);
            count += 1;
        }
        let is_single = count == 1;
        let mut likeliest = 0.0;
        if !is_single {
            let steps = f64::from(count).ln();
            let shift = steps.min(SHIFTED_TO.ln()) * COMMON_SHIFT * (scatter.mean() / SHIFTED_FROM).min(1.0);
            // What is common scatters evenly, so that it moves no estimate.
            likeliest = distribution.densest() + shift;
            distribution = distribution.moved_by(&NORMAL.map(|z| shift + steps * COMMON_SPREAD * z));
        }
        // An estimate that comes from a document is no property of the distribution; the plan's keeps to it.
        let estimated_ms = if is_cold || is_single { added } else { whole_ms(likeliest) };
        let quantiles = match Quantiles::of(&distribution) {
            // One step is what was said of it.
            _ if is_single => first.quantiles(),
            total if is_cold => total.around(ln_ms(added)),
            total => total,
        };
        let confidence = if is_single {
            first.confidence()
        } else {
            Confidence::of(ended, &distribution, ln_ms(estimated_ms), quantiles.p50)
        };
        Some(Self { estimated_ms, quantiles, distribution, confidence, basis, samples, fleet_samples })
    }

    /// What [`Plan::estimated_duration_ms`] says of `steps`, without adding up distributions where it does not need
    /// them; 0 of no steps.
    pub fn estimate_of<F: Borrow<Forecast>>(steps: &[F]) -> u64 {
        let all = || steps.iter().map(Borrow::borrow);
        let is_sum = steps.len() == 1 || all().any(is_cold);
        let plan = if is_sum { None } else { Self::of(all()) };
        let sum = || all().map(Forecast::estimated_duration_ms).fold(0, u64::saturating_add);
        plan.map_or_else(sum, |plan| plan.estimated_ms)
    }

    /// The duration that the plan is likeliest to come within 20 % of, in ms; the sum of the steps' if one of them has
    /// no history.
    pub fn estimated_duration_ms(&self) -> u64 {
        self.estimated_ms
    }

    /// How far the total can be relied on, by its own distribution; low if a step has hardly a call that ended.
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

    /// Calls that other hosts recorded of the step that they recorded least.
    pub fn fleet_samples(&self) -> u64 {
        self.fleet_samples
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

/// How much the steps of a plan scatter, the long ones before the short ones.
#[derive(Default)]
struct Scatter {
    weighed: f64,
    weight: f64,
}

impl Scatter {
    fn add(&mut self, step: &Distribution) {
        let weight = step.quantile(0.5).exp();
        self.weighed += weight * (step.quantile(0.95) - step.quantile(0.05)) / APART;
        self.weight += weight;
    }

    /// The standard deviation of a step, in ln.
    fn mean(&self) -> f64 {
        self.weighed / self.weight
    }
}

fn is_cold(step: &Forecast) -> bool {
    matches!(step.basis(), Basis::Hint | Basis::Default)
}
