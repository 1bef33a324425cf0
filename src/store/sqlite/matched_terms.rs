//! Which rows have a query's terms, and how often: from the index, from some of its blocks, or row by row.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use super::postings::{self, Count};
use super::ranking::sorted;
use super::row_cache::RowCache;
use super::search_scope::SearchScope;
use crate::memory::rank::BESIDE;

/// Rows that are looked at by themselves, instead of looking for all that have a term; reading that many one by one
/// takes a millisecond or two.
pub(super) const FEW: usize = 1000;

/// Rows whose words are read in the time that a term is looked up in a block of the index.
const ROWS_OF_BLOCK: usize = 2;

/// What a row has of the terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) index: u32,
    /// Is it in scope? Neighbours of what is may be out of it.
    pub(super) is_in: bool,
    /// Its first [`Link`], counted from 1.
    first: u32,
}

/// One term that a row has, and where its next is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) term: u8,
    pub(super) count: Count,
    next: u32,
}

/// Of all rows that have one of the terms, what they have.
pub(super) struct MatchedTerms {
    /// For each row of the cache its entry, counted from 1; 0 for none.
    entry_of: Vec<u32>,
    pub(super) entries: Vec<Entry>,
    links: Vec<Link>,
    /// How many rows in scope have each term.
    pub(super) having: Vec<usize>,
}

impl MatchedTerms {
    fn new(cache: &RowCache, terms: usize) -> Self {
        // Zeroed memory that is not touched costs nothing, however many rows there are.
        let entry_of = vec![0; cache.rows().len()];
        Self { entry_of, entries: Vec::new(), links: Vec::new(), having: vec![0; terms] }
    }

    fn add(&mut self, cache: &RowCache, scope: &SearchScope<'_>, index: usize, term: usize, count: Count) {
        let mut entry = self.entry_of[index] as usize;
        if entry == 0 {
            self.entries.push(Entry { index: index as u32, is_in: scope.has(cache, index), first: 0 });
            entry = self.entries.len();
            self.entry_of[index] = entry as u32;
        }
        let entry = &mut self.entries[entry - 1];
        self.links.push(Link { term: term as u8, count, next: entry.first });
        entry.first = self.links.len() as u32;
        self.having[term] += usize::from(entry.is_in);
    }

    /// From the index: each term's rows are in order, as those of the cache are.
    pub(super) fn find(
        connection: &Connection,
        cache: &RowCache,
        tenant: i64,
        scope: &SearchScope<'_>,
        terms: &[String],
    ) -> rusqlite::Result<Self> {
        let mut found = Self::new(cache, terms.len());
        for (number, term) in terms.iter().enumerate() {
            postings::find(connection, tenant, term, found.sink(cache, scope, number))?;
        }
        Ok(found)
    }

    /// The same of some blocks of the index.
    fn find_in(
        connection: &Connection,
        cache: &RowCache,
        tenant: i64,
        scope: &SearchScope<'_>,
        blocks: &[i64],
        terms: &[String],
    ) -> rusqlite::Result<Self> {
        let mut found = Self::new(cache, terms.len());
        for (number, term) in terms.iter().enumerate() {
            postings::find_in(connection, tenant, term, blocks, found.sink(cache, scope, number))?;
        }
        Ok(found)
    }

    /// Takes the rows that have a term, which come in order.
    fn sink(&mut self, cache: &RowCache, scope: &SearchScope<'_>, term: usize) -> impl FnMut(i64, Count) {
        let mut at = 0;
        move |seq, count| {
            at = advance(cache, at, seq);
            if cache.rows().get(at).is_some_and(|row| row.seq == seq) {
                self.add(cache, scope, at, term, count);
            }
        }
    }

    /// Of a few rows and those beside them: from the blocks that they are in, or row by row if that is less work.
    pub(super) fn of_few(
        connection: &Connection,
        cache: &RowCache,
        tenant: i64,
        scope: &SearchScope<'_>,
        rows: &[u32],
        terms: &[String],
    ) -> rusqlite::Result<Self> {
        let beside = |index: usize| BESIDE.iter().filter_map(move |(step, _)| cache.beside(index, *step));
        let wanted = sorted(rows.iter().flat_map(|&row| beside(row as usize).chain([row as usize])));
        let mut blocks: Vec<i64> = wanted.iter().map(|&index| postings::block_of(cache.rows()[index].seq)).collect();
        blocks.dedup();
        if terms.len() * blocks.len() * ROWS_OF_BLOCK < wanted.len() {
            Self::find_in(connection, cache, tenant, scope, &blocks, terms)
        } else {
            Self::read(connection, cache, scope, &wanted, terms)
        }
    }

