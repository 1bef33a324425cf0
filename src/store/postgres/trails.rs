//! What sessions called next, at this daemon and at all others, added up as it is told.
//!
//! Each daemon keeps its own in the database. Here the states of a prefix stand side by side, and whichever changes,
//! their sum is told under the next number: whoever takes the sum with the highest number has all that was known then.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::group::Incarnation;
use super::session::DatabaseSession;
use crate::suggest::transitions::{Followers, MAX_PREFIXES, Prefix, Transition};

/// Prefixes of other daemons that are held; those that were heard of last.
const MAX_HEARD: usize = 2 * MAX_PREFIXES;

/// Shared by the thread that writes and whoever follows.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedTrails(Arc<Mutex<Trails>>);

#[derive(Debug, Default)]
struct Trails {
    /// Of the sum that was told last.
    told: u64,
    own: HashMap<Prefix, Arc<Followers>>,
    heard: HashMap<Prefix, Heard>,
    /// Prefixes of this daemon's that changed otherwise than by a record.
    corrected: Vec<Prefix>,
}

/// The states of a prefix at other daemons.
#[derive(Debug, Default)]
struct Heard {
    at: u64,
    of_daemons: BTreeMap<Vec<u8>, Followers>,
}

/// A daemon's state of a prefix, as it stands in the database.
#[derive(Debug, Clone)]
pub(super) struct WrittenTrail {
    pub(super) daemon: Vec<u8>,
    pub(super) prefix: Prefix,
    pub(super) followers: Followers,
    pub(super) tick: i64,
}

impl WrittenTrail {
    /// Of the columns daemon, before, last, followers and tick.
    pub(super) fn of(row: &Row) -> Self {
        let before: String = row.get(1);
        Self {
            daemon: row.get(0),
            prefix: Prefix { before: Some(before).filter(|before| !before.is_empty()), last: row.get(2) },
            followers: Followers::decode(row.get(3)),
            tick: row.get(4),
        }
    }
}

impl Trails {
    /// The sum, under the number `tick` if that is the next or later.
    fn tell(&mut self, prefix: Prefix, tick: u64) -> Transition {
        self.told = tick.max(self.told + 1);
        let own = self.own.get(&prefix);
        let followers = match self.heard.get(&prefix) {
            Some(heard) => {
                let own = own.map(|own| Followers::clone(own)).unwrap_or_default();
                Arc::new(heard.of_daemons.values().fold(own, |all, theirs| all.merged(theirs)))
            }
            None => own.cloned().unwrap_or_default(),
        };
        Transition { prefix, followers, tick: self.told }
    }

    fn hear(&mut self, WrittenTrail { daemon, prefix, followers, .. }: WrittenTrail) {
        let heard = self.heard.entry(prefix).or_default();
        heard.at = self.told;
        heard.of_daemons.insert(daemon, followers);
    }

    fn trim(&mut self) {
        if self.heard.len() > MAX_HEARD {
            let mut moments: Vec<u64> = self.heard.values().map(|heard| heard.at).collect();
            let (_, middle, _) = moments.select_nth_unstable(self.heard.len() - MAX_PREFIXES);
            let middle = *middle;
            self.heard.retain(|_, heard| heard.at >= middle);
        }
    }
}

impl SharedTrails {
    /// States of this daemon's that changed with records. Returns the sums.
    pub(super) fn add(&self, changes: &[Transition]) -> Arc<[Transition]> {
        let mut trails = self.0.lock();
        let mut tell = |change: &Transition| {
            trails.own.insert(change.prefix.clone(), Arc::clone(&change.followers));
            trails.tell(change.prefix.clone(), change.tick)
        };
        changes.iter().map(&mut tell).collect()
    }

    /// This daemon's states as they were read anew; what is told of those that differ is told with what is heard next.
    pub(super) fn correct<'s>(&self, own: impl Iterator<Item = (&'s Prefix, &'s Arc<Followers>)>) {
        let mut trails = self.0.lock();
        for (prefix, followers) in own {
            if trails.own.get(prefix).is_none_or(|known| known != followers) {
                trails.own.insert(prefix.clone(), Arc::clone(followers));
                trails.corrected.push(prefix.clone());
            }
        }
    }

    /// States that other daemons wrote. Returns the sums, and those that were corrected.
    pub(super) fn hear(&self, written: Vec<WrittenTrail>) -> Vec<Transition> {
        let mut trails = self.0.lock();
        let mut prefixes = std::mem::take(&mut trails.corrected);
        for trail in written {
            prefixes.push(trail.prefix.clone());
            trails.hear(trail);
        }
        trails.trim();
        prefixes.into_iter().map(|prefix| trails.tell(prefix, 0)).collect()
    }

    /// All that is written, in the order of its ticks. Returns the sums, the state that changed last at the end; what
    /// only others have comes after what is `daemon`'s own.
    pub(super) fn begin(&self, daemon: Incarnation, written: Vec<WrittenTrail>) -> Vec<Transition> {
        let mut trails = self.0.lock();
        let (own, theirs): (Vec<_>, Vec<_>) = written.into_iter().partition(|trail| trail.daemon == daemon.bytes());
        let mut order: Vec<(Prefix, u64)> = Vec::new();
        for WrittenTrail { prefix, followers, tick, .. } in own {
            // What is known of them since is later.
            trails.own.entry(prefix.clone()).or_insert_with(|| Arc::new(followers));
            order.push((prefix, tick.cast_unsigned()));
        }
        trails.heard.clear();
        let mut only_theirs: Vec<(Prefix, u64)> = Vec::new();
        for trail in theirs {
            if !trails.own.contains_key(&trail.prefix) {
                only_theirs.push((trail.prefix.clone(), 0));
            }
            trails.hear(trail);
        }
        // Each where it changed last.
        let mut seen = HashSet::new();
        let latest = only_theirs.into_iter().rev().filter(|(prefix, _)| seen.insert(prefix.clone()));
        let latest: Vec<_> = latest.take(MAX_PREFIXES).collect();
        order.extend(latest.into_iter().rev());
        order.into_iter().map(|(prefix, tick)| trails.tell(prefix, tick)).collect()
    }
}

