//! What is looked for, as SQL: by columns where there are any, by the index of own keys where their values are in it,
//! and by paths into the metadata otherwise.

use rusqlite::types::{Value, ValueRef};

use crate::memory::query::{FieldPath, Filter, Search, SortBy, SortValue, Wanted};

/// SQL with its values.
#[derive(Debug, Clone, Default)]
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Condition {
    pub(super) fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    pub(super) fn of(number: i64, filter: &Filter) -> Self {
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
        let fields: Vec<_> = fields.iter().map(|(path, wanted)| (Indexed::of(path, wanted), path, wanted)).collect();
        let tags: Vec<_> = tags.iter().map(|tag| (Indexed::of_text(TAGS, tag), tag)).collect();
        let is_indexed =
            fields.iter().any(|(found, ..)| found.is_some()) || tags.iter().any(|(found, _)| found.is_some());
        // Few memories have one value of an own key, whatever SQLite guesses without statistics; fewer are in one chat
        // or of one person. The plus keeps it from all indexes of the tenant's.
        let plus = if is_indexed && thread.is_none() && chat.is_none() && user.is_none() { "+" } else { "" };
        let mut condition = Self { sql: format!("{plus}m.tenant = ?"), values: vec![number.into()] };
        if let Some(kind) = kind {
            condition.and("m.kind = ?", [i64::from(*kind).into()]);
        }
        // With both values named the index by time is of use.
        condition.and(if *include_deleted { "m.deleted IN (0, 1)" } else { "m.deleted = 0" }, []);
        // Rarest first. Without statistics SQLite might look up by the agent of all memories: the plus keeps it from
        // it.
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
        for (indexed, path, wanted) in fields {
            match indexed {
                Some(indexed) => condition.and_indexed(number, indexed),
                None => condition.and_field(path, wanted),
            }
        }
        for (indexed, tag) in tags {
            if let Some(indexed) = indexed {
                condition.and_indexed(number, indexed);
            } else {
                let has = "EXISTS (SELECT 1 FROM json_each(m.metadata, '$.tags') AS e
                                   WHERE e.type = 'text' AND e.atom = ?)";
                condition.and(has, [tag.clone().into()]);
            }
        }
        condition
    }

    /// Leaves out what has another value by now than it had at the first page: it may have been on one already.
    pub(super) fn and_unmoved(&mut self, search: &Search) {
        let (Some(begun), Some(path)) = (search.begun, search.sort.field()) else { return };
        let path = Value::from(json_path(path));
        let unmoved =
            "(m.updated_us <= ? OR EXISTS (SELECT 1 FROM memory_rows AS r WHERE r.seq = m.seq AND r.stamp <= ?)
            OR json_extract(m.metadata, ?) IS (
                SELECT iif(json_valid(h.metadata), json_extract(h.metadata, ?), NULL) FROM memory_history AS h
                WHERE h.seq = m.seq AND h.updated_us <= ? ORDER BY h.version DESC LIMIT 1))";
        let stamp = Value::from(begun.stamp);
        self.and(unmoved, [stamp.clone(), stamp.clone(), path.clone(), path, stamp]);
    }

    fn and_indexed(&mut self, number: i64, Indexed { key, kind, value }: Indexed) {
        let has = "m.seq IN (SELECT f.seq FROM memory_fields AS f
                             WHERE f.tenant = ? AND f.key = ? AND f.type IN (?, ?) AND f.value = ?)";
        self.and(has, [number.into(), key.into(), kind.into(), (kind + ITEM).into(), value]);
    }

    fn and_field(&mut self, path: &FieldPath, wanted: &Wanted) {
        let path = json_path(path);
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
            Wanted::Whole(number) => has("'integer', 'real'", (*number).into()),
            Wanted::Huge(number) => {
                // SQLite has no such number; its digits are compared.
                let sql = "CASE json_type(m.metadata, ?) WHEN 'integer' THEN (m.metadata -> ?) = ?
                                WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(m.metadata, ?) AS e
                                    WHERE e.type = 'integer' AND (m.metadata -> e.fullkey) = ?)
                                ELSE 0 END";
                let (path, digits) = (|| Value::from(path.clone()), || Value::from(number.to_string()));
                self.and(sql, [path(), path(), digits(), path(), digits()]);
            }
            Wanted::Moment(micros) => {
                self.and("moment_us(json_extract(m.metadata, ?)) = ?", [path.into(), (*micros).into()]);
            }
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

