//! One call's forecast from what was learnt, and what is learnt from the call: a mixture of experts on a logarithmic
//! grid.
//!
//! The problem: durations of tool calls are heavy-tailed, often two-humped, change with the machine, and most keys have
//! few of them. No single method survives that. The approach: several simple methods each give a distribution
//! (`experts`), and a mixture listens to those that foretold this key's last calls best (`weights`). Everything else
//! serves one of them: what was seen ([`histogram`]), where calls lie (`location`), how far they scatter (`residuals`),
//! what their size explains (`regression`), what is believed beforehand ([`prior`]). The interval is corrected by its
//! own hits and misses (`conformal`), and calls that were given up count for what they are (`censoring`). A key whose
//! calls all lie elsewhere of late is noticed at once (`relocation`). All of it is pure: no clock, no I/O, nothing that
//! can fail.
//!
//! Rejected, having been measured on some 300,000 real calls: means and a fitted log-normal (heavy tails), forgetting
//! by age (no gain), pooling hosts into one history (harms; a fleet is one more expert instead), sample counts as
//! confidence (calls with more than a hundred samples land within 20 % between 23 % and 97 % of the time).

pub(crate) mod censoring;
pub(crate) mod conformal;
pub(crate) mod experts;
pub mod grid;
pub mod histogram;
pub(crate) mod location;
pub mod prior;
pub(crate) mod regression;
pub(crate) mod relocation;
pub(crate) mod residuals;
pub(crate) mod state;
pub(crate) mod weights;

use super::complexity::Covariates;
use super::forecast::{Forecast, Standing, Workings};
use super::model::Question;
use super::outcome::Observation;
use conformal::Levels;
use experts::{Expert, Panel};
use grid::{Distribution, ln_ms};
use histogram::Fading;
use state::{Key, Shared, Tool};
use weights::Experience;

/// Half a call of the tool's mean in the key's slow location.
const TOOL_IN_LOCATION: f64 = 0.5;
/// Smallest spread, in ln(ms).
const LEAST_SPREAD: f64 = 0.02;
/// A key's own spread counts for at most this many calls …
const SPREAD_CALLS: f64 = 40.0;
/// … against this many of its tool's.
const TOOL_IN_SPREAD: f64 = 3.0;
/// The tool's own spread counts against this many calls of the daemon's.
const DAEMON_IN_SPREAD: f64 = 5.0;
/// Calls after which a key's deviations are good enough to learn slopes from.
const CALLS_BEFORE_SLOPES: u32 = 3;

/// Where a forecast located its call: what its key learns the deviation from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    experience: Experience,
    /// Covariates minus the usual ones.
    difference: Covariates,
    /// What that shifts, in ln(ms).
    shift: f64,
    /// The slow location and the median, shifted.
    slow: f64,
    recent: f64,
    /// Expected deviation of the key and of its tool.
    spread: f64,
    tool_spread: f64,
}

impl Location {
    fn of(question: &Question<'_>, key: Option<&Key>, tool: &Tool, shared: &Shared) -> Self {
        let usual = match key {
            Some(key) => key.covariates,
            None if tool.calls > 0.0 => tool.covariates,
            None => question.covariates,
        };
        let difference = question.covariates - usual;
        let shift = tool.regression.shift(&difference);
        let tool_spread =
            (tool.deviations * tool.spread + DAEMON_IN_SPREAD * shared.spread) / (tool.deviations + DAEMON_IN_SPREAD);
        let tool_mean = (tool.calls * tool.mean + question.prior.ln()) / (tool.calls + 1.0);
        let (slow, recent, spread) = match key {
            Some(key) => {
                let calls = f64::from(key.calls);
                let slow = (calls * key.slow.centre() + TOOL_IN_LOCATION * tool_mean) / (calls + TOOL_IN_LOCATION);
                let calls = calls.min(SPREAD_CALLS);
                let spread = (calls * key.slow.spread() + TOOL_IN_SPREAD * tool_spread) / (calls + TOOL_IN_SPREAD);
                (slow, key.recent.median(key.calls), spread)
            }
            None => (tool_mean, tool_mean, tool_spread),
        };
        Self {
            experience: Experience::of(key.map_or(0, |key| key.calls)),
            difference,
            shift,
            slow: slow + shift,
            recent: recent + shift,
            spread: spread.max(LEAST_SPREAD),
            tool_spread,
        }
    }
}

