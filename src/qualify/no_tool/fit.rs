//! Fits what tells messages that need no tool, and measures it on messages that it was not fitted on.
//!
//! The messages were written for this. What is measured knows two thirds of them and is judged on the last, all three
//! times; and, which is harder, knows all kinds but the one that is judged.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::{Example, Judge, Plane, examples};
use crate::qualify::evaluate::Case;
use crate::qualify::message::Message;
use crate::qualify::ranking::Ranking;
use crate::qualify::weights::logistic;
use crate::qualify::{Index, Usage};
use crate::text::embedding::DIMENSIONS;

/// Pulls weights towards 0; a third of it and three times as much do the same.
const RIDGE: f32 = 0.003;

const ROUNDS: usize = 150;

/// Steps keep so much of their direction.
const MOMENTUM: f32 = 0.9;

/// The constant has the largest input, so it takes shorter steps.
const STEP_OF_CONSTANT: f32 = 0.3;

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
            let error = logistic(plane.log_odds(&example.message)) - f32::from(u8::from(example.needs_none));
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
fn area(high: &[f32], low: &[f32]) -> f64 {
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

fn share(scores: &[f32]) -> f64 {
    let beyond = scores.iter().filter(|score| **score >= super::LEAST).count();
    beyond as f64 / scores.len().max(1) as f64
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
    fn scores(&self, similarity: impl Fn(&Message) -> f32) -> [Vec<f32>; 2] {
        [true, false].map(|needs_none| {
            let side = self.examples.iter().filter(|example| example.needs_none == needs_none);
            side.map(|example| {
                self.judges[(self.part_of)(example)].log_odds_of_none(&example.message, similarity(&example.message))
            })
            .collect()
        })
    }
}

fn thirds() -> HeldOut {
    HeldOut::new(|example| example.place % PARTS)
}

/// How well messages are told apart that were not fitted on.
pub(in crate::qualify) fn measure<'s>(sets: impl Iterator<Item = (&'s Index, &'s [Case])>) -> String {
    let (thirds, kinds) = (thirds(), HeldOut::new(|example| example.kind));
    let ([alone, tools], [alone_of_kind, tools_of_kind]) = (thirds.scores(|_| 0.0), kinds.scores(|_| 0.0));
    let mut text = format!(
        "no tool needed, {} messages and {} that need one: AUROC {:.3}, with whole kinds held out {:.3}\n",
        alone.len(),
        tools.len(),
        area(&alone, &tools),
        area(&alone_of_kind, &tools_of_kind)
    );
    let nothing = Usage::new();
    for (index, cases) in sets {
        let best = |message: &Message| {
            let best = Ranking::new(index, message, &nothing).best(1);
            best.first()
                .map_or((0.0, 0.0), |best| (index.meanings[best.number].dot(&message.quantized), best.confidence))
        };
        let [alone, tools] = thirds.scores(|message| best(message).0);
        let [alone_of_kind, _] = kinds.scores(|message| best(message).0);
        let own: Vec<Message> = cases.iter().map(|case| Message::new(&case.query)).collect();
        let own_scores: Vec<f32> =
            own.iter().map(|message| super::SHIPPED.log_odds_of_none(message, best(message).0)).collect();
        let left = own.iter().filter(|message| {
            let (similarity, confidence) = best(message);
            super::needs_no_tool(message, similarity, confidence)
        });
        let _ = writeln!(
            text,
            "among {} tools: AUROC {:.3} ({:.3}) against the set's messages, {:.3} against the others; none is \
             offered for {:.3}, \
             for {:.3} of the others and {:.3} of the set's",
            index.len(),
            area(&alone, &own_scores),
            area(&alone_of_kind, &own_scores),
            area(&alone, &tools),
            share(&alone),
            share(&tools),
            left.count() as f64 / own.len().max(1) as f64
        );
    }
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
        let [alone, tools] = thirds().scores(|_| 0.0);
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
