//! Which tool is likely to be called next?
//!
//! The longest memory that fits knows best, and has seen least. So each level gives a part of its probability to the
//! one below, more the less it has seen (interpolation with absolute discounting, as Kneser and Ney do for words): the
//! last two calls, what this session did before after the same call, the last call, and at the bottom what needs no
//! such history: the same tool again, the tools that the session used lately, what usually follows those, the most
//! frequent tools.
//!
//! Calls do repeat, in some recordings mostly and in others never, so the share of repeats is learnt as well.

use std::collections::HashMap;

use super::transitions::Transitions;
use crate::suggest::transitions::{Followers, UNIT};

/// Calls of a session that are looked at.
const HORIZON: usize = 100;

/// Taken off the count of each follower for the tools that never followed yet.
const DISCOUNT: f64 = 0.5;

/// What the level below the last call counts for, in observations; the discounts come on top. This and the numbers that
/// follow were fitted on recorded sessions, of agents that write code and of made-up ones; the result hardly depends on
/// them.
const BELOW_LAST: f64 = 0.5;

/// The same below what this session did.
const BELOW_SESSION: f64 = 1.5;

/// The same below the last two calls.
const BELOW_TWO: f64 = 2.0;

/// What an earlier occurrence in the session counts for less than the one after it.
const SESSION_FADE: f64 = 0.8;

/// Share of the tools that the session used before, of what is no repeat; the rest are the most frequent ones.
const USED_SHARE: f64 = 0.7;

/// Share of what usually follows the calls before the last one, of what is left then.
const LOOSE_SHARE: f64 = 0.7;

/// Calls before the last one whose followers are looked at.
const LOOSE_CALLS: usize = 7;

/// What such a call counts for less than the one after it.
const LOOSE_FADE: f64 = 0.7;

/// The most frequent tools that are considered.
const FREQUENT: usize = 8;

/// A tool and how likely it is, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Likely<'a> {
    pub tool: &'a str,
    pub probability: f64,
}

/// What may come after `history` (oldest first), likeliest first, ties by name. Nothing without a history,
/// and nothing before anything was observed.
pub fn predict<'a>(transitions: &'a Transitions, history: &'a [impl AsRef<str>]) -> Vec<Likely<'a>> {
    let recent = &history[history.len().saturating_sub(HORIZON)..];
    let Some((last, earlier)) = recent.split_last() else { return Vec::new() };
    if transitions.is_empty() {
        return Vec::new();
    }
    let last = last.as_ref();
    let mut odds = bottom(transitions, last, earlier);
    odds.lower(transitions.after(last).map(weights).unwrap_or_default(), BELOW_LAST);
    odds.lower(followed_in_session(recent, last), BELOW_SESSION);
    if let Some(before) = earlier.last() {
        odds.lower(transitions.after_two(before.as_ref(), last).map(weights).unwrap_or_default(), BELOW_TWO);
    }
    odds.ranked()
}

/// What is said without knowing what followed what.
fn bottom<'a>(transitions: &'a Transitions, last: &'a str, earlier: &'a [impl AsRef<str>]) -> Odds<'a> {
    let mut odds = Odds::default();
    let repeat = transitions.repeat_share();
    odds.add(last, repeat);
    let mut used: Vec<(&str, f64)> = Vec::new();
    let mut weight = 1.0;
    for tool in earlier.iter().rev().map(AsRef::as_ref) {
        if tool != last {
            used.push((tool, weight));
        }
        weight *= SESSION_FADE;
    }
    let total: f64 = used.iter().map(|(_, weight)| weight).sum();
    let used_share = if used.is_empty() { 0.0 } else { USED_SHARE * (1.0 - repeat) };
    for (tool, weight) in used {
        odds.add(tool, used_share * weight / total);
    }
    let loose = loosely_followed(transitions, last, earlier);
    let loose_share = if loose.is_empty() { 0.0 } else { LOOSE_SHARE * (1.0 - repeat - used_share) };
    let rest = 1.0 - repeat - used_share - loose_share;
    let total: f64 = loose.iter().map(|(_, weight)| weight).sum();
    for (tool, weight) in loose {
        odds.add(tool, loose_share * weight / total);
    }
    for (tool, share) in transitions.most_frequent(FREQUENT).filter(|(tool, _)| *tool != last) {
        odds.add(tool, rest * share);
    }
    odds
}

/// What usually follows the session's earlier calls: it may have been put off.
fn loosely_followed<'a>(transitions: &'a Transitions, last: &str, earlier: &[impl AsRef<str>]) -> Vec<(&'a str, f64)> {
    let mut found = Vec::new();
    let mut weight = 1.0;
    for tool in earlier.iter().rev().take(LOOSE_CALLS).map(AsRef::as_ref) {
        if let Some(followers) = transitions.after(tool).filter(|_| tool != last) {
            let followers = weights(followers);
            let all: f64 = followers.iter().map(|(_, weight)| weight).sum();
            let others = followers.into_iter().filter(|(follower, _)| *follower != last);
            found.extend(others.map(|(follower, share)| (follower, weight * share / all)));
        }
        weight *= LOOSE_FADE;
    }
    found
}

