//! Memories in the order of an own key, walked in its index instead of read and sorted.

use std::cmp::Ordering;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::condition::{self, Condition, json_path, sort_value, sql_value};
use crate::memory::query::{FieldPath, Place, Search, SortBy, SortValue};

/// Of fewer memories all values are read sooner than a walk finds them.
const FEWEST: u64 = 4096;

/// If no more than one memory in so many is let through, a walk passes too many that are not.
const SPARSEST: u64 = 8;

/// So many rows are walked over for a page's offset; a page further on is sorted.
const FURTHEST: usize = 1000;

/// Kinds of values in the index, as the migration `field_order` tells them apart.
const TEXT: i64 = 0;
const NUMBER: i64 = 1;
const TRUTH: i64 = 2;
const LONG_TEXT: i64 = 3;

/// An own key whose index leads to a page.
pub(super) struct FieldOrder<'a> {
    connection: &'a Connection,
    tenant: i64,
    condition: &'a Condition,
    key: &'a str,
    path: String,
    search: &'a Search,
}

/// A memory and what it is sorted by.
pub(super) struct Placed {
    pub(super) seq: i64,
    id: String,
    pub(super) value: SortValue,
}

impl<'a> FieldOrder<'a> {
    /// The order of a search that `total` memories fit, if walking the index is the shorter way. `through` is the
    /// number of the latest memory: there are no more than that.
    pub(super) fn of(
        connection: &'a Connection,
        tenant: i64,
        condition: &'a Condition,
        search: &'a Search,
        total: u64,
        through: i64,
    ) -> rusqlite::Result<Option<Self>> {
        let SortBy::Field(field) = &search.sort else { return Ok(None) };
        let Some(key) = indexed_key(field) else { return Ok(None) };
        if total < FEWEST || search.offset > FURTHEST {
            return Ok(None);
        }
        // A cursor may say any number: it decides how the page is found, not what is on it.
        let most = i64::try_from(total.saturating_mul(SPARSEST)).unwrap_or(i64::MAX);
        if through >= most && count_to(connection, tenant, most)? == most {
            return Ok(None);
        }
        Ok(Some(Self { connection, tenant, condition, key, path: json_path(field), search }))
    }

    /// The memories of the page.
    pub(super) fn page(&self) -> rusqlite::Result<Vec<Placed>> {
        let wanted = self.search.offset + self.search.limit;
        let mut page = Vec::new();
        let mut groups = [[NUMBER, TRUTH], [TEXT, LONG_TEXT]];
        if self.search.descending {
            groups.reverse();
        }
        for kinds in groups {
            if page.len() < wanted {
                let mut group = Vec::new();
                for kind in kinds {
                    group.append(&mut self.of_kind(kind, wanted - page.len())?);
                }
                group.sort_by(|a, b| self.compare(a, b));
                page.append(&mut group);
            }
        }
        if page.len() < wanted {
            page.append(&mut self.without(wanted - page.len())?);
        }
        page.truncate(wanted);
        page.drain(..self.search.offset.min(page.len()));
        Ok(page)
    }

    fn compare(&self, a: &Placed, b: &Placed) -> Ordering {
        a.value.compare(&b.value, self.search.descending).then_with(|| a.id.cmp(&b.id))
    }

    /// The first that have a value of this kind behind the page before.
    fn of_kind(&self, kind: i64, limit: usize) -> rusqlite::Result<Vec<Placed>> {
        let sorted = self.sorted(kind);
        let Some(behind) = self.behind(kind, &sorted) else { return Ok(Vec::new()) };
        let direction = if self.search.descending { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT m.seq, m.id, {value} FROM memory_fields AS f INDEXED BY memory_fields_by_value
                 CROSS JOIN memories AS m NOT INDEXED ON m.seq = f.seq
             WHERE f.tenant = ? AND f.key = ? AND f.type = ? AND {condition}{behind}
             ORDER BY f.value {direction}, {value} {direction}, m.id LIMIT ?",
            value = sorted.sql,
            condition = self.condition.sql,
            behind = behind.sql,
        );
        let index = [self.tenant.into(), self.key.to_owned().into(), kind.into()];
        let page = [(limit as i64).into()];
        let parts: [&[Value]; 6] =
            [&sorted.values, &index, &self.condition.values, &behind.values, &sorted.values, &page];
        self.rows(&sql, parts.concat())
    }