/// The latest trails of each daemon, in the order of their ticks: of one daemon, or of all.
pub(super) async fn read(
    session: &DatabaseSession,
    daemon: Option<Incarnation>,
) -> Result<Vec<WrittenTrail>, DatabaseFault> {
    let query = "SELECT daemon, before, last, followers, tick FROM (
            SELECT *, row_number() OVER (PARTITION BY daemon ORDER BY tick DESC) AS place FROM almanac.trails
            WHERE $1 IS NULL OR daemon = $1
        ) AS trails WHERE place <= $2 ORDER BY tick, daemon";
    let (daemon, most) = (daemon.as_ref().map(Incarnation::bytes), MAX_PREFIXES as i64);
    let rows = session.query(query, &[(&daemon as _, Type::BYTEA), (&most as _, Type::INT8)]).await?;
    Ok(rows.iter().map(WrittenTrail::of).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::suggest::Transitions;

    fn after(last: &str) -> Prefix {
        Prefix { before: None, last: last.into() }
    }

    fn known(transitions: &Transitions) -> String {
        ["a", "b"].map(|last| format!("{:?}", transitions.after(last))).join("\n")
    }

    proptest! {
        /// However what three daemons write comes to each of them, they know the same in the end.
        #[test]
        fn all_know_the_same_whatever_comes_first(
            calls in prop::collection::vec((0..3_usize, "[ab]", "[xy]"), 1..40),
            heard_after in prop::collection::vec(prop::collection::vec(any::<bool>(), 3), 40),
        ) {
            let named = |byte: &str| Incarnation::from_hex(&byte.repeat(16)).unwrap();
            let daemons: [Incarnation; 3] = ["01", "02", "03"].map(named);
            let trails = [(); 3].map(|()| SharedTrails::default());
            let mut rooms = [(); 3].map(|()| Transitions::default());
            let mut states: [HashMap<Prefix, Followers>; 3] = Default::default();
            let mut unheard: [Vec<WrittenTrail>; 3] = Default::default();
            let every = vec![true; 3];
            let moments = calls.iter().map(Some).zip(&heard_after).chain([(None, &every)]);
            for (call, hears) in moments {
                if let Some((at, last, next)) = call {
                    let followers = states[*at].entry(after(last)).or_default();
                    followers.observe(next, true);
                    let written = WrittenTrail {
                        daemon: daemons[*at].bytes().to_vec(),
                        prefix: after(last),
                        followers: followers.clone(),
                        tick: 0,
                    };
                    let change = Transition { prefix: after(last), followers: Arc::new(followers.clone()), tick: 1 };
                    trails[*at].add(&[change]).iter().for_each(|told| rooms[*at].put(told));
                    for (other, unheard) in unheard.iter_mut().enumerate() {
                        if other != *at {
                            unheard.push(written.clone());
                        }
                    }
                }
                for (at, _) in hears.iter().enumerate().filter(|(_, hears)| **hears) {
                    let mut told = trails[at].hear(std::mem::take(&mut unheard[at]));
                    // Whoever folds them may do so in any order.
                    told.reverse();
                    for told in &told {
                        rooms[at].put(told);
                    }
                }
            }
            prop_assert_eq!(known(&rooms[0]), known(&rooms[1]));
            prop_assert_eq!(known(&rooms[0]), known(&rooms[2]));
            // And so does one that starts now.
            let written = (0..3).flat_map(|at| {
                let daemon = daemons[at].bytes().to_vec();
                let of = move |(prefix, followers): (&Prefix, &Followers)| WrittenTrail {
                    daemon: daemon.clone(), prefix: prefix.clone(), followers: followers.clone(), tick: 0,
                };
                states[at].iter().map(of).collect::<Vec<_>>()
            });
            let mut late = Transitions::default();
            SharedTrails::default().begin(daemons[0], written.collect()).iter().for_each(|told| late.put(told));
            prop_assert_eq!(known(&rooms[0]), known(&late));
        }
    }

    #[test]
    fn what_was_corrected_is_told() {
        let trails = SharedTrails::default();
        let mut followers = Followers::default();
        followers.observe("x", true);
        let (prefix, followers) = (after("a"), Arc::new(followers));
        trails.correct([(&prefix, &followers)].into_iter());
        trails.correct([(&prefix, &followers)].into_iter());
        let told = trails.hear(Vec::new());
        assert_eq!(
            told.iter().map(|told| (&told.prefix, &told.followers)).collect::<Vec<_>>(),
            [(&prefix, &followers)]
        );
        assert!(trails.hear(Vec::new()).is_empty());
    }

    #[test]
    fn what_others_have_is_bounded() {
        let trails = SharedTrails::default();
        for number in 0..=MAX_HEARD {
            let written = WrittenTrail {
                daemon: vec![1],
                prefix: after(&number.to_string()),
                followers: Followers::default(),
                tick: 0,
            };
            trails.hear(vec![written]);
        }
        let trails = trails.0.lock();
        assert!((MAX_PREFIXES..MAX_HEARD).contains(&trails.heard.len()), "{}", trails.heard.len());
        assert!(trails.heard.contains_key(&after(&MAX_HEARD.to_string())));
    }
}
