//! What is learnt from calls that ended: one owner observes and publishes, readers hold what was published last.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::forecasts::Forecasts;
use super::published::Published;
use crate::catalog::Catalog;
use crate::session::Sessions;
use crate::store::{FleetKey, Followed, History};
use crate::suggest::Transitions;
use crate::suggest::transitions::Transition;
use crate::timing::{
    Complexity, Defaults, Execution, Fleet, Forecast, Key, KeyCount, Model, Observation, Predicted, Question,
};

/// Everything learnt, immutable; a clone shares what did not change.
#[derive(Debug, Clone, Default)]
pub struct Learnt {
    pub model: Model,
    /// What other hosts saw.
    pub fleet: Fleet,
    pub sessions: Sessions,
    /// What sessions called next.
    pub transitions: Transitions,
    /// How the forecasts of each tool and mode came true.
    pub accuracy: imbl::HashMap<Arc<str>, Accuracy>,
    forecasts: Forecasts,
}

impl Learnt {
    /// Takes what other hosts saw.
    fn hear(&mut self, fleet: &[FleetKey]) {
        for FleetKey { tool, mode, failed, calls } in fleet {
            self.fleet.put(Key { tool, mode, failed: *failed }, calls.clone());
        }
    }

    /// Learns what sessions called, and what the store counted of it.
    fn follow(&mut self, executions: &[Execution], transitions: &[Transition]) {
        for execution in executions {
            if let Some(session) = &execution.session {
                self.sessions.called(&execution.tenant, session, &execution.tool, execution.at_ms);
            }
        }
        for transition in transitions {
            self.transitions.put(transition);
        }
    }
}

/// Calls of one request that are durable.
#[derive(Debug, Clone, Default)]
pub struct DurableCalls {
    /// In their order.
    pub executions: Vec<Execution>,
    /// The lifetime counts of their keys, as the store has them.
    pub samples: Vec<u64>,
    /// What they are called by in the store.
    pub ids: Vec<i64>,
    /// What the store counted of sessions.
    pub transitions: Arc<[Transition]>,
}

/// Records that were learnt while the history before them is missing, with the counts of their keys.
#[derive(Debug, Default)]
struct Since {
    executions: VecDeque<(Execution, u64)>,
    transitions: VecDeque<Transition>,
    /// The ids of the executions.
    ids: VecDeque<i64>,
    /// The highest before them.
    before: i64,
}

/// Records of this daemon as they were learnt.
#[derive(Debug, Default)]
struct OwnRecords {
    since: Option<Since>,
    /// The highest id.
    last: i64,
    /// Up to these their durations, and the calls of their sessions, were read anew, whenever they come.
    folded: i64,
    through: i64,
}

/// Records, and transitions, of such a time that are kept: it ends soon after the first of them.
const MAX_SINCE: usize = 20_000;

impl Since {
    fn note(&mut self, calls: &DurableCalls) {
        let DurableCalls { executions, samples, ids, transitions } = calls;
        self.executions.extend(executions.iter().cloned().zip(samples.iter().copied()));
        self.transitions.extend(transitions.iter().cloned());
        self.ids.extend(ids);
        self.ids.drain(..self.ids.len().saturating_sub(MAX_SINCE));
        self.executions.drain(..self.executions.len().saturating_sub(MAX_SINCE));
        self.transitions.drain(..self.transitions.len().saturating_sub(MAX_SINCE));
    }
}

/// How forecasts came true, of late: older calls fade.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Accuracy {
    calls: f64,
    near: f64,
    covered: f64,
}

/// What a past call counts for less with each new one.
const FADE: f64 = 0.95;

impl Accuracy {
    fn observe(&mut self, verdict: &ForecastVerdict) {
        let count = |sum: f64, hit: bool| sum * FADE + f64::from(u8::from(hit));
        *self = Self {
            calls: count(self.calls, true),
            near: count(self.near, verdict.is_near),
            covered: count(self.covered, verdict.is_covered),
        };
    }

    /// Share of calls within 20 % (or 50 ms) of the estimate; nothing before the first.
    pub fn within_20pct(&self) -> Option<f64> {
        (self.calls > 0.0).then(|| self.near / self.calls)
    }

    /// Share of calls inside the interval that nine in ten should be in; nothing before the first.
    pub fn coverage(&self) -> Option<f64> {
        (self.calls > 0.0).then(|| self.covered / self.calls)
    }
}

/// How one call compares with what would have been said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForecastVerdict {
    /// Recorded duration divided by the estimated one.
    pub ratio: f64,
    /// Within 20 %, or 50 ms.
    pub is_near: bool,
    pub is_covered: bool,
}

