//! How well the total of several calls was foretold: runs of calls that a host made one after the other, asked about as
//! a plan when the first of them began.

use std::collections::HashMap;

use serde::Serialize;

use super::figures::{NEAR_MS, Rate};
use super::replay::question;
use super::stream::Stream;
use crate::timing::{Confidence, Defaults, Model, Plan};

/// Steps of the plans that are judged.
const LENGTHS: [usize; 3] = [3, 10, 30];

/// How plans of one length came true.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanFigures {
    /// Calls of each plan.
    pub steps: usize,
    /// Plans judged.
    pub plans: usize,
    /// Share of totals within [P05, P95].
    pub coverage90: Option<f64>,
    /// Share of plans of high confidence.
    pub high_share: Option<f64>,
    /// Share of those whose estimate was off by at most 20 % or 50 ms.
    pub high_hit_rate: Option<f64>,
}

/// Judges plans as they begin.
pub(super) struct PlanJudge<'s> {
    stream: &'s Stream,
    /// The calls of each host that ended, in order.
    by_host: HashMap<&'s str, Vec<usize>>,
    /// The place of each call among those of its host.
    places: Vec<Option<usize>>,
    rates: [[Rate; 3]; LENGTHS.len()],
}

impl<'s> PlanJudge<'s> {
    pub(super) fn new(stream: &'s Stream) -> Self {
        let mut by_host: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut places = Vec::with_capacity(stream.rows.len());
        for (index, row) in stream.rows.iter().enumerate() {
            let has_ended = !row.observation.outcome.is_censored();
            let calls = by_host.entry(&row.host).or_default();
            places.push(has_ended.then_some(calls.len()));
            if has_ended {
                calls.push(index);
            }
        }
        Self { stream, by_host, places, rates: Default::default() }
    }

    /// Judges the plans that begin with the call of this `index`, by the `model` of its host at that moment.
    pub(super) fn hear(&mut self, index: usize, model: &Model, defaults: &Defaults) {
        let Some(place) = self.places[index] else { return };
        let calls = &self.by_host[&*self.stream.rows[index].host];
        for (length, rates) in LENGTHS.into_iter().zip(&mut self.rates) {
            let Some(steps) = calls.get(place..place + length).filter(|_| place % length == 0) else { continue };
            let rows = steps.iter().map(|&step| &self.stream.rows[step]);
            let forecasts: Vec<_> = rows.clone().map(|row| model.forecast(&question(row, defaults))).collect();
            let Some(plan) = Plan::of(&forecasts) else { continue };
            let actual = rows.map(|row| row.observation.duration_ms).sum::<u64>();
            let [low, _, _, high] = plan.quantiles_ms();
            let [covered, high_said, high_right] = rates;
            covered.count((low..=high).contains(&actual));
            let is_high = plan.confidence() == Confidence::High;
            high_said.count(is_high);
            if is_high {
                let off = plan.estimated_duration_ms().abs_diff(actual) as f64;
                high_right.count(off <= (0.2 * actual as f64).max(NEAR_MS));
            }
        }
    }

    pub(super) fn figures(&self) -> Vec<PlanFigures> {
        let figures = LENGTHS.into_iter().zip(&self.rates).map(|(steps, [covered, said, right])| PlanFigures {
            steps,
            plans: covered.of,
            coverage90: covered.share(),
            high_share: said.share(),
            high_hit_rate: right.share(),
        });
        figures.filter(|figures| figures.plans > 0).collect()
    }
}
