//! The figures, and the judge who collects them call by call.

use std::collections::HashMap;

use serde::Serialize;

use super::baseline::{Sorted, median};
use super::stream::Row;
use crate::timing::estimator::grid::ln_ms;
use crate::timing::forecast::{Confidence, Forecast, Timeout};
use crate::timing::model::Question;

/// Calls of a key before its coverage is told from chance.
const CALLS_FOR_WORST: usize = 100;
/// Quantiles that the pinball loss is summed over.
const PINBALL_LEVELS: [f64; 3] = [0.5, 0.9, 0.95];
/// Within this of the estimate, in ms, "high" is kept in any case.
const NEAR_MS: f64 = 50.0;

/// How good the forecasts of a stream were. `None` where there was nothing to judge by.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Calls whose duration is known.
    pub rows: usize,
    /// Calls that were given up, beside those.
    pub censored: usize,
    /// Daemons in the stream.
    pub hosts: usize,
    /// Keys, over all hosts.
    pub keys: usize,
    /// Share of calls within [P05, P95].
    pub coverage90: Option<f64>,
    /// The same for the key, of those with 100 calls or more, that fares worst.
    pub worst_key_coverage90: Option<f64>,
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
    /// Calls judged.
    pub calls: usize,
    /// Their median distance from the median that was forecast, in ln.
    pub median_abs_ln_error: f64,
}

/// What simple rivals reach.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Baselines {
    /// The median of all earlier calls of the key, or the default before the first.
    pub running_median: Baseline,
    /// The defaults.
    pub defaults: Baseline,
}

/// What a simple rival reaches.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Baseline {
    /// As in [`Figures`].
    pub within_20pct: Option<f64>,
    /// As in [`Figures`].
    pub median_abs_ln_error: f64,
}

/// Counts how often something held.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    held: usize,
    of: usize,
}

impl Rate {
    fn count(&mut self, held: bool) {
        self.held += usize::from(held);
        self.of += 1;
    }

    fn share(self) -> Option<f64> {
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

/// Timeouts foretold and happened.
#[derive(Debug, Default)]
struct Timeouts {
    calls: f64,
    happened: f64,
    log_loss: f64,
    brier: f64,
    likely: Rate,
    unlikely_among_happened: Rate,
}

impl Timeouts {
    fn judge(&mut self, probability: f64, happened: bool) {
        let said = if happened { probability } else { 1.0 - probability };
        self.calls += 1.0;
        self.log_loss -= said.ln();
        self.brier += (1.0 - said).powi(2);
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
            brier_skill: ratio(self.brier, self.calls * base * (1.0 - base)).map(|relative| 1.0 - relative),
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
    censored: usize,
    coverage: Rate,
    coverage_by_key: HashMap<String, Rate>,
    pinball: (f64, f64),
    own: Point,
    running_median: Point,
    defaults: Point,
    high: Rate,
    high_hits: Rate,
    timeouts: Timeouts,
}

impl Judge {
    pub(super) fn new(limit_ms: u64) -> Self {
        Self { limit_ms, ..Self::default() }
    }

    /// Judges one call by its key's `history`, which does not have the call yet.
    pub(super) fn hear(&mut self, row: &Row, question: &Question<'_>, forecast: &Forecast, history: &Sorted) {
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
        self.judge_interval(row, forecast, history);
        self.judge_estimate(row, forecast);
        let before = ln_ms(question.prior.ms);
        let median = history.quantile(0.5).unwrap_or(before);
        self.running_median.judge(median.exp(), median, row);
        self.defaults.judge(question.prior.ms as f64, before, row);
    }

    fn judge_interval(&mut self, row: &Row, forecast: &Forecast, history: &Sorted) {
        let actual = ln_ms(row.observation.duration_ms);
        let said = forecast.quantiles();
        let covered = (said.p05..=said.p95).contains(&actual);
        self.coverage.count(covered);
        let key = format!("{}\0{}\0{}", row.host, row.tool, row.key().shown_mode());
        self.coverage_by_key.entry(key).or_default().count(covered);
        for (level, said) in PINBALL_LEVELS.into_iter().zip([said.p50, said.p90, said.p95]) {
            let Some(rival) = history.quantile(level) else { return };
            self.pinball.0 += pinball(level, said, actual);
            self.pinball.1 += pinball(level, rival, actual);
        }
    }

    fn judge_estimate(&mut self, row: &Row, forecast: &Forecast) {
        let estimate = forecast.estimated_duration_ms() as f64;
        let actual = row.observation.duration_ms as f64;
        self.own.judge(estimate, forecast.quantiles().p50, row);
        let is_high = forecast.confidence() == Confidence::High;
        self.high.count(is_high);
        if is_high {
            self.high_hits.count((estimate - actual).abs() <= (0.2 * actual).max(NEAR_MS));
        }
    }

    /// What judging came to.
    pub(super) fn figures(self) -> Figures {
        let settled = self.coverage_by_key.values().filter(|rate| rate.of >= CALLS_FOR_WORST);
        let own = self.own.into_baseline();
        Figures {
            rows: self.rows,
            censored: self.censored,
            coverage90: self.coverage.share(),
            worst_key_coverage90: settled.filter_map(|rate| rate.share()).min_by(f64::total_cmp),
            pinball_ratio: ratio(self.pinball.0, self.pinball.1),
            within_20pct: own.within_20pct,
            median_abs_ln_error: own.median_abs_ln_error,
            high_share: self.high.share(),
            high_hit_rate: self.high_hits.share(),
            timeout: self.timeouts.figures(self.limit_ms),
            baselines: Baselines {
                running_median: self.running_median.into_baseline(),
                defaults: self.defaults.into_baseline(),
            },
            ..Figures::default()
        }
    }
}

/// The loss of saying `said` for the quantile at `level` when `actual` happened.
fn pinball(level: f64, said: f64, actual: f64) -> f64 {
    if actual >= said { level * (actual - said) } else { (1.0 - level) * (said - actual) }
}
