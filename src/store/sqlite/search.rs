//! Searches: a page of what a filter lets through, in the order of a value, or of how well a text matches.

use rusqlite::{Connection, params, params_from_iter};

use super::condition::{Condition, after, sort_key, sort_value};
use super::field_order::{FieldOrder, Placed};
use super::queries::{self, COLUMNS};
use super::{ranking, row_cache};
use crate::memory::query::{Begun, Filter, Found, Hit, Place, Search, SortBy, SortValue, TextQuery};
use crate::memory::stored::StoredMemory;
use crate::store::finding::ranking::MemoryRanking;
use crate::store::finding::row_cache::{RowCache, RowCaches};
use crate::store::finding::score_page::{ScorePage, ScoredRow};

/// A page of what is looked for.
pub(super) fn search(
    connection: &Connection,
    row_caches: &RowCaches<i64>,
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
        None => listed(connection, number, &condition, search, begun)?,
        Some(query) => row_cache::with(row_caches, connection, number, |cache| {
            let scope = ranking::scope_of(connection, cache, &condition, &search.filter)?;
            let ranking = ranking::rank(connection, cache, number, scope, query, begun.through)?;
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

/// How many the filter lets through.
fn count(connection: &Connection, number: i64, condition: &Condition, search: &Search) -> rusqlite::Result<u64> {
    let Filter { kind, include_deleted, .. } = &search.filter;
    let count: i64 = if search.begun.is_none() && search.filter.is_plain() {
        connection
            .prepare_cached(
                "SELECT coalesce(sum(memories), 0) FROM memory_counts
                 WHERE tenant = ?1 AND (?2 IS NULL OR kind = ?2) AND deleted <= ?3",
            )?
            .query_row(params![number, kind.map(i64::from), include_deleted], |row| row.get(0))?
    } else {
        connection
            .prepare_cached(&format!("SELECT count(*) FROM memories AS m WHERE {}", condition.sql))?
            .query_row(params_from_iter(&condition.values), |row| row.get(0))?
    };
    Ok(count.cast_unsigned())
}

/// All that the filter lets through, in the order of a stored value.
fn listed(
    connection: &Connection,
    number: i64,
    condition: &Condition,
    search: &Search,
    begun: Begun,
) -> rusqlite::Result<Found> {
    let total = search.total.map_or_else(|| count(connection, number, condition, search), Ok)?;
    let mut condition = condition.clone();
    condition.and_unmoved(search);
    if let Some(order) = FieldOrder::of(connection, number, &condition, search, total, begun.through)? {
        return walked(connection, &order, total);
    }
    Ok(Found { hits: sorted(connection, &condition, search)?, total, ..Found::default() })
}

/// A page of what the filter lets through, all of which is read and sorted.
pub(super) fn sorted(connection: &Connection, condition: &Condition, search: &Search) -> rusqlite::Result<Vec<Hit>> {
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
    connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok(Hit { value: sort_value(row.get_ref(0)?), memory: queries::memory(row, 1)?, score: None })
        })?
        .collect()
}

/// All that the filter lets through, in the order of an own key's index.
fn walked(connection: &Connection, order: &FieldOrder<'_>, total: u64) -> rusqlite::Result<Found> {
    let mut hits = Vec::new();
    for Placed { seq, value, .. } in order.page()? {
        let Some(memory) = read(connection, seq)? else { continue };
        hits.push(Hit { memory, value, score: None });
    }
    Ok(Found { hits, total, ..Found::default() })
}

/// All that matches a text, best first, with what stands next to the best.
fn by_score(
    connection: &Connection,
    cache: &RowCache,
    ranking: &MemoryRanking<'_>,
    search: &Search,
    query: &TextQuery,
    begun: Begun,
) -> rusqlite::Result<Found> {
    let ids = ranking::ids(connection, &ranking.tied(cache, query))?;
    let ScorePage { rows, total, ranked } = ScorePage::of(cache, ranking, search, query, begun, &ids);
    let (mut hits, mut places) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for ScoredRow { seq, place, score, signals } in rows {
        // It may have gone since the cache was brought up to date.
        let Some(memory) = read(connection, seq)? else { continue };
        hits.push(Hit { memory, value: SortValue::Real(score), score: Some((score, signals)) });
        places.push(place);
    }
    Ok(Found { hits, total, ranked, places, ..Found::default() })
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
    let rows = ranking.matches().ones().map(|index| cache.rows()[index].seq).filter(|seq| *seq <= begun.through);
    let rows: Vec<i64> = rows.collect();
    let mut condition = Condition { sql: "m.tenant = ?".to_owned(), values: vec![number.into()] };
    condition.and("m.seq IN (SELECT value FROM json_each(?))", [list(&rows).into()]);
    if search.begun.is_some() && search.sort == SortBy::Updated {
        let unchanged = "EXISTS (SELECT 1 FROM memory_rows AS r WHERE r.seq = m.seq AND r.stamp <= ?)";
        condition.and(unchanged, [begun.stamp.into()]);
    }
    condition.and_unmoved(search);
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
