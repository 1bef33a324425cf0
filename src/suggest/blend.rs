//! One short list out of what rules propose, what was observed, and what documents name.
//!
//! What sessions do again and again, with success, goes first; then rules, which know what the last call gave; then the rest of
//! what was observed; then complements, which are always there. What fails again and again is left out, whoever proposes it.
//! The constants are those of the published reasoning server.

use std::cmp::Ordering;

use super::predict::Likely;
use crate::store::trail::Followers;

/// Most tools of a list.
pub const MAX_SUGGESTIONS: usize = 5;

/// How often a tool must have followed before that means anything.
pub const MIN_SAMPLES: u64 = 3;

/// From this share of successes on, what was observed goes first.
pub const HIGH_SUCCESS: f64 = 0.6;

/// Below this share of successes, what was observed is not suggested.
pub const LOW_SUCCESS: f64 = 0.4;

/// A tool that a rule proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// Why, in the rule's words.
    pub reason: String,
    /// How strongly, 0 to 1.
    pub score: f64,
}

/// Where a suggestion comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A rule library.
    Rule,
    /// What sessions did.
    Observed,
    /// The document of the tool that was called.
    Complement,
}

impl Source {
    /// The name on metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Observed => "observed",
            Self::Complement => "complement",
        }
    }
}

/// A tool that may come next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The tool.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// Who says so.
    pub source: Source,
}

/// What a list is made of.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The tool that was called last.
    pub current: &'a str,
    /// What rules propose, strongest first.
    pub proposals: &'a [Proposal],
    /// What followed the tool.
    pub followers: Option<&'a Followers>,
    /// What is likely, likeliest first: the order of what was observed.
    pub likely: &'a [Likely<'a>],
    /// Complements of the tool with their scenarios, in the document's order.
    pub complements: &'a [(String, String)],
}

/// The proposals of several libraries as one list: the stronger first, of equal ones those of the first library, each tool once.
pub fn merge<'a>(lists: impl IntoIterator<Item = &'a [Proposal]>) -> Vec<Proposal> {
    let mut merged: Vec<&Proposal> = lists.into_iter().flatten().collect();
    // Stable, so that equal ones stay in order.
    merged.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    let mut proposals: Vec<Proposal> = Vec::new();
    for proposal in merged {
        if proposals.iter().all(|known| known.tool != proposal.tool) {
            proposals.push(proposal.clone());
        }
    }
    proposals
}

/// At most [`MAX_SUGGESTIONS`] tools for which `is_valid`, each once. The tool itself is suggested again only if that was
/// observed.
pub fn blend(known: &Known<'_>, is_valid: impl Fn(&str) -> bool) -> Vec<Suggestion> {
    let observed = observed(known);
    let fails = |tool: &str| observed.iter().any(|seen| seen.tool == tool && seen.success_rate < LOW_SUCCESS);
    let mut list = List { suggestions: Vec::new() };
    let mut offer = |suggestion: Suggestion| {
        let is_itself = suggestion.tool == known.current && suggestion.source != Source::Observed;
        if !is_itself && !fails(&suggestion.tool) && is_valid(&suggestion.tool) {
            list.add(suggestion);
        }
    };
    for seen in observed.iter().filter(|seen| seen.success_rate >= HIGH_SUCCESS) {
        offer(seen.suggest(known.reason(seen.tool)));
    }
    for Proposal { tool, reason, .. } in known.proposals {
        offer(Suggestion { tool: tool.clone(), reason: reason.clone(), source: Source::Rule });
    }
    for seen in observed.iter().filter(|seen| seen.success_rate < HIGH_SUCCESS) {
        offer(seen.suggest(known.reason(seen.tool)));
    }
    for (tool, scenario) in known.complements {
        offer(Suggestion { tool: tool.clone(), reason: scenario.clone(), source: Source::Complement });
    }
    list.suggestions
}

impl Known<'_> {
    /// What a rule or the document says of the tool.
    fn reason(&self, tool: &str) -> Option<&str> {
        let proposed = self.proposals.iter().find(|proposal| proposal.tool == tool).map(|proposal| &proposal.reason);
        let named = || self.complements.iter().find(|(other, _)| other == tool).map(|(_, scenario)| scenario);
        proposed.or_else(named).map(String::as_str)
    }
}

/// A tool that followed often enough.
#[derive(Debug)]
struct Seen<'a> {
    tool: &'a str,
    samples: u64,
    success_rate: f64,
}

impl Seen<'_> {
    fn suggest(&self, reason: Option<&str>) -> Suggestion {
        let Self { tool, samples, success_rate } = self;
        let seen = format!("observed {samples} times next, {:.0} % succeeded of late", success_rate * 100.0);
        let reason = match reason {
            Some(reason) => format!("{} ({seen})", reason.trim_end_matches('.')),
            None => seen,
        };
        Suggestion { tool: (*tool).to_owned(), reason, source: Source::Observed }
    }
}

/// What followed often enough, likeliest first.
fn observed<'a>(known: &Known<'a>) -> Vec<Seen<'a>> {
    let Some(followers) = known.followers else { return Vec::new() };
    let often = known.likely.iter().filter_map(|likely| followers.get(likely.tool));
    let often = often.filter(|follower| follower.samples >= MIN_SAMPLES);
    often
        .map(|follower| Seen { tool: &follower.tool, samples: follower.samples, success_rate: follower.success_rate() })
        .collect()
}

