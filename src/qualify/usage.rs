//! What was learnt from use: messages, and the tools that were chosen for them.
//!
//! Observed choices are worth more than any encoder: after five a tool, the right one is first in ten more messages of
//! a hundred. Each goes into its tool's sum of meanings and its terms, which stand beside its document from then on; an
//! addition, no model. What the observations about a tool count does not move: weights that follow the choices among a
//! few tools ruin the order of all others. Probabilities are held to how often the best tool was the chosen one.
//!
//! Some choices are wrong. A choice that nothing speaks for counts less, by the odds that it was made at random, and
//! what was learnt long ago fades.
//!
//! Immutable once published; a clone shares what did not change. Tools are kept by name, so that a reload forgets
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use imbl::{HashMap, Vector as Sequence};

use super::index::Index;
use super::message::Message;
use super::observations::Observations;
use super::ranking::Ranking;
use super::stop_words;
use super::weights::{SIMILARITY, USE_COVER, USE_MEANING, USE_PRIOR, USE_RATIO, logistic};
use crate::text::embedding::{Pool, Quantized, Vector};

/// Tools that can be learnt of; the least used makes room.
const MAX_TOOLS: usize = 2048;

/// Terms that can be learnt; with more, new ones are passed over.
const MAX_TERMS: usize = 50_000;

/// Tools of one term.
const MAX_TOOLS_OF_TERM: usize = 256;

/// A sum of meanings counts as so many messages at most, so that newer ones can still turn it.
const MAX_WEIGHT: f32 = 32.0;

/// After so many choices, one counts half.
const HALF_LIFE: f32 = 4096.0;

/// Share of choices that are taken to be made at random.
const NOISE: f32 = 0.2;

/// The least that a choice counts: what nothing speaks for may be right all the same.
const LEAST_TRUST: f32 = 0.5;

/// With so many chosen tools, half of what they have in common is known to be usual.
const FEW: f32 = 4.0;

/// How many choices a tool's term frequencies are taken for besides its own: those of all tools.
const SMOOTHING: f32 = 1.0;

/// Share of a message's words, each with what its choices say for a tool, from which on the tool is offered whatever
/// its category; two or three choices for the very message reach it.
const TAUGHT: f32 = 0.5;

/// Tools that are offered for that.
const MOST_TAUGHT: usize = 5;

/// Step by which the calibration is moved.
const CALIBRATION_STEP: f32 = 0.1;

/// What a tenant's choices have taught.
#[derive(Debug, Clone)]
pub struct Usage {
    tools: Sequence<Arc<ToolUse>>,
    by_name: HashMap<Arc<str>, u32>,
    terms: HashMap<Box<str>, Arc<[(u32, f32)]>>,
    choices: u64,
    adaptation: Adaptation,
}

/// What moves with choices besides the sums; small enough to be stored with each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptation {
    scale: f32,
    shift: f32,
    judged: f32,
}

#[derive(Debug, Clone)]
struct ToolUse {
    name: Arc<str>,
    /// Sum of the meanings of its messages.
    sum: Pool,
    /// How many there were, by trust, when it was last chosen.
    weight: f32,
    last: u64,
    /// Where its document and its messages lie together, and the document's digest for which that holds.
    centroid: Quantized,
    digest: u128,
}

/// A choice as it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trust(f32);

impl Trust {
    /// From what was stored; kept within its bounds.
    pub fn new(trust: f32) -> Self {
        Self(if trust.is_finite() { trust.clamp(LEAST_TRUST, 1.0) } else { LEAST_TRUST })
    }

    /// 0.5 to 1.
    pub fn get(self) -> f32 {
        self.0
    }
}

impl Usage {
    /// Nothing was learnt yet.
    pub fn new() -> Self {
        Self {
            tools: Sequence::new(),
            by_name: HashMap::new(),
            terms: HashMap::new(),
            choices: 0,
            adaptation: Adaptation::NONE,
        }
    }

    /// Learns that `tool` was chosen for `message`. Returns how far the choice is trusted; a tool that the index does
    /// not have is not learnt.
    pub fn learn(&mut self, index: &Index, message: &Message, tool: &str) -> Option<Trust> {
        let number = index.number(tool)?;
        let trust = self.judge(index, message, number);
        self.add(index, message, tool, trust);
        Some(trust)
    }

    /// Learns that somebody says so: with the least trust, and without moving the calibration.
    pub fn hear(&mut self, index: &Index, message: &Message, tool: &str) -> Option<Trust> {
        index.number(tool)?;
        let trust = Trust::new(LEAST_TRUST);
        self.add(index, message, tool, trust);
        Some(trust)
    }

