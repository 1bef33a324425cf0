//! Calls heard of in the order in which a daemon would have: a call is asked about when it begins, and learnt once it
//! has ended.
//!
//! Calls overlap. One that still runs is not known yet, however long before it began; to learn each call before the
//! next is asked about would tell the forecast what nobody could know.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

use super::stream::{Row, Stream};
use crate::timing::{Defaults, Key, Model, Observation, Outcome, Question};

/// A daemon for each host of a stream.
pub(super) struct Replay<'s> {
    stream: &'s Stream,
    defaults: &'s Defaults,
    /// What each host begins with.
    blank: Model,
    models: HashMap<&'s str, Model>,
    /// Calls that have begun, the one that ends first at the top.
    running: BinaryHeap<Reverse<(i64, usize)>>,
    /// Calls that take longer are given up, in ms.
    patience_ms: Option<u64>,
    /// Calls that ended since somebody asked.
    ended: Vec<usize>,
    /// Time to learn a call whose forecast is at hand, in µs.
    observe_us: Vec<f64>,
}

impl<'s> Replay<'s> {
    pub(super) fn new(stream: &'s Stream, defaults: &'s Defaults) -> Self {
        let (models, running) = (HashMap::new(), BinaryHeap::new());
        let blank = Model::default();
        Self { stream, defaults, blank, models, running, patience_ms: None, ended: Vec::new(), observe_us: Vec::new() }
    }

    /// The same with hosts that begin with `blank`.
    pub(super) fn beginning_with(self, blank: Model) -> Self {
        Self { blank, ..self }
    }

    /// What is replayed, and what is believed beforehand.
    pub(super) fn asked(&self) -> (&'s Stream, &'s Defaults) {
        (self.stream, self.defaults)
    }

    /// The same with callers that give up after so many ms.
    pub(super) fn giving_up(self, after_ms: u64) -> Self {
        Self { patience_ms: Some(after_ms), ..self }
    }

    /// The model of the host of the call with this `index`, as it is when the call begins.
    pub(super) fn before(&mut self, index: usize) -> &Model {
        let row = &self.stream.rows[index];
        if let Some(now) = row.at_ms {
            while let Some(Reverse((ended, _))) = self.running.peek()
                && *ended <= now
            {
                self.learn_next();
            }
        }
        self.models.entry(&row.host).or_insert_with(|| self.blank.clone())
    }

    /// The calls that ended since this was asked before.
    pub(super) fn take_ended(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.ended)
    }

    /// The call with this `index` begins.
    pub(super) fn begin(&mut self, index: usize) {
        let row = &self.stream.rows[index];
        let took = i64::try_from(self.seen(row).duration_ms).unwrap_or(i64::MAX);
        self.running.push(Reverse((row.at_ms.unwrap_or_default().saturating_add(took), index)));
        if row.at_ms.is_none() {
            self.learn_next();
        }
    }

    /// All models, once every call has ended.
    pub(super) fn end(mut self) -> (HashMap<&'s str, Model>, Vec<f64>) {
        while !self.running.is_empty() {
            self.learn_next();
        }
        (self.models, self.observe_us)
    }

    fn learn_next(&mut self) {
        let Some(Reverse((_, index))) = self.running.pop() else { return };
        self.ended.push(index);
        let row = &self.stream.rows[index];
        let observation = self.seen(row);
        let key = Key::new(&row.tool, &row.mode).ended_in(observation.outcome);
        let question = Question { key, ..question(row, self.defaults) };
        let model = self.models.entry(&row.host).or_insert_with(|| self.blank.clone());
        let forecast = model.forecast(&question);
        let asked = Instant::now();
        model.observe(&question, &forecast, observation);
        self.observe_us.push(asked.elapsed().as_secs_f64() * 1e6);
    }

    /// What the caller sees of the call.
    fn seen(&self, row: &Row) -> Observation {
        match self.patience_ms {
            Some(limit) if row.observation.duration_ms > limit => {
                Observation { duration_ms: limit, outcome: Outcome::Timeout }
            }
            _ => row.observation,
        }
    }
}

/// What is asked before the call of `row`, when nobody knows how it will end.
pub(super) fn question<'r>(row: &'r Row, defaults: &Defaults) -> Question<'r> {
    Question {
        key: Key::new(&row.tool, &row.mode),
        covariates: row.complexity.covariates(),
        prior: defaults.prior(&row.tool, None, &row.complexity),
        fleet: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as (start, duration), and how many were known when each began.
    fn check(calls: &[(Option<i64>, u64)], expected: &[u32]) {
        let mut text = "ts_ms,tool,duration_ms\n".to_owned();
        for (at, duration) in calls {
            text += &format!("{},a,{duration}\n", at.map_or_else(String::new, |at| at.to_string()));
        }
        let stream = Stream::parse(text.as_bytes()).unwrap();
        let defaults = Defaults::default();
        let mut replay = Replay::new(&stream, &defaults);
        let mut known = Vec::new();
        for index in 0..stream.rows.len() {
            known.push(replay.before(index).learnt(Key::new("a", "")));
            replay.begin(index);
        }
        assert_eq!(known, expected, "known at the start of each of {calls:?}");
        assert_eq!(replay.end().0[""].learnt(Key::new("a", "")), calls.len() as u32);
    }

    #[test]
    fn a_call_that_still_runs_is_not_known() {
        check(&[(Some(0), 100), (Some(10), 5), (Some(50), 5), (Some(200), 5)], &[0, 0, 1, 3]);
        // Rows that are out of order in the file.
        check(&[(Some(200), 5), (Some(0), 100), (Some(50), 5), (Some(10), 5)], &[0, 0, 1, 3]);
        // Without a time for each, the order of the file.
        check(&[(Some(200), 5), (None, 100), (Some(50), 5)], &[0, 1, 2]);
    }

    #[test]
    fn what_takes_too_long_is_given_up() {
        let stream = Stream::parse(b"tool,duration_ms\na,10\na,100000\n").unwrap();
        let defaults = Defaults::default();
        let mut replay = Replay::new(&stream, &defaults).giving_up(50);
        (0..2).for_each(|index| replay.begin(index));
        let (models, _) = replay.end();
        let forecast = models[""].forecast(&question(&stream.rows[0], &defaults));
        assert_eq!(forecast.samples(), 2);
        assert!(forecast.timeout_probability(50) > 0.2 && forecast.timeout_probability(50) < 0.8);
    }
}
