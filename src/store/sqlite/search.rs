//! Searches: the filter in SQL, by columns where there are any and by paths into the metadata otherwise; the order ours.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::pages::{self, COLUMNS};
use super::shelf::{Shelf, Shelves};
use super::text::{self, Lexical};
use crate::store::memories::{
    FieldPath, Filter, Found, Hit, Search, Signals, SortBy, SortValue, StoredMemory, TextQuery, Wanted,
};

/// Candidates by words, and as many by meaning. Further down nothing is found that anybody pages to.
const POOL: usize = 500;

/// SQL with its values.
#[derive(Debug, Clone, Default)]
struct Condition {
    sql: String,
    values: Vec<Value>,
}

impl Condition {
    fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    fn of(number: i64, filter: &Filter) -> Self {
        let mut condition = Self { sql: "m.tenant = ?".to_owned(), values: vec![number.into()] };
        let Filter {
            kind,
            user,
            agent,
            chat,
            thread,
            word,
            fields,
            tags,
            min_importance,
            from_us,
            to_us,
            include_deleted,
        } = filter;
        if let Some(kind) = kind {
            condition.and("m.kind = ?", [i64::from(*kind).into()]);
        }
        // With both values named the index by time is of use.
        condition.and(if *include_deleted { "m.deleted IN (0, 1)" } else { "m.deleted = 0" }, []);
        // Rarest first. Without statistics SQLite might look up by the agent of all memories: the plus keeps it from it.
        let keys = [("thread_id", thread), ("chat_id", chat), ("user_id", user), ("agent_id", agent), ("word", word)];
        for (number, (column, text)) in
            keys.into_iter().filter_map(|(column, text)| Some((column, text.as_ref()?))).enumerate()
        {
            let plus = if number == 0 { "" } else { "+" };
            condition.and(&format!("{plus}m.{column} = ?"), [text.clone().into()]);
        }
        if let Some(least) = min_importance {
            condition.and("m.importance >= ?", [(*least).into()]);
        }
        if let Some(from) = from_us {
            condition.and("m.created_us >= ?", [(*from).into()]);
        }
        if let Some(to) = to_us {
            condition.and("m.created_us <= ?", [(*to).into()]);
        }
        for (path, wanted) in fields {
            condition.and_field(path, wanted);
        }
        for tag in tags {
            let has =
                "EXISTS (SELECT 1 FROM json_each(m.metadata, '$.tags') AS e WHERE e.type = 'text' AND e.atom = ?)";
            condition.and(has, [tag.clone().into()]);
        }
        condition
    }

    fn and_field(&mut self, path: &FieldPath, wanted: &Wanted) {
        let path = path.json_path();
        let mut has = |types: &str, value: Value| {
            // Most fields are scalars, for which no table of items need be made.
            let sql = format!(
                "CASE WHEN json_type(m.metadata, ?) IN ({types}) THEN json_extract(m.metadata, ?) = ?
                      WHEN json_type(m.metadata, ?) = 'array' THEN EXISTS (
                         SELECT 1 FROM json_each(m.metadata, ?) AS e WHERE e.type IN ({types}) AND e.atom = ?)
                      ELSE 0 END"
            );
            let path = || Value::from(path.clone());
            self.and(&sql, [path(), path(), value.clone(), path(), path(), value]);
        };
        match wanted {
            Wanted::Text(text) => has("'text'", text.clone().into()),
            Wanted::Number(number) => has("'integer', 'real'", (*number).into()),
            Wanted::Bool(truth) => has(if *truth { "'true'" } else { "'false'" }, i64::from(*truth).into()),
            Wanted::Id(namespace, entity, id, version) => {
                for (key, part) in [("namespace", namespace), ("type", entity), ("id", id)] {
                    let sql = "json_extract(m.metadata, ?) = ?";
                    self.and(sql, [format!("{path}.{key}").into(), part.clone().into()]);
                }
                let version = version.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
                let sql = "json_extract(m.metadata, ?) IS ?";
                self.and(sql, [format!("{path}.version").into(), version.map_or(Value::Null, Value::from)]);
            }
        }
    }
}

