//! How SQLite keeps what follows from the records: read back, looked up, written now and then.

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::projection::{CountedKey, FoldedCall, Latest, Projection, WrittenBefore};
use crate::suggest::transitions::{Followers, MAX_PREFIXES, Prefix, Transition};
use crate::timing::Outcome;

use std::sync::Arc;

impl WrittenBefore for &Connection {
    type Error = rusqlite::Error;

    fn samples(&mut self, key: &CountedKey) -> rusqlite::Result<Option<i64>> {
        self.prepare_cached("SELECT samples FROM execution_keys WHERE tool = ?1 AND mode = ?2 AND failed = ?3")?
            .query_row(params![key.tool, key.mode, key.failed], |row| row.get(0))
            .optional()
    }

    fn followers(&mut self, prefix: &Prefix) -> rusqlite::Result<Followers> {
        followers_of(self, prefix)
    }

    fn latest(&mut self, id: i64, tenant: &str, session: &str) -> rusqlite::Result<Option<Latest>> {
        latest_before(self, id, tenant, session)
    }
}

impl Projection {
    /// Brings the projection that was written up to the last record.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let (through, tick) =
            connection.query_row("SELECT through, tick FROM fold", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut projection = Self::from_there(through, tick);
        let mut later = connection.prepare(
            "SELECT id, tenant, tool, mode, outcome, session, duration_ms >= 0 FROM executions WHERE id > ?1 \
                ORDER BY id",
        )?;
        let mut rows = later.query([through])?;
        while let Some(row) = rows.next()? {
            let text = |index| -> rusqlite::Result<Option<&str>> { Ok(row.get_ref(index)?.as_str_or_null()?) };
            let call = FoldedCall {
                tenant: text(1)?.unwrap_or_default(),
                tool: text(2)?.unwrap_or_default(),
                mode: text(3)?.unwrap_or_default(),
                // Only names that it parses are ever written.
                outcome: text(4)?.and_then(Outcome::parse).unwrap_or(Outcome::Success),
                session: text(5)?,
                is_timed: row.get(6)?,
            };
            projection.take(&mut &*connection, row.get(0)?, call)?;
        }
        projection.take_changes();
        Ok(projection)
    }

    /// Writes it. If the transaction does not come to its end, the projection has to be read anew.
    pub(super) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut put = connection.prepare_cached(
            "INSERT INTO trails (before, last, followers, tick) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET followers = excluded.followers, tick = excluded.tick",
        )?;
        for (prefix, state) in self.unwritten_prefixes() {
            let before = prefix.before.as_deref().unwrap_or_default();
            put.execute(params![before, prefix.last, state.followers.encode(), state.tick])?;
        }
        let mut put = connection.prepare_cached(
            "INSERT INTO execution_keys (tool, mode, failed, samples, last_id) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET samples = excluded.samples, last_id = excluded.last_id",
        )?;
        for (key, count) in self.unwritten_counts() {
            put.execute(params![key.tool, key.mode, key.failed, count.samples, count.last_id])?;
        }
        connection.execute("UPDATE fold SET through = ?1, tick = ?2", [self.through, self.tick])?;
        self.written();
        Ok(())
    }

    /// Forgets all but the latest prefixes. It has to be written before.
    pub(super) fn prune(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.forget_prefixes();
        let beyond = "DELETE FROM trails WHERE tick <= (SELECT tick FROM trails ORDER BY tick DESC LIMIT 1 OFFSET ?1)";
        connection.execute(beyond, [MAX_PREFIXES as i64]).map(drop)
    }
}

/// The last calls of a session before the record of this id.
fn latest_before(connection: &Connection, id: i64, tenant: &str, session: &str) -> rusqlite::Result<Option<Latest>> {
    let mut select = connection.prepare_cached(
        "SELECT tool FROM executions WHERE tenant = ?1 AND session = ?2 AND id < ?3 ORDER BY id DESC LIMIT 2",
    )?;
    let mut tools = select.query_map(params![tenant, session, id], |row| row.get(0))?;
    let Some(last) = tools.next().transpose()? else { return Ok(None) };
    Ok(Some(Latest { last, before: tools.next().transpose()? }))
}

fn followers_of(connection: &Connection, prefix: &Prefix) -> rusqlite::Result<Followers> {
    let written = connection
        .prepare_cached("SELECT followers FROM trails WHERE before = ?1 AND last = ?2")?
        .query_row(params![prefix.before.as_deref().unwrap_or_default(), prefix.last], |row| {
            Ok(Followers::decode(row.get_ref(0)?.as_str()?))
        })
        .optional()?;
    Ok(written.unwrap_or_default())
}

