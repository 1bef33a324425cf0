//! The figures, and the judge who collects them call by call.

use std::collections::HashMap;

use serde::Serialize;

use super::baseline::{Sorted, median};
use super::given_up::GivenUpFigures;
use super::plans::PlanFigures;
use super::stream::Row;
use crate::timing::estimator::grid::ln_ms;
use crate::timing::forecast::{Confidence, Forecast, Timeout};
use crate::timing::model::Question;
use crate::timing::outcome::Outcome;

/// Calls of a key before its coverage is told from chance.
const CALLS_FOR_WORST: usize = 30;
/// Bands of estimates, by their lower ends in ms.
const BANDS_MS: [u64; 4] = [0, 250, 1000, 10_000];
/// Quantiles that the pinball loss is summed over.
const PINBALL_LEVELS: [f64; 3] = [0.5, 0.9, 0.95];
/// Within this of the estimate, in ms, "high" is kept in any case.
pub(super) const NEAR_MS: f64 = 50.0;

/// How good the forecasts of a stream were. `None` where there was nothing to judge by.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ForecastFigures {
    /// Calls whose duration is known.
    pub rows: usize,
    /// Of these, calls that failed; they are asked about like any other.
    pub failed: usize,
    /// Calls that were given up, beside those.
    pub censored: usize,
    /// `time` if calls were taken in the order of `ts_ms` and learnt when they had ended, `file` if a row has none.
    pub order: &'static str,
    /// Daemons in the stream.
    pub hosts: usize,
    /// Keys, over all hosts.
    pub keys: usize,
    /// Share of calls within [P05, P95].
    pub coverage90: Option<f64>,
    /// The same for the key, of those with 30 calls or more, that fares worst.
    pub worst_key_coverage90: Option<f64>,
    /// Calls of that key.
    pub worst_key_rows: Option<usize>,
    /// Share of calls that succeeded within [P05, P95].
    pub succeeded_coverage90: Option<f64>,
    /// Asked without any size: share of calls within [P05, P95].
    pub unsized_coverage90: Option<f64>,
    /// Asked without any size: pinball loss, likewise.
    pub unsized_pinball_ratio: Option<f64>,
    /// Pinball loss of P50, P90 and P95 in ln(ms), relative to the quantiles of all earlier calls of the key, over
    /// calls that have an earlier one.
    pub pinball_ratio: Option<f64>,
    /// Share of calls whose estimate was off by at most 20 % of them.
    pub within_20pct: Option<f64>,
    /// Median distance of a call from the median that was forecast, in ln.
    pub median_abs_ln_error: f64,
    /// Share of calls of high confidence.
    pub high_share: Option<f64>,
    /// Share of those whose estimate was off by at most 20 % or 50 ms.
    pub high_hit_rate: Option<f64>,
    /// The same two by band of the estimate.
    pub high_by_band: Vec<Band>,
    /// How well the totals of runs of calls were foretold.
    pub plans: Vec<PlanFigures>,
    /// What is left if every call beyond the stream's P90 is given up there.
    pub given_up: Option<GivenUpFigures>,
    /// How well a timeout at the stream's P90 was foretold.
    pub timeout: TimeoutFigures,
    /// How well the first calls of a key are foretold on a new host; `None` if no two hosts have a key in common.
    pub fleet: Option<FleetFigures>,
    /// What simple rivals reach.
    pub baselines: Baselines,
    /// Memory of a key, heap, name and place in the table included, in bytes.
    pub bytes_per_key: f64,
    /// Memory of a tool, likewise.
    pub bytes_per_tool: f64,
    /// Median time to learn from a call whose forecast is at hand, in µs.
    pub observe_us: f64,
    /// Median time to forecast a call, in µs.
    pub predict_us: f64,
}

/// What was said with high confidence of estimates in a band.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Band {
    /// Where the band begins, in ms; it ends where the next begins.
    pub from_ms: u64,
    /// Calls that were estimated in it.
    pub rows: usize,
    /// Of these, those of high confidence.
    pub high: usize,
    /// Of these, those whose estimate was off by at most 20 % or 50 ms.
    pub right: usize,
}

/// How well timeouts were foretold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimeoutFigures {
    /// The limit: the stream's P90, in ms.
    pub limit_ms: u64,
    /// Logarithmic loss, relative to always saying how many calls exceed the limit.
    pub logloss_ratio: Option<f64>,
    /// One minus the Brier score relative to the same.
    pub brier_skill: Option<f64>,
    /// Share of calls called likely to exceed the limit that did.
    pub likely_precision: Option<f64>,
    /// Share of the calls exceeding the limit that had been called unlikely to.
    pub unlikely_share_of_timeouts: Option<f64>,
}