impl ForecastVerdict {
    fn of(forecast: &Forecast, duration_ms: u64) -> Self {
        // What takes less is learnt as a millisecond, and none is forecast to take less.
        let duration_ms = duration_ms.max(1);
        let (estimated, took) = (forecast.estimated_duration_ms().max(1) as f64, duration_ms as f64);
        let [low, high] = forecast.interval_ms();
        Self {
            ratio: took / estimated,
            is_near: (took - estimated).abs() <= (0.2 * took).max(50.0),
            is_covered: (low..=high).contains(&duration_ms),
        }
    }
}

/// What was found out when a call was learnt.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LearntCall {
    /// Nothing of a call that was given up, or whose duration is not known.
    pub verdict: Option<ForecastVerdict>,
    /// What was said of the call just before; nothing if its duration is not known.
    pub predicted: Option<Predicted>,
}

/// The owner of what is learnt.
#[derive(Debug)]
pub struct Learner {
    /// Replaced after records are durable.
    learnt: Published<Learnt>,
    own: Mutex<OwnRecords>,
    defaults: Defaults,
    /// A model that has seen nothing.
    blank: Model,
}

impl Learner {
    /// A learner that knows nothing yet.
    pub fn new(defaults: Defaults, blank: Model) -> Self {
        let learnt = Learnt { model: blank.clone(), ..Learnt::default() };
        Self { learnt: Published::new(learnt), own: Mutex::default(), defaults, blank }
    }

    /// What is known now.
    pub fn learnt(&self) -> Arc<Learnt> {
        self.learnt.snapshot()
    }

    /// The durations that stand in for history.
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The history is missing: what is learnt until it comes is learnt again after it.
    pub fn await_history(&self) {
        let mut own = self.own.lock();
        let before = own.last;
        own.since.get_or_insert_with(|| Since { before, ..Since::default() });
    }

    /// Learns again what the store remembers, and after it what came while that was missing.
    pub fn replay(&self, history: &History, catalog: &Catalog) {
        // Beside what is known now, so that nobody who records waits.
        let mut learnt = Learnt { model: self.blank.clone(), ..Learnt::default() };
        learnt.hear(&history.fleet);
        self.learn(&mut learnt, &history.executions, &[], catalog);
        for transition in &history.transitions {
            learnt.transitions.put(transition);
        }
        for call in &history.calls {
            // In the order of the store, whoever was told of it: no later one comes before it.
            learnt.sessions.heard(&call.tenant, &call.session, &call.tool, call.at_ms);
        }
        for count in &history.counts {
            learnt.model.set_samples(counted(count), count.samples);
        }
        self.learnt.update(|known| {
            if let Some(mut since) = self.own.lock().since.take() {
                let (executions, samples): (Vec<Execution>, Vec<u64>) = since.executions.into_iter().unzip();
                self.learn(&mut learnt, &executions, &samples, catalog);
                learnt.follow(&executions, since.transitions.make_contiguous());
            }
            *known = learnt;
        });
    }

    /// Learns from the calls of each request and publishes once. Says how each call compares with its forecast, and
    /// what that was.
    pub fn observe(&self, group: &[impl Borrow<DurableCalls>], catalog: &Catalog) -> Vec<Vec<LearntCall>> {
        self.learnt.update(|learnt| {
            let mut own = self.own.lock();
            let mut told: Option<&Arc<[Transition]>> = None;
            let mut lessons = Vec::with_capacity(group.len());
            for calls in group.iter().map(Borrow::borrow) {
                let DurableCalls { executions, samples, ids, transitions } = calls;
                // Those of a request were stored at once.
                let first = ids.first().copied().unwrap_or(i64::MAX);
                lessons.push(if first > own.folded {
                    self.learn(learnt, executions, samples, catalog)
                } else {
                    self.learn(&mut learnt.clone(), executions, samples, catalog)
                });
                // Those that were stored together are told the same.
                let is_known = told.is_some_and(|told| Arc::ptr_eq(told, transitions));
                let followed = if first > own.through { &executions[..] } else { &[] };
                learnt.follow(followed, if is_known { &[] } else { transitions });
                told = Some(transitions);
                own.last = own.last.max(ids.last().copied().unwrap_or_default());
                if let Some(since) = &mut own.since {
                    since.note(calls);
                }
            }
            lessons
        })
    }