/// What is sorted by, as SQL.
fn sort_key(sort: &SortBy) -> Condition {
    let bare = |sql: &str| Condition { sql: sql.to_owned(), values: Vec::new() };
    match sort {
        SortBy::Created => bare("m.created_us"),
        SortBy::Updated => bare("m.updated_us"),
        SortBy::Score => bare("NULL"),
        SortBy::Field(path) => match path.to_string().as_str() {
            "importance_score" => bare("m.importance"),
            "thread.position" => bare("m.position"),
            "thread.id" => bare("m.thread_id"),
            _ => Condition {
                sql: "CASE WHEN json_type(m.metadata, ?) IN ('object', 'array') THEN NULL
                           ELSE json_extract(m.metadata, ?) END"
                    .to_owned(),
                values: vec![path.json_path().into(), path.json_path().into()],
            },
        },
        SortBy::Moment(path) => Condition {
            sql: "unixepoch(json_extract(m.metadata, ?), 'subsec')".to_owned(),
            values: vec![path.json_path().into()],
        },
        SortBy::Id(path) => match path.to_string().as_str() {
            "userId" => bare("m.user_id"),
            "agentId" => bare("m.agent_id"),
            "chatId" => bare("m.chat_id"),
            _ => {
                let part = |key: &str| Value::from(format!("{}.{key}", path.json_path()));
                let escaped = "replace(replace(json_extract(m.metadata, ?), '%', '%25'), ':', '%3A')";
                Condition {
                    sql: format!(
                        "{escaped} || ':' || {escaped} || ':' || {escaped}
                         || coalesce(':' || json_extract(m.metadata, ?), '')"
                    ),
                    values: ["namespace", "type", "id", "version"].map(part).into(),
                }
            }
        },
    }
}

fn sql_value(value: &SortValue) -> Value {
    match value {
        SortValue::Nothing => Value::Null,
        SortValue::Integer(number) => (*number).into(),
        SortValue::Real(number) => (*number).into(),
        SortValue::Text(text) => text.clone().into(),
    }
}

fn sort_value(value: ValueRef<'_>) -> SortValue {
    match value {
        ValueRef::Integer(number) => SortValue::Integer(number),
        ValueRef::Real(number) => SortValue::Real(number),
        ValueRef::Text(text) => SortValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Blob(_) => SortValue::Nothing,
    }
}

/// A page of what is looked for.
pub(super) fn search(
    connection: &Connection,
    shelves: &Shelves,
    tenant: &str,
    search: &Search,
) -> rusqlite::Result<Found> {
    let Some(number) = pages::tenant(connection, tenant)? else { return Ok(Found::default()) };
    let condition = Condition::of(number, &search.filter);
    match &search.text {
        None => listed(connection, &condition, search),
        Some(query) => {
            let scored = shelves.with(connection, number, |shelf| {
                ranked(connection, shelf, number, &condition, &search.filter, query)
            })??;
            among(connection, number, &scored, search)
        }
    }
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
    if let Some((value, id)) = &search.after {
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
            Ok(Hit { value: sort_value(row.get_ref(0)?), memory: pages::memory(row, 1)?, score: None })
        })?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Found { hits, total })
}

/// Only what comes after a value and id.
fn after(condition: &mut Condition, key: &Condition, value: &SortValue, id: &str, descending: bool) {
    let values = |last: &[Value]| key.values.iter().cloned().chain(last.iter().cloned()).collect::<Vec<_>>();
    let (value, id) = (sql_value(value), Value::from(id.to_owned()));
    let key_sql = &key.sql;
    if value == Value::Null {
        condition.and(&format!("(({key_sql}) IS NULL AND m.id > ?)"), values(&[id]));
        return;
    }
    let beyond = if descending { "<" } else { ">" };
    let all = [values(std::slice::from_ref(&value)), values(&[value.clone(), id]), values(&[])].concat();
    let sql = format!("(({key_sql}) {beyond} ? OR ({key_sql}) = ? AND m.id > ? OR ({key_sql}) IS NULL)");
    condition.and(&sql, all);
}

/// A candidate that matches, with its score.
type Scored = (i64, f64, Signals);

