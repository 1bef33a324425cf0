//! All that is observed about all tools for one message.
//!
//! A column for each observation, so that a pass over thousands of tools reads and writes only what it is about.

use super::index::Index;
use super::message::Message;
use super::usage::Usage;
use super::weights::{
    CLAUSE_COVER, CLAUSE_MEANING, CLAUSE_NAME, CLAUSE_WORDS, COVER, FEATURES, FeatureRow, LITERAL, MEANING, NAME_COVER,
    NAME_MEANING, SIMILARITY, USE_MEANING, WORDS,
};
use crate::text::embedding::Quantized;

/// Share of a message, by idf, that a tool must have to match it at all.
pub(super) const LEAST_COVER: f32 = 0.1;

/// Smallest spread of similarities and scores that counts as one; it keeps catalogs of few or equal tools from looking
/// sure.
const LEAST_SPREAD: f32 = 0.02;

/// Sums that are made side by side, so that none waits for the one before.
const LANES: usize = 8;

/// Of each observation the values of all tools, by number.
#[derive(Debug)]
pub(super) struct Observations([Vec<f32>; FEATURES]);

impl Observations {
    pub(super) fn new(index: &Index, message: &Message, usage: &Usage) -> Self {
        let mut all = Self(std::array::from_fn(|_| vec![0.0; index.len()]));
        let whole = all.observe_words(index, message);
        all.observe_clauses(index, message);
        for (number, literal) in index.said_names.find(&message.names) {
            let known = &mut all.0[LITERAL][number];
            *known = known.max(literal);
        }
        let spread = all.observe_meanings(index, message);
        standardise(&mut all.0[WORDS]);
        standardise(&mut all.0[CLAUSE_WORDS]);
        usage.observe(index, message, whole, spread, &mut all);
        all
    }

    /// One observation about all tools.
    pub(super) fn of(&self, feature: usize) -> &[f32] {
        &self.0[feature]
    }

    pub(super) fn of_mut(&mut self, feature: usize) -> &mut [f32] {
        &mut self.0[feature]
    }

    /// All observations about one tool.
    pub(super) fn row(&self, number: usize) -> FeatureRow {
        std::array::from_fn(|feature| self.0[feature][number])
    }

