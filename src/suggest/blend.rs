//! One short list out of what rules propose, what was observed, and what documents name.
//!
//! What sessions do again and again, with success, goes first; then rules, which know what the last call gave; then the
//! rest of what was observed often; then complements, which are always there; and places that are left go to what the
//! prediction tells from less, each with its probability. A list of fewer than three is filled with the next steps of
//! presets, and with tools whose own documents lead to them from this one. Where neither a rule nor a document says
//! anything, the prediction's order stands as it is. What fails again and again is left out, whoever proposes it. The
//! constants are those of the published reasoning server.

use std::cmp::Ordering;

use super::predict::Likely;
use crate::strict::Word;
use crate::suggest::transitions::Followers;

/// Most tools of a list.
pub const MAX_SUGGESTIONS: usize = 5;

/// From so many tools on nothing else is looked for to fill a list.
pub const MIN_SUGGESTIONS: usize = 3;

/// How often a tool must have followed before that means anything.
pub const MIN_SAMPLES: u64 = 3;

/// From this share of successes on, what was observed goes first.
pub const HIGH_SUCCESS: f64 = 0.6;

/// Below this share of successes, what was observed is not suggested.
pub const LOW_SUCCESS: f64 = 0.4;

/// A tool that was never observed to follow itself is suggested again only from this probability on.
const LEAST_REPEAT: f64 = 0.1;

/// A tool that a rule proposes.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub tool: String,
    /// Why, in the rule's words.
    pub reason: String,
    /// How strongly, 0 to 1.
    pub score: f64,
}

/// Where a suggestion comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Rule,
    Observed,
    /// The document of the tool that was called, or one that names it.
    Complement,
    /// A preset of which the tool is a step.
    Preset,
}

/// A tool that may come next.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    pub tool: String,
    pub reason: String,
    pub source: Source,
    /// How likely it is by what sessions did, 0 to 1; nothing if that says nothing of it.
    pub confidence: Option<f64>,
}

/// What a list is made of.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The tool that was called last.
    pub current: &'a str,
    /// What rules propose, strongest first.
    pub proposals: &'a [Candidate],
    /// What followed the tool.
    pub followers: Option<&'a Followers>,
    /// Did any session call any tool twice in a row?
    pub has_repeats: bool,
    /// What is likely, likeliest first: the order of what was observed.
    pub likely: &'a [Likely<'a>],
    /// Complements of the tool with their scenarios, in the document's order.
    pub complements: &'a [(String, String)],
    /// What else leads on from the tool, with why: for a list that is too short.
    pub others: &'a [(String, String, Source)],
}

/// The proposals of several libraries as one list: the stronger first, of equal ones those of the first library, each
/// tool once.
pub fn merge<'a>(lists: impl IntoIterator<Item = &'a [Candidate]>) -> Vec<Candidate> {
    let mut merged: Vec<&Candidate> = lists.into_iter().flatten().collect();
    // Stable, so that equal ones stay in order.
    merged.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    let mut proposals: Vec<Candidate> = Vec::new();
    for proposal in merged {
        if proposals.iter().all(|known| known.tool != proposal.tool) {
            proposals.push(proposal.clone());
        }
    }
    proposals
}