/// How well the first five calls of a key are foretold on a host of a fleet that knows the key already.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFigures {
    pub calls: usize,
    /// Their median distance from the median that was forecast, in ln.
    pub median_abs_ln_error: f64,
    /// Their median distance from the hint, or from the default where there is none, in ln.
    pub prior_median_abs_ln_error: f64,
}

/// What simple rivals reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Baselines {
    /// The median of all earlier calls of the key, or the default before the first.
    pub running_median: Baseline,
    pub defaults: Baseline,
}

/// What a simple rival reaches.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Baseline {
    pub within_20pct: Option<f64>,
    pub median_abs_ln_error: f64,
}

/// Counts how often something held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rate {
    held: usize,
    pub(super) of: usize,
}

impl Rate {
    pub(super) fn count(&mut self, held: bool) {
        self.held += usize::from(held);
        self.of += 1;
    }

    pub(super) fn share(self) -> Option<f64> {
        ratio(self.held as f64, self.of as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A point forecast and how it fares.
#[derive(Debug, Default)]
struct Point {
    within_20pct: Rate,
    errors: Vec<f64>,
}

impl Point {
    fn judge(&mut self, estimate_ms: f64, ln: f64, row: &Row) {
        let actual = row.observation.duration_ms as f64;
        self.within_20pct.count((estimate_ms - actual).abs() <= 0.2 * actual);
        self.errors.push((ln - ln_ms(row.observation.duration_ms)).abs());
    }

    fn into_baseline(self) -> Baseline {
        Baseline { within_20pct: self.within_20pct.share(), median_abs_ln_error: median(self.errors) }
    }
}

/// The squared error of probabilities.
#[derive(Debug, Default)]
pub(super) struct Brier {
    calls: f64,
    happened: f64,
    loss: f64,
}

impl Brier {
    pub(super) fn judge(&mut self, probability: f64, happened: bool) {
        let truth = f64::from(u8::from(happened));
        self.calls += 1.0;
        self.happened += truth;
        self.loss += (probability - truth).powi(2);
    }

    /// One minus the loss relative to always saying how many happened.
    pub(super) fn skill(&self) -> Option<f64> {
        let rate = ratio(self.happened, self.calls)?;
        ratio(self.loss, self.calls * rate * (1.0 - rate)).map(|loss| 1.0 - loss)
    }
}

/// A loss, and that of the key's own quantiles.
#[derive(Debug, Default)]
struct Pinball {
    own: f64,
    rival: f64,
}

impl Pinball {
    fn judge(&mut self, forecast: &Forecast, history: &Sorted, actual: f64) {
        let said = forecast.quantiles();
        for (level, said) in PINBALL_LEVELS.into_iter().zip([said.p50, said.p90, said.p95]) {
            let Some(rival) = history.quantile(level) else { return };
            self.own += pinball(level, said, actual);
            self.rival += pinball(level, rival, actual);
        }
    }
}

/// Timeouts foretold and happened.
#[derive(Debug, Default)]
struct Timeouts {
    calls: f64,
    happened: f64,
    log_loss: f64,
    brier: Brier,
    likely: Rate,
    unlikely_among_happened: Rate,
}

impl Timeouts {
    fn judge(&mut self, probability: f64, happened: bool) {
        let said = if happened { probability } else { 1.0 - probability };
        self.calls += 1.0;
        self.log_loss -= said.ln();
        self.brier.judge(probability, happened);
        if happened {
            self.happened += 1.0;
            self.unlikely_among_happened.count(Timeout::of(probability) == Timeout::Unlikely);
        }
        if Timeout::of(probability) == Timeout::Likely {
            self.likely.count(happened);
        }
    }

    fn figures(&self, limit_ms: u64) -> TimeoutFigures {
        let base = self.happened / self.calls.max(1.0);
        let entropy = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        TimeoutFigures {
            limit_ms,
            logloss_ratio: ratio(self.log_loss, self.calls * (entropy(base) + entropy(1.0 - base))),
            brier_skill: self.brier.skill(),
            likely_precision: self.likely.share(),
            unlikely_share_of_timeouts: self.unlikely_among_happened.share(),
        }
    }
}

/// Hears forecasts and what happened, and comes to the figures.
#[derive(Debug, Default)]
pub(super) struct Judge {
    limit_ms: u64,
    rows: usize,
    failed: usize,
    censored: usize,
    coverage: Rate,
    succeeded_coverage: Rate,
    unsized_coverage: Rate,
    coverage_by_key: HashMap<String, Rate>,
    pinball: Pinball,
    unsized_pinball: Pinball,
    own: Point,
    running_median: Point,
    defaults: Point,
    high: Rate,
    high_hits: Rate,
    bands: [Band; BANDS_MS.len()],
    timeouts: Timeouts,
}

impl Judge {
    pub(super) fn new(limit_ms: u64) -> Self {
        Self { limit_ms, ..Self::default() }
    }

    /// Judges what was said of one call, and what would have been said of it without its sizes, by the `history` of its
    /// key: of calls that had succeeded when it began.
    pub(super) fn hear(
        &mut self,
        row: &Row,
        question: &Question<'_>,
        [forecast, without_sizes]: [&Forecast; 2],
        history: &Sorted,
    ) {
        let actual_ms = row.observation.duration_ms;
        let probability = forecast.timeout_probability(self.limit_ms);
        if row.observation.outcome.is_censored() {
            self.censored += 1;
            // What was given up before the limit might have ended on either side.
            if actual_ms >= self.limit_ms {
                self.timeouts.judge(probability, true);
            }
            return;
        }
        self.rows += 1;
        self.timeouts.judge(probability, actual_ms > self.limit_ms);
        self.failed += usize::from(row.observation.outcome == Outcome::Error);
        self.judge_interval(row, forecast, history);
        let actual = ln_ms(actual_ms);
        self.unsized_coverage.count(covers(without_sizes, actual));
        self.unsized_pinball.judge(without_sizes, history, actual);
        self.judge_estimate(row, forecast);
        let before = ln_ms(question.prior.ms);
        let median = history.quantile(0.5).unwrap_or(before);
        self.running_median.judge(median.exp(), median, row);
        self.defaults.judge(question.prior.ms as f64, before, row);
    }

    fn judge_interval(&mut self, row: &Row, forecast: &Forecast, history: &Sorted) {
        let actual = ln_ms(row.observation.duration_ms);
        let covered = covers(forecast, actual);
        self.coverage.count(covered);
        if row.observation.outcome == Outcome::Success {
            self.succeeded_coverage.count(covered);
        }
        let key = format!("{}\0{}\0{}", row.host, row.tool, row.mode);
        self.coverage_by_key.entry(key).or_default().count(covered);
        self.pinball.judge(forecast, history, actual);
    }

    fn judge_estimate(&mut self, row: &Row, forecast: &Forecast) {
        let estimate = forecast.estimated_duration_ms() as f64;
        let actual = row.observation.duration_ms as f64;
        self.own.judge(estimate, forecast.quantiles().p50, row);
        let is_high = forecast.confidence() == Confidence::High;
        self.high.count(is_high);
        let band = BANDS_MS.partition_point(|&from| from as f64 <= estimate) - 1;
        let band = &mut self.bands[band];
        band.rows += 1;
        if is_high {
            let is_right = (estimate - actual).abs() <= (0.2 * actual).max(NEAR_MS);
            self.high_hits.count(is_right);
            band.high += 1;
            band.right += usize::from(is_right);
        }
    }

    /// What judging came to.
    pub(super) fn figures(self) -> ForecastFigures {
        let settled = self.coverage_by_key.values().filter(|rate| rate.of >= CALLS_FOR_WORST);
        let share = |rate: &Rate| rate.share().unwrap_or_default();
        // Of equal ones that with most calls.
        let worst = settled.min_by(|a, b| share(a).total_cmp(&share(b)).then(b.of.cmp(&a.of)));
        let bands = BANDS_MS.into_iter().zip(self.bands).map(|(from_ms, band)| Band { from_ms, ..band });
        let own = self.own.into_baseline();
        ForecastFigures {
            rows: self.rows,
            failed: self.failed,
            censored: self.censored,
            coverage90: self.coverage.share(),
            worst_key_coverage90: worst.and_then(|rate| rate.share()),
            worst_key_rows: worst.map(|rate| rate.of),
            succeeded_coverage90: self.succeeded_coverage.share(),
            unsized_coverage90: self.unsized_coverage.share(),
            unsized_pinball_ratio: ratio(self.unsized_pinball.own, self.unsized_pinball.rival),
            pinball_ratio: ratio(self.pinball.own, self.pinball.rival),
            high_by_band: bands.collect(),
            within_20pct: own.within_20pct,
            median_abs_ln_error: own.median_abs_ln_error,
            high_share: self.high.share(),
            high_hit_rate: self.high_hits.share(),
            timeout: self.timeouts.figures(self.limit_ms),
            baselines: Baselines {
                running_median: self.running_median.into_baseline(),
                defaults: self.defaults.into_baseline(),
            },
            ..ForecastFigures::default()
        }
    }
}

/// Is `actual` inside the interval?
fn covers(forecast: &Forecast, actual: f64) -> bool {
    let said = forecast.quantiles();
    // None is forecast to take less than a millisecond.
    (said.p05..=said.p95).contains(&actual.max(1.0))
}

/// The loss of saying `said` for the quantile at `level` when `actual` happened.
fn pinball(level: f64, said: f64, actual: f64) -> f64 {
    if actual >= said { level * (actual - said) } else { (1.0 - level) * (said - actual) }
}
