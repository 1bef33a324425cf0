//! All tools of a catalog in the order in which they fit a message, with the probability that each is needed.
//!
//! Pure and bounded: a pass over the tools for each kind of observation, a weighted sum, no sorting but of the best. It
//! cannot fail; a message that says nothing ranks by name with low probabilities.

use std::sync::Arc;

use super::index::Index;
use super::message::Message;
use super::observations::{LEAST_COVER, Observations};
use super::parts::ScoreParts;
use super::presence::presence;
use super::usage::Usage;
use super::weights::{COVER, FeatureRow, LITERAL, NAME_COVER, SIMILARITY, Standing, Weights, logistic};
use crate::catalog::Entry;
use crate::text::embedding::Packed;

/// Tools whose `not_for` is compared with the message: those it could push out of sight.
const LOOKED_AT: usize = 24;

/// How much more a message must be like what a tool is not for than like the tool itself.
const NOT_FOR_MARGIN: f32 = 0.05;

/// Similarity below which a `not_for` is about something else.
const NOT_FOR_SIMILARITY: f32 = 0.45;

/// What each hundredth of similarity beyond the margin takes away.
const NOT_FOR_WEIGHT: f32 = 8.0;

/// What speaks against a tool that changes something where a message only asks, as a logarithm of odds.
const UNASKED: f32 = 1.5;

/// Scores are divided by this times the logarithm of the catalog's size before the probability mass is made of them of
/// which a part is loaded: a needed tool that is not the best is seldom far behind it, whatever the best one's lead,
/// and the more tools there are, the more of them are as near.
const MASS_TEMPERATURE: f32 = 0.37;

/// The mass that holds 95 in 100 needed tools, as logarithm of its odds, for one request to [`USUAL_TOOLS`] tools.
const MASS: f32 = 0.26;

/// What the logarithm of the number of clauses that ask adds to that: each may need a tool of its own.
const MASS_OF_REQUESTS: f32 = 0.35;

/// What the logarithm of the catalog's size adds: most of the tools of a large one are like no message.
const MASS_OF_SIZE: f32 = -0.7;

/// What the mean of the logarithms of tools' choices adds: messages like those that were learnt stand out.
const MASS_OF_USE: f32 = -0.18;

/// So many requests have a tool each, whatever the mass; more clauses that ask are mostly one request at length.
const SURE_REQUESTS: usize = 4;

/// The logarithm of the size of a usual catalog.
const USUAL_TOOLS: f32 = 5.0;

/// Tools that are put in order at once where it is not known how many are wanted.
const SORTED_AT_ONCE: usize = 32;

/// Puts the best `count` of the tools first, in order; ties break by number, which is by name.
fn put_first(scores: &[f32], numbers: &mut [u32], count: usize) {
    // Each is one number to compare: its score, upside down, before its own number.
    let mut places: Vec<u64> = numbers
        .iter()
        .map(|&number| u64::from(!ordered(scores[number as usize])) << u32::BITS | u64::from(number))
        .collect();
    if count < places.len() {
        places.select_nth_unstable(count);
    }
    places[..count].sort_unstable();
    for (number, place) in numbers.iter_mut().zip(places) {
        *number = place as u32;
    }
}

/// In the order of [`f32::total_cmp`].
fn ordered(score: f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let bits = score.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The tools of an index, ranked for a message.
#[derive(Debug)]
pub struct Ranking<'i> {
    index: &'i Index,
    usage: &'i Usage,
    observations: Observations,
    /// What each observation counts for this message.
    weights: FeatureRow,
    scores: Vec<f32>,
    /// Numbers of the best tools, best first; the rest follow by number.
    order: Vec<u32>,
    sorted: usize,
    /// Logarithms of the sums of e^score and of what the mass is made of.
    total: f32,
    mass_total: f32,
    /// The probability that the message is about any of the tools.
    presence: f32,
    /// The share of the best tool's name that the message has.
    named: f32,
    /// The logarithm of the number of tools.
    tools: f32,
    length: f32,
    /// Clauses that ask.
    requests: usize,
    excluded: Vec<u32>,
}

/// A tool in its place.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// Its number in the index.
    pub number: usize,
    pub entry: Arc<Entry>,
    /// The probability that it is needed, 0 to 1.
    pub confidence: f32,
    /// What its score is made of.
    pub parts: ScoreParts,
}

impl<'i> Ranking<'i> {
    /// Ranks all tools of `index` for `message`, as `usage` has learnt to.
    pub fn new(index: &'i Index, message: &Message, usage: &'i Usage) -> Self {
        Self::weighted(index, message, usage, &Weights::FITTED)
    }