/// What matches a text, of what the filter lets through.
fn ranked(
    connection: &Connection,
    shelf: &Shelf,
    number: i64,
    condition: &Condition,
    filter: &Filter,
    query: &TextQuery,
) -> rusqlite::Result<Vec<Scored>> {
    let lexical = text::find(connection, number, &query.terms, shelf.slots().len())?;
    let plain = Filter { kind: filter.kind, include_deleted: filter.include_deleted, ..Filter::default() };
    let allowed: Option<Vec<i64>> = if *filter == plain { None } else { Some(rows(connection, condition)?) };
    let passes = |seq: i64| match &allowed {
        Some(allowed) => allowed.binary_search(&seq).is_ok(),
        None => shelf.of(seq).is_some_and(|slot| {
            filter.kind.is_none_or(|kind| kind == slot.kind) && (filter.include_deleted || !slot.deleted)
        }),
    };
    let mut pool = best_by_words(&lexical, passes);
    pool.extend(best_by_meaning(shelf, filter, allowed.as_deref(), query));
    pool.sort_unstable();
    pool.dedup();
    // A neighbour of what matches may match by what surrounds it.
    let near = neighbours(connection, &pool)?;
    pool.extend(near.into_iter().map(|(_, near)| near).filter(|&near| passes(near)));
    pool.sort_unstable();
    pool.dedup();
    let own = |seq: i64| {
        let (words, matched) = lexical.get(&seq).copied().unwrap_or_default();
        let likeness = shelf.of(seq).map_or(0.0, |slot| f64::from(slot.vector.dot(&query.vector)));
        Signals { lexical: words, likeness, matched, ..Signals::default() }
    };
    let mut signals: Vec<Signals> = pool.iter().map(|&seq| own(seq)).collect();
    for (seq, near) in neighbours(connection, &pool)? {
        if let Ok(index) = pool.binary_search(&seq) {
            let lent = own(near);
            signals[index].near_lexical += lent.lexical;
            signals[index].near_likeness += lent.likeness;
        }
    }
    let scores = (query.rank)(&signals);
    let scored = pool.into_iter().zip(scores).zip(signals);
    Ok(scored.filter_map(|((seq, score), signals)| Some((seq, score?, signals))).collect())
}

