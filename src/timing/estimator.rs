//! One call's forecast from what was learnt, and what is learnt from the call: a mixture of experts on a logarithmic
//! grid.
//!
//! The problem: durations of tool calls are heavy-tailed, often two-humped, change with the machine, and most keys have
//! few of them. No single method survives that. The approach: several simple methods each give a distribution
//! (`experts`), and a mixture listens to those that foretold this key's last calls best (`weights`). Everything else
//! serves one of them: what was seen ([`histogram`]), where calls lie (`location`), how far they scatter (`residuals`),
//! what their size explains (`regression`), what is believed beforehand ([`prior`]). The interval is corrected by its
//! own hits and misses (`conformal`), and calls that were given up count for what they are ([`survival`]). A size that
//! is not said is whatever is usual (`sizes`). A key whose calls all lie elsewhere of late is noticed at once
//! (`relocation`). All of it is pure: no clock, no I/O, nothing that can fail.
//!
//! Rejected, having been measured on some 300,000 real calls: means and a fitted log-normal (heavy tails), forgetting
//! by age (no gain), pooling hosts into one history (harms; a fleet is one more expert instead), sample counts as
//! confidence (calls with more than a hundred samples land within 20 % between 23 % and 97 % of the time).

pub(crate) mod conformal;
pub(crate) mod correction;
pub(crate) mod errors;
pub(crate) mod experts;
pub mod grid;
pub mod histogram;
pub(crate) mod last;
pub(crate) mod location;
pub mod prior;
pub(crate) mod regression;
pub(crate) mod relocation;
pub(crate) mod residuals;
pub(crate) mod sizes;
pub(crate) mod state;
pub mod survival;
pub(crate) mod weights;

use super::complexity::Covariates;
use super::fleet::FleetCalls;
use super::forecast::{Forecast, Standing, Workings};
use super::model::Question;
use super::outcome::Observation;
use conformal::{Levels, MISSES, Offsets};
use correction::Correction;
use correction::features::{self, Features};
use experts::{Expert, Panel};
use grid::{BINS, Distribution, WIDTH, ln_ms};
use histogram::Fading;
use sizes::Each;
use state::{KeyState, Shared, ToolState};
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

/// What of the estimator may be set: the product's values, or those of the reference implementation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// What is left of a call's evidence after the key's next.
    pub(crate) evidence_kept: f64,
    /// How fast a key's calls fade.
    pub(crate) key_fading: Fading,
    /// Bins of the axis; what lies beyond counts as in the last.
    pub(crate) axis: usize,
    /// Before a tool's first call here, is what other hosts saw of it mixed with what was believed beforehand?
    pub(crate) mixes_prior_with_fleet: bool,
    /// Are forecasts corrected?
    pub(crate) corrects: bool,
    /// Is it done better than there: is a forecast spread to what a size shifts beyond the largest shift, is a call
    /// that was given up held against where the interval ends by now, rather than against P95, and does a key that
    /// moves scatter around where it is, rather than around where it was?
    pub(crate) is_refined: bool,
}

impl Default for Tuning {
    /// The product's: shorter memories foretell better. With .3 and .5 of the evidence kept, and half of a key's calls
    /// after 12, pinball loss came to .749 and .753 of the running median's on tools, from .767, and to .961 on model
    /// turns, from .962; keeping less loses more of what calls that were given up had to say (.957 and .969 are left).
    fn default() -> Self {
        Self {
            evidence_kept: 0.4,
            key_fading: Fading::BRISK_KEY,
            axis: BINS,
            mixes_prior_with_fleet: false,
            corrects: true,
            is_refined: true,
        }
    }
}

impl Tuning {
    /// The reference implementation's.
    pub(crate) const REFERENCE: Self = Self {
        evidence_kept: 0.75,
        key_fading: Fading::KEY,
        axis: 330,
        mixes_prior_with_fleet: true,
        corrects: false,
        is_refined: false,
    };
}

/// Where a forecast located its call: what its key learns the deviation from.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    experience: Experience,
    /// Covariates minus the usual ones.
    difference: Each<f64>,
    /// What that shifts, in ln(ms).
    shift: f64,
    /// What sizes may shift beside that, in ln(ms), each as likely: those that were not said, as they would have
    /// shifted the key's last calls, and those that lie beyond the largest shift.
    uncertain: Vec<f64>,
    /// The slow location and the median, shifted.
    slow: f64,
    recent: f64,
    /// Expected deviation of the key and of its tool.
    spread: f64,
    tool_spread: f64,
    /// The share of a deviation that is not put down to sizes that were not said.
    own_share: f64,
}