    /// Adds a choice that is trusted so far, without judging it again.
    fn add(&mut self, index: &Index, message: &Message, tool: &str, trust: Trust) {
        let slot = self.count(message, tool, trust);
        self.settle(index, slot);
    }

    /// Adds choices of earlier, oldest first, each trusted so far: the same as one after the other, and cheaper.
    pub fn add_all<'c>(&mut self, index: &Index, choices: impl IntoIterator<Item = (&'c Message, &'c str, Trust)>) {
        let slots: BTreeSet<u32> =
            choices.into_iter().map(|(message, tool, trust)| self.count(message, tool, trust)).collect();
        for slot in slots {
            self.settle(index, slot);
        }
    }

    /// Counts a choice, and says in which place. Its tool is not settled yet.
    fn count(&mut self, message: &Message, tool: &str, trust: Trust) -> u32 {
        self.choices += 1;
        let slot = self.slot(tool);
        if let Some(known) = self.tools.get_mut(slot as usize) {
            Arc::make_mut(known).count(&message.vector, trust, self.choices);
        }
        for term in &message.terms {
            self.add_term(&term.text, slot, trust.0);
        }
        slot
    }

    fn settle(&mut self, index: &Index, slot: u32) {
        if let Some(known) = self.tools.get_mut(slot as usize) {
            Arc::make_mut(known).settle(index);
        }
    }

    fn add_term(&mut self, term: &str, slot: u32, trust: f32) {
        if let Some(tools) = self.terms.get_mut(term) {
            match tools.binary_search_by_key(&slot, |&(slot, _)| slot) {
                Ok(at) => {
                    let times = &mut Arc::make_mut(tools)[at].1;
                    *times = (*times + trust).min(MAX_WEIGHT);
                }
                Err(at) if tools.len() < MAX_TOOLS_OF_TERM => {
                    let (before, after) = tools.split_at(at);
                    *tools = [before, &[(slot, trust)], after].concat().into();
                }
                Err(_) => {}
            }
        } else if self.terms.len() < MAX_TERMS {
            self.terms.insert(term.into(), [(slot, trust)].into());
        }
    }

    /// The tool's place; of a new one the place of the least used, if there is no other.
    fn slot(&mut self, tool: &str) -> u32 {
        if let Some(&slot) = self.by_name.get(tool) {
            return slot;
        }
        let name: Arc<str> = tool.into();
        let fresh = Arc::new(ToolUse::new(Arc::clone(&name)));
        let slot = if self.tools.len() < MAX_TOOLS {
            self.tools.push_back(fresh);
            self.tools.len() - 1
        } else {
            let weights = self.tools.iter().map(|tool| tool.weight_at(self.choices));
            let least = weights.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(slot, _)| slot);
            let old = self.tools.set(least, fresh);
            self.by_name.remove(&old.name);
            self.forget_terms(least as u32);
            least
        };
        self.by_name.insert(name, slot as u32);
        slot as u32
    }

    fn forget_terms(&mut self, slot: u32) {
        let kept = self.terms.iter().filter_map(|(term, tools)| {
            let tools: Arc<[(u32, f32)]> = tools.iter().filter(|(of, _)| *of != slot).copied().collect();
            (!tools.is_empty()).then(|| (term.clone(), tools))
        });
        self.terms = kept.collect();
    }

    /// The tools that were chosen for messages of these words, best first, by number in the index: those whose messages
    /// had more than half of what this one says.
    pub(super) fn taught(&self, index: &Index, message: &Message) -> Vec<usize> {
        let telling = message.terms.iter().filter(|term| !stop_words::is_stop_word(&term.text));
        let (mut whole, mut shares) = (0.0, BTreeMap::<u32, f32>::new());
        for term in telling {
            let tools = self.terms.get(&term.text);
            let counts = index.words.idf(tools.map_or(0, |tools| tools.len()));
            whole += counts;
            for &(slot, times) in tools.iter().flat_map(|tools| tools.iter()) {
                *shares.entry(slot).or_default() += counts * times / (times + 1.0);
            }
        }
        let mut taught: Vec<(u32, f32)> = shares.into_iter().filter(|(_, share)| *share > TAUGHT * whole).collect();
        taught.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let numbers = taught.iter().filter_map(|(slot, _)| index.number(&self.tools.get(*slot as usize)?.name));
        numbers.take(MOST_TAUGHT).collect()
    }

    /// Was one tool chosen for messages that had each word of this one, be it once?
    pub(super) fn was_chosen_for(&self, message: &Message) -> bool {
        let telling = message.terms.iter().filter(|term| !stop_words::is_stop_word(&term.text));
        let mut with_each: Option<Vec<u32>> = None;
        for term in telling {
            let tools = self.terms.get(&term.text).into_iter().flat_map(|tools| tools.iter().map(|(slot, _)| *slot));
            with_each = Some(match with_each {
                Some(before) => tools.filter(|slot| before.contains(slot)).collect(),
                None => tools.collect(),
            });
        }
        with_each.is_some_and(|tools| !tools.is_empty())
    }

    /// What moved besides the sums.
    pub fn adaptation(&self) -> Adaptation {
        self.adaptation
    }

    /// The same, moved as it was when that was stored.
    #[must_use]
    pub fn with_adaptation(self, adaptation: Adaptation) -> Self {
        Self { adaptation, ..self }
    }

    /// How many choices were learnt.
    pub fn choices(&self) -> u64 {
        self.choices
    }

    /// How often each tool of the index was chosen: the mean of ln(1 + choices).
    pub(super) fn familiarity(&self, index: &Index) -> f32 {
        let known = self.tools.iter().filter(|tool| index.number(&tool.name).is_some());
        known.map(|tool| tool.weight_at(self.choices).ln_1p()).sum::<f32>() / index.len().max(1) as f32
    }

    /// Held to how often the best tool was the chosen one.
    pub(super) fn calibrated(&self, log_odds: f32) -> f32 {
        self.adaptation.scale * log_odds + self.adaptation.shift
    }

    /// Fills in what was learnt. `whole` is the idf of the message's terms, `spread` that of similarities.
    pub(super) fn observe(&self, index: &Index, message: &Message, whole: f32, spread: f32, all: &mut Observations) {
        if self.tools.is_empty() {
            return;
        }
        let numbers: Vec<Option<usize>> = self.tools.iter().map(|tool| index.number(&tool.name)).collect();
        let weights: Vec<f32> = self.tools.iter().map(|tool| tool.weight_at(self.choices)).collect();
        let total = weights.iter().sum::<f32>().max(1e-6);
        let mean = total / index.len().max(1) as f32;
        all.of_mut(USE_PRIOR).fill(-mean.ln_1p());
        let mut gains = Vec::new();
        for ((tool, number), weight) in self.tools.iter().zip(&numbers).zip(&weights) {
            let Some(number) = *number else { continue };
            all.of_mut(USE_PRIOR)[number] = ((weight + 1.0) / (mean + 1.0)).ln();
            let similarity = tool.centroid_in(index, number).dot(&message.quantized);
            let gain = (similarity - all.of(SIMILARITY)[number]) / spread;
            all.of_mut(USE_MEANING)[number] = gain;
            gains.push((number, gain));
        }
        // Messages are more like messages than like documents, whatever they are about. That alone must not lift all
        // tools that were ever chosen over those that were not.
        let usual = gains.iter().map(|(_, gain)| gain).sum::<f32>() / (gains.len() as f32 + FEW);
        for (number, _) in gains {
            all.of_mut(USE_MEANING)[number] -= usual;
        }
        let mut known = 0.0;
        for term in &message.terms {
            let Some(tools) = self.terms.get(&term.text) else { continue };
            let counts = index.words.idf(tools.len()) * term.weight / whole.max(1e-6);
            let chosen: f32 = tools.iter().map(|(_, times)| times).sum();
            let expected = SMOOTHING * (chosen / total).min(1.0);
            known += term.weight;
            for &(slot, times) in tools.iter() {
                if let Some(number) = numbers[slot as usize] {
                    all.of_mut(USE_COVER)[number] += counts * times / (times + 1.0);
                    let times = times.min(weights[slot as usize]);
                    all.of_mut(USE_RATIO)[number] += term.weight * ((times + expected) / expected).ln();
                }
            }
        }
        for (number, weight) in numbers.iter().zip(&weights) {
            if let Some(number) = *number {
                all.of_mut(USE_RATIO)[number] -= known * ((weight + SMOOTHING) / SMOOTHING).ln();
            }
        }
    }

    /// Moves the calibration by one choice, and says how far it is trusted.
    fn judge(&mut self, index: &Index, message: &Message, chosen: usize) -> Trust {
        let mut ranking = Ranking::new(index, message, self);
        let share = ranking.share(chosen);
        let random = NOISE / index.len() as f32;
        let trust = (1.0 - NOISE) * share / ((1.0 - NOISE) * share + random);
        let mut adaptation = self.adaptation;
        if let Some(first) = ranking.best(1).first() {
            adaptation.calibrate(ranking.log_odds_of([first.number]), first.number == chosen, trust);
        }
        self.adaptation = adaptation;
        Trust::new(trust)
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self::new()
    }
}