fn weights(followers: &Followers) -> Vec<(&str, f64)> {
    let weigh = |weight: u32| f64::from(weight) / f64::from(UNIT);
    followers.iter().map(|follower| (&*follower.tool, weigh(follower.weight))).collect()
}

/// What came after `last` in this very session.
fn followed_in_session<'a>(recent: &'a [impl AsRef<str>], last: &str) -> Vec<(&'a str, f64)> {
    let mut counts: Vec<(&str, f64)> = Vec::new();
    let mut weight = 1.0;
    for pair in recent.windows(2).rev().filter(|pair| pair[0].as_ref() == last) {
        let tool = pair[1].as_ref();
        match counts.iter_mut().find(|(other, _)| *other == tool) {
            Some((_, count)) => *count += weight,
            None => counts.push((tool, weight)),
        }
        weight *= SESSION_FADE;
    }
    counts
}

/// Probabilities; they sum up to at most 1.
#[derive(Debug, Default)]
struct Odds<'a>(HashMap<&'a str, f64, foldhash::fast::FixedState>);

impl<'a> Odds<'a> {
    fn add(&mut self, tool: &'a str, probability: f64) {
        *self.0.entry(tool).or_default() += probability;
    }

    /// Puts a level with these counts on top of what is there, which counts for `below` observations.
    fn lower(&mut self, counts: Vec<(&'a str, f64)>, below: f64) {
        if counts.is_empty() {
            return;
        }
        let all = below + counts.iter().map(|(_, count)| count).sum::<f64>();
        let kept = |count: f64| (count - DISCOUNT).max(0.0) / all;
        let rest = 1.0 - counts.iter().map(|(_, count)| kept(*count)).sum::<f64>();
        for probability in self.0.values_mut() {
            *probability *= rest;
        }
        for (tool, count) in counts {
            self.add(tool, kept(count));
        }
    }

    fn ranked(self) -> Vec<Likely<'a>> {
        let mut ranked: Vec<Likely<'a>> =
            self.0.into_iter().map(|(tool, probability)| Likely { tool, probability }).collect();
        ranked.sort_by(|a, b| b.probability.total_cmp(&a.probability).then_with(|| a.tool.cmp(b.tool)));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::transitions::tests::Counter;
    use super::*;

    fn learn(sessions: &[&str]) -> Transitions {
        let mut counter = Counter::default();
        for session in sessions {
            let tools: Vec<&str> = session.split(' ').collect();
            for end in 1..tools.len() {
                if end > 1 {
                    counter.called(Some(tools[end - 2]), tools[end - 1], tools[end], true);
                }
                counter.called(None, tools[end - 1], tools[end], true);
            }
        }
        let mut transitions = Transitions::default();
        for transition in &counter.changes {
            transitions.put(transition);
        }
        transitions
    }

    fn check(sessions: &[&str], history: &str, expected: &[&str]) {
        let transitions = learn(sessions);
        let history: Vec<&str> = history.split(' ').collect();
        let likely: Vec<&str> =
            predict(&transitions, &history).iter().take(expected.len()).map(|likely| likely.tool).collect();
        assert_eq!(likely, expected, "after {history:?}");
    }

    #[test]
    fn the_longest_memory_that_fits_decides() {
        let sessions = ["a x y", "a x y", "b x z", "b x z", "b x z"];
        check(&sessions, "x", &["z", "y"]);
        check(&sessions, "a x", &["y", "z"]);
        check(&sessions, "b x", &["z", "y"]);
        check(&sessions, "never x", &["z", "y"]);
    }

    #[test]
    fn a_session_follows_its_own_habits() {
        check(&["x y", "x y", "x y"], "x q x q x q x", &["q", "y"]);
    }

    #[test]
    fn what_was_never_seen_falls_back_to_the_session_and_the_frequent() {
        check(&["m n", "m n"], "p q", &["p", "n", "q"]);
        check(&[], "only", &[]);
        assert!(predict(&Transitions::default(), &[] as &[&str]).is_empty());
    }

    #[test]
    fn repeats_are_expected_where_they_happen() {
        check(&["a a a a", "b b b"], "new", &["new", "a"]);
        let never: Vec<&str> = vec!["a b a b a b a b"; 9];
        check(&never, "new", &["b", "a", "new"]);
    }

    proptest! {
        #[test]
        fn probabilities_are_ordered_and_sum_up_to_at_most_one(
            sessions in prop::collection::vec("[a-d]( [a-d]){1,6}", 0..10),
            history in prop::collection::vec("[a-e]", 0..8),
        ) {
            let sessions: Vec<&str> = sessions.iter().map(String::as_str).collect();
            let transitions = learn(&sessions);
            let likely = predict(&transitions, &history);
            prop_assert!(likely.iter().map(|likely| likely.probability).sum::<f64>() < 1.0 + 1e-9);
            prop_assert!(likely.is_sorted_by(|a, b| a.probability >= b.probability));
            prop_assert!(likely.iter().all(|likely| likely.probability >= 0.0));
            prop_assert_eq!(&predict(&transitions, &history), &likely);
        }
    }
}
