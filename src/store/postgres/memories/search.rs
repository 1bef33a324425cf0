//! Searches: a page of what a filter lets through, in the order of a value, or of how well a text matches.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::condition::MemoryCondition;
use super::queries::{self, COLUMNS};
use super::words;
use crate::memory::field::micros;
use crate::memory::query::{
    Begun, Filter, Found, Hit, Place, ScoreSignals, Search, SortBy, SortValue, TextQuery, WordForm,
};
use crate::memory::stored::StoredMemory;
use crate::store::finding::matched_terms::{FEW, MatchedTerms, count_of, with_beside};
use crate::store::finding::ranking::{MAX_TERMS, MemoryRanking};
use crate::store::finding::row_cache::{CachedRow, GONE, RowCache, RowCaches};
use crate::store::finding::score_page::{ScorePage, ScoredRow};
use crate::store::finding::search_scope::SearchScope;
use crate::store::finding::term_counts::Count;
use crate::store::memories::id_text;
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::session::DatabaseSession;
use crate::text::embedding::{Packed, Quantized};

/// A page of what is looked for, in one state of the database.
pub(super) async fn search(
    session: &DatabaseSession,
    caches: &RowCaches<String>,
    tenant: &str,
    search: &Search,
) -> Result<Found, DatabaseFault> {
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let found = search_in(session, caches, tenant, search).await?;
    session.run("COMMIT").await?;
    Ok(found)
}

async fn search_in(
    session: &DatabaseSession,
    caches: &RowCaches<String>,
    tenant: &str,
    search: &Search,
) -> Result<Found, DatabaseFault> {
    let now = begun_now(session, tenant).await?;
    let begun = search.begun.unwrap_or(now);
    let mut condition = MemoryCondition::of(tenant, &search.filter);
    if search.begun.is_some() {
        // What came since is not part of it.
        let through = condition.values.whole(begun.through);
        condition.and(&format!("m.seq <= {through}"));
        if search.sort == SortBy::Updated {
            let stamp = condition.values.whole(begun.stamp);
            condition.and(&format!("m.stamp <= {stamp}"));
        }
    }
    let Some(query) = &search.text else {
        let found = match search.sort {
            SortBy::Created | SortBy::Updated => listed(session, condition, search).await?,
            _ => sorted_by_value(session, condition, search).await?,
        };
        return Ok(Found { begun, ..found });
    };
    let cache = caches.cache(&tenant.to_owned());
    loop {
        let since = cache.read().stamp;
        if since >= now.stamp {
            break;
        }
        let rows = written_since(session, tenant, since).await?;
        let mut behind = cache.write();
        // Else another reader brought it up to date, perhaps to a later state.
        if behind.stamp == since {
            for row in rows {
                behind.put(row);
            }
            behind.stamp = now.stamp;
            caches.measure(&tenant.to_owned(), behind.rows().len());
        }
    }
    let plain = SearchScope::plain(&search.filter).is_some();
    let seqs = if plain { Vec::new() } else { numbers(session, &condition).await? };
    let among = among(&cache.read(), plain, &seqs);
    let having = having(session, tenant, query, among.as_deref()).await?;
    let mut ranked = Ranked { filter: &search.filter, seqs: &seqs, having: &having, query, naming_time: Vec::new() };
    if let Some(times) = query.time_terms {
        let looked_into = {
            let cache = cache.read();
            ranked.in_cache(&cache).to_look_into(&cache, query, begun.through)
        };
        ranked.naming_time = naming_time(session, tenant, &looked_into, times).await?;
    }
    let found = if search.sort == SortBy::Score {
        by_score(session, tenant, &cache, &ranked, search, begun).await?
    } else {
        by_value(session, tenant, &cache, &ranked, search, begun).await?
    };
    Ok(Found { begun, ..found })
}

