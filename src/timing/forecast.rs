//! What is said about a call to come. Every figure is read off one distribution, so no two of them contradict each
//! other.

use super::estimator::Location;
use super::estimator::conformal::Levels;
use super::estimator::correction::features::Features;
use super::estimator::experts::{EXPERTS, Panel};
use super::estimator::grid::{Distribution, WIDTH, ln_ms, whole_ms};
use super::estimator::prior::PriorSource;
use super::fleet::FleetCalls;
use super::model::Question;
use crate::strict::Word;

/// Calls of a key that ended before anything but low confidence is said of it.
const CALLS_FOR_CONFIDENCE: u32 = 5;
/// Predicted probability of landing near that confidence takes.
const CONFIDENT: f64 = 0.8;
/// What is near in any case, in ms: nobody plans by less.
const NEAR_MS: f64 = 50.0;
/// No probability of a timeout is closer to 0 or 1 than this: there is always a call that hangs.
const NEVER_SURE: f64 = 0.002;

/// How far an estimate can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Neither of the others.
    Low,
    /// At least 80 % of calls should take between half and twice the estimate.
    Medium,
    /// At least 80 % of calls should come within 20 % (or 50 ms) of the estimate.
    High,
}

impl Confidence {
    /// The word for a distribution, of an estimate and P50 at these places in ln(ms), after so many calls that ended.
    pub(super) fn of(ended: u32, distribution: &Distribution, estimate: f64, p50: f64) -> Self {
        match ended {
            CALLS_FOR_CONFIDENCE.. if within(distribution, estimate, 1.2, 0.8) >= CONFIDENT => Self::High,
            CALLS_FOR_CONFIDENCE.. if within(distribution, p50, 2.0, 0.5) >= CONFIDENT => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// What an estimate rests on, from the firmest ground to the softest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Calls of this tool in this mode.
    History,
    /// Calls of this tool in other modes.
    Tool,
    /// Calls of other hosts, while there are few of this one's.
    Fleet,
    Hint,
    Default,
}

/// How likely a call is to exceed a limit, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
pub enum Timeout {
    /// Less than 5 %.
    Unlikely,
    /// Less than 50 %.
    Possible,
    /// 50 % or more.
    Likely,
}

impl Timeout {
    /// The word for a probability.
    pub fn of(probability: f64) -> Self {
        match probability {
            ..0.05 => Self::Unlikely,
            ..0.5 => Self::Possible,
            _ => Self::Likely,
        }
    }
}

/// Four places of a distribution, in ln(ms), never falling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    /// One call in twenty is shorter.
    pub p05: f64,
    /// Every second call is shorter.
    pub p50: f64,
    /// One call in ten is longer.
    pub p90: f64,
    /// One call in twenty is longer.
    pub p95: f64,
}

impl Quantiles {
    /// Of a distribution as it stands.
    pub(super) fn of(distribution: &Distribution) -> Self {
        Self {
            p05: distribution.quantile(0.05),
            p50: distribution.quantile(0.5),
            p90: distribution.quantile(0.9),
            p95: distribution.quantile(0.95),
        }
    }

    /// The same with the outer ones moved out to a place they do not hold: an estimate that is not read off the
    /// distribution.
    #[must_use]
    pub(super) fn around(self, ln: f64) -> Self {
        Self { p05: self.p05.min(ln), p95: self.p95.max(ln), ..self }
    }

    /// In whole ms, in the order P05, P50, P90, P95.
    pub fn whole_ms(&self) -> [u64; 4] {
        [self.p05, self.p50, self.p90, self.p95].map(whole_ms)
    }
}

/// What was known when a forecast was made.
pub(crate) struct Standing {
    /// Calls of the key that ended.
    pub(crate) ended: u32,
    /// Calls of the key, those that were given up included.
    pub(crate) learnt: u32,
    pub(crate) samples: u64,
    pub(crate) tool_calls: f64,
}

/// How a forecast came about: what its observation is judged by.
#[derive(Debug, Clone)]
pub(crate) struct Workings {
    pub(crate) distribution: Distribution,
    /// P50 before the correction, in ln(ms).
    pub(crate) middle: f64,
    /// What a correction is read off, if the key has calls that ended.
    pub(crate) features: Option<Features>,
    pub(crate) panel: Panel,
    pub(crate) weights: [f64; EXPERTS],
    pub(crate) location: Location,
}

/// What a call will take.
#[derive(Debug, Clone)]
pub struct Forecast {
    estimated_ms: u64,
    quantiles: Quantiles,
    confidence: Confidence,
    basis: Basis,
    samples: u64,
    fleet_samples: u64,
    ended: u32,
    /// P05 and P95 before a cold start widened them.
    bounds: (f64, f64),
    within_20pct: f64,
    within_x2: f64,
    workings: Box<Workings>,
}

impl Forecast {
    pub(crate) fn new(question: &Question<'_>, standing: &Standing, levels: Levels, workings: Workings) -> Self {
        let workings = Box::new(workings);
        let distribution = &workings.distribution;
        let (low, high) = (distribution.quantile(levels.p05), distribution.quantile(levels.p95));
        let p90 = distribution.quantile(levels.p90).min(high);
        let mut quantiles = Quantiles { p05: low, p50: distribution.quantile(0.5), p90, p95: high };
        let densest = distribution.densest();
        let basis = basis(question, standing);
        let estimated_ms = if matches!(basis, Basis::Hint | Basis::Default) {
            // Other tools' calls have widened the distribution; they do not move the estimate, nor push it out of the
            // interval.
            quantiles = quantiles.around(question.prior.ln());
            question.prior.ms
        } else {
            whole_ms(densest.clamp(low, high))
        };
        let within_20pct = within(distribution, densest, 1.2, 0.8);
        let within_x2 = within(distribution, quantiles.p50, 2.0, 0.5);
        let confidence = Confidence::of(standing.ended, distribution, densest, quantiles.p50);
        Self {
            estimated_ms,
            quantiles,
            confidence,
            basis,
            samples: standing.samples,
            fleet_samples: question.fleet.map_or(0, FleetCalls::samples),
            ended: standing.ended,
            bounds: (low, high),
            within_20pct,
            within_x2,
            workings,
        }
    }

