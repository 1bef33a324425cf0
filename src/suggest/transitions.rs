//! What sessions called next, in memory: a copy of the store's trails that readers share.
//!
//! The store counts and this copies, so records that are learnt in another order than they were stored make no difference, and
//! a restart makes none either. What is derived here, how often each tool follows and how often a call is repeated, is a sum
//! over the trails that are held.

use std::cmp::Reverse;
use std::sync::Arc;

use imbl::{HashMap, OrdMap, OrdSet};

use crate::store::trail::{Followed, Followers, MAX_TRAILS, Trail};

/// What followed each trail, immutable; a clone shares what did not change.
#[derive(Debug, Clone, Default)]
pub struct Transitions {
    trails: HashMap<Trail, (u64, Arc<Followers>)>,
    by_tick: OrdMap<u64, Trail>,
    /// How often each tool followed another, by name and by rank.
    counts: HashMap<String, u64>,
    ranks: OrdSet<(Reverse<u64>, String)>,
    /// Calls that followed another one, and those of them that repeated its tool.
    calls: u64,
    repeats: u64,
}

impl Transitions {
    /// Takes over the state of a trail, unless a later one is known.
    pub fn put(&mut self, followed: &Followed) {
        let Followed { trail, followers, tick } = followed;
        if self.trails.get(trail).is_some_and(|(known, _)| known >= tick) {
            return;
        }
        self.by_tick.insert(*tick, trail.clone());
        let before = self.trails.insert(trail.clone(), (*tick, Arc::clone(followers)));
        if let Some((tick, _)) = &before {
            self.by_tick.remove(tick);
        }
        self.recount(trail, before.as_ref().map(|(_, before)| &**before), Some(followers));
        while self.trails.len() > MAX_TRAILS {
            let Some(oldest) = self.by_tick.get_min().map(|(_, trail)| trail.clone()) else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, trail: &Trail) {
        if let Some((tick, followers)) = self.trails.remove(trail) {
            self.by_tick.remove(&tick);
            self.recount(trail, Some(&followers), None);
        }
    }

    /// Brings the sums up to date with a trail that changed. Most often one follower of many has one call more.
    fn recount(&mut self, trail: &Trail, before: Option<&Followers>, after: Option<&Followers>) {
        // Each call is counted once: by the trail of one call that it follows.
        if trail.before.is_some() {
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
                if tool == trail.last {
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

    /// What followed `last`.
    pub fn after(&self, last: &str) -> Option<&Followers> {
        self.of(&Trail { before: None, last: last.to_owned() })
    }

    /// What followed `last` when it came after `before`.
    pub fn after_two(&self, before: &str, last: &str) -> Option<&Followers> {
        self.of(&Trail { before: Some(before.to_owned()), last: last.to_owned() })
    }

    fn of(&self, trail: &Trail) -> Option<&Followers> {
        self.trails.get(trail).map(|(_, followers)| &**followers)
    }

    /// The tools that followed any other most often, with their share of all calls, 0 to 1; ties by name.
    pub fn most_frequent(&self, limit: usize) -> impl Iterator<Item = (&str, f64)> {
        let all = self.calls.max(1) as f64;
        self.ranks.iter().take(limit).map(move |(Reverse(count), tool)| (tool.as_str(), *count as f64 / all))
    }

    /// How likely a call is to repeat the tool of the one before, 0 to 1; a third before anything is known.
    pub fn repeat_share(&self) -> f64 {
        (self.repeats as f64 + 1.0) / (self.calls as f64 + 3.0)
    }

    /// Trails that are held.
    pub fn len(&self) -> usize {
        self.trails.len()
    }

    /// Is none held?
    pub fn is_empty(&self) -> bool {
        self.trails.is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts calls as the store does.
    #[derive(Debug, Default)]
    pub(in crate::suggest) struct Counter {
        trails: std::collections::BTreeMap<Trail, Followers>,
        tick: u64,
        pub(in crate::suggest) told: Vec<Followed>,
    }

    impl Counter {
        pub(in crate::suggest) fn called(&mut self, before: Option<&str>, last: &str, next: &str, succeeded: bool) {
            let trail = Trail { before: before.map(Into::into), last: last.into() };
            let followers = self.trails.entry(trail.clone()).or_default();
            followers.observe(next, succeeded);
            self.tick += 1;
            self.told.push(Followed { trail, followers: followers.clone().into(), tick: self.tick });
        }
    }

    fn shown(transitions: &Transitions) -> String {
        let mut trails: Vec<_> = transitions.trails.iter().collect();
        trails.sort_by_key(|(trail, _)| *trail);
        let Transitions { by_tick, ranks, calls, repeats, .. } = transitions;
        format!("{trails:?} {by_tick:?} {ranks:?} {calls} {repeats}")
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
            let learn = |states: &[Followed]| {
                let mut transitions = Transitions::default();
                for followed in states {
                    transitions.put(followed);
                }
                shown(&transitions)
            };
            let in_order = learn(&counter.told);
            let mut otherwise = counter.told.clone();
            let middle = order.index(otherwise.len());
            otherwise.rotate_left(middle);
            prop_assert_eq!(learn(&otherwise), in_order.clone());
            let latest = |followed: &&Followed| {
                !counter.told.iter().any(|other| other.trail == followed.trail && other.tick > followed.tick)
            };
            let stored: Vec<Followed> = counter.told.iter().filter(latest).cloned().collect();
            prop_assert_eq!(learn(&stored), in_order);
        }
    }

    #[test]
    fn the_trail_that_was_quiet_longest_goes_first() {
        let mut transitions = Transitions::default();
        let mut followers = Followers::default();
        followers.observe("next", true);
        for tick in 1..=MAX_TRAILS as u64 + 1 {
            let trail = Trail { before: None, last: format!("t{tick}") };
            transitions.put(&Followed { trail, followers: followers.clone().into(), tick });
        }
        assert_eq!(transitions.len(), MAX_TRAILS);
        assert!(transitions.after("t1").is_none() && transitions.after("t2").is_some());
        assert_eq!(transitions.most_frequent(3).collect::<Vec<_>>(), [("next", 1.0)]);
    }
}