impl Adaptation {
    pub const NONE: Self = Self { scale: 1.0, shift: 0.0, judged: 0.0 };

    /// One step of logistic regression on whether the best tool was the chosen one.
    fn calibrate(&mut self, log_odds: f32, was_chosen: bool, trust: f32) {
        if !log_odds.is_finite() {
            return;
        }
        let trust = trust.max(LEAST_TRUST / 2.0);
        let error = logistic(self.scale * log_odds + self.shift) - f32::from(u8::from(was_chosen));
        self.judged += trust;
        let step = trust * CALIBRATION_STEP / (1.0 + self.judged / 100.0).sqrt();
        self.shift = (self.shift - step * error).clamp(-3.0, 3.0);
        self.scale = (self.scale - 0.3 * step * error * log_odds.clamp(-4.0, 4.0)).clamp(0.3, 3.0);
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        [self.scale, self.shift, self.judged].iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads [`Adaptation::to_bytes`]; nothing if that did not write `bytes`, as far as they tell.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<4>();
        let &[scale, shift, judged] = <&[[u8; 4]; 3]>::try_from(numbers).ok()?;
        let [scale, shift, judged] = [scale, shift, judged].map(f32::from_le_bytes);
        let is_sound = rest.is_empty() && [scale, shift, judged].iter().all(|number| number.is_finite());
        (is_sound && scale > 0.0 && judged >= 0.0).then_some(Self { scale, shift, judged })
    }
}