struct List {
    suggestions: Vec<Suggestion>,
}

impl List {
    fn add(&mut self, suggestion: Suggestion) {
        let is_new = self.suggestions.iter().all(|known| known.tool != suggestion.tool);
        if is_new && self.suggestions.len() < MAX_SUGGESTIONS {
            self.suggestions.push(suggestion);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn propose(tools: &[(&str, f64)]) -> Vec<Proposal> {
        let propose =
            |&(tool, score): &(&str, f64)| Proposal { tool: tool.into(), reason: format!("rule {tool}"), score };
        tools.iter().map(propose).collect()
    }

    fn followers(calls: &[(&str, u32, u32)]) -> Followers {
        let mut followers = Followers::default();
        for &(tool, samples, successes) in calls {
            for call in 0..samples {
                followers.observe(tool, call < successes);
            }
        }
        followers
    }

    /// Rules, what followed (tool, samples, successes), complements, and what comes of them for `now`.
    fn check(rules: &[&str], seen: &[(&str, u32, u32)], complements: &[&str], expected: &[&str]) -> Vec<Suggestion> {
        let proposals = propose(&rules.iter().map(|tool| (*tool, 0.5)).collect::<Vec<_>>());
        let followers = followers(seen);
        let likely: Vec<Likely<'_>> = seen.iter().map(|(tool, ..)| Likely { tool, probability: 0.1 }).collect();
        let complements: Vec<(String, String)> =
            complements.iter().map(|tool| ((*tool).to_owned(), format!("scenario {tool}."))).collect();
        let known = Known {
            current: "now",
            proposals: &proposals,
            followers: Some(&followers),
            likely: &likely,
            complements: &complements,
        };
        let suggestions = blend(&known, |tool| tool != "invalid");
        let tools: Vec<&str> = suggestions.iter().map(|suggestion| suggestion.tool.as_str()).collect();
        assert_eq!(tools, expected, "of rules {rules:?}, seen {seen:?}, complements {complements:?}");
        suggestions
    }

    #[test]
    fn cold_rules_go_first_and_complements_fill_up() {
        check(
            &["checkpoint", "decision", "reflection"],
            &[],
            &["decision", "tree"],
            &["checkpoint", "decision", "reflection", "tree"],
        );
        check(&[], &[], &["a", "b", "c", "d", "e", "f"], &["a", "b", "c", "d", "e"]);
        check(&["now", "invalid", "a"], &[], &["now", "a"], &["a"]);
    }

    #[test]
    fn observations_move_and_remove() {
        check(&["a", "b"], &[("b", 3, 3)], &[], &["b", "a"]);
        check(&["a", "b"], &[("b", 2, 2)], &[], &["a", "b"]);
        check(&["a", "b"], &[("a", 3, 1)], &["a", "c"], &["b", "c"]);
        check(&["a", "b"], &[("a", 2, 0)], &[], &["a", "b"]);
        check(&["a"], &[("x", 4, 2)], &["c"], &["a", "x", "c"]);
        check(&["a"], &[("now", 5, 5)], &[], &["now", "a"]);
        check(&["a"], &[("invalid", 5, 5)], &[], &["a"]);
    }

    #[test]
    fn the_reason_says_what_was_observed() {
        let both = check(&[], &[("b", 4, 4), ("x", 3, 3)], &["b"], &["b", "x"]);
        assert_eq!(both[0].reason, "scenario b (observed 4 times next, 100 % succeeded of late)");
        assert_eq!(both[1].reason, "observed 3 times next, 100 % succeeded of late");
    }

    #[test]
    fn libraries_are_merged_by_score() {
        let (first, second) = (propose(&[("a", 0.5), ("b", 0.9)]), propose(&[("b", 0.95), ("c", 0.5)]));
        let tools: Vec<String> = merge([&first[..], &second]).into_iter().map(|proposal| proposal.tool).collect();
        assert_eq!(tools, ["b", "a", "c"]);
    }

    proptest! {
        #[test]
        fn a_list_is_short_valid_and_has_no_tool_twice(
            rules in prop::collection::vec(("[a-h]", 0.0..1.0), 0..12),
            seen in prop::collection::btree_map("[a-h]", (0_u32..6, 0_u32..6), 0..8),
            complements in prop::collection::vec("[a-h]", 0..8),
        ) {
            let rules: Vec<(&str, f64)> = rules.iter().map(|(tool, score)| (tool.as_str(), *score)).collect();
            let proposals = merge([&propose(&rules)[..]]);
            let calls: Vec<(&str, u32, u32)> =
                seen.iter().map(|(tool, (samples, successes))| (tool.as_str(), *samples, *successes)).collect();
            let followers = followers(&calls);
            let likely: Vec<Likely<'_>> = seen.keys().map(|tool| Likely { tool, probability: 0.1 }).collect();
            let complements: Vec<(String, String)> = complements.iter().map(|tool| (tool.clone(), String::new())).collect();
            let known = Known {
                current: "a",
                proposals: &proposals,
                followers: Some(&followers),
                likely: &likely,
                complements: &complements,
            };
            let suggestions = blend(&known, |tool| tool != "b");
            prop_assert!(suggestions.len() <= MAX_SUGGESTIONS);
            for (position, suggestion) in suggestions.iter().enumerate() {
                prop_assert!(suggestion.tool != "b");
                prop_assert!(suggestions[..position].iter().all(|other| other.tool != suggestion.tool));
            }
        }
    }
}
