//! All tools of a catalog in the order in which they fit a message, with the probability that each is needed.
//!
//! Pure and bounded: a pass over the tools for each kind of observation, a weighted sum, no sorting but of the best. It cannot
//! fail; a message that says nothing ranks by name with low probabilities.

use std::sync::Arc;

use super::index::Index;
use super::message::Message;
use super::usage::Usage;
use super::weights::{
    COVER, LIKENESS, MEANING, NAME_COVER, NAME_MEANING, Row, USE_COVER, USE_MEANING, USE_PRIOR, WORDS, logistic,
};
use crate::catalog::Entry;

/// Tools whose `not_for` is compared with the message: those it could push out of sight.
const LOOKED_AT: usize = 24;

/// How much more a message must be like what a tool is not for than like the tool itself.
const NOT_FOR_MARGIN: f32 = 0.05;

/// Likeness below which a `not_for` is about something else.
const NOT_FOR_LIKENESS: f32 = 0.45;

/// What each hundredth of likeness beyond the margin takes away.
const NOT_FOR_WEIGHT: f32 = 8.0;

/// Scores are halved before the gate's probabilities are made of them: the best may be surer than the second is wrong.
const GATE_TEMPERATURE: f32 = 2.0;

/// A tool with less than this logarithm of the gate's probability is not loaded. Fitted so that 95 in 100 needed tools pass
/// where nothing was learnt.
const GATE: f32 = -5.45;

/// By how much the gate closes once tools have been chosen for messages: what was learnt makes the order surer.
const GATE_LEARNT: f32 = 0.9;

/// The gate closes no further.
const GATE_LEARNT_MOST: f32 = 0.5;

/// Share of a message, by rarity, that a tool must have to match it at all.
const LEAST_COVER: f32 = 0.1;

/// Smallest spread of likenesses and scores that counts as one; it keeps catalogs of few or equal tools from looking sure.
const LEAST_SPREAD: f32 = 0.02;

/// The tools of an index, ranked for a message.
#[derive(Debug)]
pub struct Ranking<'i> {
    index: &'i Index,
    usage: &'i Usage,
    rows: Vec<Row>,
    scores: Vec<f32>,
    /// Numbers of the best tools, best first; the rest follow by number.
    order: Vec<u32>,
    sorted: usize,
    /// Logarithms of the sums of e^score and e^(score/2).
    total: f32,
    gate_total: f32,
    excluded: Vec<u32>,
}

/// A tool in its place.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// Its number in the index.
    pub number: usize,
    /// The tool.
    pub entry: Arc<Entry>,
    /// The probability that it is needed, 0 to 1.
    pub confidence: f32,
}

impl<'i> Ranking<'i> {
    /// Ranks all tools of `index` for `message`, as `usage` has learnt to.
    pub fn new(index: &'i Index, message: &Message, usage: &'i Usage) -> Self {
        let rows = observe(index, message, usage);
        let scores: Vec<f32> = rows.iter().map(|row| usage.weights().score(row)).collect();
        let order: Vec<u32> = (0..index.len() as u32).collect();
        let mut ranking =
            Self { index, usage, rows, scores, order, sorted: 0, total: 0.0, gate_total: 0.0, excluded: Vec::new() };
        ranking.exclude(message);
        ranking.sum_up();
        ranking
    }

    /// Lowers tools that say themselves that they are not for this.
    fn exclude(&mut self, message: &Message) {
        if !self.index.scenes.iter().any(|scenes| scenes.as_ref().is_some_and(|scenes| !scenes.not_for.is_empty())) {
            return;
        }
        self.sort(LOOKED_AT);
        let best: Vec<u32> = self.order.iter().take(LOOKED_AT).copied().collect();
        for number in best {
            let Some(scenes) = &self.index.scenes[number as usize] else { continue };
            let against = scenes.not_for.iter().map(|not_for| not_for.dot(&message.quantized)).fold(0.0_f32, f32::max);
            let own = self.index.meanings[number as usize].dot(&message.quantized);
            let own = own.max(scenes.middle.dot(&message.quantized));
            let beyond = against - own - NOT_FOR_MARGIN;
            if against >= NOT_FOR_LIKENESS && beyond > 0.0 {
                self.scores[number as usize] -= NOT_FOR_WEIGHT * beyond;
                self.excluded.push(number);
                self.sorted = 0;
            }
        }
    }

    fn sum_up(&mut self) {
        let best = self.scores.iter().copied().fold(f32::MIN, f32::max);
        let (mut total, mut gate_total) = (0.0_f32, 0.0_f32);
        for score in &self.scores {
            let half = ((score - best) / GATE_TEMPERATURE).exp();
            gate_total += half;
            total += half * half;
        }
        self.total = best + total.ln();
        self.gate_total = best / GATE_TEMPERATURE + gate_total.ln();
    }