    /// Of each tool the weighted sum.
    pub(super) fn scores(&self, weights: &FeatureRow) -> Vec<f32> {
        let mut scores = vec![0.0; self.0[WORDS].len()];
        for (column, &weight) in self.0.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
            for (score, value) in scores.iter_mut().zip(column) {
                *score += weight * value;
            }
        }
        scores
    }

    /// Returns the idf of all terms of the message together.
    fn observe_words(&mut self, index: &Index, message: &Message) -> f32 {
        let mut whole = 0.0;
        for term in &message.terms {
            let Some(found) = index.words.find(&term.text) else {
                whole += index.words.idf(0) * term.weight;
                continue;
            };
            let counts = found.idf * term.weight;
            whole += counts;
            for (number, amount) in found.documents() {
                self.0[WORDS][number] += counts * amount;
                self.0[COVER][number] += counts;
            }
            for &(number, share) in index.names.get(&*term.text).into_iter().flatten() {
                self.0[NAME_COVER][number as usize] += share;
            }
        }
        if whole > 0.0 {
            for cover in &mut self.0[COVER] {
                *cover /= whole;
            }
        }
        whole
    }

    /// The words of the clause that fits best.
    fn observe_clauses(&mut self, index: &Index, message: &Message) {
        if let [_] = message.parts[..] {
            let (words, cover) = (self.0[WORDS].clone(), self.0[COVER].clone());
            (self.0[CLAUSE_WORDS], self.0[CLAUSE_COVER]) = (words, cover);
            return;
        }
        let found: Vec<_> = message.terms.iter().map(|term| index.words.find(&term.text)).collect();
        let mut sums: Vec<(f32, f32)> = vec![(0.0, 0.0); index.len()];
        let mut touched: Vec<usize> = Vec::new();
        for part in &message.parts {
            let mut whole = 0.0;
            for &place in &part.terms {
                let weight = super::stop_words::term_weight(&message.terms[place as usize].text);
                let Some(found) = found[place as usize] else {
                    whole += index.words.idf(0) * weight;
                    continue;
                };
                let counts = found.idf * weight;
                whole += counts;
                for (number, amount) in found.documents() {
                    if sums[number].1 == 0.0 {
                        touched.push(number);
                    }
                    sums[number].0 += counts * amount;
                    sums[number].1 += counts;
                }
            }
            let weight = part.weight.sqrt();
            for number in touched.drain(..) {
                let (words, cover) = std::mem::take(&mut sums[number]);
                let (best_words, best_cover) = (self.0[CLAUSE_WORDS][number], self.0[CLAUSE_COVER][number]);
                self.0[CLAUSE_WORDS][number] = best_words.max(weight * words);
                self.0[CLAUSE_COVER][number] = best_cover.max(weight * cover / whole);
            }
        }
    }

    /// Returns the standard deviation of similarities.
    fn observe_meanings(&mut self, index: &Index, message: &Message) -> f32 {
        let similarities = message.quantized.dots(&index.meanings);
        let best = best_of(message, &similarities, || index.meanings.iter());
        let (mean, spread) = mean_and_spread(&similarities);
        let mut closer: Vec<usize> = Vec::with_capacity(index.len());
        for (number, (similarity, best)) in similarities.iter().zip(&*best).enumerate() {
            let [meaning, clause] = [similarity, best].map(|similarity| (similarity - mean) / spread);
            for (feature, value) in
                [(MEANING, meaning), (CLAUSE_MEANING, clause), (NAME_MEANING, meaning), (CLAUSE_NAME, clause)]
            {
                self.0[feature][number] = value;
            }
            // Where neither words nor meaning speak for it, to look closer would only cost time.
            if meaning.max(clause) >= 0.0 || self.0[CLAUSE_COVER][number] >= LEAST_COVER {
                closer.push(number);
            }
        }
        let names = || closer.iter().map(|&number| &index.name_meanings[number]);
        let of_names = message.quantized.dots(names());
        let best_of_names = best_of(message, &of_names, names);
        for (&number, (of_name, best)) in closer.iter().zip(of_names.iter().zip(&*best_of_names)) {
            self.0[NAME_MEANING][number] = (of_name - mean) / spread;
            self.0[CLAUSE_NAME][number] = (best - mean) / spread;
        }
        let scenes = || closer.iter().filter_map(|&number| Some((number, index.scenes[number].as_ref()?)));
        let of_scenes = message.quantized.dots(scenes().map(|(_, scenes)| &scenes.centroid));
        for ((number, _), own) in scenes().zip(of_scenes) {
            self.0[USE_MEANING][number] = (own - similarities[number]) / spread;
        }
        self.0[SIMILARITY] = similarities;
        spread
    }
}

/// The largest similarities of a clause to each; those that do not ask count less. `whole` is the message's.
fn best_of<'q, I>(message: &Message, whole: &[f32], to: impl Fn() -> I) -> Vec<f32>
where
    I: Iterator<Item = &'q Quantized>,
{
    if message.parts.len() == 1 {
        return whole.to_vec();
    }
    let mut best = vec![f32::MIN; whole.len()];
    for part in &message.parts {
        let weight = part.weight.sqrt();
        for (best, similarity) in best.iter_mut().zip(part.quantized.dots(to())) {
            *best = best.max(weight * similarity);
        }
    }
    best
}

fn mean_and_spread(values: &[f32]) -> (f32, f32) {
    let count = values.len().max(1) as f32;
    let mean = sum(values, |value| value) / count;
    let variance = sum(values, |value| (value - mean) * (value - mean)) / count;
    (mean, variance.sqrt().max(LEAST_SPREAD))
}

fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            sums[lane] += of(chunk[lane]);
        }
    }
    sums.into_iter().chain(rest.iter().map(|&value| of(value))).sum()
}

fn standardise(values: &mut [f32]) {
    let (mean, spread) = mean_and_spread(values);
    for value in values {
        *value = (*value - mean) / spread;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn standardised_values_have_a_mean_of_zero(values in prop::collection::vec(-9.0_f32..9.0, 2..60)) {
            let (mean, spread) = mean_and_spread(&values);
            prop_assert!((mean - values.iter().sum::<f32>() / values.len() as f32).abs() < 1e-4);
            let mut standard = values.clone();
            standardise(&mut standard);
            prop_assert!(sum(&standard, |value| value).abs() < 1e-3 * values.len() as f32 / spread);
        }
    }
}