    /// The duration that the call is likeliest to come within 20 % of, in ms; before the tool's first call, the
    /// prior's.
    pub fn estimated_duration_ms(&self) -> u64 {
        self.estimated_ms
    }

    /// P05, P50, P90 and P95, in ln(ms); the outer ones are kept honest by past hits and misses.
    pub fn quantiles(&self) -> Quantiles {
        self.quantiles
    }

    /// Nine calls in ten should end in here, in ms.
    pub fn interval_ms(&self) -> [u64; 2] {
        [whole_ms(self.quantiles.p05), whole_ms(self.quantiles.p95)]
    }

    /// How far the estimate can be relied on.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// The probability that the duration the call is likeliest near is off by at most 20 % of the call, or by 50 ms.
    pub fn probability_within_20pct(&self) -> f64 {
        self.within_20pct
    }

    /// The probability that the call takes between half and twice P50, or within 50 ms of it.
    pub fn probability_within_x2(&self) -> f64 {
        self.within_x2
    }

    /// What the estimate rests on.
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// Calls of the key that were ever recorded.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Calls of the key that other hosts ever recorded.
    pub fn fleet_samples(&self) -> u64 {
        self.fleet_samples
    }

    /// Calls of the key that were learnt from and ended.
    pub(super) fn ended(&self) -> u32 {
        self.ended
    }

    /// Does the estimate exceed `limit_ms`? Strictly: a call that takes exactly so long is in time.
    pub fn will_time_out(&self, limit_ms: u64) -> bool {
        self.estimated_ms > limit_ms
    }

    /// The probability that the call takes longer than `limit_ms`.
    pub fn timeout_probability(&self, limit_ms: u64) -> f64 {
        timeout_probability(self.distribution(), limit_ms)
    }

    /// The probability that the call takes `ms` at most, 0 to 1.
    pub fn probability_within(&self, ms: u64) -> f64 {
        self.distribution().below(ln_ms(ms))
    }

    /// What so large a share of calls, 0 to 1, takes at most, in ms.
    pub fn quantile_ms(&self, share: f64) -> u64 {
        whole_ms(self.distribution().quantile(share))
    }

    /// What is left of the call after it has run for `elapsed_ms`.
    pub fn remaining(&self, elapsed_ms: u64) -> Remaining {
        Remaining { whole: self.distribution().longer_than(ln_ms(elapsed_ms)), elapsed_ms }
    }

    /// The distribution that everything is read off.
    pub fn distribution(&self) -> &Distribution {
        &self.workings.distribution
    }

    /// What its correction is read off; nothing before the key's first call that ended.
    pub(crate) fn features(&self) -> Option<&Features> {
        self.workings.features.as_ref()
    }

    pub(crate) fn workings(&self) -> &Workings {
        &self.workings
    }

    /// The interval that the conformal offsets are judged by, in ln(ms).
    pub(crate) fn bounds(&self) -> (f64, f64) {
        self.bounds
    }
}

fn basis(question: &Question<'_>, standing: &Standing) -> Basis {
    let has_fleet = question.fleet.is_some_and(|fleet| !fleet.is_empty());
    if standing.learnt >= CALLS_FOR_CONFIDENCE || standing.learnt > 0 && !has_fleet {
        Basis::History
    } else if has_fleet {
        Basis::Fleet
    } else if standing.tool_calls > 0.0 {
        Basis::Tool
    } else if question.prior.source == PriorSource::Hint {
        Basis::Hint
    } else {
        Basis::Default
    }
}

/// The probability of more than `limit_ms`.
pub(super) fn timeout_probability(distribution: &Distribution, limit_ms: u64) -> f64 {
    (1.0 - distribution.below(ln_ms(limit_ms))).clamp(NEVER_SURE, 1.0 - NEVER_SURE)
}

/// The probability of a call between the place `ln` divided by `down` and by `up`, or within 50 ms of it.
fn within(distribution: &Distribution, ln: f64, down: f64, up: f64) -> f64 {
    let centre = ln.exp().max(1.0);
    let from = (centre / down).min(centre - NEAR_MS).max(1.0);
    let to = (centre / up).max(centre + NEAR_MS);
    // Close to 1 ms, the whole first bin counts.
    let slack = if centre < NEAR_MS + 10.0 { WIDTH } else { 0.0 };
    distribution.between(from.ln() - slack, to.ln())
}

/// What is left of a running call.
#[derive(Debug, Clone)]
pub struct Remaining {
    whole: Distribution,
    elapsed_ms: u64,
}

impl Remaining {
    /// P05, P50, P90 and P95 of the time left, in ms.
    pub fn quantiles_ms(&self) -> [u64; 4] {
        Quantiles::of(&self.whole).whole_ms().map(|whole| whole.saturating_sub(self.elapsed_ms))
    }

    /// The probability that the whole call takes longer than `limit_ms`; 1 if it already has.
    pub fn timeout_probability(&self, limit_ms: u64) -> f64 {
        if self.elapsed_ms > limit_ms { 1.0 } else { timeout_probability(&self.whole, limit_ms) }
    }
}