impl Location {
    fn of(question: &Question<'_>, key: Option<&KeyState>, tool: &ToolState, shared: &Shared, tuning: Tuning) -> Self {
        let covariates = &question.covariates;
        let difference = key.map_or(&tool.usual, |key| &key.usual).difference(covariates);
        let unsaid = key.map_or_else(Vec::new, |key| unsaid(covariates, key, tool));
        let shift = tool.regression.shift(&difference);
        let beyond = if tuning.is_refined { tool.regression.beyond(&difference) } else { 0.0 };
        let uncertain = up_to(unsaid, beyond);
        let tool_spread =
            (tool.deviations * tool.spread + DAEMON_IN_SPREAD * shared.spread) / (tool.deviations + DAEMON_IN_SPREAD);
        let tool_mean = (tool.calls * tool.mean + question.prior.ln()) / (tool.calls + 1.0);
        let (slow, recent, spread) = match key.filter(|key| key.calls > 0) {
            Some(key) => {
                let calls = f64::from(key.calls);
                let slow = (calls * key.slow.centre() + TOOL_IN_LOCATION * tool_mean) / (calls + TOOL_IN_LOCATION);
                let calls = calls.min(SPREAD_CALLS);
                let spread = (calls * key.slow.spread() + TOOL_IN_SPREAD * tool_spread) / (calls + TOOL_IN_SPREAD);
                (slow, key.recent.median(key.calls), spread)
            }
            None => (tool_mean, tool_mean, tool_spread),
        };
        let spread = spread.max(LEAST_SPREAD);
        let own_share = spread / spread.hypot(deviation_of(&uncertain));
        Self {
            experience: Experience::of(key.map_or(0, KeyState::learnt)),
            difference,
            shift,
            uncertain,
            slow: slow + shift,
            recent: recent + shift,
            spread,
            tool_spread,
            own_share,
        }
    }
}

/// What the sizes that are not said shifted the key's last calls, in ln(ms).
fn unsaid(covariates: &Covariates, key: &KeyState, tool: &ToolState) -> Vec<f64> {
    let unsaid = key.usual.unsaid(covariates);
    if unsaid.iter().all(|unsaid| !unsaid) {
        return Vec::new();
    }
    let mut shifts: Vec<f64> =
        key.sizes.differences(&key.usual, unsaid).map(|difference| tool.regression.full_shift(&difference)).collect();
    let (count, mean) = (shifts.len() as f64, mean_of(&shifts));
    // A few calls reach less far than those to come will: the next one is beyond the outermost of n in two of n + 1.
    let reach = ((count + 1.0) / (count - 1.0).max(1.0)).min(MOST_REACH);
    for shift in &mut shifts {
        *shift = mean + (*shift - mean) * reach;
    }
    shifts
}

/// Steps from the largest shift of a size to what it would shift without a bound.
const STEPS_BEYOND: u32 = 8;

/// The shifts that are uncertain anyway, each from where it is on to `beyond`: a size that is larger than any known may
/// take as long as its slope says, or as the largest shift does.
fn up_to(shifts: Vec<f64>, beyond: f64) -> Vec<f64> {
    if beyond.abs() < LEAST_BEYOND {
        return shifts;
    }
    let from = if shifts.is_empty() { vec![0.0] } else { shifts };
    let step = beyond / f64::from(STEPS_BEYOND);
    from.iter().flat_map(|shift| (0..=STEPS_BEYOND).map(move |steps| shift + step * f64::from(steps))).collect()
}

/// What is less than that, in ln(ms), makes no difference.
const LEAST_BEYOND: f64 = 0.02;

/// How much further than a key's last calls its sizes may shift the next, as a factor.
const MOST_REACH: f64 = 2.0;

