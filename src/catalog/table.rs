//! A hash table in shards that snapshots share: changing one tool copies one shard, however many tools there are.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::Entry;

/// A shard of 10,000 tools holds about 40: small enough to copy for one change, large enough that few shards are empty.
const SHARDS: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct NameTable {
    shards: Box<[Arc<HashTable<Arc<Entry>>>]>,
    hasher: FixedState,
}

impl Default for NameTable {
    fn default() -> Self {
        Self { shards: vec![Arc::default(); SHARDS].into(), hasher: FixedState::default() }
    }
}

impl NameTable {
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        let hash = self.hasher.hash_one(name);
        self.shards[shard(hash)].find(hash, |entry| **entry.name() == *name)
    }

    /// Adds an entry, in place of one of the same name.
    pub(super) fn insert(&mut self, entry: Arc<Entry>) {
        let hash = self.hasher.hash_one(&**entry.name());
        let hasher = &self.hasher;
        let shard = Arc::make_mut(&mut self.shards[shard(hash)]);
        match shard.find_mut(hash, |other| other.name() == entry.name()) {
            Some(slot) => *slot = entry,
            None => {
                shard.insert_unique(hash, entry, |entry| hasher.hash_one(&**entry.name()));
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        let hash = self.hasher.hash_one(name);
        let shard = Arc::make_mut(&mut self.shards[shard(hash)]);
        if let Ok(found) = shard.find_entry(hash, |entry| **entry.name() == *name) {
            found.remove();
        }
    }
}

/// The table inside a shard uses the low and the top seven bits; the shard takes bits from between.
fn shard(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}