    /// From rows that are each read by themselves.
    fn read(
        connection: &Connection,
        cache: &RowCache,
        scope: &SearchScope<'_>,
        rows: &[usize],
        terms: &[String],
    ) -> rusqlite::Result<Self> {
        let mut found = Self::new(cache, terms.len());
        let number_of: HashMap<&str, usize> =
            terms.iter().enumerate().map(|(number, term)| (term.as_str(), number)).collect();
        let mut select = connection.prepare_cached("SELECT words, speaker FROM memory_words WHERE seq = ?1")?;
        for &index in rows {
            let mut counted: Vec<(usize, Count)> = Vec::new();
            let mut count = |term: &str, words: u32, speaker: u32| {
                let Some(&number) = number_of.get(term) else { return };
                let known = counted.iter_mut().find(|(known, _)| *known == number);
                let count = if let Some((_, count)) = known {
                    count
                } else {
                    counted.push((number, Count::default()));
                    &mut counted.last_mut().expect("it was just put there").1
                };
                *count = count.and(words, speaker);
            };
            select
                .query_row([cache.rows()[index].seq], |row| {
                    row.get_ref(0)?.as_str()?.split_ascii_whitespace().for_each(|term| count(term, 1, 0));
                    row.get_ref(1)?.as_str()?.split_ascii_whitespace().for_each(|term| count(term, 0, 1));
                    Ok(())
                })
                .optional()?;
            for (number, count) in counted {
                found.add(cache, scope, index, number, count);
            }
        }
        Ok(found)
    }

    pub(super) fn links(&self, index: usize) -> impl Iterator<Item = Link> {
        let first = match self.entry_of[index] {
            0 => 0,
            entry => self.entries[entry as usize - 1].first,
        };
        let link = |at: u32| (at > 0).then(|| self.links[at as usize - 1]);
        std::iter::successors(link(first), move |before| link(before.next))
    }
}

/// Where a row stands, or would, at or after a place: by steps that double, since the next is mostly near.
fn advance(cache: &RowCache, from: usize, seq: i64) -> usize {
    let rows = cache.rows();
    let mut step = 1;
    while rows.get(from + step).is_some_and(|row| row.seq < seq) {
        step *= 2;
    }
    let (low, high) = (from + step / 2, (from + step).min(rows.len()));
    low + rows[low.min(high)..high].partition_point(|row| row.seq < seq)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tempfile::TempDir;

    use super::super::ranking::MemoryRanking;
    use super::super::row_cache::RowCaches;
    use super::*;
    use crate::memory::stored::{Draft, SearchKeys};
    use crate::store::sqlite::{Options, Sqlite, file_in};
    use crate::store::suite::memories::{KIND, add, all, placed, text};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

        /// Rows that are read one by one say the same as the index.
        #[test]
        fn few_rows_have_the_words_that_the_index_has(
            said in prop::collection::vec(("[abc]( [abc]){0,4}", "[ab]?"), 1..20), kept in any::<u32>(),
        ) {
            let directory = TempDir::new().unwrap();
            let store = Sqlite::start(Options::file(file_in(directory.path())), Box::new(|_, _| ())).unwrap();
            for (position, (words, speaker)) in (0..).zip(&said) {
                let index = SearchKeys { speaker: speaker.clone(), ..crate::store::suite::memories::index(words) };
                add(&store, "t", Draft { index, ..placed(&json!(position).to_string(), "c", "th", position) }).unwrap();
            }
            let connection = Connection::open(file_in(directory.path())).unwrap();
            let query = text(&["a", "b", "d"]);
            let filter = all(KIND).filter;
            RowCaches::default().with(&connection, 1, |cache| {
                let rows: Vec<u32> = (0..cache.rows().len() as u32).filter(|row| kept >> row & 1 == 1).collect();
                let bits = vec![rows.iter().fold(0, |bits, row| bits | 1 << row)];
                let scope = SearchScope::Rows(rows.clone(), bits);
                let places: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
                let read = MatchedTerms::read(&connection, cache, &scope, &places, &query.terms).unwrap();
                let found = MatchedTerms::find(&connection, cache, 1, &scope, &query.terms).unwrap();
                let in_blocks = MatchedTerms::find_in(&connection, cache, 1, &scope, &[0], &query.terms).unwrap();
                let chosen = MatchedTerms::of_few(&connection, cache, 1, &scope, &rows, &query.terms).unwrap();
                for other in [&read, &in_blocks, &chosen] {
                    assert_eq!(other.having, found.having);
                    for &row in &places {
                        let of = |terms: &MatchedTerms| {
                            let mut of: Vec<(u8, Count)> =
                                terms.links(row).map(|link| (link.term, link.count)).collect();
                            of.sort_by_key(|(term, _)| *term);
                            of
                        };
                        assert_eq!(of(other), of(&found), "row {row}");
                    }
                }
                let whole = MemoryRanking::of(&connection, cache, 1, SearchScope::Plain(&filter), &query).unwrap();
                assert!(whole.matches().len() >= read.entries.iter().filter(|entry| entry.is_in).count());
            }).unwrap();
        }
    }
}
