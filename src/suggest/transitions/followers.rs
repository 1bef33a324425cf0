//! What sessions called next: after a call, and after two in a row.
//!
//! The store counts as it writes, and hands each new state to whoever keeps a copy, so a copy in memory and one that is
//! read back at a start are the same. Weights are whole numbers, so that every database keeps them exactly.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Trails that are remembered; the one that was longest not followed goes first.
pub const MAX_PREFIXES: usize = 20_000;

/// Tools remembered after one prefix; the lightest goes first.
pub const MAX_FOLLOWERS: usize = 32;

/// The weight of a call at the moment it is observed.
pub const UNIT: u32 = 1 << 16;

/// With each observation of a prefix all its followers lose the 64th part of their weight, so some 64 of them count.
/// Twice and half as many came out the same on recorded sessions.
const FADE: u32 = 6;

/// The last call of a session, or the last two.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    /// The call before the last, if it is part of the prefix.
    pub before: Option<String>,
    pub last: String,
}

/// A tool that followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    pub tool: Arc<str>,
    /// How often it followed, since it is remembered.
    pub samples: u64,
    /// How often it followed and succeeded.
    pub successes: u64,
    /// How often of late, in units of [`UNIT`].
    pub weight: u32,
    /// How often it succeeded of late, in units of [`UNIT`]; at most `weight`.
    pub success_weight: u32,
}

impl Follower {
    /// The share of its calls that succeeded of late, 0 to 1.
    pub fn success_rate(&self) -> f64 {
        if self.weight == 0 { 0.0 } else { f64::from(self.success_weight) / f64::from(self.weight) }
    }
}

/// All tools that followed a prefix, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Followers(Vec<Follower>);

impl Followers {
    /// Takes note that `tool` followed, and whether its call succeeded.
    pub fn observe(&mut self, tool: &str, succeeded: bool) {
        for follower in &mut self.0 {
            follower.weight -= follower.weight >> FADE;
            follower.success_weight -= follower.success_weight >> FADE;
        }
        let position = match self.0.binary_search_by(|follower| (*follower.tool).cmp(tool)) {
            Ok(position) => position,
            Err(position) => {
                let fresh = Follower { tool: tool.into(), samples: 0, successes: 0, weight: 0, success_weight: 0 };
                self.0.insert(position, fresh);
                position
            }
        };
        let follower = &mut self.0[position];
        follower.samples += 1;
        follower.weight += UNIT;
        if succeeded {
            follower.successes += 1;
            follower.success_weight += UNIT;
        }
        if self.0.len() > MAX_FOLLOWERS {
            let lightest = self.0.iter().enumerate().min_by_key(|(_, follower)| follower.weight);
            if let Some((position, _)) = lightest {
                self.0.remove(position);
            }
        }
    }

    /// What was observed here and there, added up; of too many the lightest go.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        for more in &other.0 {
            match all.binary_search_by(|follower| follower.tool.cmp(&more.tool)) {
                Ok(position) => {
                    let follower = &mut all[position];
                    follower.samples = follower.samples.saturating_add(more.samples);
                    follower.successes = follower.successes.saturating_add(more.successes);
                    follower.weight = follower.weight.saturating_add(more.weight);
                    follower.success_weight = follower.success_weight.saturating_add(more.success_weight);
                }
                Err(position) => all.insert(position, more.clone()),
            }
        }
        if all.len() > MAX_FOLLOWERS {
            all.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.tool.cmp(&b.tool)));
            all.truncate(MAX_FOLLOWERS);
            all.sort_by(|a, b| a.tool.cmp(&b.tool));
        }
        Self(all)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Follower> {
        self.0.iter()
    }

    /// The one of that name.
    pub fn get(&self, tool: &str) -> Option<&Follower> {
        let position = self.0.binary_search_by(|follower| (*follower.tool).cmp(tool)).ok()?;
        self.0.get(position)
    }

    /// As a database keeps them.
    pub fn encode(&self) -> String {
        serde_json::to_string(&self.0).expect("names and whole numbers can be written")
    }

    /// What [`Followers::encode`] wrote; nothing of what it did not.
    pub fn decode(text: &str) -> Self {
        let mut followers: Vec<Follower> = serde_json::from_str(text).unwrap_or_default();
        followers.sort_by(|a, b| a.tool.cmp(&b.tool));
        Self(followers)
    }
}

/// The state of one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub prefix: Prefix,
    pub followers: Arc<Followers>,
    /// The number of the state among all states of all prefixes: the larger one is the later one.
    pub tick: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn later_calls_weigh_more_and_all_are_counted() {
        let mut followers = Followers::default();
        for tool in [["old"; 40], ["new"; 40]].concat() {
            followers.observe(tool, tool == "new");
        }
        let (old, new) = (followers.get("old").unwrap(), followers.get("new").unwrap());
        assert_eq!((old.samples, new.samples), (40, 40));
        assert!(old.weight * 3 < new.weight * 2, "{old:?} {new:?}");
        assert!(old.success_rate() < 0.01 && new.success_rate() > 0.99);
    }

    proptest! {
        #[test]
        fn whatever_follows_is_bounded_ordered_and_read_back(
            calls in prop::collection::vec(("[a-e]{1,3}", any::<bool>()), 0..300),
        ) {
            let mut followers = Followers::default();
            for (tool, succeeded) in &calls {
                followers.observe(tool, *succeeded);
                let last = followers.get(tool).unwrap();
                prop_assert!(last.weight >= UNIT);
            }
            prop_assert!(followers.iter().count() <= MAX_FOLLOWERS);
            prop_assert!(followers.iter().is_sorted_by_key(|follower| &follower.tool));
            for follower in followers.iter() {
                prop_assert!(follower.success_weight <= follower.weight && follower.successes <= follower.samples);
                prop_assert!(follower.weight <= UNIT << FADE);
            }
            prop_assert_eq!(Followers::decode(&followers.encode()), followers);
        }
    }
}
