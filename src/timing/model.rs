//! Everything that one daemon has learnt about durations, in memory.
//!
//! Pure: a question goes in and a forecast comes out, an observation goes in and nothing comes out. Whoever owns the
//! model decides when to publish it: a clone shares all states with the original until one of them changes, so one task
//! learns on and readers hold the last clone. The store is the truth; what the model forgets to stay within its
//! [`ModelLimits`] can be replayed from there.

use std::sync::Arc;

use super::complexity::Covariates;
use super::estimator::prior::Prior;
use super::estimator::state::{self, KeyState};
use super::estimator::{self, Learning, Tuning};
use super::fleet::FleetCalls;
use super::forecast::Forecast;
use super::key::Key;
use super::outcome::Observation;
use super::table::SharedTable;

/// A call to come.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool in its mode.
    pub key: Key<'a>,
    /// How much it has to do.
    pub covariates: Covariates,
    /// What is believed without history.
    pub prior: Prior,
    /// What other hosts have seen of this key, if there is a fleet.
    pub fleet: Option<&'a FleetCalls>,
}

/// How much a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Tools in their modes; failures count apart.
    pub keys: usize,
    /// Tools; their failures count apart.
    pub tools: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { keys: 20_000, tools: 5_000 }
    }
}

/// What was learnt of all keys.
#[derive(Debug, Clone)]
pub struct Model {
    keys: SharedTable<KeyState>,
    tools: SharedTable<state::ToolState>,
    shared: Arc<state::Shared>,
    calls: u64,
    tuning: Tuning,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(ModelLimits::default())
    }
}

impl Model {
    /// A model that has seen nothing.
    pub fn new(limits: ModelLimits) -> Self {
        Self {
            keys: SharedTable::new(limits.keys),
            tools: SharedTable::new(limits.tools),
            shared: Arc::default(),
            calls: 0,
            tuning: Tuning::default(),
        }
    }

    /// The same with the constants of the reference implementation.
    #[must_use]
    pub(crate) fn into_reference(self) -> Self {
        Self { tuning: Tuning::REFERENCE, ..self }
    }

    /// The same without the correction of forecasts.
    #[must_use]
    pub fn uncorrected(self) -> Self {
        Self { tuning: Tuning { corrects: false, ..self.tuning }, ..self }
    }

    /// What a call will take.
    pub fn forecast(&self, question: &Question<'_>) -> Forecast {
        let key = self.keys.get(question.key);
        let tool = self.tools.get(tool_of(question.key));
        estimator::forecast(question, key, tool, &self.shared, self.tuning)
    }

    /// Learns how the call went that `forecast` was made for by [`Model::forecast`] from the same `question`, whose key
    /// is that of the call's outcome.
    pub fn observe(&mut self, question: &Question<'_>, forecast: &Forecast, observation: Observation) {
        self.calls += 1;
        let key = self.keys.touch(question.key, self.calls);
        let tool = self.tools.touch(tool_of(question.key), self.calls);
        let shared = Arc::make_mut(&mut self.shared);
        Learning { key, tool, shared, tuning: self.tuning }.learn(question, forecast, observation);
    }

    /// Learns a call that has ended without having been asked for: replaces the question's key by that of the outcome,
    /// and returns the forecast that would have been made.
    pub fn learn(&mut self, question: &Question<'_>, observation: Observation) -> Forecast {
        let question = Question { key: question.key.ended_in(observation.outcome), ..*question };
        let forecast = self.forecast(&question);
        self.observe(&question, &forecast, observation);
        forecast
    }

    /// Calls of `key` that were learnt from; 0 if it is not known or was forgotten.
    pub fn learnt(&self, key: Key<'_>) -> u32 {
        self.keys.get(key).map_or(0, KeyState::learnt)
    }

    /// Was any call of `tool` learnt from and not forgotten?
    pub fn knows(&self, tool: &str) -> bool {
        [false, true].into_iter().any(|failed| self.tools.get(Key { tool, mode: "", failed }).is_some())
    }

