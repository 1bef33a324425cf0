//! Fits what tells messages that need no tool, and measures it on messages that it was not fitted on.
//!
//! The messages were written for this. What is measured knows two thirds of them and is judged on the last, all three
//! times; and, which is harder, knows all kinds but the one that is judged.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::{Example, Judge, Plane, SIGNS, best_similarity, examples};
use crate::qualify::evaluate::Case;
use crate::qualify::message::Message;
use crate::qualify::ranking::Ranking;
use crate::qualify::weights::logistic;
use crate::qualify::{Index, Rules, Usage};
use crate::text::embedding::DIMENSIONS;

/// Pulls weights towards 0; a third of it and three times as much do the same.
const RIDGE: f32 = 0.003;

const ROUNDS: usize = 150;

/// Steps keep so much of their direction.
const MOMENTUM: f32 = 0.9;

/// The constant has the largest input, so it takes shorter steps.
const STEP_OF_CONSTANT: f32 = 0.3;

/// Share of messages that are taken to need none.
pub(in crate::qualify) const ALONE: f32 = 0.2;

const CALIBRATION_ROUNDS: usize = 3000;
const CALIBRATION_STEP: f32 = 0.3;

/// Parts that messages are judged in.
const PARTS: usize = 3;

/// The plane between the two sides, by gradient descent with momentum.
fn regress(examples: &[&Example]) -> Plane {
    let counts = 1.0 / examples.len().max(1) as f32;
    let mut plane = Plane { constant: 0.0, weights: [0.0; DIMENSIONS] };
    let (mut step, mut step_of_constant) = ([0.0_f32; DIMENSIONS], 0.0_f32);
    for _ in 0..ROUNDS {
        let mut gradient = plane.weights.map(|weight| RIDGE * weight);
        let mut of_constant = 0.0;
        for example in examples {
            let error = logistic(plane.log_odds(&example.message.vector)) - f32::from(u8::from(example.needs_none));
            of_constant += counts * error;
            for (slope, value) in gradient.iter_mut().zip(example.message.vector.as_array()) {
                *slope += counts * error * value;
            }
        }
        for ((weight, step), slope) in plane.weights.iter_mut().zip(&mut step).zip(gradient) {
            *step = MOMENTUM * *step + slope;
            *weight -= *step;
        }
        step_of_constant = MOMENTUM * step_of_constant + of_constant;
        plane.constant -= STEP_OF_CONSTANT * step_of_constant;
    }
    plane
}

/// What was fitted, as the lines of `weights.txt`.
pub(in crate::qualify) fn fit() -> String {
    let examples = examples();
    let plane = regress(&examples.iter().collect::<Vec<_>>());
    [plane.constant].iter().chain(&plane.weights).map(|number| format!("{number:.4}\n")).collect()
}

/// The probability that one of `high` is above one of `low`: the area under the curve of true over false alarms.
pub(in crate::qualify) fn area(high: &[f32], low: &[f32]) -> f64 {
    let mut above = 0.0_f64;
    for value in high {
        for low in low {
            above += match value.total_cmp(low) {
                Ordering::Greater => 1.0,
                Ordering::Equal => 0.5,
                Ordering::Less => 0.0,
            };
        }
    }
    above / (high.len() * low.len()).max(1) as f64
}

/// Examples with judges that know nothing of the part that they judge.
struct HeldOut {
    examples: Vec<Example>,
    part_of: fn(&Example) -> usize,
    judges: Vec<Judge>,
}

impl HeldOut {
    fn new(part_of: fn(&Example) -> usize) -> Self {
        let examples = examples();
        let parts = examples.iter().map(|example| part_of(example) + 1).max().unwrap_or_default();
        let judge = |part: usize| {
            let others: Vec<&Example> = examples.iter().filter(|example| part_of(example) != part).collect();
            Judge::new(regress(&others), &others)
        };
        Self { judges: (0..parts).map(judge).collect(), examples, part_of }
    }

    /// How much speaks for needing no tool, of those that need none and of those that need one.
    fn scores(&self) -> [Vec<f32>; 2] {
        [true, false].map(|needs_none| {
            let side = self.examples.iter().filter(|example| example.needs_none == needs_none);
            side.map(|example| self.judge(example).log_odds_of_none((&example.message).into())).collect()
        })
    }

    /// The judge that knows nothing of the example's part.
    fn judge(&self, example: &Example) -> &Judge {
        &self.judges[(self.part_of)(example)]
    }
}

fn thirds() -> HeldOut {
    HeldOut::new(|example| example.place % PARTS)
}

/// A message as the calibration sees it, and whether it needs none of its catalog's tools.
type Point = ([f32; SIGNS], bool);

/// Messages that need none, of kinds that their judge does not know, and the set's own, which need one.
fn points(kinds: &HeldOut, index: &Index, cases: &[Case]) -> Vec<Point> {
    let nothing = Usage::new();
    let signs = |judge: &Judge, message: &Message| {
        judge.signs(message.into(), best_similarity(&mut Ranking::new(index, message, &nothing), message), index.len())
    };
    let alone = kinds.examples.iter().filter(|example| example.needs_none);
    let alone = alone.map(|example| (signs(kinds.judge(example), &example.message), true));
    let own = cases.iter().filter(|case| !case.gold.is_empty()).map(|case| index.message(&case.query));
    alone.chain(own.map(|message| (signs(&super::SHIPPED, &message), false))).collect()
}