impl ToolUse {
    fn new(name: Arc<str>) -> Self {
        let centroid = Quantized::from(&Vector::ZERO);
        Self { name, sum: Pool::default(), weight: 0.0, last: 0, centroid, digest: 0 }
    }

    fn weight_at(&self, now: u64) -> f32 {
        self.weight * (-(now.saturating_sub(self.last) as f32) / HALF_LIFE).exp2()
    }

    /// Adds a message, which is the tenant's `now`th.
    fn count(&mut self, message: &Vector, trust: Trust, now: u64) {
        self.fade(now);
        self.sum.add(message, trust.0);
        self.weight += trust.0;
        self.last = now;
    }

    /// Makes older messages count less.
    fn fade(&mut self, now: u64) {
        let weight = self.weight_at(now).min(MAX_WEIGHT);
        if self.weight > 0.0 {
            self.sum.scale(weight / self.weight);
        }
        self.weight = weight;
    }

    /// Takes the tool's document into explanation.
    fn settle(&mut self, index: &Index) {
        if let Some(number) = index.number(&self.name) {
            self.centroid = self.centroid_of(index, number);
            self.digest = index.entry(number).digest();
        }
    }

    fn centroid_in(&self, index: &Index, number: usize) -> Quantized {
        // The document may have changed since.
        if self.digest == index.entry(number).digest() { self.centroid } else { self.centroid_of(index, number) }
    }

    fn centroid_of(&self, index: &Index, number: usize) -> Quantized {
        let mut centroid = self.sum.clone();
        centroid.add_quantized(&index.meanings[number], 1.0);
        if let Some(scenes) = &index.scenes[number] {
            centroid.add_pool(&scenes.cases.sum, 1.0);
        }
        Quantized::from(&centroid.vector())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_moved_is_read_again(judged in prop::collection::vec((-5.0_f32..5.0, any::<bool>()), 0..20)) {
            let mut adaptation = Adaptation::NONE;
            for (log_odds, was_chosen) in judged {
                adaptation.calibrate(log_odds, was_chosen, 0.7);
            }
            prop_assert_eq!(Adaptation::from_bytes(&adaptation.to_bytes()), Some(adaptation));
        }

        #[test]
        fn bytes_of_another_kind_are_refused(bytes in prop::collection::vec(any::<u8>(), 13..60)) {
            prop_assert_eq!(Adaptation::from_bytes(&bytes), None);
        }
    }

    #[test]
    fn trust_keeps_its_bounds() {
        let check = |trust: f32, expected: f32| assert!((Trust::new(trust).get() - expected).abs() < 1e-6, "{trust}");
        check(0.0, LEAST_TRUST);
        check(0.8, 0.8);
        check(7.0, 1.0);
        check(f32::NAN, LEAST_TRUST);
    }
}