    /// The whole value, which the index has unless it is long.
    fn sorted(&self, kind: i64) -> Condition {
        if kind == LONG_TEXT {
            Condition { sql: "json_extract(m.metadata, ?)".to_owned(), values: vec![self.path.clone().into()] }
        } else {
            Condition { sql: "f.value".to_owned(), values: Vec::new() }
        }
    }

    /// What is said of values of this kind so that only those behind the page before come; nothing if none do.
    fn behind(&self, kind: i64, sorted: &Condition) -> Option<Condition> {
        let mut behind = Condition::default();
        let Some(Place::After(value, id)) = &self.search.place else { return Some(behind) };
        let descending = self.search.descending;
        let of_text = is_text_kind(kind);
        if is_text(value)? != of_text {
            // Numbers stand before texts.
            return (of_text != descending).then_some(behind);
        }
        let beyond = if descending { "<" } else { ">" };
        let indexed = if kind == LONG_TEXT { "substr(?, 1, 200)" } else { "?" };
        behind.and(&format!("f.value {beyond}= {indexed}"), [sql_value(value)]);
        condition::after(&mut behind, sorted, value, id, descending);
        Some(behind)
    }

    /// The first that have nothing to sort by behind the page before, by their ids.
    fn without(&self, limit: usize) -> rusqlite::Result<Vec<Placed>> {
        let after = match &self.search.place {
            Some(Place::After(SortValue::Nothing, id)) => id.clone(),
            _ => String::new(),
        };
        let sql = format!(
            "SELECT m.seq, m.id, NULL FROM memories AS m INDEXED BY memories_by_id
             WHERE m.tenant = ? AND m.id > ? AND {condition} AND NOT EXISTS (
                 SELECT 1 FROM memory_fields AS f WHERE f.seq = m.seq AND f.key = ? AND f.type <= {LONG_TEXT})
             ORDER BY m.id LIMIT ?",
            condition = self.condition.sql,
        );
        let start = [self.tenant.into(), after.into()];
        let page = [self.key.to_owned().into(), (limit as i64).into()];
        let parts: [&[Value]; 3] = [&start, &self.condition.values, &page];
        self.rows(&sql, parts.concat())
    }

    fn rows(&self, sql: &str, values: Vec<Value>) -> rusqlite::Result<Vec<Placed>> {
        self.connection
            .prepare_cached(sql)?
            .query_map(params_from_iter(values), |row| {
                Ok(Placed { seq: row.get(0)?, id: row.get(1)?, value: sort_value(row.get_ref(2)?) })
            })?
            .collect()
    }
}

/// How many memories the tenant has, counted to `most`.
fn count_to(connection: &Connection, tenant: i64, most: i64) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM memories WHERE tenant = ?1 LIMIT ?2)")?
        .query_row([tenant, most], |row| row.get(0))
}

/// The key, if the index has it and no column does.
fn indexed_key(field: &FieldPath) -> Option<&str> {
    match field.keys() {
        [key] if condition::is_indexed(key) && key != "importance_score" => Some(key),
        _ => None,
    }
}

/// Whether it is a text; nothing if it is nothing.
fn is_text(value: &SortValue) -> Option<bool> {
    match value {
        SortValue::Nothing => None,
        SortValue::Integer(_) | SortValue::Real(_) => Some(false),
        SortValue::Text(_) => Some(true),
    }
}

