//! States by key, bounded, in shards that published models share.
//!
//! A learner goes on learning while readers hold what it published, so changing one state may copy that state and the
//! list it is in, but not the table. A shard is that list. Beyond its limit the table forgets what has gone longest
//! without a call, a sixteenth at a time: finding the oldest costs a look at all of them, and a client that invents
//! names must not cost that much for each.
//!
//! Rejected: a map of maps by tool (a tool with many modes would be copied whole) and a persistent hash trie (its nodes
//! reserve room for 32 entries, which is more than most keys weigh).

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::key::Key;

/// At the default limit a shard holds some 300 states.
const SHARDS: usize = 64;
/// The share that is forgotten at once is one in this many.
const FORGOTTEN: usize = 16;

#[derive(Debug, Clone)]
struct Slot<S> {
    /// The tool, then the mode.
    name: Box<str>,
    tool_length: u32,
    failed: bool,
    /// The number of the last call.
    touched: u64,
    state: S,
}

impl<S> Slot<S> {
    fn key(&self) -> Key<'_> {
        let (tool, mode) = self.name.split_at(self.tool_length as usize);
        Key { tool, mode, failed: self.failed }
    }
}

/// States whose hashes share some bits.
type Shard<S> = Arc<HashTable<Arc<Slot<S>>>>;

/// A bounded map from keys to states; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SharedTable<S> {
    shards: Box<[Shard<S>]>,
    hasher: FixedState,
    len: usize,
    limit: usize,
}

impl<S: Clone + Default> SharedTable<S> {
    /// An empty table of at most `limit` states (at least 1).
    pub(super) fn new(limit: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Arc::default()).collect();
        Self { shards, hasher: FixedState::default(), len: 0, limit: limit.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: Key<'_>) -> Option<&S> {
        let hash = self.hasher.hash_one(key);
        self.shards[shard(hash)].find(hash, |slot| slot.key() == key).map(|slot| &slot.state)
    }

    /// All states, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key<'_>, &S)> {
        self.shards.iter().flat_map(|shard| shard.iter()).map(|slot| (slot.key(), &slot.state))
    }

    /// The state of `key` to change, a new one if there is none, for the call numbered `now`.
    pub(super) fn touch(&mut self, key: Key<'_>, now: u64) -> &mut S {
        let hash = self.hasher.hash_one(key);
        let index = shard(hash);
        if self.shards[index].find(hash, |slot| slot.key() == key).is_none() {
            self.insert(hash, key);
        }
        let slot = Arc::make_mut(&mut self.shards[index]).find_mut(hash, |slot| slot.key() == key);
        let slot = Arc::make_mut(slot.expect("it was found or inserted above"));
        slot.touched = now;
        &mut slot.state
    }

    /// The state of `key` to change, if there is one; it gets no younger.
    pub(super) fn get_mut(&mut self, key: Key<'_>) -> Option<&mut S> {
        let hash = self.hasher.hash_one(key);
        let slot = Arc::make_mut(&mut self.shards[shard(hash)]).find_mut(hash, |slot| slot.key() == key)?;
        Some(&mut Arc::make_mut(slot).state)
    }

    fn insert(&mut self, hash: u64, key: Key<'_>) {
        if self.len >= self.limit {
            self.forget();
        }
        let name = [key.tool, key.mode].concat().into();
        let tool_length = key.tool.len() as u32;
        let slot = Slot { name, tool_length, failed: key.failed, touched: 0, state: S::default() };
        let hasher = &self.hasher;
        let shard = Arc::make_mut(&mut self.shards[shard(hash)]);
        shard.insert_unique(hash, Arc::new(slot), |slot| hasher.hash_one(slot.key()));
        self.len += 1;
    }

    fn forget(&mut self) {
        let mut ages: Vec<u64> = self.shards.iter().flat_map(|shard| shard.iter()).map(|slot| slot.touched).collect();
        let surplus = (self.len + 1).saturating_sub(self.limit).max(self.limit / FORGOTTEN);
        let last = surplus.min(ages.len()) - 1;
        let (_, &mut newest, _) = ages.select_nth_unstable(last);
        for shard in &mut self.shards {
            if shard.iter().any(|slot| slot.touched <= newest) {
                Arc::make_mut(shard).retain(|slot| slot.touched > newest);
            }
        }
        self.len = self.shards.iter().map(|shard| shard.len()).sum();
    }

    /// Bytes of all states, with `heap` bytes of each on the heap.
    pub(super) fn bytes(&self, heap: impl Fn(&S) -> usize) -> usize {
        let lists: usize = self.shards.iter().map(|shard| shard.allocation_size()).sum();
        let slots = self.shards.iter().flat_map(|shard| shard.iter());
        // An allocation has a word before it and is rounded up; an Arc has two counters.
        let allocated = |bytes: usize| (bytes + 8).next_multiple_of(16).max(32);
        let slot = allocated(size_of::<Slot<S>>() + 16);
        let heap = |state: &S| Some(heap(state)).filter(|&bytes| bytes > 0).map_or(0, allocated);
        lists + slots.map(|each| slot + allocated(each.name.len()) + heap(&each.state)).sum::<usize>()
    }
}

/// The table inside a shard uses the low and the top seven bits; the shard takes bits from between.
fn shard(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: usize, calls: impl IntoIterator<Item = u32>, kept: &[u32], forgotten: &[u32]) {
        let mut table = SharedTable::<u32>::new(limit);
        for (now, name) in (1..).zip(calls) {
            *table.touch(Key::new(&name.to_string(), "mode"), now) += 1;
            assert!(table.len() <= limit && table.len() == table.iter().count());
        }
        let holds = |name: &u32| table.get(Key::new(&name.to_string(), "mode")).is_some();
        assert!(kept.iter().all(holds), "of {kept:?}, some were forgotten at a limit of {limit}");
        assert!(!forgotten.iter().any(holds), "of {forgotten:?}, some were kept at a limit of {limit}");
    }

    #[test]
    fn the_longest_silent_are_forgotten() {
        check(1, [1, 2, 3], &[3], &[1, 2]);
        check(2, [1, 2, 1, 3], &[1, 3], &[2]);
        check(160, (0..160).chain([0, 200]), &[0, 11, 159, 200], &[1, 10]);
        check(1000, 0..100_000, &[99_999, 99_500], &[0, 98_000]);
    }

    #[test]
    fn a_clone_keeps_what_it_had() {
        let mut table = SharedTable::<u32>::new(10);
        *table.touch(Key::new("a", ""), 1) = 1;
        let published = table.clone();
        *table.touch(Key::new("a", ""), 2) = 2;
        *table.touch(Key::new("", "a"), 3) = 3;
        assert_eq!((published.get(Key::new("a", "")), published.get(Key::new("", "a"))), (Some(&1), None));
        assert_eq!((table.get(Key::new("a", "")), table.get(Key::new("", "a"))), (Some(&2), Some(&3)));
    }
}