/// Logistic regression on the points of all sets, of which each counts as much and has [`ALONE`] that need none.
fn calibrate(sets: &[Vec<Point>]) -> [f32; SIGNS] {
    let mut weights = [1.0_f32, -5.0, 0.0, 0.0];
    for _ in 0..CALIBRATION_ROUNDS {
        let mut gradient = [0.0_f32; SIGNS];
        for points in sets {
            let alone = points.iter().filter(|(_, needs_none)| *needs_none).count();
            for (signs, needs_none) in points {
                let counts = if *needs_none {
                    ALONE / alone.max(1) as f32
                } else {
                    (1.0 - ALONE) / (points.len() - alone).max(1) as f32
                };
                let error = logistic(product(&weights, signs)) - f32::from(u8::from(*needs_none));
                for (slope, sign) in gradient.iter_mut().zip(signs) {
                    *slope += counts * error * sign / sets.len() as f32;
                }
            }
        }
        for (weight, slope) in weights.iter_mut().zip(gradient) {
            *weight -= CALIBRATION_STEP * slope;
        }
        // What fits better never speaks for needing none.
        weights[1] = weights[1].min(0.0);
    }
    weights
}

fn product(weights: &[f32; SIGNS], signs: &[f32; SIGNS]) -> f32 {
    weights.iter().zip(signs).map(|(weight, sign)| weight * sign).sum()
}

/// How well messages are told apart that were not fitted on: their kinds not by the plane, and their catalog not by
/// what calibrates it.
pub(in crate::qualify) fn measure<'s>(sets: impl Iterator<Item = (&'s Index, &'s [Case])>) -> String {
    let (thirds, kinds) = (thirds(), HeldOut::new(|example| example.kind));
    let ([alone, tools], [alone_of_kind, tools_of_kind]) = (thirds.scores(), kinds.scores());
    let mut text = format!(
        "no tool needed, {} messages and {} that need one: AUROC {:.3}, with whole kinds held out {:.3}\n",
        alone.len(),
        tools.len(),
        area(&alone, &tools),
        area(&alone_of_kind, &tools_of_kind)
    );
    let (names, points): (Vec<usize>, Vec<Vec<Point>>) =
        sets.map(|(index, cases)| (index.len(), points(&kinds, index, cases))).unzip();
    for (place, (tools, own)) in names.iter().zip(&points).enumerate() {
        let others: Vec<Vec<Point>> =
            points.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, points)| points.clone()).collect();
        let weights = if others.is_empty() { super::CALIBRATION } else { calibrate(&others) };
        let side = |needs_none: bool| -> Vec<f32> {
            let side = own.iter().filter(|(_, none)| *none == needs_none);
            side.map(|(signs, _)| logistic(product(&weights, signs))).collect()
        };
        let (alone, needing) = (side(true), side(false));
        let share = |side: &[f32]| {
            side.iter().filter(|probability| **probability >= Rules::default().no_tool_threshold).count() as f64
                / side.len().max(1) as f64
        };
        let _ = writeln!(
            text,
            "among {tools} tools: AUROC {:.3}; none is offered for {:.3}, and for {:.3} of the set's",
            area(&alone, &needing),
            share(&alone),
            share(&needing),
        );
    }
    let _ = writeln!(text, "calibration of no tool {:.3?}", calibrate(&points));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ships_is_what_the_examples_say() {
        let examples = examples();
        let (fitted, shipped) = (regress(&examples.iter().collect::<Vec<_>>()), &super::super::SHIPPED.plane);
        assert_eq!(super::super::WEIGHTS.lines().count(), 1 + DIMENSIONS);
        assert!((fitted.constant - shipped.constant).abs() < 0.01, "{} for {}", shipped.constant, fitted.constant);
        for (dimension, (fitted, shipped)) in fitted.weights.iter().zip(&shipped.weights).enumerate() {
            assert!((fitted - shipped).abs() < 0.01, "{shipped} for {fitted} in dimension {dimension}");
        }
    }

    #[test]
    fn messages_that_were_not_fitted_are_told_apart() {
        let [alone, tools] = thirds().scores();
        assert!(alone.len() >= 200 && tools.len() >= 200, "{} and {}", alone.len(), tools.len());
        let area = area(&alone, &tools);
        assert!(area >= 0.94, "{area}");
    }

    #[test]
    fn an_area_is_a_probability() {
        let check = |high: &[f32], low: &[f32], expected: f64| {
            assert!((area(high, low) - expected).abs() < 1e-9, "{high:?} above {low:?}");
        };
        check(&[2.0, 3.0], &[0.0, 1.0], 1.0);
        check(&[0.0], &[1.0], 0.0);
        check(&[1.0], &[1.0], 0.5);
        check(&[0.0, 2.0], &[1.0], 0.5);
    }
}
