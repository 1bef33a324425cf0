//! How good the forecasts are on a recorded history: each call is predicted, then judged, then learnt.
//!
//! Calls are taken in the order in which they began, and learnt once they had ended; how a call ends is not known
//! before, so that all are asked about as calls that succeed. Averages over a history hide what an operator wants to
//! know: do intervals cover what they say, does "high" mean it, do announced timeouts happen. So every call of a stream
//! is forecast from the calls before it, as the daemon would have, with a model per host; the [`ForecastFigures`]
//! compare what was said with what happened, beside two simple rivals. [`agreement`] compares with another
//! implementation's answers instead; [`track()`] has the calls of one key, to be looked at.
//!
//! A call that was given up is learnt, but judged only by whether a timeout was foretold.

pub mod agreement;
mod baseline;
mod figures;
mod given_up;
mod plans;
mod replay;
mod sheet;
pub mod stream;
mod track;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

pub use figures::{Band, Baseline, Baselines, FleetFigures, ForecastFigures, TimeoutFigures};
pub use given_up::GivenUpFigures;
pub use plans::PlanFigures;
pub use sheet::SheetError;
pub use stream::{Row, Stream};
pub use track::{Point, Track, track};

use super::estimator::grid::ln_ms;
use super::{Covariates, Defaults, FleetCalls, Forecast, Key, Model, Observation, Outcome, Question};
use baseline::{Sorted, median, quantile};
use figures::Judge;
use plans::PlanJudge;
use replay::{Replay, question};

/// Calls of a key on a new host that a fleet should help with.
const FIRST_CALLS: u32 = 5;

/// What was said of one call.
#[derive(Debug)]
pub struct Said<'s> {
    /// The call.
    pub row: &'s Row,
    /// What was said when it began.
    pub forecast: &'s Forecast,
    /// The stream's P90, which timeouts are judged at, in ms.
    pub limit_ms: u64,
}