    /// Learns anew what was read anew, if it was and has all that was learnt before this was awaited, and after it what
    /// came since.
    pub fn relearn(&self, followed: &Followed, catalog: &Catalog) -> bool {
        let Some(relearnt) = &followed.relearnt else { return false };
        // Beside what is known now, so that nobody who records waits.
        let known = self.learnt();
        let (fleet, transitions) = (known.fleet.clone(), known.transitions.clone());
        let mut learnt = Learnt { model: self.blank.clone(), fleet, transitions, ..Learnt::default() };
        learnt.hear(&followed.fleet);
        self.learn(&mut learnt, &relearnt.executions, &[], catalog);
        for call in &relearnt.calls {
            learnt.sessions.heard(&call.tenant, &call.session, &call.tool, call.at_ms);
        }
        for count in &relearnt.counts {
            learnt.model.set_samples(counted(count), count.samples);
        }
        self.learnt.update(|known| {
            let mut own = self.own.lock();
            let Some(mut since) = own.since.take_if(|since| since.before <= relearnt.folded) else { return false };
            (own.folded, own.through) = (relearnt.folded, relearnt.through);
            let later = |beyond: i64| -> (Vec<Execution>, Vec<u64>) {
                let noted = since.ids.iter().zip(&since.executions).filter(move |(id, _)| **id > beyond);
                noted.map(|(_, noted)| noted.clone()).unzip()
            };
            let ((executions, samples), (called, _)) = (later(relearnt.folded), later(relearnt.through));
            self.learn(&mut learnt, &executions, &samples, catalog);
            learnt.follow(&called, since.transitions.make_contiguous());
            learnt.follow(&[], &followed.transitions);
            *known = learnt;
            true
        })
    }

    /// Learns what other daemons learnt, and publishes.
    pub fn follow(&self, followed: &Followed, catalog: &Catalog) {
        let Followed { executions, counts, fleet, calls, transitions, .. } = followed;
        let is_empty = executions.is_empty() && counts.is_empty() && fleet.is_empty();
        if is_empty && calls.is_empty() && transitions.is_empty() {
            return;
        }
        self.learnt.update(|learnt| {
            learnt.hear(fleet);
            // A record of this daemon's may have been counted together with them already.
            let known = counts.iter().map(|count| learnt.model.samples(counted(count)).max(count.samples));
            let known: Vec<u64> = known.collect();
            self.learn(learnt, executions, &[], catalog);
            for (count, samples) in counts.iter().zip(known) {
                learnt.model.set_samples(counted(count), samples);
            }
            for call in calls {
                learnt.sessions.heard(&call.tenant, &call.session, &call.tool, call.at_ms);
            }
            for transition in transitions {
                learnt.transitions.put(transition);
            }
        });
    }

    /// Learns how long calls took. `samples` are as many as are known: a key that was forgotten and comes back has them
    /// all the same.
    fn learn(
        &self,
        learning: &mut Learnt,
        executions: &[Execution],
        samples: &[u64],
        catalog: &Catalog,
    ) -> Vec<LearntCall> {
        let mut hints: HashMap<&str, Option<u64>> = HashMap::new();
        let mut lessons = Vec::with_capacity(executions.len());
        for (number, execution) in executions.iter().enumerate() {
            let Some(duration_ms) = execution.duration_ms else {
                lessons.push(LearntCall::default());
                continue;
            };
            let tool = execution.tool.as_str();
            let hint = *hints.entry(tool).or_insert_with(|| catalog.get(tool).and_then(|entry| entry.hint_ms()));
            let complexity = Complexity::from(&execution.measures);
            let question = question(&self.defaults, tool, execution.mode.as_deref(), hint, &complexity);
            let observation = Observation { duration_ms, outcome: execution.outcome };
            let key = question.key.ended_in(execution.outcome);
            let question = Question { key, fleet: learning.fleet.get(key), ..question };
            let forecast = learning.model.learn(&question, observation);
            if let Some(samples) = samples.get(number) {
                // Batches are learnt in any order; the largest count is the latest.
                let latest = (*samples).max(forecast.samples());
                learning.model.set_samples(question.key.ended_in(execution.outcome), latest);
            }
            // A call that was given up tells nothing about how long it would have taken.
            let verdict = (!execution.outcome.is_censored()).then(|| ForecastVerdict::of(&forecast, duration_ms));
            if let Some(verdict) = &verdict {
                let name = accuracy_name(question.key.ended_in(execution.outcome));
                learning.accuracy.entry(name).or_default().observe(verdict);
            }
            lessons.push(LearntCall { verdict, predicted: Some(Predicted::of(&forecast)) });
        }
        while learning.accuracy.len() > MAX_ACCURACIES {
            let Some(name) = learning.accuracy.keys().next().cloned() else { break };
            learning.accuracy.remove(&name);
        }
        lessons
    }

    /// What a call will take, as far as `learnt` tells.
    pub fn forecast(&self, learnt: &Learnt, catalog: &Catalog, key: Key<'_>, complexity: &Complexity) -> Arc<Forecast> {
        let hint = catalog.get(key.tool).and_then(|entry| entry.hint_ms());
        learnt.forecasts.of(key, complexity, hint, || {
            let question = question(&self.defaults, key.tool, Some(key.mode), hint, complexity);
            learnt.model.forecast(&Question { key, fleet: learnt.fleet.get(key), ..question })
        })
    }
}

