//! What sessions called next, in memory: a copy of the store's prefixes that readers share.
//!
//! The store counts and this copies, so records that are learnt in another order than they were stored make no
//! difference, and a restart makes none either. What is derived here, how often each tool follows and how often a call
//! is repeated, is a sum over the prefixes that are held.

use std::cmp::Reverse;
use std::sync::Arc;

use imbl::{HashMap, OrdMap, OrdSet};

mod followers;

pub use followers::{Follower, Followers, MAX_FOLLOWERS, MAX_PREFIXES, Prefix, Transition, UNIT};

/// What followed each prefix, immutable; a clone shares what did not change.
#[derive(Debug, Clone, Default)]
pub struct Transitions {
    prefixes: HashMap<Prefix, (u64, Arc<Followers>)>,
    by_tick: OrdMap<u64, Prefix>,
    /// How often each tool followed another, by name and by rank.
    counts: HashMap<String, u64>,
    ranks: OrdSet<(Reverse<u64>, String)>,
    /// Calls that followed another one, and those of them that repeated its tool.
    calls: u64,
    repeats: u64,
}

impl Transitions {
    /// Takes over the state of a prefix, unless a later one is known.
    pub fn put(&mut self, transition: &Transition) {
        let Transition { prefix, followers, tick } = transition;
        if self.prefixes.get(prefix).is_some_and(|(known, _)| known >= tick) {
            return;
        }
        self.by_tick.insert(*tick, prefix.clone());
        let before = self.prefixes.insert(prefix.clone(), (*tick, Arc::clone(followers)));
        if let Some((tick, _)) = &before {
            self.by_tick.remove(tick);
        }
        self.recount(prefix, before.as_ref().map(|(_, before)| &**before), Some(followers));
        while self.prefixes.len() > MAX_PREFIXES {
            let Some(oldest) = self.by_tick.get_min().map(|(_, prefix)| prefix.clone()) else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, prefix: &Prefix) {
        if let Some((tick, followers)) = self.prefixes.remove(prefix) {
            self.by_tick.remove(&tick);
            self.recount(prefix, Some(&followers), None);
        }
    }

    /// Brings the sums up to date with a prefix that changed. Most often one follower of many has one call more.
    fn recount(&mut self, prefix: &Prefix, before: Option<&Followers>, after: Option<&Followers>) {
        // Each call is counted once: by the prefix of one call that it follows.
        if prefix.before.is_some() {
            return;
        }
        let samples = |followers: Option<&Followers>, tool: &str| {
            followers.and_then(|followers| followers.get(tool)).map_or(0, |follower| follower.samples)
        };
        let gone = before.into_iter().flat_map(Followers::iter).filter(|follower| samples(after, &follower.tool) == 0);
        let held = after.into_iter().flat_map(Followers::iter);
        for follower in gone.chain(held) {
            let tool = &*follower.tool;
            let (fewer, more) = (samples(before, tool), samples(after, tool));
            if fewer != more {
                self.add(tool, fewer, more);
                if tool == prefix.last {
                    self.repeats = self.repeats - fewer + more;
                }
            }
        }
    }

    /// Counts `more` calls of a tool where `fewer` were counted.
    fn add(&mut self, tool: &str, fewer: u64, more: u64) {
        let before = self.counts.get(tool).copied().unwrap_or_default();
        let after = before - fewer + more;
        self.ranks.remove(&(Reverse(before), tool.to_owned()));
        if after == 0 {
            self.counts.remove(tool);
        } else {
            self.counts.insert(tool.to_owned(), after);
            self.ranks.insert((Reverse(after), tool.to_owned()));
        }
        self.calls = self.calls - fewer + more;
    }

    pub fn after(&self, last: &str) -> Option<&Followers> {
        self.of(&Prefix { before: None, last: last.to_owned() })
    }

    /// What followed `last` when it came after `before`.
    pub fn after_two(&self, before: &str, last: &str) -> Option<&Followers> {
        self.of(&Prefix { before: Some(before.to_owned()), last: last.to_owned() })
    }

    fn of(&self, prefix: &Prefix) -> Option<&Followers> {
        self.prefixes.get(prefix).map(|(_, followers)| &**followers)
    }

    /// The tools that followed any other most often, with their share of all calls, 0 to 1; ties by name.
    pub fn most_frequent(&self, limit: usize) -> impl Iterator<Item = (&str, f64)> {
        let all = self.calls.max(1) as f64;
        self.ranks.iter().take(limit).map(move |(Reverse(count), tool)| (tool.as_str(), *count as f64 / all))
    }

    /// Did any call repeat the tool of the one before?
    pub fn has_repeats(&self) -> bool {
        self.repeats > 0
    }

    /// How likely a call is to repeat the tool of the one before, 0 to 1; a third before anything is known.
    pub fn repeat_share(&self) -> f64 {
        (self.repeats as f64 + 1.0) / (self.calls as f64 + 3.0)
    }

    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts calls as the store does.
    #[derive(Debug, Default)]
    pub(in crate::suggest) struct Counter {
        prefixes: std::collections::BTreeMap<Prefix, Followers>,
        tick: u64,
        pub(in crate::suggest) changes: Vec<Transition>,
    }

    impl Counter {
        pub(in crate::suggest) fn called(&mut self, before: Option<&str>, last: &str, next: &str, succeeded: bool) {
            let prefix = Prefix { before: before.map(Into::into), last: last.into() };
            let followers = self.prefixes.entry(prefix.clone()).or_default();
            followers.observe(next, succeeded);
            self.tick += 1;
            self.changes.push(Transition { prefix, followers: followers.clone().into(), tick: self.tick });
        }
    }

    fn shown(transitions: &Transitions) -> String {
        let mut prefixes: Vec<_> = transitions.prefixes.iter().collect();
        prefixes.sort_by_key(|(prefix, _)| *prefix);
        let Transitions { by_tick, ranks, calls, repeats, .. } = transitions;
        format!("{prefixes:?} {by_tick:?} {ranks:?} {calls} {repeats}")
    }

    proptest! {
        #[test]
        fn any_order_and_a_restart_come_to_the_same(
            calls in prop::collection::vec(("[a-c]", "[a-c]", "[a-c]", any::<bool>()), 1..40),
            order in any::<prop::sample::Index>(),
        ) {
            let mut counter = Counter::default();
            for (before, last, next, succeeded) in &calls {
                counter.called(Some(before), last, next, *succeeded);
                counter.called(None, last, next, *succeeded);
            }
            let learn = |states: &[Transition]| {
                let mut transitions = Transitions::default();
                for transition in states {
                    transitions.put(transition);
                }
                shown(&transitions)
            };
            let in_order = learn(&counter.changes);
            let mut otherwise = counter.changes.clone();
            let middle = order.index(otherwise.len());
            otherwise.rotate_left(middle);
            prop_assert_eq!(learn(&otherwise), in_order.clone());
            let latest = |transition: &&Transition| {
                !counter.changes.iter().any(|other| other.prefix == transition.prefix && other.tick > transition.tick)
            };
            let stored: Vec<Transition> = counter.changes.iter().filter(latest).cloned().collect();
            prop_assert_eq!(learn(&stored), in_order);
        }
    }

    #[test]
    fn the_trail_that_was_quiet_longest_goes_first() {
        let mut transitions = Transitions::default();
        let mut followers = Followers::default();
        followers.observe("next", true);
        for tick in 1..=MAX_PREFIXES as u64 + 1 {
            let prefix = Prefix { before: None, last: format!("t{tick}") };
            transitions.put(&Transition { prefix, followers: followers.clone().into(), tick });
        }
        assert_eq!(transitions.prefixes.len(), MAX_PREFIXES);
        assert!(transitions.after("t1").is_none() && transitions.after("t2").is_some());
        assert_eq!(transitions.most_frequent(3).collect::<Vec<_>>(), [("next", 1.0)]);
    }
}