/// The key of a memory's tags.
const TAGS: &str = "tags";

/// Characters of the longest text that is in the index of own keys.
const LONGEST: usize = 200;

/// What the index adds to the type of an array's item.
const ITEM: i64 = 4;

/// Keys of everybody, which that index leaves out.
const LEFT_OUT: [&str; 3] = ["", "role", "schemaVersion"];

/// A value that the index of own keys has, wherever a memory has it.
struct Indexed {
    key: String,
    /// As the index tells them apart: 0 of a text, 1 of a number, 2 of a truth value.
    kind: i64,
    value: Value,
}

impl Indexed {
    fn of(path: &FieldPath, wanted: &Wanted) -> Option<Self> {
        let [key] = path.keys() else { return None };
        let (kind, value) = match wanted {
            Wanted::Text(text) => return Self::of_text(key, text),
            Wanted::Number(number) => (1, (*number).into()),
            Wanted::Whole(number) => (1, (*number).into()),
            Wanted::Bool(truth) => (2, i64::from(*truth).into()),
            Wanted::Huge(_) | Wanted::Moment(_) | Wanted::Id(..) => return None,
        };
        is_indexed(key).then(|| Self { key: key.clone(), kind, value })
    }

    fn of_text(key: &str, text: &str) -> Option<Self> {
        let is_short = text.chars().count() <= LONGEST;
        (is_short && is_indexed(key)).then(|| Self { key: key.to_owned(), kind: 0, value: text.to_owned().into() })
    }
}

/// Whether the index of own keys has this one.
pub(super) fn is_indexed(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    key.bytes().all(is_plain) && !LEFT_OUT.contains(&key)
}

