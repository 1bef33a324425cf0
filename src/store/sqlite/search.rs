//! Searches: a page of what a filter lets through, in the order of a value, or of how well a text matches.

use rusqlite::{Connection, params_from_iter};

use super::condition::{Condition, after, sort_key, sort_value};
use super::queries::{self, COLUMNS};
use super::ranking::MemoryRanking;
use super::row_cache::{RowCache, RowCaches};
use super::search_scope::SearchScope;
use crate::memory::query::{Begun, Found, Hit, Place, Search, SortBy, SortValue, TextQuery};
use crate::memory::stored::StoredMemory;

/// Ranked memories that the pages of one search go through in the order of their first page. What matches beyond them
/// follows, newest first.
const MAX_RANKED: usize = 500;

/// A page of what is looked for.
pub(super) fn search(
    connection: &Connection,
    row_caches: &RowCaches,
    tenant: &str,
    search: &Search,
) -> rusqlite::Result<Found> {
    let Some(number) = queries::tenant(connection, tenant)? else { return Ok(Found::default()) };
    let begun = match search.begun {
        Some(begun) => begun,
        None => begun_now(connection, number)?,
    };
    let mut condition = Condition::of(number, &search.filter);
    if search.begun.is_some() {
        // What came since is not part of it.
        condition.and("m.seq <= ?", [begun.through.into()]);
        if search.sort == SortBy::Updated {
            let unchanged = "EXISTS (SELECT 1 FROM memory_rows AS r WHERE r.seq = m.seq AND r.stamp <= ?)";
            condition.and(unchanged, [begun.stamp.into()]);
        }
    }
    let found = match &search.text {
        None => listed(connection, &condition, search)?,
        Some(query) => row_caches.with(connection, number, |cache| {
            let scope = SearchScope::of(connection, cache, &condition, &search.filter)?;
            let ranking = MemoryRanking::of(connection, cache, number, scope, query)?;
            if search.sort == SortBy::Score {
                by_score(connection, cache, &ranking, search, query, begun)
            } else {
                by_value(connection, cache, &ranking, number, search, query, begun)
            }
        })??,
    };
    Ok(Found { begun, ..found })
}

/// What is there now.
fn begun_now(connection: &Connection, number: i64) -> rusqlite::Result<Begun> {
    connection
        .prepare_cached(
            "SELECT coalesce((SELECT max(seq) FROM memory_rows INDEXED BY memory_rows_by_tenant WHERE tenant = ?1), 0),
                    coalesce((SELECT max(stamp) FROM memory_rows WHERE tenant = ?1), 0)",
        )?
        .query_row([number], |row| Ok(Begun { through: row.get(0)?, stamp: row.get(1)? }))
}

fn count(connection: &Connection, condition: &Condition) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(&format!("SELECT count(*) FROM memories AS m WHERE {}", condition.sql))?
        .query_row(params_from_iter(&condition.values), |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// All that the filter lets through, in the order of a stored value.
fn listed(connection: &Connection, condition: &Condition, search: &Search) -> rusqlite::Result<Found> {
    let total = count(connection, condition)?;
    let key = sort_key(&search.sort);
    let mut condition = condition.clone();
    if let Some(Place::After(value, id)) = &search.place {
        after(&mut condition, &key, value, id, search.descending);
    }
    let direction = if search.descending { "DESC" } else { "ASC" };
    // Without a value that may be missing, an index gives the order.
    let nothing_last = if matches!(search.sort, SortBy::Created | SortBy::Updated) { "" } else { "value IS NULL, " };
    let sql = format!(
        "SELECT {key} AS value, {COLUMNS} FROM memories AS m WHERE {sql}
         ORDER BY {nothing_last}value {direction}, m.id LIMIT ? OFFSET ?",
        key = key.sql,
        sql = condition.sql,
    );
    let page = [(search.limit as i64).into(), (search.offset as i64).into()];
    let values = key.values.into_iter().chain(condition.values).chain(page);
    let hits = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok(Hit { value: sort_value(row.get_ref(0)?), memory: queries::memory(row, 1)?, score: None })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Found { hits, total, ..Found::default() })
}

