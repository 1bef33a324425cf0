//! What scoring needs of a tenant's memories, in memory: where each stands, how long it is, and what it means, for
//! exact scans. Some 150 bytes a memory, a million in some ten milliseconds.
//!
//! A cache is filled when its tenant first asks, and brought up to date by each reader from the rows that were written
//! since, which their rising stamps tell. Nobody who writes touches it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use crate::memory::query::Filter;
use crate::text::embedding::Packed;

/// Rows of all caches together; beyond, the cache that was asked longest ago goes. About 600 MB.
const MAX_ROWS: usize = 4_000_000;

/// Rows that room is made for at once, at least.
const LEAST_ROOM: usize = 64;

/// Of a memory that was purged, in the column `deleted`.
pub(in crate::store) const GONE: u8 = 2;

/// One memory.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct CachedRow {
    pub(in crate::store) seq: i64,
    pub(in crate::store) created_us: i64,
    /// Its thread's number, of [`thread_number`]; 0 for none.
    pub(in crate::store) thread: i64,
    pub(in crate::store) position: u64,
    /// Of its words, in terms.
    pub(in crate::store) length: u16,
    pub(in crate::store) kind: u8,
    pub(in crate::store) deleted: u8,
    pub(in crate::store) vector: Packed,
}

/// Of a row what decides whether a plain filter lets it through, and how much its terms count.
#[derive(Debug, Clone, Copy)]
struct Brief {
    length: u16,
    kind: u8,
    deleted: u8,
}

impl Brief {
    fn of(&CachedRow { length, kind, deleted, .. }: &CachedRow) -> Self {
        Self { length, kind, deleted }
    }
}

/// A number for a thread of a chat; two threads have the same as good as never.
pub(in crate::store) fn thread_number(chat: Option<&str>, thread: &str) -> i64 {
    // Chats and threads have no control characters. The number is stored, so that no other hash may take its place.
    let digest = Sha256::digest(format!("{}\0{thread}", chat.unwrap_or_default()));
    i64::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
}

/// The rows of one tenant, in the order of their numbers.
#[derive(Debug, Default)]
pub(in crate::store) struct RowCache {
    rows: Vec<CachedRow>,
    /// Of each row the signs of its vector, for a first look at very many.
    signs: Vec<u64>,
    /// The same of what else is looked at of very many.
    briefs: Vec<Brief>,
    /// Where each message of a thread stands that is not deleted, found by the hash of its thread and position.
    places: HashTable<u32>,
    /// How many rows of a kind, deleted or not, there are, and how long they are together.
    sums: Vec<((u8, u8), Sums)>,
    /// The latest write that is in it.
    pub(in crate::store) stamp: i64,
}

/// Of some rows: how many, and how long all of them are together, in terms.
pub(in crate::store) type Sums = (usize, u64);

impl RowCache {
    pub(in crate::store) fn rows(&self) -> &[CachedRow] {
        &self.rows
    }

    /// Of each row the signs of its vector.
    pub(in crate::store) fn signs(&self) -> &[u64] {
        &self.signs
    }

    /// How long a row's words are, in terms.
    pub(in crate::store) fn length(&self, index: usize) -> u16 {
        self.briefs[index].length
    }

    /// Where a row stands, unless it is gone.
    pub(in crate::store) fn index_of(&self, seq: i64) -> Option<usize> {
        let index = self.rows.binary_search_by_key(&seq, |row| row.seq).ok()?;
        Some(index).filter(|&index| self.rows[index].deleted != GONE)
    }

    /// The same of a row that mostly stands soon after a place.
    pub(in crate::store) fn index_of_near(&self, place: usize, seq: i64) -> Option<usize> {
        let after = self.rows.get(place).is_some_and(|row| row.seq <= seq);
        let index = self.advance(if after { place } else { 0 }, seq);
        self.rows.get(index).is_some_and(|row| row.seq == seq && row.deleted != GONE).then_some(index)
    }

