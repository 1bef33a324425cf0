//! Which presets fit, and what is left of them?
//!
//! A preset has been begun as far as its first tools occur in the session's calls in their order, whatever was called between
//! them. A goal calls for it by words that they share. One that was finished is not offered.

use std::collections::BTreeSet;

use super::{Preset, Presets};
use crate::text::analysis;

/// Most presets that are offered.
pub const MAX_MATCHES: usize = 3;

/// Words of a goal that are this short are mostly articles and prepositions.
const SHORT: usize = 3;

/// What a word of a name or use case counts for against a keyword.
const PROSE: f64 = 0.25;

/// A preset that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Match<'p> {
    /// The preset.
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
    let goal = words(goal.unwrap_or_default());
    let fit = |preset: &'p Preset| {
        let done = done(&preset.tools, history);
        if done == preset.tools.len() {
            return None;
        }
        let called_for = called_for(preset, &goal);
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

/// How many words the goal shares with the preset, keywords first.
fn called_for(preset: &Preset, goal: &BTreeSet<String>) -> f64 {
    if goal.is_empty() {
        return 0.0;
    }
    let is_named = |keyword: &&String| {
        let words = words(keyword);
        !words.is_empty() && words.is_subset(goal)
    };
    let keywords = preset.keywords.iter().filter(is_named).count();
    let prose = words(&format!("{} {}", preset.name, preset.use_cases.join(" ")));
    let shared = prose.intersection(goal).filter(|word| word.len() > SHORT).count();
    keywords as f64 + PROSE * shared as f64
}

fn words(text: &str) -> BTreeSet<String> {
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
