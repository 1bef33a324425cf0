//! Fits the constants of the ranking on sets of messages whose tools are known; what it prints is put into `weights` and
//! `ranking` by hand, after a look at it.
//!
//! The weights of what documents tell are fitted where nothing was learnt, as a conditional logistic regression: the needed tool
//! against the best sixty of its message. Then those of usage, at several stages of learning and with wrong choices among
//! them, the others held. Then the calibration, on the three best tools of each message. Each set counts as much as any other.
//! What tells that no tool is needed is fitted and measured in `quiet/fit.rs`.

use std::fmt::Write as _;

use super::evaluate::{Case, Lesson, Random, choices, evaluate, learn};
use super::quiet;
use super::ranking::Ranking;
use super::usage::Trust;
use super::weights::{Calibration, FEATURES, Row, USE_MEANING, Weights, logistic, logit};
use super::{Index, Message, Usage};

/// Tools of a message that the fit looks at.
const RIVALS: usize = 60;

/// Pulls weights towards 0.
const RIDGE: f64 = 0.003;

const ROUNDS: i32 = 400;

/// A catalog with messages.
#[derive(Debug)]
pub struct Set {
    /// Its index.
    pub index: Index,
    /// Messages and their tools.
    pub cases: Vec<Case>,
}

/// The best tools of one message.
struct Sample {
    rows: Vec<Row>,
    gold: Vec<bool>,
}

/// What was fitted, as text for whoever puts it into the source.
pub fn fit(sets: &[Set]) -> String {
    let halves: Vec<(Vec<Case>, Vec<Case>)> = sets.iter().map(|set| halves(&set.cases)).collect();
    let cold: Vec<Vec<Sample>> = sets.iter().map(|set| samples(&set.index, &Usage::new(), &set.cases)).collect();
    let documents: Vec<usize> = (0..USE_MEANING).collect();
    let weights = regress(&cold, &documents, [0.0; FEATURES]);
    let lessons = [
        Lesson { choices: Some(200), noise: 0.2, ..Lesson::default() },
        Lesson { of_tool: Some(5), ..Lesson::default() },
        Lesson { of_tool: Some(5), noise: 0.2, ..Lesson::default() },
        Lesson::default(),
    ];
    let mut warm: Vec<Vec<Sample>> = Vec::new();
    for (set, (first, second)) in sets.iter().zip(&halves) {
        for lesson in lessons {
            let mut usage = Usage::new();
            choices(&set.index, first, lesson, |message, tool| usage.add(&set.index, message, tool, Trust::new(1.0)));
            warm.push(samples(&set.index, &usage, second));
        }
    }
    let usage: Vec<usize> = (USE_MEANING..FEATURES).collect();
    let weights = regress(&warm, &usage, weights);
    let mut text = String::new();
    let _ = writeln!(text, "weights {weights:.2?}");
    let _ = writeln!(text, "calibration {:?}", calibrate(sets));
    text.push_str(&quiet::fit::measure(sets.iter().map(|set| (&set.index, &*set.cases))));
    let _ = writeln!(text, "quiet/weights.txt\n{}", quiet::fit::fit());
    for (set, (first, second)) in sets.iter().zip(&halves) {
        for lesson in [None, Some(lessons[1]), Some(lessons[2])] {
            let usage = lesson.map_or_else(Usage::new, |lesson| learn(&set.index, first, lesson));
            let gates = gates(&set.index, &usage, second);
            let coverage = usage.coverage(set.index.len());
            let figures = evaluate(&set.index, &usage, second);
            let _ = writeln!(
                text,
                "{} tools, {lesson:?}: coverage {coverage:.2}; gate for 95, 96, 97 %: {gates:.2?}; NDCG@10 {:.1}, R@1 {:.3}, \
                 loaded {:.1} with {:.3}, ECE {:.3}",
                set.index.len(),
                100.0 * figures.ndcg10,
                figures.recall["1"],
                figures.mean_loaded,
                figures.loaded_recall,
                figures.ece,
            );
        }
    }
    text
}

/// Two random halves, the same ones every time.
fn halves(cases: &[Case]) -> (Vec<Case>, Vec<Case>) {
    let mut cases = cases.to_vec();
    let mut random = Random(12_345);
    for last in (1..cases.len()).rev() {
        cases.swap(last, random.below(last as u64 + 1) as usize);
    }
    let second = cases.split_off(cases.len() / 2);
    (cases, second)
}