    /// Where a row stands, or would, at or after a place: by steps that double, since the next is mostly near.
    pub(in crate::store) fn advance(&self, from: usize, seq: i64) -> usize {
        let mut step = 1;
        while self.rows.get(from + step).is_some_and(|row| row.seq < seq) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, (from + step).min(self.rows.len()));
        low + self.rows[low.min(high)..high].partition_point(|row| row.seq < seq)
    }

    /// The message so many positions after one in its thread.
    pub(in crate::store) fn beside(&self, index: usize, step: i64) -> Option<usize> {
        let row = &self.rows[index];
        let position = row.position.checked_add_signed(step).filter(|_| row.thread != 0)?;
        // Who writes a thread at a time has its messages in a row.
        let next = index.checked_add_signed(step as isize).filter(|&next| {
            let is_it = |row: &CachedRow| row.thread == self.rows[index].thread && row.position == position;
            self.rows.get(next).is_some_and(|row| is_it(row) && row.deleted == 0)
        });
        if next.is_some() {
            return next;
        }
        let is_it = |&other: &u32| place_of(&self.rows, other) == (row.thread, position);
        self.places.find(place_hash((row.thread, position)), is_it).map(|&other| other as usize)
    }

    /// Does a filter that asks for nothing but the kind and deletion let a row through?
    pub(in crate::store) fn passes(&self, index: usize, filter: &Filter) -> bool {
        let Brief { kind, deleted, .. } = self.briefs[index];
        lets_through(filter, kind, deleted)
    }

    /// Of the rows that such a filter lets through.
    pub(in crate::store) fn sums(&self, filter: &Filter) -> Sums {
        let through = self.sums.iter().filter(|((kind, deleted), _)| lets_through(filter, *kind, *deleted));
        through.fold((0, 0), |(rows, length), (_, (more, longer))| (rows + more, length + longer))
    }

    /// Makes room for so many more rows, and for no more than that: a million are 150 MB.
    pub(in crate::store) fn reserve(&mut self, more: usize) {
        self.rows.reserve_exact(more);
        self.signs.reserve_exact(more);
        self.briefs.reserve_exact(more);
        let rows = &self.rows;
        self.places.reserve(more, |&known| place_hash(place_of(rows, known)));
    }

    pub(in crate::store) fn put(&mut self, row: CachedRow) {
        if self.rows.len() == self.rows.capacity() {
            self.reserve((self.rows.len() / 8).max(LEAST_ROOM));
        }
        let index = match self.rows.last() {
            Some(last) if last.seq >= row.seq => self.rows.binary_search_by_key(&row.seq, |known| known.seq),
            _ => Err(self.rows.len()),
        };
        match index {
            Ok(index) => {
                self.count(index, false);
                self.signs[index] = row.vector.signs();
                self.briefs[index] = Brief::of(&row);
                self.rows[index] = row;
                self.count(index, true);
            }
            Err(index) if index == self.rows.len() => {
                self.signs.push(row.vector.signs());
                self.briefs.push(Brief::of(&row));
                self.rows.push(row);
                self.count(index, true);
            }
            Err(index) => {
                // Rows are numbered as they are written, so that this is as good as never.
                self.signs.insert(index, row.vector.signs());
                self.briefs.insert(index, Brief::of(&row));
                self.rows.insert(index, row);
                self.count_anew();
            }
        }
    }

    /// Takes a row into account, or out of it.
    fn count(&mut self, index: usize, is_in: bool) {
        let CachedRow { thread, position, length, kind, deleted, .. } = self.rows[index];
        // There are a dozen of them at most.
        let known = self.sums.iter().position(|(of, _)| *of == (kind, deleted));
        let place = known.unwrap_or_else(|| {
            self.sums.push(((kind, deleted), (0, 0)));
            self.sums.len() - 1
        });
        let sums = &mut self.sums[place].1;
        if is_in {
            *sums = (sums.0 + 1, sums.1 + u64::from(length));
        } else {
            *sums = (sums.0 - 1, sums.1 - u64::from(length));
        }
        if thread == 0 || deleted != 0 {
            return;
        }
        let (rows, place, index) = (&self.rows, (thread, position), index as u32);
        let is_it = |&known: &u32| place_of(rows, known) == place;
        match self.places.entry(place_hash(place), is_it, |&known| place_hash(place_of(rows, known))) {
            Entry::Occupied(mut known) if is_in => *known.get_mut() = index,
            Entry::Occupied(known) if *known.get() == index => drop(known.remove()),
            Entry::Vacant(free) if is_in => drop(free.insert(index)),
            Entry::Occupied(_) | Entry::Vacant(_) => {}
        }
    }

    fn count_anew(&mut self) {
        self.places.clear();
        self.sums.clear();
        for index in 0..self.rows.len() {
            self.count(index, true);
        }
    }
}