/// The mean; 0 of nothing.
fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard deviation; 0 of nothing.
fn deviation_of(values: &[f64]) -> f64 {
    let (count, mean) = (values.len().max(1) as f64, mean_of(values));
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// What a call will take. `key` and `tool` are absent before their first call.
pub(crate) fn forecast(
    question: &Question<'_>,
    key: Option<&KeyState>,
    tool: Option<&ToolState>,
    shared: &Shared,
    tuning: Tuning,
) -> Forecast {
    let blank = ToolState::default();
    let tool = tool.unwrap_or(&blank);
    let key = key.filter(|key| key.learnt() > 0);
    let location = Location::of(question, key, tool, shared, tuning);
    let (slow, recent) = shared.residuals(location.experience);
    let panel = Panel::ask(&experts::ExpertEvidence {
        history: key.map(|key| &key.durations),
        shift: location.shift,
        uncertain: &location.uncertain,
        slow: location.slow,
        recent: location.recent,
        spread: location.spread,
        residuals: (slow, recent),
        tool: &tool.durations,
        prior: question.prior.mass(&shared.durations),
        fleet: question.fleet.map(FleetCalls::durations),
        axis: tuning.axis,
    });
    let evidence = key.map(|key| key.evidence).unwrap_or_default();
    let is_others = rests_on_fleet(question, key, tool, tuning);
    let weights = shared.weights.weigh(location.experience, &evidence, |expert| match expert {
        Expert::History => key.is_some(),
        Expert::Fleet => has_fleet(question),
        // All they have is the prior, over which the fleet's calls are laid already.
        Expert::Slow | Expert::Recent | Expert::Tool if is_others => false,
        // Calls that were given up are at no place.
        Expert::Slow | Expert::Recent => key.is_none_or(|key| key.calls > 0),
        Expert::Tool => true,
    });
    let is_moving = key.is_some_and(|key| relocation::has_moved(key, location.spread));
    let mixture = if is_moving { relocation::lean_on_recent(weights) } else { weights };
    let mixed = Distribution::new(panel.mix(&mixture));
    let middle = mixed.quantile(0.5);
    let features = key.filter(|key| key.calls > 0).map(|key| {
        Features::of(&features::Readings {
            mixture: &mixed,
            history: &Distribution::new(panel.of(Expert::History)),
            last: key.last.places().map(|last| last + location.shift),
            location: &location,
            errors: [key.errors, tool.errors, shared.errors],
        })
    });
    let correction = if tuning.corrects { Correction::shipped() } else { None };
    let distribution = match (correction, &features) {
        (Some(correction), Some(features)) => correction.correct(&mixed, features),
        _ => mixed,
    };
    let offsets = [tool.offsets, key.map(|key| key.offsets).unwrap_or_default()];
    // Hits of calls whose sizes were known say nothing for one whose sizes are not, or are far from any.
    let [tool_offsets, key_offsets] =
        if location.uncertain.is_empty() { offsets } else { offsets.map(Offsets::outwards) };
    let levels = Levels::moved_by(tool_offsets, key_offsets);
    let standing = &Standing {
        ended: key.map_or(0, |key| key.calls),
        learnt: key.map_or(0, KeyState::learnt),
        samples: key.map_or(0, |key| key.samples),
        tool_calls: tool.durations.total(),
    };
    Forecast::new(question, standing, levels, Workings { distribution, middle, features, panel, weights, location })
}

/// What is learnt from: the states of a call's key and of its tool, as new if this is their first call, and what all
/// share.
pub(crate) struct Learning<'m> {
    pub(crate) key: &'m mut KeyState,
    pub(crate) tool: &'m mut ToolState,
    pub(crate) shared: &'m mut Shared,
    pub(crate) tuning: Tuning,
}