/// At most [`MAX_SUGGESTIONS`] tools for which `is_valid`, each once. The tool itself is suggested again only if that
/// was observed, of it or so often of others that it is likely.
pub fn blend(known: &Known<'_>, is_valid: impl Fn(&str) -> bool) -> Vec<Suggestion> {
    let observed = observed(known);
    let fails = |tool: &str| observed.iter().any(|seen| seen.tool == tool && seen.success_rate < LOW_SUCCESS);
    let mut list = List { suggestions: Vec::new() };
    let mut offer = |tool: &str, reason: &dyn Fn() -> String, source: Source| {
        if !list.takes(tool) {
            return;
        }
        let is_itself = tool == known.current && (source != Source::Observed || !known.is_repeated());
        if !is_itself && !fails(tool) && is_valid(tool) {
            let (tool, confidence) = (tool.to_owned(), known.confidence(tool));
            list.suggestions.push(Suggestion { tool, reason: reason(), source, confidence });
        }
    };
    let is_disputed = !known.proposals.is_empty() || !known.complements.is_empty();
    for seen in observed.iter().filter(|seen| is_disputed && seen.success_rate >= HIGH_SUCCESS) {
        offer(seen.tool, &|| known.observation(seen.tool), Source::Observed);
    }
    for Candidate { tool, reason, .. } in known.proposals {
        offer(tool, &|| reason.clone(), Source::Rule);
    }
    for seen in observed.iter().filter(|seen| is_disputed && seen.success_rate < HIGH_SUCCESS) {
        offer(seen.tool, &|| known.observation(seen.tool), Source::Observed);
    }
    for (tool, scenario) in known.complements {
        offer(tool, &|| documented(scenario), Source::Complement);
    }
    for likely in known.likely {
        offer(likely.tool, &|| known.observation(likely.tool), Source::Observed);
    }
    for (tool, reason, source) in known.others {
        if list.suggestions.len() >= MIN_SUGGESTIONS {
            break;
        }
        if list.takes(tool) && tool != known.current && !fails(tool) && is_valid(tool) {
            let (tool, confidence) = (tool.clone(), known.confidence(tool));
            list.suggestions.push(Suggestion { tool, reason: reason.clone(), source: *source, confidence });
        }
    }
    list.suggestions
}

/// A scenario as its document's word: it is a condition that nobody has looked at, not what happened.
fn documented(scenario: &str) -> String {
    format!("documented for: {scenario}")
}

impl Known<'_> {
    /// What a rule or the document says of the tool.
    fn reason(&self, tool: &str) -> Option<String> {
        let proposed = self.proposals.iter().find(|proposal| proposal.tool == tool);
        let proposed = proposed.map(|proposal| proposal.reason.clone());
        let scenario = || self.complements.iter().find(|(other, _)| other == tool).map(|(_, scenario)| scenario);
        proposed.or_else(|| scenario().map(|scenario| documented(scenario)))
    }

    /// Do sessions call the tool again, or any other tool?
    fn is_repeated(&self) -> bool {
        self.followers.is_some_and(|followers| followers.get(self.current).is_some())
            || self.has_repeats && self.confidence(self.current).is_some_and(|confidence| confidence >= LEAST_REPEAT)
    }

    fn confidence(&self, tool: &str) -> Option<f64> {
        self.likely.iter().find(|likely| likely.tool == tool).map(|likely| likely.probability)
    }

    /// What was seen of the tool, after what a rule or the document says of it.
    fn observation(&self, tool: &str) -> String {
        let seen = match self.followers.and_then(|followers| followers.get(tool)) {
            Some(follower) => {
                let times = match follower.samples {
                    1 => "once".to_owned(),
                    2 => "twice".to_owned(),
                    samples => format!("{samples} times"),
                };
                format!("observed {times} next, {:.0} % succeeded of late", follower.success_rate() * 100.0)
            }
            None if tool == self.current => "never observed to follow; calls are often repeated".to_owned(),
            None => "never observed to follow; used by this session, or often by others".to_owned(),
        };
        match self.reason(tool) {
            Some(reason) => format!("{} ({seen})", reason.trim_end_matches('.')),
            None => seen,
        }
    }
}

/// A tool that followed often enough.
#[derive(Debug)]
struct Seen<'a> {
    tool: &'a str,
    success_rate: f64,
}

/// What followed often enough, likeliest first.
fn observed<'a>(known: &Known<'a>) -> Vec<Seen<'a>> {
    let Some(followers) = known.followers else { return Vec::new() };
    let often = known.likely.iter().filter_map(|likely| followers.get(likely.tool));
    let often = often.filter(|follower| follower.samples >= MIN_SAMPLES);
    often.map(|follower| Seen { tool: &follower.tool, success_rate: follower.success_rate() }).collect()
}

struct List {
    suggestions: Vec<Suggestion>,
}