/// What is there now.
async fn begun_now(session: &DatabaseSession, tenant: &str) -> Result<Begun, DatabaseFault> {
    let query = "SELECT last, stamp FROM almanac.memory_tenants WHERE tenant = $1";
    let rows = session.query(query, &[(&tenant, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| Begun { through: row.get(0), stamp: row.get(1) }).unwrap_or_default())
}

async fn count(session: &DatabaseSession, condition: &MemoryCondition) -> Result<u64, DatabaseFault> {
    let query = format!("SELECT count(*) FROM almanac.memories AS m WHERE {}", condition.sql);
    let row = session.query_one(&query, &condition.values.parameters()).await?;
    Ok(row.get::<_, i64>(0).cast_unsigned())
}

async fn numbers(session: &DatabaseSession, condition: &MemoryCondition) -> Result<Vec<i64>, DatabaseFault> {
    let query = format!("SELECT m.seq FROM almanac.memories AS m WHERE {}", condition.sql);
    let rows = session.query(&query, &condition.values.parameters()).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// All that the filter lets through, in the order of a moment, which an index gives.
async fn listed(
    session: &DatabaseSession,
    mut condition: MemoryCondition,
    search: &Search,
) -> Result<Found, DatabaseFault> {
    let total = match search.total {
        Some(total) => total,
        None => count(session, &condition).await?,
    };
    let key = if search.sort == SortBy::Updated { "m.updated_us" } else { "m.created_us" };
    let (beyond, direction) = if search.descending { ("<", "DESC") } else { (">", "ASC") };
    match &search.place {
        Some(Place::After(SortValue::Integer(value), id)) => {
            let (value, id) = (condition.values.whole(*value), condition.values.text(id));
            condition.and(&format!("({key} {beyond} {value} OR {key} = {value} AND m.id > {id})"));
        }
        // Every memory has its moments, so nothing comes after one without.
        Some(Place::After(..)) => condition.and("false"),
        _ => {}
    }
    let (limit, offset) = (condition.values.whole(search.limit as i64), condition.values.whole(search.offset as i64));
    let query = format!(
        "SELECT {key}, {COLUMNS} FROM almanac.memories AS m WHERE {} ORDER BY {key} {direction}, m.id
         LIMIT {limit} OFFSET {offset}",
        condition.sql
    );
    let rows = session.query(&query, &condition.values.parameters()).await?;
    let hit = |row: &Row| Hit { value: SortValue::Integer(row.get(0)), memory: queries::memory(row, 1), score: None };
    Ok(Found { hits: rows.iter().map(hit).collect(), total, ..Found::default() })
}

/// A memory in the order of a value.
struct Placed {
    seq: i64,
    id: String,
    value: SortValue,
}

/// A page of what a condition lets through, in the order of any value. The order is made here, since JSON's is another.
async fn page_by_value(
    session: &DatabaseSession,
    mut condition: MemoryCondition,
    search: &Search,
) -> Result<(Vec<Placed>, u64), DatabaseFault> {
    let (key, unmoved) = (condition.sort_value(&search.sort), condition.unmoved(search));
    let query = format!("SELECT m.seq, m.id, {key}, {unmoved} FROM almanac.memories AS m WHERE {}", condition.sql);
    let rows = session.query(&query, &condition.values.parameters()).await?;
    let total = rows.len() as u64;
    let placed = |row: &Row| Placed { seq: row.get(0), id: row.get(1), value: value_of(row.get(2), &search.sort) };
    let mut all: Vec<Placed> = rows.iter().filter(|row| row.get(3)).map(placed).collect();
    all.sort_by(|a, b| a.value.compare(&b.value, search.descending).then_with(|| a.id.cmp(&b.id)));
    if let Some(Place::After(value, id)) = &search.place {
        all.retain(|placed| placed.value.compare(value, search.descending).then_with(|| placed.id.cmp(id)).is_gt());
    }
    Ok((all.into_iter().skip(search.offset).take(search.limit).collect(), total))
}

async fn sorted_by_value(
    session: &DatabaseSession,
    condition: MemoryCondition,
    search: &Search,
) -> Result<Found, DatabaseFault> {
    let (page, total) = page_by_value(session, condition.clone(), search).await?;
    let seqs: Vec<i64> = page.iter().map(|placed| placed.seq).collect();
    let mut memories = memories_of(session, &condition, &seqs).await?;
    let hit = |placed: Placed| Some(Hit { memory: memories.remove(&placed.seq)?, value: placed.value, score: None });
    Ok(Found { hits: page.into_iter().filter_map(hit).collect(), total, ..Found::default() })
}

/// The memories of these numbers, of the tenant that a condition begins with.
async fn memories_of(
    session: &DatabaseSession,
    condition: &MemoryCondition,
    seqs: &[i64],
) -> Result<HashMap<i64, StoredMemory>, DatabaseFault> {
    let mut condition = condition.clone();
    let seqs = condition.values.wholes(seqs);
    condition.and(&format!("m.seq = ANY({seqs})"));
    let query = format!("SELECT m.seq, {COLUMNS} FROM almanac.memories AS m WHERE {}", condition.sql);
    let rows = session.query(&query, &condition.values.parameters()).await?;
    Ok(rows.iter().map(|row| (row.get(0), queries::memory(row, 1))).collect())
}

/// What a memory is sorted by, from JSON.
fn value_of(text: Option<&str>, sort: &SortBy) -> SortValue {
    let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    match (sort, value) {
        (SortBy::Moment(_), Value::String(text)) => micros(&text).map_or(SortValue::Nothing, SortValue::Integer),
        (SortBy::Moment(_), _) => SortValue::Nothing,
        (SortBy::Id(_), id @ Value::Object(_)) => id_text(&id).map_or(SortValue::Nothing, SortValue::Text),
        (_, Value::String(text)) => SortValue::Text(text),
        (_, Value::Bool(truth)) => SortValue::Integer(truth.into()),
        (_, Value::Number(number)) => match number.as_i64() {
            Some(number) => SortValue::Integer(number),
            None => number.as_f64().map_or(SortValue::Nothing, SortValue::Real),
        },
        _ => SortValue::Nothing,
    }
}

/// What was written since, or went.
async fn written_since(session: &DatabaseSession, tenant: &str, since: i64) -> Result<Vec<CachedRow>, DatabaseFault> {
    let query = "SELECT seq, created_us, coalesce(thread, 0), coalesce(position, 0), length, kind, deleted, vector
            FROM almanac.memories WHERE tenant = $1 AND stamp > $2
        UNION ALL SELECT seq, 0, 0, 0, 0, 0::smallint, $3::smallint, ''::bytea
            FROM almanac.memory_gone WHERE tenant = $1 AND stamp > $2
        ORDER BY seq";
    let gone = i16::from(GONE);
    let rows = session.query(query, &[(&tenant, Type::TEXT), (&since, Type::INT8), (&gone, Type::INT2)]).await?;
    let cached = |row: &Row| CachedRow {
        seq: row.get(0),
        created_us: row.get(1),
        thread: row.get(2),
        position: row.get::<_, i64>(3).cast_unsigned(),
        length: u16::try_from(row.get::<_, i32>(4)).unwrap_or(u16::MAX),
        kind: row.get::<_, i16>(5) as u8,
        deleted: row.get::<_, i16>(6) as u8,
        // What is gone, or damaged, means nothing.
        vector: Quantized::from_bytes(row.get(7)).map_or(Packed::ZERO, |vector| Packed::from(&vector)),
    };
    Ok(rows.iter().map(cached).collect())
}

/// Of few rows, these and those beside them, whose terms are asked for alone.
fn among(cache: &RowCache, is_plain: bool, seqs: &[i64]) -> Option<Vec<i64>> {
    if is_plain || seqs.len() > FEW {
        return None;
    }
    let places = with_beside(cache, seqs.iter().filter_map(|seq| cache.index_of(*seq)));
    Some(places.ones().map(|index| cache.rows()[index].seq).collect())
}

/// Of each term the rows that have it, in their order.
type Having = Vec<Vec<(i64, Count)>>;

/// Which rows have these terms, and how often.
async fn having(
    session: &DatabaseSession,
    tenant: &str,
    query: &TextQuery,
    among: Option<&[i64]>,
) -> Result<Having, DatabaseFault> {
    let mut having: Having = vec![Vec::new(); query.terms.len().min(MAX_TERMS)];
    let form_of: HashMap<&str, WordForm<'_>> =
        query.looked_for(MAX_TERMS).into_iter().map(|form| (form.text, form)).collect();
    if form_of.is_empty() {
        return Ok(having);
    }
    let of_these = if among.is_some() { "m.seq = ANY($4)" } else { "$4::int8[] IS NULL" };
    let sql = format!(
        "SELECT m.seq, l.lexeme, cardinality(array_positions(l.weights, 'D')),
            cardinality(array_positions(l.weights, 'A'))
         FROM almanac.memories AS m CROSS JOIN LATERAL unnest(m.words) AS l (lexeme, positions, weights)
         WHERE m.tenant = $1 AND m.words @@ $2::tsquery AND l.lexeme = ANY($3) AND {of_these} ORDER BY m.seq"
    );
    let forms: Vec<&str> = form_of.keys().copied().collect();
    let looked_for: Vec<String> = forms.iter().map(|form| words::lexeme(form)).collect();
    let looked_for = looked_for.join(" | ");
    let values = [
        (&tenant as _, Type::TEXT),
        (&looked_for as _, Type::TEXT),
        (&forms as _, Type::TEXT_ARRAY),
        (&among as _, Type::INT8_ARRAY),
    ];
    for row in session.query(&sql, &values).await? {
        let Some(form) = form_of.get(row.get::<_, &str>(1)) else { continue };
        let count = |column: usize| row.get::<_, i32>(column).cast_unsigned();
        if let Some(count) = count_of(*form, Count { words: count(2), speaker: count(3) }) {
            having[form.term].push((row.get(0), count));
        }
    }
    Ok(having)
}

/// What a text is ranked by.
struct Ranked<'a> {
    filter: &'a Filter,
    seqs: &'a [i64],
    having: &'a Having,
    query: &'a TextQuery,
    /// Those that name a time, if one is asked for.
    naming_time: Vec<i64>,
}

impl<'a> Ranked<'a> {
    fn in_cache(&self, cache: &RowCache) -> MemoryRanking<'a> {
        let scope = SearchScope::plain(self.filter).unwrap_or_else(|| SearchScope::of_rows(cache, self.seqs));
        let mut terms = MatchedTerms::new(cache, self.having.len());
        for (term, rows) in self.having.iter().enumerate() {
            let mut sink = terms.sink(cache, &scope, term);
            for (seq, count) in rows {
                sink(*seq, *count);
            }
        }
        MemoryRanking::of(cache, scope, terms, self.query).with_times(cache, self.query, &self.naming_time)
    }
}