    /// Makes the first `count` of the order the best, in order.
    fn sort(&mut self, count: usize) {
        let count = count.min(self.order.len());
        if count <= self.sorted {
            return;
        }
        let scores = &self.scores;
        // Numbers follow the names, so ties break by name.
        let compare = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b));
        if count < self.order.len() {
            self.order.select_nth_unstable_by(count, compare);
        }
        self.order[..count].sort_unstable_by(compare);
        self.sorted = count;
    }

    /// The best `count` tools, best first.
    pub fn best(&mut self, count: usize) -> Vec<Ranked> {
        self.sort(count);
        self.order.iter().take(count).map(|&number| self.ranked(number as usize)).collect()
    }

    /// The tools that pass the gate, best first: all that may well be needed. Never none, unless there is none.
    pub fn loaded(&mut self) -> Vec<Ranked> {
        let least = self.gate_total + self.gate();
        let passing = self.scores.iter().filter(|&&score| score / GATE_TEMPERATURE >= least).count();
        self.best(passing.max(1))
    }

    /// The tools that share words with the message, best first.
    pub fn matching(&mut self) -> Vec<Ranked> {
        let all = self.order.len();
        self.sort(all);
        let matching = self.order.iter().filter(|&&number| self.rows[number as usize][COVER] >= LEAST_COVER);
        matching.map(|&number| self.ranked(number as usize)).collect()
    }

    /// The logarithm of the gate's probability that a tool has.
    pub(super) fn gate_place(&self, number: usize) -> f32 {
        self.scores[number] / GATE_TEMPERATURE - self.gate_total
    }

    /// The logarithm of the gate's probability that a tool must have.
    fn gate(&self) -> f32 {
        GATE + (GATE_LEARNT * self.usage.coverage(self.index.len())).min(GATE_LEARNT_MOST)
    }

    pub(super) fn ranked(&self, number: usize) -> Ranked {
        Ranked { number, entry: Arc::clone(self.index.entry(number)), confidence: self.confidence(number) }
    }

    /// The probability that the tool is needed, 0 to 1.
    pub fn confidence(&self, number: usize) -> f32 {
        self.confidence_of([number])
    }

    /// The probability that one of these tools is needed, 0 to 1.
    pub fn confidence_of(&self, numbers: impl IntoIterator<Item = usize>) -> f32 {
        logistic(self.usage.calibrated(self.log_odds_of(numbers)))
    }

    /// The same before it is adapted to what was chosen, as logarithm of the odds.
    pub(super) fn log_odds_of(&self, numbers: impl IntoIterator<Item = usize>) -> f32 {
        let (mut share, mut best) = (0.0_f32, f32::NEG_INFINITY);
        for number in numbers {
            share += self.share(number);
            best = best.max(self.scores[number]);
        }
        if best == f32::NEG_INFINITY {
            return best;
        }
        super::weights::Calibration::FITTED.log_odds(share, best)
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
    pub(super) fn row(&self, number: usize) -> &Row {
        &self.rows[number]
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
        self.rows[number][COVER] > 0.0
    }

    /// The index.
    pub fn index(&self) -> &'i Index {
        self.index
    }
}

/// All observations about all tools.
fn observe(index: &Index, message: &Message, usage: &Usage) -> Vec<Row> {
    let mut rows: Vec<Row> = vec![[0.0; super::weights::FEATURES]; index.len()];
    let whole = observe_words(index, message, &mut rows);
    let spread = observe_meanings(index, message, &mut rows);
    standardise(&mut rows, WORDS, LEAST_SPREAD);
    usage.observe_rows(index, message, whole, spread, &mut rows);
    rows
}

/// Returns the rarity of all terms of the message together.
fn observe_words(index: &Index, message: &Message, rows: &mut [Row]) -> f32 {
    let mut whole = 0.0;
    for term in &message.terms {
        let Some(found) = index.words.find(&term.text) else {
            whole += index.words.rarity(0) * term.weight;
            continue;
        };
        let counts = found.rarity * term.weight;
        whole += counts;
        for (number, amount) in found.documents() {
            rows[number][WORDS] += counts * amount;
            rows[number][COVER] += counts;
        }
        for &(number, share) in index.names.get(&*term.text).into_iter().flatten() {
            rows[number as usize][NAME_COVER] += share;
        }
    }
    if whole > 0.0 {
        for row in rows.iter_mut() {
            row[COVER] /= whole;
        }
    }
    whole
}

/// Returns the standard deviation of likenesses.
fn observe_meanings(index: &Index, message: &Message, rows: &mut [Row]) -> f32 {
    for (row, meaning) in rows.iter_mut().zip(&index.meanings) {
        row[LIKENESS] = meaning.dot(&message.quantized);
    }
    let (mean, spread) = mean_and_spread(rows, LIKENESS, LEAST_SPREAD);
    for (number, row) in rows.iter_mut().enumerate() {
        row[MEANING] = (row[LIKENESS] - mean) / spread;
        if row[MEANING] < 0.0 && row[COVER] < LEAST_COVER {
            // Neither words nor meaning speak for it: to look closer would only cost time.
            row[NAME_MEANING] = row[MEANING];
            continue;
        }
        row[NAME_MEANING] = (index.name_meanings[number].dot(&message.quantized) - mean) / spread;
        if let Some(scenes) = &index.scenes[number] {
            row[USE_MEANING] = (scenes.middle.dot(&message.quantized) - row[LIKENESS]) / spread;
        }
        debug_assert!(row[USE_COVER] == 0.0 && row[USE_PRIOR] == 0.0, "usage comes later");
    }
    spread
}