    /// All tools, in no order; one that also failed is there twice.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(key, _)| key.tool)
    }

    /// Says how many calls of `key` the store holds, when only the last of them were replayed. Nothing happens if the
    /// key is not known.
    pub fn set_samples(&mut self, key: Key<'_>, samples: u64) {
        if let Some(state) = self.keys.get_mut(key) {
            state.samples = samples;
        }
    }

    /// How many calls of `key` there are, as far as is known.
    pub fn samples(&self, key: Key<'_>) -> u64 {
        self.keys.get(key).map_or(0, |state| state.samples)
    }

    /// All keys with their samples, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (Key<'_>, u64)> {
        self.keys.iter().map(|(key, state)| (key, state.samples))
    }

    /// What this model takes.
    pub fn size(&self) -> Size {
        Size {
            keys: self.keys.len(),
            key_bytes: self.keys.bytes(KeyState::heap_bytes),
            tools: self.tools.len(),
            tool_bytes: self.tools.bytes(|tool| tool.durations.heap_bytes()),
        }
    }
}

/// What a model takes, without the 20 KB that all keys share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub keys: usize,
    /// What they take with their names and their places in the table, heap included.
    pub key_bytes: usize,
    pub tools: usize,
    /// What they take, likewise.
    pub tool_bytes: usize,
}

