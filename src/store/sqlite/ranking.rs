//! How SQLite has memories ranked: it tells the scope, the terms and the ids, and scores are made of them elsewhere.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::condition::Condition;
use super::matched_terms;
use crate::memory::query::{Filter, TextQuery};
use crate::store::finding::matched_terms::FEW;
use crate::store::finding::ranking::{MAX_TERMS, MemoryRanking};
use crate::store::finding::row_cache::RowCache;
use crate::store::finding::search_scope::SearchScope;

/// What a filter lets through.
pub(super) fn scope_of<'f>(
    connection: &Connection,
    cache: &RowCache,
    condition: &Condition,
    filter: &'f Filter,
) -> rusqlite::Result<SearchScope<'f>> {
    if let Some(plain) = SearchScope::plain(filter) {
        return Ok(plain);
    }
    let seqs: Vec<i64> = connection
        .prepare_cached(&format!("SELECT m.seq FROM memories AS m WHERE {}", condition.sql))?
        .query_map(params_from_iter(&condition.values), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(SearchScope::of_rows(cache, &seqs))
}

/// What of a scope matches a text, and how well. Rows beyond `through` came after the first page.
pub(super) fn rank<'f>(
    connection: &Connection,
    cache: &RowCache,
    tenant: i64,
    scope: SearchScope<'f>,
    query: &TextQuery,
    through: i64,
) -> rusqlite::Result<MemoryRanking<'f>> {
    let wanted = query.looked_for(MAX_TERMS);
    let terms = match &scope {
        SearchScope::Rows(rows, _) if rows.len() <= FEW => {
            matched_terms::of_few(connection, cache, tenant, &scope, rows, &wanted)?
        }
        _ => matched_terms::find(connection, cache, tenant, &scope, &wanted)?,
    };
    let ranking = MemoryRanking::of(cache, scope, terms, query);
    let Some(times) = query.time_terms else { return Ok(ranking) };
    let naming = naming_time(connection, &ranking.to_look_into(cache, query, through), times)?;
    Ok(ranking.with_times(cache, query, &naming))
}

/// Those of some rows whose words name a time.
fn naming_time(connection: &Connection, seqs: &[i64], times: &HashSet<String>) -> rusqlite::Result<Vec<i64>> {
    let mut words = connection.prepare_cached("SELECT words FROM memory_words WHERE seq = ?1")?;
    let mut naming = Vec::new();
    for &seq in seqs {
        let names = |words: &str| words.split_ascii_whitespace().any(|word| times.contains(word));
        let names = words.query_row([seq], |row| Ok(names(row.get_ref(0)?.as_str()?))).optional()?;
        naming.extend(names.filter(|names| *names).map(|_| seq));
    }
    Ok(naming)
}

/// The ids of some rows, as far as they are there.
pub(super) fn ids(connection: &Connection, seqs: &[i64]) -> rusqlite::Result<HashMap<i64, String>> {
    let mut id = connection.prepare_cached("SELECT id FROM memories WHERE seq = ?1")?;
    let mut ids = HashMap::new();
    for seq in seqs {
        let known: Option<String> = id.query_row([seq], |row| row.get(0)).optional()?;
        ids.extend(known.map(|id| (*seq, id)));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::row_cache;
    use super::*;
    use crate::store::finding::ranking::MANY;
    use crate::store::finding::row_cache::RowCaches;
    use crate::store::sqlite::{Options, Sqlite, file_in};
    use crate::store::suite::memories::{KIND, all, text};

    #[test]
    fn of_very_many_rows_the_nearest_are_compared() {
        let directory = TempDir::new().unwrap();
        drop(Sqlite::start(Options::file(file_in(directory.path())), Box::new(|_, _| ())).unwrap());
        let connection = Connection::open(file_in(directory.path())).unwrap();
        connection.execute_batch("INSERT INTO memory_tenants (name) VALUES ('t'); BEGIN").unwrap();
        let table = crate::text::embedding::Table::shipped();
        let said = ["tea with milk", "the price of oil", "a walk in the rain", "compile errors", "an old castle"];
        let vectors = said.map(|text| crate::text::embedding::Quantized::from(&table.embed(text)));
        let rows = MANY + 1000;
        for seq in 1..=rows as i64 {
            let vector = &vectors[if seq % 1000 == 7 { 0 } else { 1 + seq as usize % 4 }];
            let (kind, created_us) = (KIND, seq);
            row_cache::RowOf {
                seq,
                tenant: 1,
                stamp: seq,
                kind,
                deleted: false,
                created_us,
                thread: None,
                length: 3,
                vector,
            }
            .write(&connection)
            .unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        let filter = all(KIND).filter;
        let query = TextQuery { like: 0.25, ..text(&["tea"]) };
        row_cache::with(&RowCaches::default(), &connection, 1, |cache| {
            let ranking = rank(&connection, cache, 1, SearchScope::Plain(&filter), &query, i64::MAX).unwrap();
            assert_eq!(ranking.matches().count_ones(..), rows / 1000);
            assert!(ranking.matches().ones().all(|index| cache.rows()[index].seq % 1000 == 7));
        })
        .unwrap();
    }
}