fn mean_and_spread(rows: &[Row], feature: usize, least: f32) -> (f32, f32) {
    let count = rows.len().max(1) as f32;
    let mean = rows.iter().map(|row| row[feature]).sum::<f32>() / count;
    let variance = rows.iter().map(|row| (row[feature] - mean).powi(2)).sum::<f32>() / count;
    (mean, variance.sqrt().max(least))
}

fn standardise(rows: &mut [Row], feature: usize, least: f32) {
    let (mean, spread) = mean_and_spread(rows, feature, least);
    for row in rows {
        row[feature] = (row[feature] - mean) / spread;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::catalog::document::UseCase;
    use crate::catalog::{Catalog, ToolMetadata};

    fn index(tools: &[(&str, &str, &str)]) -> Index {
        let mut catalog = Catalog::default();
        for (name, description, not_for) in tools {
            let case = UseCase { title: "t".into(), not_for: (*not_for).into(), ..UseCase::default() };
            let document = ToolMetadata {
                name: (*name).into(),
                description: (*description).into(),
                use_cases: vec![UseCase { when_to_use: (*description).into(), ..case }],
                ..ToolMetadata::default()
            };
            catalog.add(Arc::new(Entry::new(&document, Path::new("x").into())));
        }
        Index::build(&Arc::new(catalog))
    }

    const TOOLS: [(&str, &str, &str); 4] = [
        ("file_read", "Reads a file from the disk.", ""),
        ("get_weather", "The weather forecast of a city.", "The climate of past centuries, for historians."),
        ("send_email", "Sends an email to a recipient.", ""),
        ("swap_tokens", "Swaps one crypto token for another.", ""),
    ];

    fn check(message: &str, expected: &str) {
        let index = index(&TOOLS);
        let nothing = Usage::new();
        let best = Ranking::new(&index, &Message::new(message), &nothing).best(1);
        assert_eq!(&**best[0].entry.name(), expected, "for {message:?}");
    }

    #[test]
    fn the_best_tool_is_first() {
        check("please open that file for me", "file_read");
        check("will it rain in Paris tomorrow?", "get_weather");
        check("write a message to my boss by mail", "send_email");
        check("swap my coins for another token", "swap_tokens");
        check("", "file_read");
    }

    #[test]
    fn an_empty_catalog_has_no_tools() {
        let (index, nothing) = (index(&[]), Usage::new());
        let mut ranking = Ranking::new(&index, &Message::new("anything"), &nothing);
        assert!(ranking.best(5).is_empty() && ranking.loaded().is_empty());
        assert!(ranking.confidence_of([]) < 0.01);
    }

    #[test]
    fn what_a_tool_is_not_for_counts_against_it() {
        let (index, nothing) = (index(&TOOLS), Usage::new());
        let ranking = Ranking::new(&index, &Message::new("the climate of past centuries, for historians"), &nothing);
        assert_eq!(ranking.excluded().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn choices_turn_the_order() {
        let index = index(&TOOLS);
        let mut usage = Usage::new();
        for _ in 0..4 {
            usage.learn(&index, &Message::new("quarterly zebra figures"), "send_email");
        }
        let best = Ranking::new(&index, &Message::new("zebra figures"), &usage).best(1);
        assert_eq!(&**best[0].entry.name(), "send_email");
        assert!(usage.learn(&index, &Message::new("x"), "gone").is_none());
        assert_eq!(usage.choices(), 4);
    }

    proptest! {
        #[test]
        fn any_message_ranks_all_tools_with_probabilities(text in "\\PC{0,80}") {
            let (index, nothing) = (index(&TOOLS), Usage::new());
            let mut ranking = Ranking::new(&index, &Message::new(&text), &nothing);
            let all = ranking.best(10);
            prop_assert_eq!(all.len(), TOOLS.len());
            for pair in all.windows(2) {
                prop_assert!(ranking.score(pair[0].number) >= ranking.score(pair[1].number));
                prop_assert!(pair[0].confidence >= pair[1].confidence, "a better match is never less likely");
            }
            prop_assert!(all.iter().all(|tool| (0.0..=1.0).contains(&tool.confidence)));
            let loaded = ranking.loaded();
            prop_assert!(!loaded.is_empty() && loaded.len() <= TOOLS.len());
            prop_assert!(ranking.confidence_of(0..TOOLS.len()) >= all[0].confidence);
        }
    }
}