/// The key of a tool over its modes. Its failures are kept apart here as well, or a tool that fails fast would be
/// expected to work fast.
fn tool_of(key: Key<'_>) -> Key<'_> {
    Key { mode: "", ..key }
}

#[cfg(test)]
mod tests {
    use super::super::{Basis, Complexity, Confidence, Defaults, Outcome, Plan, PriorSource, Timeout};
    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn question<'a>(tool: &'a str, mode: &'a str) -> Question<'a> {
        sized(tool, mode, &Complexity::default())
    }

    fn sized<'a>(tool: &'a str, mode: &'a str, complexity: &Complexity) -> Question<'a> {
        let prior = Defaults::default().prior(tool, None, complexity);
        Question { key: Key::new(tool, mode), covariates: complexity.covariates(), prior, fleet: None }
    }

    fn record(model: &mut Model, question: &Question<'_>, outcome: Outcome, durations: &[u64]) {
        for &duration_ms in durations {
            model.learn(question, Observation { duration_ms, outcome });
        }
    }

    fn succeeded(question: &Question<'_>, durations: &[u64]) -> Model {
        let mut model = Model::default();
        record(&mut model, question, Outcome::Success, durations);
        model
    }

    fn check(durations: &[u64], estimate: std::ops::RangeInclusive<u64>, confidence: Confidence) {
        let question = question("reasoning_linear", "linear");
        let forecast = succeeded(&question, durations).forecast(&question);
        assert!(estimate.contains(&forecast.estimated_duration_ms()), "{forecast:?} after {durations:?}");
        assert_eq!(forecast.confidence(), confidence, "after {durations:?}");
        assert_eq!(forecast.samples(), durations.len() as u64);
    }

    #[test]
    fn document_003_is_kept() {
        check(&[12_000; 10], 10_000..=15_000, Confidence::High);
        check(&[300; 5], 250..=360, Confidence::High);
        check(&[3_000_000; 5], 2_500_000..=3_600_000, Confidence::High);
        check(&[1; 5], 1..=50, Confidence::High);
        check(&[12_000; 4], 10_000..=15_000, Confidence::Low);
        check(&[], 12_000..=12_000, Confidence::Low);
    }

    #[test]
    fn scattered_calls_are_not_foretold_with_confidence() {
        let wide: Vec<u64> = (0..40).map(|call| 100 * 3_u64.pow(call % 6)).collect();
        let narrow: Vec<u64> = (0..40).map(|call| 10_000 + 400 * (call * 7 % 40)).collect();
        check(&wide, 1..=HOUR_MS, Confidence::Low);
        check(&narrow, 10_000..=26_000, Confidence::Medium);
    }

    #[test]
    fn a_size_far_beyond_any_known_is_not_foretold_with_confidence() {
        let of = |length: u64| Complexity { content_length: Some(length), ..Complexity::default() };
        let mut model = Model::default();
        for length in [100, 200, 500, 1000, 2000, 5000, 100, 300, 900, 4000].repeat(5) {
            record(&mut model, &sized("fetch", "", &of(length)), Outcome::Success, &[10 * length]);
        }
        let check = |length: u64, expected: Confidence| {
            let forecast = model.forecast(&sized("fetch", "", &of(length)));
            assert_eq!(forecast.confidence(), expected, "{length}: {forecast:?}");
            let [_, high] = forecast.interval_ms();
            assert!(high > 10 * length.min(15_000), "{length}: up to {high} ms");
            forecast.timeout_probability(120_000)
        };
        assert!(check(4000, Confidence::High) < 0.01);
        assert!(check(20_000, Confidence::Medium) > 0.1);
        assert!(check(40_000, Confidence::Low) > 0.2);
        assert!(check(1_000_000_000, Confidence::Low) > 0.5);
    }

    #[test]
    fn a_cold_start_is_the_default_whatever_other_tools_did() {
        let perspectives = Complexity { num_perspectives: Some(4), ..Complexity::default() };
        let divergent = sized("reasoning_divergent", "divergent", &perspectives);
        for other_calls in [0, 1, 500] {
            let model = succeeded(&question("other", ""), &vec![5; other_calls]);
            let forecast = model.forecast(&divergent);
            assert_eq!((forecast.estimated_duration_ms(), forecast.basis()), (67_500, Basis::Default));
            assert!(forecast.will_time_out(30_000) && forecast.will_time_out(67_499));
            assert!(!forecast.will_time_out(67_500));
            let [low, high] = forecast.interval_ms();
            assert!(low <= 67_500 && 67_500 <= high && forecast.quantiles().p90 <= forecast.quantiles().p95);
        }
        let hinted = Question { prior: Prior { ms: 700, source: PriorSource::Hint }, ..divergent };
        let forecast = Model::default().forecast(&hinted);
        assert_eq!((forecast.estimated_duration_ms(), forecast.basis()), (700, Basis::Hint));
    }

    #[test]
    fn a_new_mode_starts_from_its_tool_and_a_new_tool_from_the_fleet() {
        let model = succeeded(&question("fetch", "json"), &[800; 20]);
        let html = question("fetch", "html");
        let forecast = model.forecast(&html);
        assert_eq!((forecast.basis(), forecast.samples()), (Basis::Tool, 0));
        assert!((500..1200).contains(&forecast.estimated_duration_ms()), "{forecast:?}");

        let call = Observation { duration_ms: 800, outcome: Outcome::Success };
        let others = FleetCalls::of_hosts(&[vec![call; 20]], 20);
        let forecast = Model::default().forecast(&Question { fleet: Some(&others), ..html });
        assert_eq!((forecast.basis(), forecast.samples(), forecast.fleet_samples()), (Basis::Fleet, 0, 20));
        assert!((500..1200).contains(&forecast.estimated_duration_ms()), "{forecast:?}");
    }

    #[test]
    fn a_threefold_slowdown_is_found_in_six_calls() {
        for (base, jitter) in [(400, 0), (2000, 40), (20_000, 700)] {
            let question = question("build", "");
            let duration = |call: u64, factor| factor * (base + jitter * (call * 31 % 7));
            let before: Vec<u64> = (0..200).map(|call| duration(call, 1)).collect();
            let mut model = succeeded(&question, &before);
            let after: Vec<u64> = (0..6).map(|call| duration(call, 3)).collect();
            record(&mut model, &question, Outcome::Success, &after);
            let estimate = model.forecast(&question).estimated_duration_ms() as f64;
            let middle = duration(1, 3) as f64;
            assert!((estimate / middle - 1.0).abs() < 0.25, "{estimate} after six calls of about {middle}");
        }
    }

    #[test]
    fn what_a_key_left_behind_does_not_come_back() {
        let question = question("build", "");
        let around = |middle: u64, call: u64| middle * (90 + call * 31 % 21) / 100;
        let before: Vec<u64> = (0..200).map(|call| around(10_000, call)).collect();
        let mut model = succeeded(&question, &before);
        for call in 1..=100 {
            record(&mut model, &question, Outcome::Success, &[around(1000, call)]);
            let longer = model.forecast(&question).timeout_probability(4000);
            let most = [1.0, 0.2, 0.08][usize::from(call > 5) + usize::from(call > 50)];
            assert!(longer <= most, "{longer} after {call} calls of 1 s");
        }
    }

    #[test]
    fn a_call_given_up_makes_timeouts_likelier() {
        let question = question("crawl", "");
        let durations: Vec<u64> = (0..30).map(|call| 5000 + 500 * (call % 5)).collect();
        let model = succeeded(&question, &durations);
        let before = model.forecast(&question);
        for outcome in [Outcome::Timeout, Outcome::Cancelled] {
            let mut model = model.clone();
            let mut last = before.timeout_probability(30_000);
            for _ in 0..4 {
                record(&mut model, &question, outcome, &[30_000]);
                let now = model.forecast(&question).timeout_probability(30_000);
                assert!(now > last, "{now} after {last}");
                last = now;
            }
            assert!(before.timeout_probability(30_000) < 0.05 && Timeout::of(last) != Timeout::Unlikely);
        }
    }

    /// Calls of 380 to 840 ms, the longer the larger.
    fn sizes_matter(calls: u64) -> impl Iterator<Item = (Complexity, u64)> {
        (0..calls).map(|call| {
            let length = 1000 + call * 7919 % 3001;
            let sizes = Complexity { content_length: Some(length), ..Complexity::default() };
            (sizes, 227 + length * 153 / 1000 + call * 31 % 7)
        })
    }

    #[test]
    fn a_size_that_is_not_said_is_the_usual_one() {
        let mut model = Model::default();
        for (sizes, duration_ms) in sizes_matter(60) {
            let observation = Observation { duration_ms, outcome: Outcome::Success };
            model.learn(&sized("write", "", &sizes), observation);
        }
        let bare = model.forecast(&question("write", ""));
        let [p05, p50, _, p95] = bare.quantiles().whole_ms();
        assert!((500..750).contains(&p50), "{p50}");
        let covered = sizes_matter(60).filter(|(_, ms)| (p05..=p95).contains(ms)).count();
        assert!(covered >= 53, "of 60 calls, {covered} are in {:?}", bare.interval_ms());
        assert!(p05 > 300 && p95 < 1000, "{:?}", bare.interval_ms());
        let at = |length| {
            let sizes = Complexity { content_length: Some(length), ..Complexity::default() };
            model.forecast(&sized("write", "", &sizes)).quantiles().p50
        };
        assert!(at(4000) > at(1000) + 0.4, "sizes that are said count");
    }

    #[test]
    fn sizes_after_calls_without_any_change_nothing_yet() {
        let durations: Vec<u64> = (0..60).map(|call| 1700 + call * 7919 % 5300).collect();
        let mut model = succeeded(&question("write", ""), &durations);
        let large = Complexity { content_length: Some(4000), context_tokens: Some(50_000), ..Complexity::default() };
        let (bare, asked) = (question("write", ""), sized("write", "", &large));
        let [first, second] = [bare, asked].map(|question| model.forecast(&question).quantiles().whole_ms());
        assert_eq!(first, second);
        // The first call that says its sizes is no call of a size beyond all others.
        record(&mut model, &asked, Outcome::Success, &[3000; 3]);
        let p50 = model.forecast(&bare).quantiles().whole_ms()[1];
        assert!((2000..6000).contains(&p50), "{p50}");
    }

    #[test]
    fn a_call_given_up_is_no_duration() {
        let question = question("crawl", "");
        let mut model = succeeded(&question, &[2000; 40]);
        let before = model.forecast(&question).quantiles().whole_ms();
        record(&mut model, &question, Outcome::Cancelled, &[50; 5]);
        let forecast = model.forecast(&question);
        assert_eq!(forecast.samples(), 45);
        assert!((1900..2100).contains(&forecast.estimated_duration_ms()), "{forecast:?}");
        let moved = forecast.quantiles().whole_ms()[1].abs_diff(before[1]);
        assert!(moved < 50, "{:?} after {before:?}", forecast.quantiles().whole_ms());

        let mut model = Model::default();
        for calls in 1..=40 {
            record(&mut model, &question, Outcome::Timeout, &[30_000]);
            let forecast = model.forecast(&question);
            assert_eq!(forecast.confidence(), Confidence::Low, "nothing ever ended in {calls} calls");
            assert_eq!(forecast.basis(), Basis::History);
            assert!(calls < 5 || forecast.timeout_probability(30_000) > 0.6, "{calls} calls");
        }
        record(&mut model, &question, Outcome::Success, &[40_000; 4]);
        assert_eq!(model.forecast(&question).confidence(), Confidence::Low, "four ended");
    }

    #[test]
    fn an_interval_ends_where_the_odds_of_a_time_out_do() {
        let question = question("fetch", "");
        for every in [4, 8, 16] {
            let mut model = Model::default();
            for call in 0..120 {
                let is_given_up = call % every == every - 1;
                let outcome = if is_given_up { Outcome::Timeout } else { Outcome::Success };
                let duration = if is_given_up { 30_000 } else { 4500 + call * 137 % 1000 };
                record(&mut model, &question, outcome, &[duration]);
            }
            let forecast = model.forecast(&question);
            let [.., p95] = forecast.quantiles().whole_ms();
            let beyond = forecast.timeout_probability(p95);
            assert!((0.01..0.1).contains(&beyond), "{beyond} beyond {p95} ms, where one in {every} is given up");
        }
    }

    #[test]
    fn a_key_that_has_moved_is_foretold_where_it_is() {
        let question = question("build", "");
        let around = |middle: u64, call: u64| middle * (90 + call * 31 % 21) / 100;
        let mut model = succeeded(&question, &(0..200).map(|call| around(1000, call)).collect::<Vec<_>>());
        for calls in [10, 20, 30, 40, 50] {
            record(
                &mut model,
                &question,
                Outcome::Success,
                &(0..10).map(|call| around(5000, call)).collect::<Vec<_>>(),
            );
            let probability = model.forecast(&question).timeout_probability(3000);
            assert!(probability > 0.9, "{probability} of what always is, after {calls} calls elsewhere");
        }
    }

    #[test]
    fn a_day_is_on_the_axis() {
        let mut totals = Vec::new();
        for hours in [3, 4, 5, 11, 23, 24] {
            let question = question("train", "");
            let duration = hours * HOUR_MS - HOUR_MS / 100 * (hours % 5);
            let forecast = succeeded(&question, &[duration; 12]).forecast(&question);
            let [low, high] = forecast.interval_ms();
            let estimate = forecast.estimated_duration_ms();
            assert!(low <= estimate && estimate <= high, "{estimate} is not in {low} to {high} after {hours} h");
            assert!((estimate as f64 / duration as f64).ln().abs() < 0.1, "{estimate} after calls of {duration}");
            assert_eq!(Timeout::of(forecast.timeout_probability(duration * 4 / 5)), Timeout::Likely, "{hours} h");
            assert_eq!(Timeout::of(forecast.timeout_probability(duration * 5 / 4)), Timeout::Unlikely, "{hours} h");
            let plan = Plan::of(vec![&forecast; 100]).unwrap();
            totals.push(plan.estimated_duration_ms() as f64 / (100 * duration) as f64);
        }
        assert!(totals.iter().all(|total| total.ln().abs() < 0.1), "a hundred steps, of those foreseen: {totals:?}");
    }

    #[test]
    fn the_rest_of_a_call_is_exact_within_a_bin() {
        let question = question("steady", "");
        let durations: Vec<u64> = (0..200).map(|call| 10_000 + call * 7919 % 2000).collect();
        let forecast = succeeded(&question, &durations).forecast(&question);
        for elapsed in (10_000..11_900).step_by(50) {
            let rest = forecast.remaining(elapsed);
            assert!(rest.quantiles_ms()[0] < 2000 && (rest.timeout_probability(elapsed) - 0.998).abs() < 1e-9);
            let whole = forecast.distribution();
            let [from, to] = [elapsed, elapsed + 100].map(|ms| (ms as f64).ln());
            let truth = 1.0 - whole.between(from, to) / (1.0 - whole.below(from));
            let said = rest.timeout_probability(elapsed + 100);
            assert!((said - truth).abs() < 2e-3, "{said} is not {truth} after {elapsed} ms");
        }
    }

    #[test]
    fn failures_are_kept_apart() {
        let question = question("fetch", "html");
        let mut model = Model::default();
        record(&mut model, &question, Outcome::Error, &[5; 50]);
        let forecast = model.forecast(&question);
        assert_eq!((forecast.basis(), forecast.estimated_duration_ms()), (Basis::Default, 15_000));
        record(&mut model, &question, Outcome::Success, &[9000; 10]);
        record(&mut model, &question, Outcome::Error, &[5; 50]);
        let forecast = model.forecast(&question);
        assert!((8000..11_000).contains(&forecast.estimated_duration_ms()) && forecast.samples() == 10, "{forecast:?}");
        let failed = Question { key: question.key.ended_in(Outcome::Error), ..question };
        let forecast = model.forecast(&failed);
        assert!(forecast.estimated_duration_ms() <= 50 && forecast.samples() == 100, "{forecast:?}");
    }

    #[test]
    fn memory_is_bounded_and_the_lifetime_count_outlives_it() {
        let mut model = Model::new(ModelLimits { keys: 32, tools: 16 });
        for call in 0..10_000 {
            let tool = format!("tool-{call}");
            record(&mut model, &question(&tool, ""), Outcome::Success, &[call]);
            record(&mut model, &question("steady", ""), Outcome::Success, &[50]);
            let size = model.size();
            assert!(size.keys <= 32 && size.tools <= 16 && size.key_bytes < 40_000, "{size:?}");
        }
        assert_eq!(model.forecast(&question("steady", "")).samples(), 10_000);
        assert_eq!(model.learnt(Key::new("tool-5", "")), 0);
        record(&mut model, &question("tool-5", ""), Outcome::Success, &[5]);
        model.set_samples(Key::new("tool-5", ""), 7000);
        assert_eq!(model.forecast(&question("tool-5", "")).samples(), 7000);
        assert_eq!(model.forecast(&question("tool-5", "")).confidence(), Confidence::Low);
        model.set_samples(Key::new("never", ""), 7000);
        assert_eq!(model.forecast(&question("never", "")).samples(), 0);
    }

    #[test]
    fn the_last_fifty_calls_restore_a_key() {
        let question = question("build", "");
        let durations: Vec<u64> = (0..2000).map(|call| 3000 + 37 * (call * 7919 % 100)).collect();
        let whole = succeeded(&question, &durations).forecast(&question);
        let replayed = succeeded(&question, &durations[1950..]).forecast(&question);
        let (whole, replayed) = (whole.quantiles(), replayed.quantiles());
        assert!((whole.p50 - replayed.p50).abs() < 0.1 && (whole.p95 - replayed.p95).abs() < 0.2);
    }

    #[test]
    fn the_steps_of_a_plan_share_what_makes_them_slow() {
        let question = question("build", "");
        let durations: Vec<u64> = (0..60).map(|call| 4000 + call * 7919 % 3000).collect();
        let step = succeeded(&question, &durations).forecast(&question);
        let width = |count| {
            let [p05, .., p95] = Plan::of(vec![&step; count]).unwrap().quantiles_ms();
            (p95 as f64 / p05 as f64).ln()
        };
        // Independent steps would scatter ever less: by .1 at thirty.
        assert!(width(30) > 0.6 && width(100) > width(30), "{} and {}", width(30), width(100));
        let steady = succeeded(&question, &[5000; 20]).forecast(&question);
        assert_eq!(steady.confidence(), Confidence::High);
        assert_eq!(Plan::of(vec![&steady; 30]).unwrap().confidence(), Confidence::Medium, "thirty are less sure");
        let mut model = succeeded(&question, &[5000; 4]);
        record(&mut model, &question, Outcome::Timeout, &[5000; 9]);
        let four = model.forecast(&question);
        assert_eq!(Plan::of([&steady, &four]).unwrap().confidence(), Confidence::Low);
    }

    #[test]
    fn a_published_clone_stays_as_it_was() {
        let question = question("build", "");
        let mut model = succeeded(&question, &[1000; 8]);
        let published = model.clone();
        let before = published.forecast(&question).quantiles();
        record(&mut model, &question, Outcome::Success, &[90_000; 20]);
        assert_eq!(published.forecast(&question).quantiles(), before);
        assert_ne!(model.forecast(&question).quantiles(), before);
    }

    #[test]
    fn a_running_call_takes_at_least_what_it_took() {
        let question = question("build", "");
        let durations: Vec<u64> = (0..40).map(|call| if call % 2 == 0 { 1000 } else { 60_000 }).collect();
        let forecast = succeeded(&question, &durations).forecast(&question);
        let rest = forecast.remaining(5000);
        assert!((50_000..60_000).contains(&rest.quantiles_ms()[1]), "{:?}", rest.quantiles_ms());
        assert!(rest.timeout_probability(30_000) > 0.9 && forecast.timeout_probability(30_000) < 0.6);
        assert!((rest.timeout_probability(4999) - 1.0).abs() < f64::EPSILON);
        let beyond = forecast.remaining(10 * HOUR_MS).quantiles_ms();
        assert!(beyond.is_sorted());
    }

    #[test]
    fn a_plan_is_narrower_than_the_sum_of_its_steps() {
        let question = question("build", "");
        let durations: Vec<u64> = (0..60).map(|call| if call % 10 == 0 { 9000 } else { 1000 + call }).collect();
        let step = succeeded(&question, &durations).forecast(&question);
        let steps = vec![&step; 8];
        let plan = Plan::of(steps).unwrap();
        let [_, p50, _, p95] = plan.quantiles_ms();
        let [_, step50, _, step95] = step.quantiles().whole_ms();
        assert!(p50 > 8 * step50 && p95 < 8 * step95, "{p50} against {step50}, {p95} against {step95}");
        assert!(plan.timeout_probability(1000) > 0.99);
        assert_eq!(Plan::of([&step]).unwrap().estimated_duration_ms(), step.estimated_duration_ms());
        assert!(Plan::of([]).is_none());

        let cold = Model::default();
        let linear = cold.forecast(&self::question("reasoning_linear", ""));
        let tree = cold.forecast(&self::question("reasoning_tree", ""));
        let plan = Plan::of([&linear, &tree, &step]).unwrap();
        assert_eq!(plan.estimated_duration_ms(), 30_000 + step.estimated_duration_ms());
        assert_eq!((plan.basis(), plan.samples(), plan.confidence()), (Basis::Default, 0, Confidence::Low));
        let [p05, .., p95] = plan.quantiles_ms();
        assert!(p05 <= plan.estimated_duration_ms() && plan.estimated_duration_ms() <= p95);
        assert_eq!(Plan::of([&tree]).unwrap().quantiles_ms(), tree.quantiles().whole_ms());
        let steady = succeeded(&question, &[5000; 20]).forecast(&question);
        let plan = Plan::of([&steady, &steady, &steady]).unwrap();
        assert_eq!((plan.basis(), plan.samples(), plan.confidence()), (Basis::History, 20, Confidence::High));
        assert!((13_000..17_500).contains(&plan.estimated_duration_ms()));
    }
}