fn rows(connection: &Connection, condition: &Condition) -> rusqlite::Result<Vec<i64>> {
    let mut rows: Vec<i64> = connection
        .prepare_cached(&format!("SELECT m.seq FROM memories AS m WHERE {}", condition.sql))?
        .query_map(params_from_iter(&condition.values), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    rows.sort_unstable();
    Ok(rows)
}

fn best_by_words(lexical: &Lexical, passes: impl Fn(i64) -> bool) -> Vec<i64> {
    let passing = lexical.iter().filter(|(seq, _)| passes(**seq));
    let mut best: Vec<(f64, i64)> = passing.map(|(&seq, &(score, _))| (score, seq)).collect();
    best.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.into_iter().take(POOL).map(|(_, seq)| seq).collect()
}

fn best_by_meaning(shelf: &Shelf, filter: &Filter, allowed: Option<&[i64]>, query: &TextQuery) -> Vec<i64> {
    let mut best = Best::default();
    if let Some(allowed) = allowed {
        for slot in allowed.iter().filter_map(|&seq| shelf.of(seq)) {
            best.take(slot.vector.dot(&query.vector), slot.seq);
        }
    } else {
        let is_meant = |slot: &&super::shelf::Slot| {
            filter.kind.is_none_or(|kind| kind == slot.kind) && (filter.include_deleted || !slot.deleted)
        };
        for slot in shelf.slots().iter().filter(is_meant) {
            best.take(slot.vector.dot(&query.vector), slot.seq);
        }
    }
    best.0.into_iter().map(|(_, seq)| seq).collect()
}

/// The [`POOL`] likest, ties to the earlier row; kept sorted only when it overflows.
#[derive(Debug, Default)]
struct Best(Vec<(f32, i64)>, f32);

impl Best {
    fn take(&mut self, likeness: f32, seq: i64) {
        // Rows come in order, so that one as like as the last that is kept comes after it.
        if likeness <= self.1 {
            return;
        }
        self.0.push((likeness, seq));
        if self.0.len() >= 2 * POOL {
            self.0.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            self.0.truncate(POOL);
            self.1 = self.0.last().map_or(0.0, |last| last.0);
        }
    }
}

/// Messages beside those of `rows` in their threads, as pairs.
fn neighbours(connection: &Connection, rows: &[i64]) -> rusqlite::Result<Vec<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT m.seq, n.seq FROM json_each(?1) AS wanted CROSS JOIN memories AS m ON m.seq = wanted.value
             CROSS JOIN memories AS n ON n.tenant = m.tenant AND n.chat_id = m.chat_id AND n.thread_id = m.thread_id
                AND n.position IN (m.position - 1, m.position + 1) AND n.deleted = 0 AND n.thread_id IS NOT NULL
             ORDER BY m.seq, n.seq",
        )?
        .query_map([list(rows)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn list(rows: &[i64]) -> String {
    serde_json::to_string(rows).unwrap_or_default()
}

/// A page of what matches.
fn among(connection: &Connection, number: i64, scored: &[Scored], search: &Search) -> rusqlite::Result<Found> {
    let key = sort_key(&search.sort);
    let rows: Vec<i64> = scored.iter().map(|(seq, _, _)| *seq).collect();
    let sql = format!(
        "SELECT {key} AS value, m.seq, m.id FROM memories AS m WHERE m.tenant = ? AND m.seq IN (SELECT value FROM json_each(?))",
        key = key.sql
    );
    let values = key.values.into_iter().chain([number.into(), list(&rows).into()]);
    let mut ordered: Vec<(SortValue, String, Scored)> = connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(values), |row| {
            Ok((sort_value(row.get_ref(0)?), row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        })?
        .filter_map(|row| {
            let found = row.map(|(value, seq, id)| {
                let index = rows.binary_search(&seq).ok()?;
                let value = if search.sort == SortBy::Score { SortValue::Real(scored[index].1) } else { value };
                Some((value, id, scored[index]))
            });
            found.transpose()
        })
        .collect::<rusqlite::Result<_>>()?;
    let total = ordered.len() as u64;
    let order =
        |a: (&SortValue, &str), b: (&SortValue, &str)| a.0.compare(b.0, search.descending).then_with(|| a.1.cmp(b.1));
    ordered.sort_by(|a, b| order((&a.0, &a.1), (&b.0, &b.1)));
    if let Some((value, id)) = &search.after {
        ordered.retain(|found| order((&found.0, &found.1), (value, id)).is_gt());
    }
    let page = ordered.into_iter().skip(search.offset).take(search.limit);
    let hits = page
        .map(|(value, _, (seq, score, signals))| {
            let memory = read(connection, seq)?;
            Ok(Hit { memory, value, score: Some((score, signals)) })
        })
        .collect::<rusqlite::Result<_>>()?;
    Ok(Found { hits, total })
}

fn read(connection: &Connection, seq: i64) -> rusqlite::Result<StoredMemory> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM memories AS m WHERE m.seq = ?1"))?
        .query_row([seq], |row| pages::memory(row, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::migrations::migrate;

    /// What SQLite does to count what a filter lets through.
    fn plan(filter: &Filter) -> String {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let condition = Condition::of(1, filter);
        let sql = format!("EXPLAIN QUERY PLAN SELECT count(*) FROM memories AS m WHERE {}", condition.sql);
        let mut select = connection.prepare(&sql).unwrap();
        select.query_row(params_from_iter(&condition.values), |row| row.get(3)).unwrap()
    }

    #[test]
    fn what_many_memories_share_is_counted_in_an_index() {
        let kind = || Filter { kind: Some(1), ..Filter::default() };
        let text = || Some("x".to_owned());
        // SQLite does not call an index with a generated column covering, but reads no row for it either.
        for (filter, index) in [
            (kind(), "COVERING INDEX memories_by_time"),
            (Filter { word: text(), ..kind() }, "INDEX memories_by_word (tenant=? AND kind=? AND deleted=? AND word=?"),
            (
                Filter { word: text(), from_us: Some(1), ..kind() },
                "INDEX memories_by_word (tenant=? AND kind=? AND deleted=? AND word=?",
            ),
            (
                Filter { word: text(), include_deleted: true, ..kind() },
                "INDEX memories_by_word (tenant=? AND kind=? AND deleted=? AND word=?",
            ),
            (Filter { agent: text(), ..kind() }, "COVERING INDEX memories_by_agent"),
            (Filter { user: text(), ..kind() }, "COVERING INDEX memories_by_user"),
            (Filter { chat: text(), ..kind() }, "COVERING INDEX memories_by_chat"),
            (Filter { thread: text(), ..kind() }, "COVERING INDEX memories_by_thread"),
            (Filter { thread: text(), chat: text(), word: text(), ..kind() }, "INDEX memories_by_thread"),
            (Filter { user: text(), agent: text(), word: text(), ..kind() }, "INDEX memories_by_user"),
        ] {
            let plan = plan(&filter);
            assert!(plan.contains(index), "{filter:?}: {plan}");
        }
    }
}
