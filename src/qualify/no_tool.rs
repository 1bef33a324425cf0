//! Messages that need no tool: greetings, thanks, and what a model answers by itself.
//!
//! Two files have messages of both kinds, those that need none and those that need one. A message is judged by its
//! nearest on either side, and by the side of a plane that its meaning is on, a logistic regression between the two:
//! the first knows courtesies, which are all alike, the second what was never said before. What a catalog's tools are
//! like counts against that: where one of them writes poems, a poem needs a tool.

pub(super) mod fit;

use std::sync::LazyLock;

use super::message::Message;
use super::ranking::Ranking;
use super::weights::logistic;
use crate::text::embedding::{DIMENSIONS, Quantized};

/// Messages that need none, and those that need one, a line each. A line that begins with `#` names their kind.
const FILES: [(bool, &str); 2] =
    [(true, include_str!("no_tool/alone.txt")), (false, include_str!("no_tool/tools.txt"))];

/// The constant of the plane, then one number for each dimension of a meaning, a line each; what `fit.rs` prints.
const WEIGHTS: &str = include_str!("no_tool/weights.txt");

/// What the difference of similarities to the nearest of either side counts; a little less and a little more do the
/// same.
const NEAREST: f32 = 3.0;

/// How many are the nearest: one alone would often be near by chance.
const NEIGHBOURS: usize = 3;

/// How the logarithm of the odds is made of what speaks for needing none and of the best tool's similarity; then the
/// constant. What `fit.rs` prints, of messages of kinds that were not fitted, as if one message in five needed none.
/// How likely the best tool is adds nothing to that, and among few tools one is always likely.
const CALIBRATION: [f32; SIGNS] = [1.454, -8.477, 1.517];

/// Numbers that the odds are made of.
const SIGNS: usize = 3;

/// From this similarity on a message is one of those that are known to need none, said again: a rare word of it that a
/// tool's document happens to have ("thanks a lot") is then no sign. The messages that need a tool have .8 at most.
const KNOWN: f32 = 0.95;

static SHIPPED: LazyLock<Judge> = LazyLock::new(|| {
    let mut numbers = WEIGHTS.lines().map(|line| line.parse().expect("a test reads all lines"));
    let constant = numbers.next().expect("a test reads all lines");
    let weights = std::array::from_fn(|_| numbers.next().expect("a test reads all lines"));
    Judge::new(Plane { constant, weights }, &examples().iter().collect::<Vec<_>>())
});

/// A message that is known to need no tool, or one.
struct Example {
    message: Message,
    needs_none: bool,
    /// Its kind, and its line within the file.
    kind: usize,
    place: usize,
}

fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for (needs_none, text) in FILES {
        let mut kind = 0;
        for (place, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                kind += 1;
            } else {
                examples.push(Example { message: Message::new(line), needs_none, kind, place });
            }
        }
    }
    examples
}

/// The side of meanings that need no tool.
#[derive(Debug, Clone, PartialEq)]
struct Plane {
    constant: f32,
    weights: [f32; DIMENSIONS],
}

impl Plane {
    fn log_odds(&self, message: &Message) -> f32 {
        let sum: f32 = self.weights.iter().zip(message.vector.as_array()).map(|(weight, value)| weight * value).sum();
        sum + self.constant
    }
}

/// What tells the messages apart.
struct Judge {
    plane: Plane,
    alone: Box<[Quantized]>,
    tools: Box<[Quantized]>,
}

impl Judge {
    fn new(plane: Plane, examples: &[&Example]) -> Self {
        let side = |needs_none| {
            let side = examples.iter().filter(|example| example.needs_none == needs_none);
            side.map(|example| example.message.quantized).collect()
        };
        Self { plane, alone: side(true), tools: side(false) }
    }

    /// How much speaks for needing no tool by the message alone; unbounded.
    fn log_odds_of_none(&self, message: &Message) -> f32 {
        self.log_odds_near(nearest(&self.alone, message), message)
    }

    /// The same, where the nearest that need none are known.
    fn log_odds_near(&self, alone: [f32; NEIGHBOURS], message: &Message) -> f32 {
        let nearer = mean(alone) - mean(nearest(&self.tools, message));
        self.plane.log_odds(message) + NEAREST * nearer
    }

    /// What the odds are made of; `similarity` is the best tool's.
    fn signs(&self, message: &Message, similarity: f32) -> [f32; SIGNS] {
        [self.log_odds_of_none(message), similarity, 1.0]
    }

    fn probability(&self, message: &Message, similarity: f32) -> f32 {
        let alone = nearest(&self.alone, message);
        let similarity = if alone[0] >= KNOWN { 0.0 } else { similarity };
        let signs = [self.log_odds_near(alone, message), similarity, 1.0];
        logistic(CALIBRATION.iter().zip(signs).map(|(weight, sign)| weight * sign).sum())
    }
}

/// How alike in meaning the best tool and the message are, -1 to 1.
fn best_similarity(ranking: &mut Ranking<'_>, message: &Message) -> f32 {
    let best = ranking.best(1).pop();
    best.map_or(0.0, |best| ranking.index().meanings[best.number].dot(&message.quantized))
}

/// The similarities to the nearest of a side, the largest first.
fn nearest(side: &[Quantized], message: &Message) -> [f32; NEIGHBOURS] {
    let mut nearest = [0.0_f32; NEIGHBOURS];
    for mut similarity in message.quantized.dots(side) {
        for near in &mut nearest {
            if similarity > *near {
                std::mem::swap(near, &mut similarity);
            }
        }
    }
    nearest
}

fn mean(nearest: [f32; NEIGHBOURS]) -> f32 {
    nearest.iter().sum::<f32>() / NEIGHBOURS as f32
}

/// The probability that the message needs no tool of those that are ranked, 0 to 1.
pub(super) fn probability(ranking: &mut Ranking<'_>, message: &Message) -> f32 {
    if message.terms.is_empty() {
        return 1.0;
    }
    SHIPPED.probability(message, best_similarity(ranking, message))
}
