//! Which presets fit, and what is left of them?
//!
//! A preset has been begun as far as its first tools occur in the session's calls in their order, whatever was called
//! between them. One that was finished is not offered. A goal, which may be a whole message, calls for a preset by what
//! they share: a keyword, or most of a use case. Words that say how somebody asks are none of it, and a word counts for
//! more the fewer presets have it (inverse document frequency), as where tools are ranked.

use std::collections::{BTreeSet, HashMap};

use super::{Preset, Presets};
use crate::text::{analysis, stop_words};

/// Most presets that are offered.
pub const MAX_MATCHES: usize = 3;

/// What a use case that the goal says all of counts for against a keyword.
const CASE: f64 = 3.0;
/// The share of a use case's or a name's words, weighted, that a goal must have for it to count …
const MOST: f64 = 0.5;
/// … and how many of them at least.
const WORDS: usize = 2;

/// A preset that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'p> {
    pub preset: &'p Preset,
    /// How many of its steps were done.
    pub done: usize,
    /// How well it fits, above 0: the share of steps that were done, and up to 1 for the goal.
    relevance: f64,
}

impl<'p> Match<'p> {
    /// The tools that are still to be called, in their order.
    pub fn remaining(&self) -> &'p [String] {
        &self.preset.tools[self.done..]
    }
}

/// The presets that fit the calls of a session (oldest first) or its goal, best first, ties by id.
pub fn find<'p>(presets: &'p Presets, history: &[impl AsRef<str>], goal: Option<&str>) -> Vec<Match<'p>> {
    let goal = goal.unwrap_or_default();
    let goal = Goal { all: all_words(goal), telling: words(goal) };
    let weights = if goal.telling.is_empty() { Weights::default() } else { Weights::of(presets) };
    let fit = |preset: &'p Preset| {
        let done = done(&preset.tools, history);
        if done == preset.tools.len() {
            return None;
        }
        let called_for = called_for(preset, &goal, &weights);
        let relevance = done as f64 / preset.tools.len() as f64 + called_for / (1.0 + called_for);
        (relevance > 0.0).then_some(Match { preset, done, relevance })
    };
    let mut matches: Vec<Match<'p>> = presets.iter().filter_map(fit).collect();
    matches.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then_with(|| a.preset.id.cmp(&b.preset.id)));
    matches.truncate(MAX_MATCHES);
    matches
}

/// How many of `steps`, from the first on, occur in `history` in their order.
pub fn done(steps: &[String], history: &[impl AsRef<str>]) -> usize {
    // The earliest call that can be a step leaves most of the history for the next.
    let is_next = |done: usize, call: &str| steps.get(done).is_some_and(|step| step == call);
    history.iter().fold(0, |done, call| done + usize::from(is_next(done, call.as_ref())))
}

/// Tools that come right after `tool` in a preset, with its name, by the preset's id.
pub fn steps_after<'p>(presets: &'p Presets, tool: &str) -> impl Iterator<Item = (&'p str, &'p str)> {
    presets.iter().flat_map(move |preset| {
        let pairs = preset.tools.iter().zip(preset.tools.iter().skip(1));
        pairs.filter(move |(step, _)| **step == *tool).map(|(_, next)| (next.as_str(), preset.name.as_str()))
    })
}

/// How telling each word is.
#[derive(Debug, Default)]
struct Weights {
    presets: f64,
    having: HashMap<String, f64>,
}

impl Weights {
    fn of(presets: &Presets) -> Self {
        let mut weights = Self::default();
        for preset in presets.iter() {
            let texts = preset.use_cases.iter().chain(&preset.keywords).chain([&preset.name]);
            let words: BTreeSet<String> = texts.flat_map(|text| words(text)).collect();
            weights.presets += 1.0;
            for word in words {
                *weights.having.entry(word).or_default() += 1.0;
            }
        }
        weights
    }

    fn sum<'w>(&self, words: impl Iterator<Item = &'w String>) -> f64 {
        let idf = |having: f64| (1.0 + (self.presets - having + 0.5) / (having + 0.5)).ln();
        words.map(|word| idf(self.having.get(word).copied().unwrap_or_default())).sum()
    }
}