/// The latest prefixes that were written, earliest first.
pub(super) fn read_trails(connection: &Connection) -> rusqlite::Result<Vec<Transition>> {
    let mut select =
        connection.prepare("SELECT before, last, followers, tick FROM trails ORDER BY tick DESC LIMIT ?1")?;
    let rows = select.query_map([MAX_PREFIXES as i64], |row| {
        let before: String = row.get(0)?;
        let prefix = Prefix { before: Some(before).filter(|before| !before.is_empty()), last: row.get(1)? };
        let followers = Arc::new(Followers::decode(row.get_ref(2)?.as_str()?));
        Ok(Transition { prefix, followers, tick: row.get::<_, i64>(3)?.cast_unsigned() })
    })?;
    let mut all: Vec<Transition> = rows.collect::<rusqlite::Result<_>>()?;
    all.reverse();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::migrations::migrate;
    use super::*;
    use std::collections::HashMap;

    use crate::timing::{Execution, Measures};

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    /// Stores the record as the writer does.
    fn store(
        connection: &Connection,
        projection: &mut Projection,
        (session, tool, outcome): (u8, &str, Outcome),
    ) -> u64 {
        let execution = Execution {
            tenant: format!("t{}", session % 2),
            tool: tool.to_owned(),
            mode: (session == 1).then(|| "m".to_owned()),
            duration_ms: (session != 4).then_some(1),
            outcome,
            measures: Measures::default(),
            session: (session > 0).then(|| format!("s{}", session / 2)),
            at_ms: 1,
            idempotency_key: None,
        };
        let row = "INSERT INTO executions (id, tenant, tool, mode, failed, duration_ms, outcome, session, at_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?8, ?6, ?7, 1)";
        let Execution { tenant, tool, mode, session, duration_ms, .. } = &execution;
        let failed = outcome == Outcome::Error;
        connection
            .execute(
                row,
                params![
                    projection.next_id(),
                    tenant,
                    tool,
                    mode,
                    failed,
                    outcome.as_str(),
                    session,
                    duration_ms.map_or(-1, |_| 1)
                ],
            )
            .unwrap();
        projection.add(&mut &*connection, &execution).unwrap()
    }

    fn written(connection: &Connection) -> String {
        let mut rows = connection.prepare("SELECT tool, mode, failed, samples FROM execution_keys").unwrap();
        let counts: Vec<(String, String, bool, i64)> = rows
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        format!("{counts:?} {:?}", read_trails(connection).unwrap())
    }

    proptest! {
        /// Written at any time, changes at any time, killed at any time: it comes to the same.
        #[test]
        fn a_kill_changes_nothing(
            records in prop::collection::vec((0u8..5, "[a-c]", 0usize..4, 0u8..8), 1..60),
        ) {
            let (steady, killed) = (database(), database());
            let (mut one, mut other) = (Projection::read(&steady).unwrap(), Projection::read(&killed).unwrap());
            let mut changes: HashMap<Prefix, Transition> = HashMap::new();
            for (session, tool, outcome, then) in &records {
                let record = (*session, tool.as_str(), Outcome::ALL[*outcome]);
                prop_assert_eq!(store(&steady, &mut one, record), store(&killed, &mut other, record));
                one.write(&steady).unwrap();
                for followed in other.take_changes().iter() {
                    changes.insert(followed.prefix.clone(), followed.clone());
                }
                match then {
                    0 => other.write(&killed).unwrap(),
                    1 => other = Projection::read(&killed).unwrap(),
                    2 => { other.write(&killed).unwrap(); other.prune(&killed).unwrap() }
                    _ => {}
                }
            }
            Projection::read(&killed).unwrap().write(&killed).unwrap();
            prop_assert_eq!(written(&steady), written(&killed));
            let mut changes: Vec<Transition> = changes.into_values().collect();
            changes.sort_unstable_by_key(|transition| transition.tick);
            prop_assert_eq!(changes, read_trails(&killed).unwrap(), "what was handed out is what is read back");
        }
    }

    #[test]
    fn ids_are_not_used_again_when_all_records_are_gone() {
        let connection = database();
        let mut projection = Projection::read(&connection).unwrap();
        for _ in 0..3 {
            store(&connection, &mut projection, (1, "a", Outcome::Success));
        }
        projection.write(&connection).unwrap();
        connection.execute("DELETE FROM executions", []).unwrap();
        let mut projection = Projection::read(&connection).unwrap();
        assert_eq!((projection.next_id(), store(&connection, &mut projection, (1, "a", Outcome::Success))), (4, 4));
    }
}