/// Replays `stream` to daemons that begin with `blank`, and says how good the forecasts were; tells `hear` of each. The
/// only thing here that looks at a clock.
pub fn evaluate(
    stream: &Stream,
    defaults: &Defaults,
    blank: &Model,
    mut hear: impl FnMut(Said<'_>),
) -> ForecastFigures {
    let mut ended: Vec<f64> = stream.ended().map(|row| row.observation.duration_ms as f64).collect();
    ended.sort_unstable_by(f64::total_cmp);
    let limit_ms = quantile(&ended, 0.9).unwrap_or(0.0).round() as u64;

    let (mut judge, mut plans) = (Judge::new(limit_ms), PlanJudge::new(stream));
    let begin = || Replay::new(stream, defaults).beginning_with(blank.clone());
    let mut replay = begin();
    let mut histories: HashMap<(&str, Key<'_>), Sorted> = HashMap::new();
    let mut predict = Vec::with_capacity(stream.rows.len());
    for (index, row) in stream.rows.iter().enumerate() {
        let model = replay.before(index);
        let question = question(row, defaults);
        let started = Instant::now();
        let forecast = model.forecast(&question);
        predict.push(started.elapsed().as_secs_f64() * 1e6);
        let without_sizes = model.forecast(&Question { covariates: Covariates::default(), ..question });
        plans.hear(index, model, defaults);

        for ended in replay.take_ended() {
            let Row { host, tool, mode, observation, .. } = &stream.rows[ended];
            if observation.outcome == Outcome::Success {
                let history = histories.entry((host, Key::new(tool, mode))).or_default();
                history.insert(ln_ms(observation.duration_ms));
            }
        }
        let history = histories.entry((&row.host, question.key)).or_default();
        judge.hear(row, &question, [&forecast, &without_sizes], history);
        hear(Said { row, forecast: &forecast, limit_ms });
        replay.begin(index);
    }
    let (models, observe) = replay.end();
    let sizes: Vec<_> = models.values().map(Model::size).collect();
    let keys: usize = sizes.iter().map(|size| size.keys).sum();
    let tools: usize = sizes.iter().map(|size| size.tools).sum();
    let share = |bytes: usize, count: usize| bytes as f64 / count.max(1) as f64;
    let figures = judge.figures();
    ForecastFigures {
        order: if stream.is_timed { "time" } else { "file" },
        hosts: models.len(),
        keys,
        plans: plans.figures(),
        given_up: Some(given_up::given_up(begin(), limit_ms, figures.timeout.brier_skill)),
        bytes_per_key: share(sizes.iter().map(|size| size.key_bytes).sum(), keys),
        bytes_per_tool: share(sizes.iter().map(|size| size.tool_bytes).sum(), tools),
        observe_us: median(observe),
        predict_us: median(predict),
        fleet: fleet(stream, defaults, blank),
        ..figures
    }
}

/// How well the first calls of a key are foretold on a host, where others have called it before and share what they
/// saw.
fn fleet(stream: &Stream, defaults: &Defaults, blank: &Model) -> Option<FleetFigures> {
    let mut models: HashMap<&str, Model> = HashMap::new();
    let mut shared: HashMap<Key<'_>, BTreeMap<&str, VecDeque<Observation>>> = HashMap::new();
    let (mut errors, mut of_priors) = (Vec::new(), Vec::new());
    for row in &stream.rows {
        let model = models.entry(&row.host).or_insert_with(|| blank.clone());
        let hosts = shared.entry(row.key()).or_default();
        let seen = others(hosts, &row.host);
        let question = Question { key: row.key(), fleet: Some(&seen), ..question(row, defaults) };
        let forecast = model.forecast(&question);
        let own_calls = model.learnt(question.key);
        if own_calls < FIRST_CALLS && !seen.is_empty() && !row.observation.outcome.is_censored() {
            errors.push(error(&forecast, row));
            of_priors.push((question.prior.ln() - ln_ms(row.observation.duration_ms)).abs());
        }
        model.observe(&question, &forecast, row.observation);
        let own = hosts.entry(&row.host).or_default();
        own.push_back(row.observation);
        own.drain(..own.len().saturating_sub(FleetCalls::OF_EACH_HOST));
    }
    let calls = errors.len();
    (calls > 0).then(|| FleetFigures {
        calls,
        median_abs_ln_error: median(errors),
        prior_median_abs_ln_error: median(of_priors),
    })
}

/// What the hosts but one saw of a key.
fn others(hosts: &BTreeMap<&str, VecDeque<Observation>>, host: &str) -> FleetCalls {
    let others = hosts.iter().filter(|(other, _)| **other != host);
    let calls: Vec<Vec<Observation>> = others.map(|(_, calls)| calls.iter().copied().collect()).collect();
    FleetCalls::of_hosts(&calls, calls.iter().map(Vec::len).sum::<usize>() as u64)
}

/// The distance of a call from its forecast's median, in ln.
fn error(forecast: &Forecast, row: &Row) -> f64 {
    (forecast.quantiles().p50 - ln_ms(row.observation.duration_ms)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tools on two hosts: one steady, one that takes 1 s or, one time in five, is given up after 30 s.
    fn stream() -> Stream {
        let mut text = "ts_ms,host,tool,mode,duration_ms,outcome,content_length\n".to_owned();
        for call in 0..200_u64 {
            let host = if call % 2 == 0 { "a" } else { "b" };
            let jitter = call * 7919 % 101;
            let at = call * 100_000;
            text += &format!("{at},{host},steady,,{},success,10\n", 42_000 + jitter * 40);
            let long = call * 31 % 5 == 0;
            let (duration, outcome) = if long { (30_000, "timeout") } else { (1000 + jitter * 3, "success") };
            text += &format!("{at},{host},moody,fast,{duration},{outcome},10\n");
            if call % 10 == 0 {
                text += &format!("{at},{host},moody,fast,{},error,10\n", 5 + jitter % 3);
            }
        }
        Stream::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_simple_world_is_foretold() {
        let figures = evaluate(&stream(), &Defaults::default(), &Model::default(), |_| ());
        assert_eq!((figures.rows, figures.censored, figures.hosts, figures.keys), (380, 40, 2, 5));
        assert!(figures.coverage90.unwrap() > 0.85, "{figures:#?}");
        // One call in twenty fails, which nobody knows before.
        assert!(figures.failed == 20 && figures.within_20pct.unwrap() > 0.85, "{figures:#?}");
        assert!(figures.high_hit_rate.unwrap() > 0.9, "{figures:#?}");
        assert!(figures.order == "time" && figures.plans.len() == 3 && figures.worst_key_rows.is_some());
        assert!(figures.baselines.defaults.within_20pct.unwrap() < 0.1, "{figures:#?}");
        let fleet = figures.fleet.as_ref().unwrap();
        assert!(fleet.median_abs_ln_error < 0.1 && fleet.prior_median_abs_ln_error > 0.5, "{fleet:?}");
        assert!(figures.bytes_per_key > 100.0 && figures.bytes_per_key < 800.0, "{figures:#?}");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let empty = Stream::parse(b"ts_ms,tool,duration_ms\n").unwrap();
        let figures = serde_json::to_value(evaluate(&empty, &Defaults::default(), &Model::default(), |_| ())).unwrap();
        assert_eq!((&figures["rows"], &figures["coverage90"]), (&0.into(), &serde_json::Value::Null));
    }
}