/// What a call will take. `key` and `tool` are absent before their first call.
pub(crate) fn forecast(question: &Question<'_>, key: Option<&Key>, tool: Option<&Tool>, shared: &Shared) -> Forecast {
    let blank = Tool::default();
    let tool = tool.unwrap_or(&blank);
    let key = key.filter(|key| key.calls > 0);
    let location = Location::of(question, key, tool, shared);
    let (slow, recent) = shared.residuals(location.experience);
    let panel = Panel::ask(&experts::Evidence {
        history: key.map(|key| &key.histogram),
        shift: location.shift,
        slow: location.slow,
        recent: location.recent,
        spread: location.spread,
        residuals: (slow, recent),
        tool: &tool.histogram,
        prior: question.prior.mass(&shared.histogram),
        fleet: question.fleet,
    });
    let evidence = key.map(|key| key.evidence).unwrap_or_default();
    let weights = shared.weights.weigh(location.experience, &evidence, |expert| match expert {
        Expert::History => key.is_some(),
        Expert::Fleet => question.fleet.is_some_and(|fleet| fleet.total() > 0.0),
        Expert::Slow | Expert::Recent | Expert::Tool => true,
    });
    let has_moved = key.is_some_and(|key| relocation::has_moved(key, location.spread));
    let mixture = if has_moved { relocation::lean_on_recent(weights) } else { weights };
    let distribution = Distribution::new(panel.mix(&mixture));
    let levels = Levels::moved_by(tool.offsets, key.map(|key| key.offsets).unwrap_or_default());
    let standing = &Standing {
        calls: key.map_or(0, |key| key.calls),
        samples: key.map_or(0, |key| key.samples),
        tool_calls: tool.calls,
    };
    Forecast::new(question, standing, levels, Workings { distribution, panel, weights, location })
}

/// Learns how a call went that `forecast` was made for. `key` and `tool` are as new if this is their first call.
pub(crate) fn learn(
    question: &Question<'_>,
    forecast: &Forecast,
    observation: Observation,
    key: &mut Key,
    tool: &mut Tool,
    shared: &mut Shared,
) {
    let Workings { panel, weights, location, .. } = forecast.workings();
    let ended = ln_ms(observation.duration_ms);
    let is_censored = observation.outcome.is_censored();
    let ln = forecast.learnt_as(observation);
    let deviation = ln - location.slow;
    let present = |expert| expert != Expert::Fleet || question.fleet.is_some();

    if is_censored {
        key.evidence.add(&panel.each(|mass| censoring::evidence(mass, ended)), present);
    } else {
        let densities = panel.densities(ended);
        key.evidence.add(&densities, present);
        let contributions = std::array::from_fn(|expert| weights[expert] * densities[expert]);
        shared.weights.learn(location.experience, &contributions, present);
        let (slow, recent) = shared.residuals_mut(location.experience);
        slow.add(deviation / location.spread);
        recent.add((ln - location.recent) / location.spread);
    }

    let (low, high) = forecast.bounds();
    // A call that was given up may still have ended anywhere above.
    let (was_below, was_above) = (ln < low && !is_censored, ln > high + 1e-9);
    tool.offsets.learn(conformal::TOOL, was_below, was_above);
    key.offsets.learn(conformal::KEY, was_below, was_above);

    if key.calls >= CALLS_BEFORE_SLOPES {
        tool.regression.learn(&location.difference, deviation, location.spread);
    }
    if key.calls > 0 {
        tool.scatter(deviation, location.tool_spread);
        shared.scatter(deviation);
    }
    key.count(ln - location.shift, deviation, question.covariates, location.spread, location.tool_spread);
    tool.count(ln, question.covariates);
    if !question.key.failed {
        shared.histogram.add(ln, Fading::DAEMON);
    }
}
