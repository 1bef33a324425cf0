//! T1: what a forecast and an observation cost, beside one pass over as many bins.

use std::hint::black_box;
use std::time::Instant;

use almanac::timing::{Complexity, Defaults, Key, Model, Observation, Outcome, Question};
use anyhow::Result;

use crate::family::{Family, Wanted};
use crate::quiet;
use crate::row::{Bar, Measured, Row};
use crate::sample::{Pairs, Spread};

pub(crate) const FAMILY: Family = Family { rows: &["T1"], needs: &[], run };

const ROUNDS: usize = 7;
const CALLS: u64 = 5000;
const KEYS: u64 = 200;
const BINS: usize = 330;

#[expect(clippy::unnecessary_wraps, reason = "other families can fail")]
fn run(_: Wanted<'_>) -> Result<Vec<Row>> {
    let defaults = Defaults::default();
    let mut model = Model::default();
    let [mut predict, mut observe] = <[Pairs; 2]>::default();
    for _ in quiet::rounds(ROUNDS) {
        let floor = pass();
        let (asked, learnt) = calls(&mut model, &defaults);
        predict.push(asked, floor);
        observe.push(learnt, floor);
    }
    let size = model.size();
    let bytes = size.key_bytes as f64 / size.keys.max(1) as f64;
    let row = |what: &str, pairs: &Pairs, most: f64| {
        let figure = pairs.difference();
        let floor = pairs.theirs();
        let measured = Measured {
            ours: format!("{:.2} µs", pairs.ours()),
            theirs: format!("a pass over {BINS} bins {floor:.2} µs"),
            figure: Spread { median: figure.median + floor, low: figure.low + floor, high: figure.high + floor },
            bar: Bar::at_most(most).of(" µs"),
        };
        Row::new("T1", what, measured)
    };
    let memory = Measured {
        ours: format!("{bytes:.0} B"),
        theirs: format!("{} keys", size.keys),
        figure: Spread { median: bytes, low: bytes, high: bytes },
        bar: Bar::at_most(800.0).of(" B"),
    };
    Ok(vec![
        row("estimate of a call", &predict, 10.0),
        row("observation of a call, its forecast at hand", &observe, 2.0),
        Row::new("T1", "memory of a key", memory),
    ])
}

/// Median microseconds to ask for a call and to learn from it.
fn calls(model: &mut Model, defaults: &Defaults) -> (f64, f64) {
    let (mut asked, mut learnt) = (Vec::new(), Vec::new());
    for number in 0..CALLS {
        let tool = format!("tool_{}", number % KEYS);
        let complexity = Complexity { content_length: Some(number * 37 % 5000), ..Complexity::default() };
        let question = Question {
            key: Key::new(&tool, ""),
            covariates: complexity.covariates(),
            prior: defaults.prior(&tool, None, &complexity),
            fleet: None,
        };
        let start = Instant::now();
        let forecast = black_box(model.forecast(&question));
        let between = Instant::now();
        let duration_ms = 200 + number * 7919 % 3000;
        model.observe(&question, &forecast, Observation { duration_ms, outcome: Outcome::Success });
        learnt.push(between.elapsed().as_secs_f64() * 1e6);
        asked.push((between - start).as_secs_f64() * 1e6);
    }
    (Spread::of(asked).median, Spread::of(learnt).median)
}

/// Microseconds of one pass over the bins of a distribution.
fn pass() -> f64 {
    let bins = vec![0.5_f64; BINS];
    let start = Instant::now();
    for _ in 0..CALLS {
        black_box(black_box(&bins).iter().map(|mass| mass * 1.5).sum::<f64>());
    }
    start.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}
