//! How SQLite finds which rows have a query's terms: from the index, from some of its blocks, or row by row.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};

use super::postings;
use crate::memory::query::WordForm;
use crate::store::finding::matched_terms::{MatchedTerms, count_of, with_beside};
use crate::store::finding::row_cache::RowCache;
use crate::store::finding::search_scope::SearchScope;
use crate::store::finding::term_counts::Count;

/// What a word of a text counts, and one of its speaker's name.
const WORD: Count = Count { words: 1, speaker: 0 };
const NAME: Count = Count { words: 0, speaker: 1 };

/// Rows whose words are read in the time that a term is looked up in a block of the index.
const ROWS_OF_BLOCK: usize = 2;

/// How many terms are looked for, in whichever form.
fn terms_of(looked_for: &[WordForm<'_>]) -> usize {
    looked_for.last().map_or(0, |last| last.term + 1)
}

/// From the index: each term's rows are in order, as those of the cache are.
pub(super) fn find(
    connection: &Connection,
    cache: &RowCache,
    tenant: i64,
    scope: &SearchScope<'_>,
    looked_for: &[WordForm<'_>],
) -> rusqlite::Result<MatchedTerms> {
    let mut found = MatchedTerms::new(cache, terms_of(looked_for));
    for form in looked_for {
        postings::find(connection, tenant, form.text, found.sink_of_form(cache, scope, *form))?;
    }
    Ok(found)
}

/// Adds the same of some blocks of the index.
fn find_in(
    connection: &Connection,
    cache: &RowCache,
    tenant: i64,
    scope: &SearchScope<'_>,
    blocks: &[i64],
    looked_for: &[WordForm<'_>],
    mut found: MatchedTerms,
) -> rusqlite::Result<MatchedTerms> {
    for form in looked_for {
        postings::find_in(connection, tenant, form.text, blocks, found.sink_of_form(cache, scope, *form))?;
    }
    Ok(found)
}

/// Of a few rows and those beside them: from the blocks that they are in, or row by row if that is less work.
pub(super) fn of_few(
    connection: &Connection,
    cache: &RowCache,
    tenant: i64,
    scope: &SearchScope<'_>,
    rows: &[u32],
    looked_for: &[WordForm<'_>],
) -> rusqlite::Result<MatchedTerms> {
    let wanted = with_beside(cache, rows.iter().map(|&row| row as usize));
    let mut blocks: Vec<i64> = wanted.ones().map(|index| postings::block_of(cache.rows()[index].seq)).collect();
    blocks.dedup();
    let reach = wanted.minimum().unwrap_or(0)..wanted.maximum().map_or(0, |last| last + 1);
    let found = MatchedTerms::within(reach, terms_of(looked_for));
    if looked_for.len() * blocks.len() * ROWS_OF_BLOCK < wanted.count_ones(..) {
        find_in(connection, cache, tenant, scope, &blocks, looked_for, found)
    } else {
        read(connection, cache, scope, wanted.ones(), looked_for, found)
    }
}

/// Adds what rows have that are each read by themselves.
fn read(
    connection: &Connection,
    cache: &RowCache,
    scope: &SearchScope<'_>,
    rows: impl Iterator<Item = usize>,
    looked_for: &[WordForm<'_>],
    mut found: MatchedTerms,
) -> rusqlite::Result<MatchedTerms> {
    let form_of: HashMap<&str, WordForm<'_>> = looked_for.iter().map(|form| (form.text, *form)).collect();
    let mut select = connection.prepare_cached("SELECT words, speaker FROM memory_words WHERE seq = ?1")?;
    for index in rows {
        let mut counted: Vec<(usize, Count)> = Vec::new();
        let mut count = |term: &str, count: Count| {
            let Some(form) = form_of.get(term) else { return };
            let Some(Count { words, speaker }) = count_of(*form, count) else { return };
            let known = counted.iter_mut().find(|(known, _)| *known == form.term);
            let count = if let Some((_, count)) = known {
                count
            } else {
                counted.push((form.term, Count::default()));
                &mut counted.last_mut().expect("it was just put there").1
            };
            *count = count.and(words, speaker);
        };
        select
            .query_row([cache.rows()[index].seq], |row| {
                row.get_ref(0)?.as_str()?.split_ascii_whitespace().for_each(|term| count(term, WORD));
                row.get_ref(1)?.as_str()?.split_ascii_whitespace().for_each(|term| count(term, NAME));
                Ok(())
            })
            .optional()?;
        for (term, count) in counted {
            found.add(cache, scope, index, term, count);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use tempfile::TempDir;

    use super::super::{ranking, row_cache};
    use super::*;
    use crate::memory::query::TextQuery;
    use crate::memory::stored::{Draft, SearchKeys};
    use crate::store::finding::ranking::MAX_TERMS;
    use crate::store::finding::row_cache::RowCaches;
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
            let query = TextQuery { forms: vec![(1, "c"), (2, "a")], ..text(&["d", "b", "e"]) };
            let looked_for = query.looked_for(MAX_TERMS);
            let filter = all(KIND).filter;
            row_cache::with(&RowCaches::default(), &connection, 1, |cache| {
                let rows: Vec<u32> = (0..cache.rows().len() as u32).filter(|row| kept >> row & 1 == 1).collect();
                let scope = SearchScope::Rows(rows.clone(), rows.iter().map(|&row| row as usize).collect());
                let places: Vec<usize> = rows.iter().map(|&row| row as usize).collect();
                let none = || MatchedTerms::new(cache, query.terms.len());
                let each = places.iter().copied();
                let read = read(&connection, cache, &scope, each, &looked_for, none()).unwrap();
                let found = find(&connection, cache, 1, &scope, &looked_for).unwrap();
                let in_blocks = find_in(&connection, cache, 1, &scope, &[0], &looked_for, none()).unwrap();
                let chosen = of_few(&connection, cache, 1, &scope, &rows, &looked_for).unwrap();
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
                let all = SearchScope::Plain(&filter);
                let whole = ranking::rank(&connection, cache, 1, all, &query, i64::MAX).unwrap();
                assert!(whole.matches().count_ones(..) >= read.entries.iter().filter(|entry| entry.is_in).count());
            }).unwrap();
        }
    }
}