    /// The same with other weights.
    pub(super) fn weighted(index: &'i Index, message: &Message, usage: &'i Usage, weights: &Weights) -> Self {
        let observations = Observations::new(index, message, usage);
        let weights = weights.of_length(message.length);
        let scores = observations.scores(&weights);
        let is_surely_about_one =
            observations.of(LITERAL).iter().any(|said| *said > 0.0) || usage.was_chosen_for(message);
        let most = |feature: usize| observations.of(feature).iter().copied().fold(-1.0, f32::max);
        let presence = if is_surely_about_one {
            1.0
        } else {
            presence(message, index.len(), most(SIMILARITY), most(COVER).max(0.0))
        };
        let order: Vec<u32> = (0..index.len() as u32).collect();
        let mut ranking = Self {
            index,
            usage,
            observations,
            weights,
            scores,
            order,
            sorted: 0,
            total: 0.0,
            mass_total: 0.0,
            presence,
            named: 0.0,
            tools: (index.len().max(1) as f32).ln(),
            length: message.length,
            requests: message.requests(),
            excluded: Vec::new(),
        };
        ranking.exclude(message);
        if message.only_asks {
            ranking.lower_acting();
        }
        ranking.sum_up();
        ranking
    }

    /// Lowers tools that change something, of the best [`LOOKED_AT`].
    pub(super) fn lower_acting(&mut self) {
        self.sort(LOOKED_AT);
        for place in 0..self.order.len().min(LOOKED_AT) {
            let number = self.order[place] as usize;
            if self.index.acts(number) {
                self.scores[number] -= UNASKED;
                self.sorted = 0;
            }
        }
    }

    /// Lowers tools that say themselves that they are not for this.
    fn exclude(&mut self, message: &Message) {
        if self.index.scenes.iter().flatten().all(|scenes| scenes.cases.not_for.is_empty()) {
            return;
        }
        self.sort(LOOKED_AT);
        let best: Vec<u32> = self.order.iter().take(LOOKED_AT).copied().collect();
        for number in best {
            let Some(scenes) = &self.index.scenes[number as usize] else { continue };
            let against =
                scenes.cases.not_for.iter().map(|not_for| not_for.dot(&message.quantized)).fold(0.0_f32, f32::max);
            let own = self.index.meanings[number as usize].dot(&message.quantized);
            let examples = Packed::dots(&message.quantized, &scenes.cases.examples);
            let own = examples.into_iter().fold(own.max(scenes.centroid.dot(&message.quantized)), f32::max);
            let beyond = against - own - NOT_FOR_MARGIN;
            if against >= NOT_FOR_SIMILARITY && beyond > 0.0 {
                self.scores[number as usize] -= NOT_FOR_WEIGHT * beyond;
                self.excluded.push(number);
                self.sorted = 0;
            }
        }
    }