/// How much a goal calls for the preset; 0 if nothing fits.
fn called_for(preset: &Preset, goal: &Goal, weights: &Weights) -> f64 {
    if goal.telling.is_empty() {
        return 0.0;
    }
    // `trade-off` is no trade: a keyword is taken whole.
    let is_named = |keyword: &&String| {
        let words = all_words(keyword);
        !words.is_empty() && words.is_subset(&goal.all)
    };
    let keywords = preset.keywords.iter().filter(is_named).count() as f64;
    let said = |text: &String| {
        let words = words(text);
        let shared: Vec<&String> = words.intersection(&goal.telling).collect();
        let share = weights.sum(shared.iter().copied()) / weights.sum(words.iter()).max(f64::MIN_POSITIVE);
        if shared.len() >= WORDS && share >= MOST { share } else { 0.0 }
    };
    let cases = preset.use_cases.iter().chain([&preset.name]).map(said).fold(0.0, f64::max);
    keywords + CASE * cases
}

/// The words of a goal: all of them, and those that say what it is about.
struct Goal {
    all: BTreeSet<String>,
    telling: BTreeSet<String>,
}

/// The words that say what something is about.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = all_words(text);
    words.retain(|word| !stop_words::is_stop_word(word));
    words
}

fn all_words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    analysis::terms(text, |word| {
        words.insert(word.to_owned());
    });
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn preset(id: &str, tools: &str, keywords: &str) -> Preset {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Preset { id: id.into(), tools: list(tools), keywords: list(keywords), ..Preset::default() }
    }

    /// The history and goal, and of each match its id and what is left of it.
    fn check(history: &str, goal: Option<&str>, expected: &[(&str, &str)]) {
        let presets = [
            preset("decide", "divergent decision reflection", "decision trade-off"),
            preset("explore", "tree divergent decision", "explore problem"),
            preset("twice", "timeline timeline evidence", "scenario"),
            preset("why", "detect reflection", "bias"),
        ];
        let presets = Presets::new(&presets, |_| true);
        let history: Vec<&str> = history.split_whitespace().collect();
        let found: Vec<(&str, String)> = find(&presets, &history, goal)
            .iter()
            .map(|found| (found.preset.id.as_str(), found.remaining().join(" ")))
            .collect();
        let expected: Vec<(&str, String)> = expected.iter().map(|(id, left)| (*id, (*left).to_owned())).collect();
        assert_eq!(found, expected, "after {history:?} for {goal:?}");
    }

    #[test]
    fn what_was_begun_is_told_with_what_is_left() {
        check("divergent", None, &[("decide", "decision reflection")]);
        check("divergent other decision", None, &[("decide", "reflection")]);
        check("decision divergent", None, &[("decide", "decision reflection")]);
        check("tree divergent", None, &[("explore", "decision"), ("decide", "decision reflection")]);
        check("timeline", None, &[("twice", "timeline evidence")]);
        check("timeline timeline", None, &[("twice", "evidence")]);
        check("detect reflection", None, &[]);
        check("", None, &[]);
    }

    #[test]
    fn a_goal_calls_for_presets_by_words() {
        check("", Some("a decision between trade-offs"), &[("decide", "divergent decision reflection")]);
        check("", Some("weigh the trade"), &[]);
        let (why, explore) = (("why", "detect reflection"), ("explore", "divergent decision"));
        check("tree", Some("is there a bias in this?"), &[why, explore]);
        check("detect reflection", Some("bias"), &[]);
        check("", Some(""), &[]);
    }

    #[test]
    fn a_preset_s_own_use_case_finds_it_first_and_small_talk_finds_none() {
        let presets = super::super::directory::built_in(|_| true);
        let none: [&str; 0] = [];
        let mut cases = 0;
        for preset in presets.iter() {
            for case in &preset.use_cases {
                let found = find(&presets, &none, Some(case));
                assert_eq!(found.first().map(|found| found.preset.id.as_str()), Some(preset.id.as_str()), "{case}");
                cases += 1;
            }
        }
        assert_eq!(cases, 22);
        for goal in [
            "What is the weather that we have in Paris?",
            "Could you please tell me what time it is there?",
            "Thanks, that is all I have for now",
            "bridge 2 ETH from Base to Solana",
        ] {
            let found = find(&presets, &none, Some(goal));
            assert!(found.is_empty(), "{goal} → {:?}", found[0].preset.id);
        }
    }

    proptest! {
        /// No other choice of calls gets further than the earliest one.
        #[test]
        fn progress_is_the_longest_begun(
            steps in prop::collection::vec("[ab]", 1..6),
            history in prop::collection::vec("[abc]", 0..8),
        ) {
            let occurs = |length: usize| {
                let mut calls = history.iter();
                steps[..length].iter().all(|step| calls.any(|call| call == step))
            };
            let longest = (0..=steps.len()).rev().find(|length| occurs(*length)).unwrap();
            prop_assert_eq!(done(&steps, &history), longest);
        }
    }
}