/// What is sorted by, as SQL.
pub(super) fn sort_key(sort: &SortBy) -> Condition {
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
                values: vec![json_path(path).into(), json_path(path).into()],
            },
        },
        SortBy::Moment(path) => {
            Condition { sql: "moment_us(json_extract(m.metadata, ?))".to_owned(), values: vec![json_path(path).into()] }
        }
        SortBy::Id(path) => match path.to_string().as_str() {
            "userId" => bare("m.user_id"),
            "agentId" => bare("m.agent_id"),
            "chatId" => bare("m.chat_id"),
            _ => {
                let part = |key: &str| Value::from(format!("{}.{key}", json_path(path)));
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

pub(super) fn sql_value(value: &SortValue) -> Value {
    match value {
        SortValue::Nothing => Value::Null,
        SortValue::Integer(number) => (*number).into(),
        SortValue::Real(number) => (*number).into(),
        SortValue::Text(text) => text.clone().into(),
    }
}

pub(super) fn sort_value(value: ValueRef<'_>) -> SortValue {
    match value {
        ValueRef::Integer(number) => SortValue::Integer(number),
        ValueRef::Real(number) => SortValue::Real(number),
        ValueRef::Text(text) => SortValue::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Null | ValueRef::Blob(_) => SortValue::Nothing,
    }
}

/// Only what comes after a value and id.
pub(super) fn after(condition: &mut Condition, key: &Condition, value: &SortValue, id: &str, descending: bool) {
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

/// The path as SQLite spells it.
pub(super) fn json_path(path: &FieldPath) -> String {
    path.keys().iter().fold("$".to_owned(), |path, key| format!("{path}.\"{key}\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::{Connection, params, params_from_iter};
    use serde_json::json;

    use super::*;
    use crate::store::sqlite::migrations::migrate;
    use crate::store::sqlite::planned_once;

    /// What SQLite does to count what a filter lets through.
    fn plan(filter: &Filter) -> String {
        let mut connection = Connection::open_in_memory().unwrap();
        planned_once(&connection).unwrap();
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
            (kind(), "COVERING INDEX memories_by_"),
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
            (Filter { tags: vec!["x".to_owned()], ..kind() }, "SEARCH m USING INTEGER PRIMARY KEY"),
            (Filter { agent: text(), tags: vec!["x".to_owned()], ..kind() }, "SEARCH m USING INTEGER PRIMARY KEY"),
        ] {
            let plan = plan(&filter);
            assert!(plan.contains(index), "{filter:?}: {plan}");
        }
    }

    fn seqs(connection: &Connection, condition: &Condition) -> Vec<i64> {
        let sql = format!("SELECT m.seq FROM memories AS m WHERE {} ORDER BY m.seq", condition.sql);
        let mut select = connection.prepare(&sql).unwrap();
        let rows = select.query_map(params_from_iter(&condition.values), |row| row.get(0)).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    fn scalar() -> impl Strategy<Value = serde_json::Value> {
        let long = |length: usize| json!("l".repeat(length));
        prop_oneof![
            prop_oneof![Just("a"), Just("1"), Just("true"), Just("")].prop_map(|text| json!(text)),
            prop_oneof![Just(long(LONGEST)), Just(long(LONGEST + 1)), Just(json!("é".repeat(LONGEST)))],
            prop_oneof![Just(json!(1)), Just(json!(1.0)), Just(json!(u64::MAX)), Just(json!(true)), Just(json!(null))],
        ]
    }

    fn metadata() -> impl Strategy<Value = String> {
        let items = prop::collection::vec(scalar(), 0..3).prop_map(|items| json!(items));
        let value = prop_oneof![3 => scalar(), 1 => items, 1 => scalar().prop_map(|inner| json!({"x": inner}))];
        let key = prop_oneof![Just("x"), Just("tags"), Just("role"), Just("é"), Just("a b"), Just("x.x"), Just("")];
        let object = prop::collection::btree_map(key, value, 0..4).prop_map(|object| json!(object).to_string());
        // What is damaged has no fields, and must not keep it from being removed.
        prop_oneof![8 => object, 1 => Just("{damaged".to_owned())]
    }

    fn wanted() -> impl Strategy<Value = Wanted> {
        let text = scalar().prop_filter_map("a text", |value| value.as_str().map(|text| Wanted::Text(text.to_owned())));
        let other = prop_oneof![Just(Wanted::Number(1.0)), Just(Wanted::Whole(1)), Just(Wanted::Bool(true))];
        prop_oneof![text, other]
    }

    proptest! {
        #[test]
        fn the_index_finds_what_the_metadata_has(
            written in prop::collection::vec((1_i64..6, prop::option::weighted(0.8, metadata())), 1..20),
            path in prop_oneof![Just("x"), Just("x.x"), Just("tags"), Just("role"), Just("é")],
            wanted in wanted(),
        ) {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection).unwrap();
            let sound = "INSERT OR IGNORE INTO memory_tenants (number, name) VALUES (1, 't')";
            connection.execute(sound, []).unwrap();
            for (seq, metadata) in written {
                let Some(metadata) = metadata else {
                    connection.execute("DELETE FROM memories WHERE seq = ?1", [seq]).unwrap();
                    continue;
                };
                let put = "INSERT INTO memories
                               (seq, tenant, id, kind, deleted, created_us, updated_us, version, metadata, content)
                           VALUES (?1, 1, ?1, 9, 0, 1, 1, 1, ?2, '') ON CONFLICT (seq) DO UPDATE SET metadata = ?2";
                connection.execute(put, params![seq, metadata]).unwrap();
            }
            // What is damaged cannot be read by either.
            connection.execute("DELETE FROM memories WHERE NOT json_valid(metadata)", []).unwrap();
            let path = FieldPath::parse(path).unwrap();
            let filter = Filter { fields: vec![(path.clone(), wanted.clone())], ..Filter::default() };
            let mut read = Condition { sql: "m.tenant = ?".to_owned(), values: vec![1.into()] };
            read.and_field(&path, &wanted);
            prop_assert_eq!(seqs(&connection, &Condition::of(1, &filter)), seqs(&connection, &read));
            let left = "SELECT count(*) FROM memory_fields WHERE seq NOT IN (SELECT seq FROM memories)";
            prop_assert_eq!(connection.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        }
    }
}