fn counted(KeyCount { tool, mode, failed, .. }: &KeyCount) -> Key<'_> {
    Key { tool, mode: mode.as_deref().unwrap_or_default(), failed: *failed }
}

/// Keys whose accuracy is known; as many as the model keeps.
const MAX_ACCURACIES: usize = 20_000;

/// The name under which a key's accuracy is kept.
pub fn accuracy_name(key: Key<'_>) -> Arc<str> {
    format!("{}\n{}", key.tool, key.shown_mode()).into()
}

fn question<'q>(
    defaults: &Defaults,
    tool: &'q str,
    mode: Option<&'q str>,
    hint: Option<u64>,
    complexity: &Complexity,
) -> Question<'q> {
    Question {
        key: Key::new(tool, mode.unwrap_or_default()),
        covariates: complexity.covariates(),
        prior: defaults.prior(tool, hint, complexity),
        fleet: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Relearnt;
    use crate::store::suite::records::execution;

    #[test]
    fn a_call_of_no_time_comes_true() {
        let (learner, catalog) = (Learner::new(Defaults::default(), Model::default()), Catalog::default());
        let calls = vec![execution("a", None, 0, None); 50];
        let samples: Vec<u64> = (1..=50).collect();
        let lessons = learner.learn(&mut Learnt::default(), &calls, &samples, &catalog);
        let verdict = lessons.last().unwrap().verdict.unwrap();
        assert!(verdict.is_covered && verdict.is_near, "{verdict:?}");
        assert!((verdict.ratio - 1.0).abs() < 0.01, "{verdict:?}");
    }

    /// One call that is durable.
    fn one(executions: Vec<Execution>, id: i64, samples: u64) -> DurableCalls {
        DurableCalls { executions, samples: vec![samples], ids: vec![id], ..DurableCalls::default() }
    }

    #[test]
    fn what_is_read_anew_stands_in_place_of_what_was_learnt() {
        let (call, catalog) = (|| vec![execution("a", None, 500, None)], Catalog::default());
        let check = |folded: i64, is_taken: bool, expected: [u32; 2]| {
            let learner = Learner::new(Defaults::default(), Model::default());
            let learnt = || learner.learnt().model.learnt(Key::new("a", ""));
            let observe = |id: i64| drop(learner.observe(&[one(call(), id, 1)], &catalog));
            // The second was told to another daemon, too, and is heard of.
            observe(1);
            observe(2);
            learner.follow(&Followed { executions: call(), ..Followed::default() }, &catalog);
            learner.await_history();
            observe(3);
            assert_eq!(learnt(), 4);
            let executions = vec![execution("a", None, 500, None); folded as usize];
            let relearnt = Some(Relearnt { executions, folded, through: folded, ..Relearnt::default() });
            let is_relearnt = learner.relearn(&Followed { relearnt, ..Followed::default() }, &catalog);
            assert_eq!((is_relearnt, learnt()), (is_taken, expected[0]), "{folded}");
            observe(4);
            assert_eq!(learnt(), expected[1], "{folded}");
        };
        // What was learnt before it was awaited is not all there.
        check(1, false, [4, 5]);
        check(2, true, [3, 4]);
        check(3, true, [3, 4]);
        // It was stored, and comes late.
        check(4, true, [4, 4]);
    }

    #[test]
    fn what_others_counted_is_counted_once() {
        let (learner, catalog) = (Learner::new(Defaults::default(), Model::default()), Catalog::default());
        let calls = |count: usize| vec![execution("a", None, 500, None); count];
        let count = |samples: u64| KeyCount { tool: "a".into(), mode: None, failed: false, samples };
        let check = |learnt: u32, samples: u64| {
            let (model, key) = (&learner.learnt().model, Key::new("a", ""));
            assert_eq!((model.learnt(key), model.samples(key)), (learnt, samples));
        };
        let follow = |executions: Vec<Execution>, samples: u64| {
            let followed = Followed { executions, counts: vec![count(samples)], ..Followed::default() };
            learner.follow(&followed, &catalog);
        };
        let observe = |id: i64, samples: u64| drop(learner.observe(&[one(calls(1), id, samples)], &catalog));
        // Its own call was counted together with three of others that are heard of later.
        observe(1, 4);
        check(1, 4);
        follow(calls(3), 4);
        check(4, 4);
        observe(2, 5);
        check(5, 5);
        // Of many only the last are told.
        follow(calls(2), 105);
        check(7, 105);
        // What was counted before its own latest call says nothing new.
        observe(3, 107);
        follow(calls(1), 106);
        check(9, 107);
    }
}
