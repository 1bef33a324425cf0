//! What is looked for, as SQL of PostgreSQL: by columns where there are any, and by paths into the metadata otherwise.

use super::values::StatementValues;
use crate::memory::query::{FieldPath, Filter, Search, SortBy, Wanted};

/// SQL with its values.
#[derive(Debug, Clone)]
pub(super) struct MemoryCondition {
    pub(super) sql: String,
    pub(super) values: StatementValues,
}

impl MemoryCondition {
    pub(super) fn and(&mut self, sql: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
    }

    pub(super) fn of_tenant(tenant: &str) -> Self {
        let mut values = StatementValues::default();
        let sql = format!("m.tenant = {}", values.text(tenant));
        Self { sql, values }
    }

    pub(super) fn of(tenant: &str, filter: &Filter) -> Self {
        let mut condition = Self::of_tenant(tenant);
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
            let kind = condition.values.whole((*kind).into());
            condition.and(&format!("m.kind = {kind}"));
        }
        condition.and(if *include_deleted { "m.deleted IN (0, 1)" } else { "m.deleted = 0" });
        let keys = [("thread_id", thread), ("chat_id", chat), ("user_id", user), ("agent_id", agent), ("word", word)];
        for (column, text) in keys.into_iter().filter_map(|(column, text)| Some((column, text.as_ref()?))) {
            let text = condition.values.text(text);
            condition.and(&format!("m.{column} = {text}"));
        }
        if let Some(least) = min_importance {
            let least = condition.values.real(*least);
            condition.and(&format!("m.importance >= {least}"));
        }
        for (moment, beyond) in [(from_us, ">="), (to_us, "<=")] {
            if let Some(moment) = moment {
                let moment = condition.values.whole(*moment);
                condition.and(&format!("m.created_us {beyond} {moment}"));
            }
        }
        for (path, wanted) in fields {
            condition.and_field(path, wanted);
        }
        for tag in tags {
            let tag = condition.values.text(tag);
            condition.and(&format!("m.document -> 'tags' @> to_jsonb({tag})"));
        }
        condition
    }

    /// Whether the value that is sorted by is that of the first page, as SQL: what has another one by now may have been
    /// on a page already.
    pub(super) fn unmoved(&mut self, search: &Search) -> String {
        let (Some(begun), Some(path)) = (search.begun, search.sort.field()) else { return "true".to_owned() };
        let (stamp, path) = (self.values.whole(begun.stamp), self.values.texts(path.keys()));
        format!(
            "(m.stamp <= {stamp} OR (m.document #> {path}) IS NOT DISTINCT FROM (
                SELECT h.metadata::jsonb #> {path} FROM almanac.memory_history AS h
                WHERE h.tenant = m.tenant AND h.seq = m.seq AND h.updated_us <= {stamp}
                ORDER BY h.version DESC LIMIT 1))"
        )
    }

    fn and_field(&mut self, path: &FieldPath, wanted: &Wanted) {
        let keys = path.keys();
        let value = match wanted {
            Wanted::Text(text) => self.values.text(text),
            Wanted::Number(number) => self.values.real(*number),
            Wanted::Whole(number) => self.values.whole(*number),
            Wanted::Bool(truth) => self.values.truth(*truth),
            Wanted::Huge(number) => format!("{}::numeric", self.values.text(&number.to_string())),
            Wanted::Moment(micros) => {
                let (path, micros) = (self.values.text(&path.to_string()), self.values.whole(*micros));
                return self.and(&format!("m.moments @> jsonb_build_object({path}, {micros})"));
            }
            Wanted::Id(namespace, entity, id, version) => {
                for (key, part) in [("namespace", namespace), ("type", entity), ("id", id)] {
                    let (path, part) = (self.inner(keys, key), self.values.text(part));
                    self.and(&format!("m.document #>> {path} = {part}"));
                }
                let path = self.inner(keys, "version");
                let version = match version {
                    Some(version) => self.values.text(&version.to_string()),
                    None => "NULL".to_owned(),
                };
                return self.and(&format!("m.document #>> {path} IS NOT DISTINCT FROM {version}"));
            }
        };
        // A list holds a scalar as it is the same as one.
        let path = self.values.texts(keys);
        self.and(&format!("(m.document #> {path}) @> to_jsonb({value})"));
    }

    fn inner(&mut self, keys: &[String], key: &str) -> String {
        self.values.texts(&[keys, &[key.to_owned()]].concat())
    }

    /// What is sorted by, as SQL: a value of JSON as text, of which the order is made elsewhere.
    pub(super) fn sort_value(&mut self, sort: &SortBy) -> String {
        let column = |name: &str| format!("to_jsonb(m.{name})::text");
        let path = match sort {
            SortBy::Created => return column("created_us"),
            SortBy::Updated => return column("updated_us"),
            SortBy::Score => return "NULL::text".to_owned(),
            SortBy::Field(path) | SortBy::Moment(path) | SortBy::Id(path) => path,
        };
        match (sort, path.to_string().as_str()) {
            (SortBy::Field(_), "importance_score") => column("importance"),
            (SortBy::Field(_), "thread.position") => column("position"),
            (SortBy::Field(_), "thread.id") => column("thread_id"),
            (SortBy::Id(_), "userId") => column("user_id"),
            (SortBy::Id(_), "agentId") => column("agent_id"),
            (SortBy::Id(_), "chatId") => column("chat_id"),
            _ => format!("(m.document #> {})::text", self.values.texts(path.keys())),
        }
    }
}