/// The thread and position of a row.
fn place_of(rows: &[CachedRow], index: u32) -> (i64, u64) {
    let row = &rows[index as usize];
    (row.thread, row.position)
}

fn place_hash(place: (i64, u64)) -> u64 {
    FixedState::with_seed(2).hash_one(place)
}

fn lets_through(filter: &Filter, kind: u8, deleted: u8) -> bool {
    deleted != GONE && filter.kind.is_none_or(|wanted| wanted == kind) && (filter.include_deleted || deleted == 0)
}

/// The caches of all tenants.
#[derive(Debug)]
pub(in crate::store) struct RowCaches<K>(Mutex<Kept<K>>);

#[derive(Debug)]
struct Kept<K> {
    by_tenant: HashMap<K, (Arc<RwLock<RowCache>>, u64, usize)>,
    asked: u64,
}

impl<K> Default for RowCaches<K> {
    fn default() -> Self {
        Self(Mutex::new(Kept { by_tenant: HashMap::new(), asked: 0 }))
    }
}

impl<K: Clone + Eq + Hash> RowCaches<K> {
    /// The tenant's.
    pub(in crate::store) fn cache(&self, tenant: &K) -> Arc<RwLock<RowCache>> {
        let mut kept = self.0.lock();
        kept.asked += 1;
        let asked = kept.asked;
        let (cache, last, _) = kept.by_tenant.entry(tenant.clone()).or_default();
        *last = asked;
        Arc::clone(cache)
    }

    /// Takes note of a cache's size, and gives up others if there is too much.
    pub(in crate::store) fn measure(&self, tenant: &K, size: usize) {
        let mut kept = self.0.lock();
        if let Some((_, _, known)) = kept.by_tenant.get_mut(tenant) {
            *known = size;
        }
        while kept.by_tenant.values().map(|(_, _, size)| size).sum::<usize>() > MAX_ROWS {
            let others = kept.by_tenant.iter().filter(|(other, _)| *other != tenant);
            let oldest = others.min_by_key(|(_, (_, asked, _))| *asked).map(|(other, _)| other.clone());
            let Some(oldest) = oldest else { break };
            kept.by_tenant.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However threads were written between each other, and whatever of them was deleted.
        #[test]
        fn what_stands_beside_is_found(
            written in prop::collection::vec((0_i64..3, 0_u8..3), 1..40),
            step in -2_i64..=2,
        ) {
            let mut cache = RowCache::default();
            let mut next = [0; 3];
            for (seq, (thread, deleted)) in (1..).zip(written) {
                let position = next[thread as usize];
                // What was deleted leaves its place to another.
                next[thread as usize] += u64::from(deleted == 0);
                let (created_us, length, kind, vector) = (seq, 1, 0, Packed::ZERO);
                cache.put(CachedRow { seq, created_us, thread, position, length, kind, deleted, vector });
            }
            for (index, row) in cache.rows.iter().enumerate() {
                let is_it = |other: &CachedRow| {
                    other.thread == row.thread
                        && other.deleted == 0
                        && Some(other.position) == row.position.checked_add_signed(step)
                };
                let expected = cache.rows.iter().position(is_it).filter(|_| row.thread != 0);
                prop_assert_eq!(cache.beside(index, step), expected, "of row {}", index);
            }
        }

        /// From wherever it is looked for.
        #[test]
        fn a_row_is_found_from_any_place(
            written in prop::collection::btree_map(0_i64..60, 0..=GONE, 0..30),
            (asked, place) in (0_i64..60, 0_usize..40),
        ) {
            let mut cache = RowCache::default();
            for (seq, deleted) in written {
                let (thread, position, length, kind, vector) = (0, 0, 1, 0, Packed::ZERO);
                cache.put(CachedRow { seq, created_us: seq, thread, position, length, kind, deleted, vector });
            }
            prop_assert_eq!(cache.index_of_near(place, asked), cache.index_of(asked));
        }
    }
}
