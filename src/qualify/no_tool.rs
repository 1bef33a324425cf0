//! Messages that need no tool: greetings, thanks, and what a model answers by itself.
//!
//! Two files have messages of both kinds, those that need none and those that need one. A message is judged by its
//! nearest on either side, and by the side of a plane that its meaning is on, a logistic regression between the two:
//! the first knows courtesies, which are all alike, the second what was never said before. What a catalog's tools are
//! like counts against that: where one of them writes poems, a poem needs a tool.

pub(super) mod fit;

use std::sync::LazyLock;

use super::message::{Message, Part};
use super::ranking::Ranking;
use super::weights::logistic;
use crate::text::embedding::{DIMENSIONS, Packed, Quantized, Vector};

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

/// How the logarithm of the odds is made of what speaks for needing none, of the best tool's similarity and of the
/// logarithm of how many tools there are, since of many one is always alike; then the constant. What `fit.rs` prints,
/// of messages of kinds that were not fitted, as if one message in five needed none. How likely the best tool is adds
/// nothing to that, and among few tools one is always likely. The constant is .14 less than what was fitted: in doubt
/// tools are offered.
const CALIBRATION: [f32; SIGNS] = [1.307, -8.231, 0.536, 1.6];

/// Numbers that the odds are made of.
const SIGNS: usize = 4;

/// Logarithms of sizes: of a usual catalog, and of the smallest and the largest that was fitted.
const USUAL_TOOLS: f32 = 5.0;
const FITTED_TOOLS: [f32; 2] = [4.2, 8.3];

/// From this similarity on a message is one of those that are known to need none, said again: a rare word of it that a
/// tool's document happens to have ("thanks a lot") is then no sign. The messages that need a tool have .8 at most.
const KNOWN: f32 = 0.95;

/// From this similarity on a message is nearly an example of a tool's document. Below, examples are no more like what
/// needs a tool than like what needs none: small talk speaks of the same things.
const SAID_AGAIN: f32 = 0.8;

/// Tools among which a clause's own is looked for.
const LOOKED_AT: usize = 10;

/// A clause of fewer terms says too little by itself.
const LEAST_TERMS: usize = 2;

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
    fn log_odds(&self, meaning: &Vector) -> f32 {
        let sum: f32 = self.weights.iter().zip(meaning.as_array()).map(|(weight, value)| weight * value).sum();
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

    /// How much speaks for needing no tool by what is said alone; unbounded.
    fn log_odds_of_none(&self, said: Said<'_>) -> f32 {
        self.log_odds_near(nearest(&self.alone, said), said)
    }

    /// The same, where the nearest that need none are known.
    fn log_odds_near(&self, alone: [f32; NEIGHBOURS], said: Said<'_>) -> f32 {
        let nearer = mean(alone) - mean(nearest(&self.tools, said));
        self.plane.log_odds(said.vector) + NEAREST * nearer
    }

    /// What the odds are made of; `similarity` is the best's of so many tools.
    fn signs(&self, said: Said<'_>, similarity: f32, tools: usize) -> [f32; SIGNS] {
        [self.log_odds_of_none(said), similarity, many(tools), 1.0]
    }

    fn probability(&self, said: Said<'_>, similarity: f32, tools: usize) -> f32 {
        let alone = nearest(&self.alone, said);
        let similarity = if alone[0] >= KNOWN { 0.0 } else { similarity };
        let signs = [self.log_odds_near(alone, said), similarity, many(tools), 1.0];
        logistic(CALIBRATION.iter().zip(signs).map(|(weight, sign)| weight * sign).sum())
    }
}

/// What a message, or a clause of it, means.
#[derive(Clone, Copy)]
struct Said<'m> {
    vector: &'m Vector,
    quantized: &'m Quantized,
}

impl<'m> From<&'m Message> for Said<'m> {
    fn from(message: &'m Message) -> Self {
        Self { vector: &message.vector, quantized: &message.quantized }
    }
}

impl<'m> From<&'m Part> for Said<'m> {
    fn from(part: &'m Part) -> Self {
        Self { vector: &part.vector, quantized: &part.quantized }
    }
}

/// How alike in meaning the best tool and the message are, -1 to 1; or an example of one of the best tools and it.
fn best_similarity(ranking: &mut Ranking<'_>, message: &Message) -> f32 {
    let said = Said::from(message);
    similarity_of(ranking, 1, said).max(similarity_to_examples(ranking, said))
}

/// How alike what is said and the nearest example of one of the best tools are, if it is nearly said again; else -1.
fn similarity_to_examples(ranking: &mut Ranking<'_>, said: Said<'_>) -> f32 {
    let best = ranking.best_numbers(LOOKED_AT).to_vec();
    let cases = best.iter().filter_map(|&best| ranking.index().scenes[best as usize].as_ref());
    let similarities = cases.flat_map(|scenes| Packed::dots(said.quantized, &scenes.cases.examples));
    similarities.filter(|similarity| *similarity >= SAID_AGAIN).fold(-1.0, f32::max)
}

/// How alike in meaning what is said and the nearest of so many of the best tools are.
fn similarity_of(ranking: &mut Ranking<'_>, tools: usize, said: Said<'_>) -> f32 {
    let best = ranking.best_numbers(tools).to_vec();
    let similarities = best.iter().map(|&best| ranking.index().meanings[best as usize].dot(said.quantized));
    similarities.reduce(f32::max).unwrap_or_default()
}

/// The similarities to the nearest of a side, the largest first.
fn nearest(side: &[Quantized], said: Said<'_>) -> [f32; NEIGHBOURS] {
    let mut nearest = [0.0_f32; NEIGHBOURS];
    for mut similarity in said.quantized.dots(side) {
        for near in &mut nearest {
            if similarity > *near {
                std::mem::swap(near, &mut similarity);
            }
        }
    }
    nearest
}

fn many(tools: usize) -> f32 {
    let [fewest, most] = FITTED_TOOLS;
    (tools.max(1) as f32).ln().clamp(fewest, most) - USUAL_TOOLS
}

fn mean(nearest: [f32; NEIGHBOURS]) -> f32 {
    nearest.iter().sum::<f32>() / NEIGHBOURS as f32
}

/// The probability that the message needs no tool of those that are ranked, 0 to 1. A long one, such as a diary with a
/// request behind it, needs one if any of its clauses that ask does.
pub(super) fn probability(ranking: &mut Ranking<'_>, message: &Message) -> f32 {
    if message.terms.is_empty() {
        return 1.0;
    }
    let tools = ranking.index().len();
    let mut probability = SHIPPED.probability(message.into(), best_similarity(ranking, message), tools);
    if message.length > 0.0 {
        for part in message.asking().filter(|part| part.terms.len() >= LEAST_TERMS) {
            let similarity = similarity_of(ranking, LOOKED_AT, part.into());
            probability = probability.min(SHIPPED.probability(part.into(), similarity, tools));
        }
    }
    probability
}