/// All that matches a text, best first, with what stands next to the best: those in the order of their scores, then the
/// others, newest first.
fn by_score(
    connection: &Connection,
    cache: &RowCache,
    ranking: &MemoryRanking<'_>,
    search: &Search,
    query: &TextQuery,
    begun: Begun,
) -> rusqlite::Result<Found> {
    let seq_of = |index: usize| cache.rows()[index].seq;
    let (ranked, mut shown, last) = if let Some(Place::Ranked { rows, shown, last }) = &search.place {
        (rows.clone(), *shown, *last)
    } else {
        let mut best = ranking.best(connection, cache, query, search.descending)?;
        best.truncate(MAX_RANKED);
        (best.into_iter().map(seq_of).collect(), 0, None)
    };
    let total = ranking.ranked().iter().filter(|&&index| seq_of(index) <= begun.through).count();
    let mut left_out = search.offset;
    let mut page: Vec<(usize, Place)> = Vec::new();
    for &seq in ranked.get(shown..).unwrap_or_default() {
        shown += 1;
        let Some(index) = cache.index_of(seq).filter(|&index| ranking.is_in(cache, index)) else { continue };
        if left_out > 0 {
            left_out -= 1;
        } else if page.len() < search.limit {
            page.push((index, Place::Ranked { rows: Vec::new(), shown, last: None }));
        } else {
            break;
        }
    }
    if page.len() < search.limit {
        let mut known = ranked.clone();
        known.sort_unstable();
        let rest = ranking.ranked().iter().rev().filter(|&&index| {
            let seq = seq_of(index);
            seq <= begun.through && last.is_none_or(|last| seq < last) && known.binary_search(&seq).is_err()
        });
        for &index in rest.skip(left_out).take(search.limit - page.len()) {
            page.push((index, Place::Ranked { rows: Vec::new(), shown: ranked.len(), last: Some(seq_of(index)) }));
        }
    }
    let rows: Vec<usize> = page.iter().map(|(index, _)| *index).collect();
    let mut hits = Vec::with_capacity(page.len());
    for ((index, place), (score, signals)) in page.into_iter().zip(ranking.scored(cache, query, &rows)) {
        // It may have gone since the cache was brought up to date.
        let Some(memory) = read(connection, seq_of(index))? else { continue };
        hits.push((Hit { memory, value: SortValue::Real(score), score: Some((score, signals)) }, place));
    }
    let (hits, places) = hits.into_iter().unzip();
    Ok(Found { hits, total: total as u64, ranked, places, ..Found::default() })
}

/// All that matches a text, in the order of a stored value.
fn by_value(
    connection: &Connection,
    cache: &RowCache,
    ranking: &MemoryRanking<'_>,
    number: i64,
    search: &Search,
    query: &TextQuery,
    begun: Begun,
) -> rusqlite::Result<Found> {
    let key = sort_key(&search.sort);
    let rows = ranking.matches().iter().map(|&index| cache.rows()[index].seq).filter(|seq| *seq <= begun.through);
    let rows: Vec<i64> = rows.collect();
    let mut condition = Condition { sql: "m.tenant = ?".to_owned(), values: vec![number.into()] };
    condition.and("m.seq IN (SELECT value FROM json_each(?))", [list(&rows).into()]);
    if search.begun.is_some() && search.sort == SortBy::Updated {
        let unchanged = "EXISTS (SELECT 1 FROM memory_rows AS r WHERE r.seq = m.seq AND r.stamp <= ?)";
        condition.and(unchanged, [begun.stamp.into()]);
    }
    let total = rows.len() as u64;
    if let Some(Place::After(value, id)) = &search.place {
        after(&mut condition, &key, value, id, search.descending);
    }
    let direction = if search.descending { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT {key} AS value, m.seq, {COLUMNS} FROM memories AS m WHERE {sql}
         ORDER BY value IS NULL, value {direction}, m.id LIMIT ? OFFSET ?",
        key = key.sql,
        sql = condition.sql,
    );
    let page = [(search.limit as i64).into(), (search.offset as i64).into()];
    let values = key.values.into_iter().chain(condition.values).chain(page);
    let mut hits: Vec<(Hit, Option<usize>)> = connection
        .prepare(&sql)?
        .query_map(params_from_iter(values), |row| {
            let hit = Hit { value: sort_value(row.get_ref(0)?), memory: queries::memory(row, 2)?, score: None };
            Ok((hit, cache.index_of(row.get(1)?)))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let indices: Vec<usize> = hits.iter().filter_map(|(_, index)| *index).collect();
    let mut scores = ranking.scored(cache, query, &indices).into_iter();
    for (hit, _) in hits.iter_mut().filter(|(_, index)| index.is_some()) {
        hit.score = scores.next();
    }
    Ok(Found { hits: hits.into_iter().map(|(hit, _)| hit).collect(), total, ..Found::default() })
}

fn list(rows: &[i64]) -> String {
    serde_json::to_string(rows).unwrap_or_default()
}

fn read(connection: &Connection, seq: i64) -> rusqlite::Result<Option<StoredMemory>> {
    use rusqlite::OptionalExtension;
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM memories AS m WHERE m.seq = ?1"))?
        .query_row([seq], |row| queries::memory(row, 0))
        .optional()
}