/// Those of some rows whose words name a time.
async fn naming_time(
    session: &DatabaseSession,
    tenant: &str,
    seqs: &[i64],
    times: &HashSet<String>,
) -> Result<Vec<i64>, DatabaseFault> {
    let times: Vec<&str> = times.iter().map(String::as_str).collect();
    let query = "SELECT m.seq FROM almanac.memories AS m WHERE m.tenant = $1 AND m.seq = ANY($2) AND EXISTS (
            SELECT FROM unnest(m.words) AS l (lexeme, positions, weights)
            WHERE l.lexeme = ANY($3) AND 'D' = ANY(l.weights))";
    let values = [(&tenant as _, Type::TEXT), (&seqs as _, Type::INT8_ARRAY), (&times as _, Type::TEXT_ARRAY)];
    Ok(session.query(query, &values).await?.iter().map(|row| row.get(0)).collect())
}

async fn ids(session: &DatabaseSession, tenant: &str, seqs: &[i64]) -> Result<HashMap<i64, String>, DatabaseFault> {
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let query = "SELECT seq, id FROM almanac.memories WHERE tenant = $1 AND seq = ANY($2)";
    let rows = session.query(query, &[(&tenant, Type::TEXT), (&seqs, Type::INT8_ARRAY)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// All that matches a text, best first, with what stands next to the best.
async fn by_score(
    session: &DatabaseSession,
    tenant: &str,
    cache: &parking_lot::RwLock<RowCache>,
    ranked: &Ranked<'_>,
    search: &Search,
    begun: Begun,
) -> Result<Found, DatabaseFault> {
    let tied = {
        let cache = cache.read();
        ranked.in_cache(&cache).tied(&cache, ranked.query)
    };
    let ids = ids(session, tenant, &tied).await?;
    let ScorePage { rows, total, ranked } = {
        let cache = cache.read();
        ScorePage::of(&cache, &ranked.in_cache(&cache), search, ranked.query, begun, &ids)
    };
    let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let mut memories = memories_of(session, &MemoryCondition::of_tenant(tenant), &seqs).await?;
    let (mut hits, mut places) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for ScoredRow { seq, place, score, signals } in rows {
        // It may have gone since the cache was brought up to date.
        let Some(memory) = memories.remove(&seq) else { continue };
        hits.push(Hit { memory, value: SortValue::Real(score), score: Some((score, signals)) });
        places.push(place);
    }
    Ok(Found { hits, total, ranked, places, ..Found::default() })
}

/// All that matches a text, in the order of a stored value.
async fn by_value(
    session: &DatabaseSession,
    tenant: &str,
    cache: &parking_lot::RwLock<RowCache>,
    ranked: &Ranked<'_>,
    search: &Search,
    begun: Begun,
) -> Result<Found, DatabaseFault> {
    let seqs: Vec<i64> = {
        let cache = cache.read();
        let ranking = ranked.in_cache(&cache);
        let all = ranking.matches().ones().map(|index| cache.rows()[index].seq);
        all.filter(|seq| *seq <= begun.through).collect()
    };
    let mut condition = MemoryCondition::of_tenant(tenant);
    let of_these = condition.values.wholes(&seqs);
    condition.and(&format!("m.seq = ANY({of_these})"));
    if search.begun.is_some() && search.sort == SortBy::Updated {
        let stamp = condition.values.whole(begun.stamp);
        condition.and(&format!("m.stamp <= {stamp}"));
    }
    let (page, _) = page_by_value(session, condition, search).await?;
    let numbers: Vec<i64> = page.iter().map(|placed| placed.seq).collect();
    let mut memories = memories_of(session, &MemoryCondition::of_tenant(tenant), &numbers).await?;
    let mut scores: HashMap<i64, (f64, ScoreSignals)> = {
        let cache = cache.read();
        let known: Vec<(i64, usize)> = numbers.iter().filter_map(|seq| Some((*seq, cache.index_of(*seq)?))).collect();
        let indices: Vec<usize> = known.iter().map(|(_, index)| *index).collect();
        let scores = ranked.in_cache(&cache).scored(&cache, ranked.query, &indices);
        known.into_iter().map(|(seq, _)| seq).zip(scores).collect()
    };
    let hit = |placed: Placed| {
        let memory = memories.remove(&placed.seq)?;
        Some(Hit { memory, value: placed.value, score: scores.remove(&placed.seq) })
    };
    Ok(Found { hits: page.into_iter().filter_map(hit).collect(), total: seqs.len() as u64, ..Found::default() })
}