    /// Takes an earlier message's ranking into account, with this share of the score, and adds `bonus` to some tools.
    pub(super) fn lean_on(&mut self, earlier: Option<(&Ranking<'_>, f32)>, favoured: &[usize], bonus: f32) {
        if let Some((earlier, share)) = earlier {
            for (score, earlier) in self.scores.iter_mut().zip(&earlier.scores) {
                *score += share * (earlier - *score);
            }
            self.presence = self.presence.max(earlier.presence);
        }
        for &number in favoured {
            self.scores[number] += bonus;
        }
        self.sorted = 0;
        self.sum_up();
    }

    fn sum_up(&mut self) {
        self.sort(1);
        let first = self.order.first().map(|&first| first as usize);
        let best = first.map_or(0.0, |first| self.scores[first]);
        self.named = first.map_or(0.0, |first| self.observations.of(NAME_COVER)[first]);
        let temperature = self.temperature();
        let (mut total, mut mass) = (0.0_f32, 0.0_f32);
        for score in &self.scores {
            total += (score - best).exp();
            mass += ((score - best) / temperature).exp();
        }
        self.total = best + total.ln();
        self.mass_total = best / temperature + mass.ln();
    }

    /// Makes the first `count` of the order the best, in order.
    fn sort(&mut self, count: usize) {
        let count = count.min(self.order.len());
        if count <= self.sorted {
            return;
        }
        put_first(&self.scores, &mut self.order[self.sorted..], count - self.sorted);
        self.sorted = count;
    }

    /// The numbers of the best `count` tools, best first.
    pub fn best_numbers(&mut self, count: usize) -> &[u32] {
        self.sort(count);
        &self.order[..count.min(self.order.len())]
    }

    /// The best `count` tools, best first.
    pub fn best(&mut self, count: usize) -> Vec<Ranked> {
        self.sort(count);
        self.order.iter().take(count).map(|&number| self.ranked(number as usize)).collect()
    }

    /// The tools that may well be needed, best first: as many as the probability mass asks for, `most` at most. Never
    /// none, unless there is none.
    pub fn loaded(&mut self, most: usize) -> Vec<Ranked> {
        let count = self.mass_count(most);
        self.best(count)
    }

    /// The numbers of [`Ranking::loaded`].
    pub(super) fn loaded_numbers(&mut self, most: usize) -> &[u32] {
        let count = self.mass_count(most);
        self.best_numbers(count)
    }

    /// What scores are divided by before the mass is made of them.
    fn temperature(&self) -> f32 {
        MASS_TEMPERATURE * self.tools.max(1.0)
    }

    /// The share of the probability that is to be loaded, 0 to 1.
    fn mass(&self) -> f32 {
        let requests = self.requests.max(1) as f32;
        let size = self.tools - USUAL_TOOLS;
        let learnt = self.usage.familiarity(self.index);
        logistic(MASS + MASS_OF_REQUESTS * requests.ln() + MASS_OF_SIZE * size + MASS_OF_USE * learnt)
    }

    /// How many of the best it takes to hold the mass, `most` at most.
    fn mass_count(&mut self, most: usize) -> usize {
        let (whole, temperature) = (self.mass(), self.temperature());
        let mut mass = 0.0;
        let mut count = 0;
        while count < most.min(self.order.len()) {
            // Each request has a tool of its own, however far ahead the first one's is.
            if mass >= whole && count >= self.requests.clamp(1, SURE_REQUESTS) {
                break;
            }
            if count == self.sorted {
                self.sort(count + SORTED_AT_ONCE);
            }
            mass += (self.scores[self.order[count] as usize] / temperature - self.mass_total).exp();
            count += 1;
        }
        count
    }

    /// The numbers of the tools that may be meant, best first: those of [`Ranking::loaded`], without a bound, and those
    /// that share words with the message. None if it says nothing at all.
    pub fn matching(&mut self) -> Vec<u32> {
        let all = self.order.len();
        let likely = if self.observations.of(SIMILARITY).iter().any(|similarity| *similarity != 0.0) {
            self.mass_count(all)
        } else {
            0
        };
        // The others are in no order yet, and those that share no word need not be.
        let (likely, rest) = self.order.split_at(likely);
        let mut sharing: Vec<u32> = rest.to_vec();
        sharing.retain(|&number| self.observations.of(COVER)[number as usize] >= LEAST_COVER);
        let count = sharing.len();
        put_first(&self.scores, &mut sharing, count);
        [likely, &sharing].concat()
    }

    /// The tool of that number.
    pub fn ranked(&self, number: usize) -> Ranked {
        let parts = ScoreParts::of(&self.weights, &self.row(number), self.scores[number]);
        Ranked { number, entry: Arc::clone(self.index.entry(number)), confidence: self.confidence(number), parts }
    }

    /// The probability that the tool is needed, 0 to 1.
    pub fn confidence(&self, number: usize) -> f32 {
        self.confidence_of([number])
    }

    /// The probability that one of these tools is needed, 0 to 1.
    pub fn confidence_of(&self, numbers: impl IntoIterator<Item = usize>) -> f32 {
        self.presence * self.probability_of(numbers)
    }

    /// The probability that the tool is needed if any is, 0 to 1.
    pub fn probability_if_any(&self, number: usize) -> f32 {
        self.probability_of([number])
    }

    fn probability_of(&self, numbers: impl IntoIterator<Item = usize>) -> f32 {
        logistic(self.usage.calibrated(self.log_odds_of(numbers)))
    }

    /// The same before it is adapted to what was chosen, as logarithm of the odds.
    pub(super) fn log_odds_of(&self, numbers: impl IntoIterator<Item = usize>) -> f32 {
        let shares = numbers.into_iter().map(|number| self.share(number));
        let Some(share) = shares.reduce(|all, share| all + share) else { return f32::NEG_INFINITY };
        super::weights::Calibration::FITTED.log_odds(self.standing(share))
    }

    /// How a tool, or several, stand among all.
    pub(super) fn standing(&self, share: f32) -> Standing {
        Standing { share, named: self.named, length: self.length }
    }

    /// The tool's share of the probability against all others.
    pub(super) fn share(&self, number: usize) -> f32 {
        (self.scores[number] - self.total).exp()
    }

    /// How well it fits; unbounded.
    pub fn score(&self, number: usize) -> f32 {
        self.scores[number]
    }

    /// What was observed of it.
    pub(super) fn row(&self, number: usize) -> FeatureRow {
        self.observations.row(number)
    }

    /// Is it the tool's own document that says it is not for this?
    pub fn is_excluded(&self, number: usize) -> bool {
        self.excluded.contains(&(number as u32))
    }

    /// Tools whose own documents say that they are not for this, by number.
    pub fn excluded(&self) -> impl Iterator<Item = usize> {
        self.excluded.iter().map(|&number| number as usize)
    }

    /// Does its name, or its description, share a telling term with the message?
    pub fn shares_words(&self, number: usize) -> bool {
        self.observations.of(COVER)[number] > 0.0
    }

    /// How alike in meaning the tool and the message are, -1 to 1.
    pub fn similarity(&self, number: usize) -> f32 {
        self.observations.of(SIMILARITY)[number]
    }

    pub fn index(&self) -> &'i Index {
        self.index
    }
}

#[cfg(test)]
mod tests;