fn samples(index: &Index, usage: &Usage, cases: &[Case]) -> Vec<Sample> {
    let of_case = |case: &Case| {
        let message = Message::new(&case.query);
        let mut ranking = Ranking::new(index, &message, usage);
        let best = ranking.best(RIVALS);
        let gold: Vec<bool> =
            best.iter().map(|tool| case.gold.iter().any(|gold| **gold == **tool.entry.name())).collect();
        let rows = best.iter().map(|tool| *ranking.row(tool.number)).collect();
        gold.contains(&true).then_some(Sample { rows, gold })
    };
    cases.iter().filter_map(of_case).collect()
}

/// Weights, none negative, that make the needed tools likeliest (Adam, Kingma & Ba 2015); those not `free` stay as they are.
fn regress(sets: &[Vec<Sample>], free: &[usize], start: Row) -> Row {
    let mut weights = Weights(start);
    let (mut mean, mut square) = ([0.0_f64; FEATURES], [0.0_f64; FEATURES]);
    for round in 1..=ROUNDS {
        let gradient = gradient(sets, &weights);
        for &feature in free {
            let slope = gradient[feature] + RIDGE * f64::from(weights.0[feature]);
            mean[feature] = 0.9 * mean[feature] + 0.1 * slope;
            square[feature] = 0.999 * square[feature] + 0.001 * slope * slope;
            let (mean, square) =
                (mean[feature] / (1.0 - 0.9_f64.powi(round)), square[feature] / (1.0 - 0.999_f64.powi(round)));
            let weight = f64::from(weights.0[feature]) - 0.05 * mean / (square.sqrt() + 1e-8);
            weights.0[feature] = weight.max(0.0) as f32;
        }
    }
    weights.0
}

fn gradient(sets: &[Vec<Sample>], weights: &Weights) -> [f64; FEATURES] {
    let mut gradient = [0.0; FEATURES];
    for samples in sets {
        let counts = 1.0 / (samples.len().max(1) * sets.len()) as f64;
        for sample in samples {
            let scores: Vec<f64> = sample.rows.iter().map(|row| f64::from(weights.score(row))).collect();
            let best = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|score| (score - best).exp()).sum();
            let needed = sample.gold.iter().filter(|gold| **gold).count() as f64;
            for ((row, score), gold) in sample.rows.iter().zip(&scores).zip(&sample.gold) {
                let error = (score - best).exp() / total - if *gold { 1.0 / needed } else { 0.0 };
                for (sum, value) in gradient.iter_mut().zip(row) {
                    *sum += counts * error * f64::from(*value);
                }
            }
        }
    }
    gradient
}

/// Logistic regression of being needed on the odds and the score of the best three.
fn calibrate(sets: &[Set]) -> Calibration {
    let mut points: Vec<([f64; 3], f64, f64)> = Vec::new();
    let nothing = Usage::new();
    for set in sets {
        let counts = 1.0 / set.cases.len().max(1) as f64;
        for case in &set.cases {
            let message = Message::new(&case.query);
            let mut ranking = Ranking::new(&set.index, &message, &nothing);
            for (place, tool) in ranking.best(3).iter().enumerate() {
                let is_gold = case.gold.iter().any(|gold| **gold == **tool.entry.name());
                let (odds, score) = (logit(ranking.share(tool.number)), ranking.score(tool.number));
                let counts = if place == 0 { counts } else { counts / 4.0 };
                points.push(([odds.into(), score.into(), 1.0], f64::from(u8::from(is_gold)), counts));
            }
        }
    }
    let mut weights = [1.0_f64, 0.0, 0.0];
    for _ in 0..4000 {
        let mut gradient = [0.0; 3];
        for (values, gold, counts) in &points {
            let sum: f64 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
            let error = f64::from(logistic(sum as f32)) - gold;
            for (slope, value) in gradient.iter_mut().zip(values) {
                *slope += counts * error * value;
            }
        }
        for (weight, slope) in weights.iter_mut().zip(gradient) {
            *weight -= 0.02 * slope;
        }
        weights[1] = weights[1].max(0.0);
    }
    Calibration { odds: weights[0] as f32, score: weights[1] as f32, bias: weights[2] as f32 }
}

/// The gates that let so many of the needed tools pass.
fn gates(index: &Index, usage: &Usage, cases: &[Case]) -> [f32; 3] {
    let mut needed: Vec<f32> = Vec::new();
    for case in cases {
        let message = Message::new(&case.query);
        let ranking = Ranking::new(index, &message, usage);
        needed.extend(case.gold.iter().filter_map(|gold| index.number(gold)).map(|number| ranking.gate_place(number)));
    }
    needed.sort_unstable_by(f32::total_cmp);
    [0.05, 0.04, 0.03].map(|lost| needed.get((lost * needed.len() as f64) as usize).copied().unwrap_or_default())
}