impl List {
    /// Is there room, and is the tool not there yet?
    fn takes(&self, tool: &str) -> bool {
        self.suggestions.len() < MAX_SUGGESTIONS && self.suggestions.iter().all(|known| known.tool != tool)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn propose(tools: &[(&str, f64)]) -> Vec<Candidate> {
        let propose =
            |&(tool, score): &(&str, f64)| Candidate { tool: tool.into(), reason: format!("rule {tool}"), score };
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
            has_repeats: true,
            likely: &likely,
            complements: &complements,
            others: &[],
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
    fn nothing_is_repeated_where_nothing_ever_was() {
        for (has_repeats, expected) in [(true, &["now", "a"][..]), (false, &["a"])] {
            let likely = ["now", "a"].map(|tool| Likely { tool, probability: 0.3 });
            let known = Known {
                current: "now",
                proposals: &[],
                followers: None,
                has_repeats,
                likely: &likely,
                complements: &[],
                others: &[],
            };
            let suggestions = blend(&known, |_| true);
            assert_eq!(suggestions.iter().map(|each| &*each.tool).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_short_list_is_filled_with_what_leads_on() {
        let others = ["x", "now", "invalid", "a", "y", "z"].map(|tool| {
            let reason = format!("leads to {tool}");
            (tool.to_owned(), reason, Source::Preset)
        });
        let check = |complements: &[&str], expected: &[&str]| {
            let complements: Vec<_> = complements.iter().map(|tool| ((*tool).to_owned(), String::new())).collect();
            let known = Known {
                current: "now",
                proposals: &[],
                followers: None,
                has_repeats: false,
                likely: &[],
                complements: &complements,
                others: &others,
            };
            let suggestions = blend(&known, |tool| tool != "invalid");
            let tools: Vec<&str> = suggestions.iter().map(|suggestion| suggestion.tool.as_str()).collect();
            assert_eq!(tools, expected);
            assert!(suggestions.iter().all(|each| (each.source != Source::Preset) == each.reason.starts_with("doc")));
        };
        check(&[], &["x", "a", "y"]);
        check(&["a"], &["a", "x", "y"]);
        check(&["a", "b", "c", "d"], &["a", "b", "c", "d"]);
    }

    #[test]
    fn observations_move_and_remove() {
        check(&["a", "b"], &[("b", 3, 3)], &[], &["b", "a"]);
        check(&["a", "b"], &[("b", 2, 2)], &[], &["a", "b"]);
        check(&["a"], &[("x", 2, 2)], &["c"], &["a", "c", "x"]);
        check(&[], &[("x", 1, 1), ("y", 3, 3), ("now", 1, 1), ("z", 5, 1)], &[], &["x", "y", "now"]);
        check(&["a", "b"], &[("a", 3, 1)], &["a", "c"], &["b", "c"]);
        check(&["a", "b"], &[("a", 2, 0)], &[], &["a", "b"]);
        check(&["a"], &[("x", 4, 2)], &["c"], &["a", "x", "c"]);
        check(&["a"], &[("now", 5, 5)], &[], &["now", "a"]);
        check(&["a"], &[("invalid", 5, 5)], &[], &["a"]);
    }

    #[test]
    fn the_reason_says_what_was_observed() {
        let both = check(&[], &[("b", 4, 4), ("x", 3, 3)], &["b"], &["b", "x"]);
        assert_eq!(both[0].reason, "documented for: scenario b (observed 4 times next, 100 % succeeded of late)");
        assert_eq!(both[1].reason, "observed 3 times next, 100 % succeeded of late");
        let thin = check(&[], &[("x", 1, 1)], &["c"], &["c", "x"]);
        assert_eq!(thin[1].reason, "observed once next, 100 % succeeded of late");
        assert_eq!((thin[0].confidence, thin[1].confidence), (None, Some(0.1)));
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
            let complements: Vec<(String, String)> = complements.iter().map(|tool| (tool.clone(),
                String::new())).collect();
            let known = Known {
                current: "a",
                proposals: &proposals,
                followers: Some(&followers),
                has_repeats: true,
                likely: &likely,
                complements: &complements,
                others: &[("b".into(), "o".into(), Source::Preset), ("c".into(), "o".into(), Source::Preset)],
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