impl Learning<'_> {
    /// Learns how a call went that `forecast` was made for.
    pub(crate) fn learn(&mut self, question: &Question<'_>, forecast: &Forecast, observation: Observation) {
        // In single precision, as keys keep it, so that the deviation of a repeated duration is exactly 0 and not at
        // random on either side of it.
        let ln = f64::from(ln_ms(observation.duration_ms) as f32);
        if observation.outcome.is_censored() {
            self.learn_given_up(question, forecast, ln);
        } else {
            self.learn_ended(question, forecast, ln);
        }
    }

    fn learn_ended(&mut self, question: &Question<'_>, forecast: &Forecast, ln: f64) {
        let Workings { middle, panel, weights, location, .. } = forecast.workings();
        let Self { key, tool, shared, tuning } = self;
        let is_others = rests_on_fleet(question, Some(key), tool, *tuning);
        let present = |expert| is_present(question, expert) && (!is_others || expert == Expert::Fleet);
        let densities = panel.densities(ln.min((tuning.axis as f64 - 0.5) * WIDTH));
        key.evidence.add(&densities, tuning.evidence_kept, present);
        let contributions = std::array::from_fn(|expert| weights[expert] * densities[expert]);
        shared.weights.learn(location.experience, &contributions, present);

        add_error(key, tool, shared, ln - middle);
        let (low, high) = forecast.bounds();
        let missed = |missed: bool| f64::from(u8::from(missed));
        if location.uncertain.is_empty() {
            tool.offsets.learn(conformal::TOOL, missed(ln < low), missed(ln > high + 1e-9));
            key.offsets.learn(conformal::KEY, missed(ln < low), missed(ln > high + 1e-9));
        }

        let deviation = (ln - location.slow) * location.own_share;
        let own = ln - (ln - location.slow) * (1.0 - location.own_share);
        let (slow, recent) = shared.residuals_mut(location.experience);
        slow.add(deviation / location.spread);
        recent.add((own - location.recent) / location.spread);
        if key.calls >= CALLS_BEFORE_SLOPES {
            tool.regression.learn(&location.difference, deviation, location.spread);
        }
        if key.calls > 0 {
            tool.scatter(deviation, location.tool_spread);
            shared.scatter(deviation);
        }
        let spreads = (location.spread, location.tool_spread);
        key.count(own - location.shift, deviation, &question.covariates, spreads, *tuning);
        relocation::follow(key, location.spread);
        tool.count(ln, &question.covariates);
        if !question.key.failed {
            shared.durations.add(ln, Fading::DAEMON);
        }
    }

    /// The call would have ended beyond `ln`, and nobody knows where.
    fn learn_given_up(&mut self, question: &Question<'_>, forecast: &Forecast, ln: f64) {
        let Workings { panel, distribution, middle, location, .. } = forecast.workings();
        let Self { key, tool, shared, tuning } = self;
        let present = |expert| is_present(question, expert);
        // Half of what the forecast held possible beyond `ln` lies beyond this.
        let end = distribution.quantile(0.5 + 0.5 * distribution.below(ln)).max(ln);
        add_error(key, tool, shared, end - middle);
        key.evidence.add(&panel.each(|mass| survival::evidence(mass, ln)), tuning.evidence_kept, present);

        let (low, high) = forecast.bounds();
        // As probable as the forecast itself holds it.
        let longer = |ln: f64| 1.0 - distribution.below(ln);
        let beyond = if tuning.is_refined { longer(high) } else { MISSES };
        let was_above = if ln > high { 1.0 } else { beyond / longer(ln).max(beyond).max(f64::MIN_POSITIVE) };
        let was_below = if ln < low { MISSES } else { 0.0 };
        tool.offsets.learn(conformal::TOOL, was_below, was_above);
        key.offsets.learn(conformal::KEY, was_below, was_above);

        key.give_up(ln - location.shift, end - location.shift, &question.covariates, *tuning);
        tool.give_up(ln, &question.covariates);
        shared.durations.add_given_up(ln, Fading::DAEMON);
    }
}

/// A call took `error` longer than the middle of its forecast, in ln.
fn add_error(key: &mut KeyState, tool: &mut ToolState, shared: &mut Shared, error: f64) {
    for errors in [&mut key.errors, &mut tool.errors, &mut shared.errors] {
        errors.add(error);
    }
}

fn has_fleet(question: &Question<'_>) -> bool {
    question.fleet.is_some_and(|fleet| !fleet.is_empty())
}

/// Is there nothing but what other hosts saw?
fn rests_on_fleet(question: &Question<'_>, key: Option<&KeyState>, tool: &ToolState, tuning: Tuning) -> bool {
    let is_new = key.is_none_or(|key| key.learnt() == 0) && tool.durations.total() <= 0.0;
    is_new && has_fleet(question) && !tuning.mixes_prior_with_fleet
}

fn is_present(question: &Question<'_>, expert: Expert) -> bool {
    expert != Expert::Fleet || question.fleet.is_some()
}