fn is_text_kind(kind: i64) -> bool {
    matches!(kind, TEXT | LONG_TEXT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::params;
    use serde_json::json;

    use super::*;
    use crate::memory::query::Filter;
    use crate::store::sqlite::migrations::migrate;
    use crate::store::sqlite::search::sorted;

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let numbers = prop_oneof![
            Just(json!(0)),
            Just(json!(1)),
            Just(json!(1.0)),
            Just(json!(-2.5)),
            Just(json!(i64::MIN)),
            Just(json!(u64::MAX))
        ];
        let long = (198_usize..203, "[a-c]{0,2}").prop_map(|(length, end)| json!("é".repeat(length) + &end));
        let others = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            Just(json!(false)),
            Just(json!([1, "a"])),
            Just(json!({"x": 1}))
        ];
        prop_oneof![3 => numbers, 2 => "[a-c]{0,2}".prop_map(|text| json!(text)), 2 => long, 2 => others]
    }

    fn database(written: &[(u32, Option<serde_json::Value>)]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection.execute("INSERT INTO memory_tenants (number, name) VALUES (1, 't')", []).unwrap();
        for (seq, (id, value)) in written.iter().enumerate() {
            let metadata = value.as_ref().map_or_else(|| json!({}), |value| json!({"x": value, "y": 7}));
            let sql = "INSERT INTO memories
                           (seq, tenant, id, kind, deleted, created_us, updated_us, version, metadata, content)
                       VALUES (?1, 1, ?2, ?3, 0, 1, 1, 1, ?4, '')";
            let id = format!("{id:010}-{seq}");
            connection.execute(sql, params![seq as i64 + 1, id, seq as i64 % 3, metadata.to_string()]).unwrap();
        }
        connection
    }

    proptest! {
        #[test]
        fn walking_finds_what_sorting_finds(
            written in prop::collection::vec((any::<u32>(), prop::option::weighted(0.8, value())), 0..40),
            descending in any::<bool>(),
            kind in prop::option::of(0_u8..3),
            limit in 1_usize..7,
            offset in 0_usize..9,
        ) {
            let connection = database(&written);
            let condition = Condition::of(1, &Filter { kind, ..Filter::default() });
            let sort = SortBy::Field(FieldPath::parse("x").unwrap());
            let (filter, text, begun, place, total) = (Filter::default(), None, None, None, None);
            let mut search = Search { filter, text, sort, descending, begun, place, total, offset, limit };
            loop {
                let read = sorted(&connection, &condition, &search).unwrap();
                let read: Vec<_> = read.into_iter().map(|hit| (hit.memory.id, hit.value)).collect();
                let order = FieldOrder {
                    connection: &connection,
                    tenant: 1,
                    condition: &condition,
                    key: "x",
                    path: "$.\"x\"".to_owned(),
                    search: &search,
                };
                let walked = order.page().unwrap().into_iter();
                let walked: Vec<_> = walked.map(|placed| (placed.id, placed.value)).collect();
                prop_assert_eq!(&walked, &read);
                let Some((id, value)) = walked.last().cloned() else { break };
                search.place = Some(Place::After(value, id));
                search.offset = 0;
            }
        }
    }

    #[test]
    fn a_walk_is_taken_where_it_is_short() {
        let written: Vec<_> = (0..5000).map(|number| (number, Some(json!(number)))).collect();
        let connection = database(&written);
        for (field, offset, total, through, is_walked) in [
            ("x", 0, 5000, 5000, true),
            ("x", FURTHEST + 1, 5000, 5000, false),
            ("x", 0, FEWEST - 1, 5000, false),
            ("x", 0, u64::MAX, 5000, true),
            ("x", 0, 1 << 61, 5000, true),
            // Others' memories count for nothing.
            ("x", 0, 5000, 1_000_000, true),
            ("x.y", 0, 5000, 5000, false),
            ("importance_score", 0, 5000, 5000, false),
        ] {
            let sort = SortBy::Field(FieldPath::parse(field).unwrap());
            let filter = Filter::default();
            let condition = Condition::of(1, &filter);
            let search = Search {
                filter,
                text: None,
                sort,
                descending: false,
                begun: None,
                place: None,
                total: None,
                offset,
                limit: 1,
            };
            let order = FieldOrder::of(&connection, 1, &condition, &search, total, through).unwrap();
            assert_eq!(order.is_some(), is_walked, "{field} {offset} {total} {through}");
        }
        assert_eq!(count_to(&connection, 1, 100).unwrap(), 100);
        assert_eq!(count_to(&connection, 2, 100).unwrap(), 0);
    }
}
