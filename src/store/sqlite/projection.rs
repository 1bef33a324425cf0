//! What follows from the records: how many there are of each key, and what sessions called next.
//!
//! All of it is a projection over the records in their order, so the records alone have to be flushed for each
//! acknowledgement. The projection stands in memory and is written now and then, together with the id of the last
//! record in it; at a start, what was stored after that is folded again, to the same states.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::suggest::transitions::{Followers, MAX_PREFIXES, Prefix, Transition};
use crate::timing::{Execution, Outcome};

/// Records after which the projection is written: so many are folded again after a kill, which takes some milliseconds.
const DUE: usize = 4096;

/// Sessions whose last calls are held; of others they are looked up.
const MAX_SESSIONS: usize = 10_000;

/// Keys, and prefixes, that are held once all of them are written.
const MAX_HELD: usize = 20_000;

/// The projection, and the records that it is not written with yet.
#[derive(Debug, Default)]
pub(super) struct Projection {
    through: i64,
    tick: i64,
    unwritten: usize,
    /// By tenant, then by name.
    sessions: HashMap<String, HashMap<String, Latest>>,
    held_sessions: usize,
    prefixes: HashMap<Prefix, State>,
    counts: HashMap<CountedKey, Count>,
    /// Trails that changed since somebody was changes.
    changed: Vec<Prefix>,
}

/// The last calls of a session.
#[derive(Debug, Clone)]
struct Latest {
    last: String,
    before: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    followers: Arc<Followers>,
    tick: i64,
    is_written: bool,
    is_told: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CountedKey {
    tool: String,
    mode: String,
    failed: bool,
}

#[derive(Debug)]
struct Count {
    samples: i64,
    last_id: i64,
    is_written: bool,
}

/// What a record tells the projection.
#[derive(Debug, Clone, Copy)]
struct Call<'r> {
    tenant: &'r str,
    tool: &'r str,
    mode: &'r str,
    outcome: Outcome,
    session: Option<&'r str>,
    /// Is its duration known? Only such records are counted.
    is_timed: bool,
}

impl Projection {
    /// Brings the projection that was written up to the last record.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let (through, tick) =
            connection.query_row("SELECT through, tick FROM fold", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut projection = Self { through, tick, ..Self::default() };
        let mut later = connection.prepare(
            "SELECT id, tenant, tool, mode, outcome, session, duration_ms >= 0 FROM executions WHERE id > ?1 \
                ORDER BY id",
        )?;
        let mut rows = later.query([through])?;
        while let Some(row) = rows.next()? {
            let text = |index| -> rusqlite::Result<Option<&str>> { Ok(row.get_ref(index)?.as_str_or_null()?) };
            let call = Call {
                tenant: text(1)?.unwrap_or_default(),
                tool: text(2)?.unwrap_or_default(),
                mode: text(3)?.unwrap_or_default(),
                // Only names that it parses are ever written.
                outcome: text(4)?.and_then(Outcome::parse).unwrap_or(Outcome::Success),
                session: text(5)?,
                is_timed: row.get(6)?,
            };
            projection.take(connection, row.get(0)?, call)?;
        }
        projection.take_changes();
        Ok(projection)
    }

    /// The id of the next record.
    pub(super) fn next_id(&self) -> i64 {
        self.through + 1
    }

    /// Folds the record of [`Projection::next_id`]. Returns how many of its key there are with a duration.
    pub(super) fn add(&mut self, connection: &Connection, execution: &Execution) -> rusqlite::Result<u64> {
        let call = Call {
            tenant: &execution.tenant,
            tool: &execution.tool,
            mode: execution.mode.as_deref().unwrap_or_default(),
            outcome: execution.outcome,
            session: execution.session.as_deref(),
            is_timed: execution.duration_ms.is_some(),
        };
        self.take(connection, self.next_id(), call).map(i64::cast_unsigned)
    }

    fn take(&mut self, connection: &Connection, id: i64, call: Call<'_>) -> rusqlite::Result<i64> {
        self.through = id;
        self.unwritten += 1;
        if let Some(session) = call.session {
            self.follow(connection, id, session, call)?;
        }
        self.count(connection, id, call)
    }

    fn count(&mut self, connection: &Connection, id: i64, call: Call<'_>) -> rusqlite::Result<i64> {
        let failed = call.outcome == Outcome::Error;
        let key = CountedKey { tool: call.tool.to_owned(), mode: call.mode.to_owned(), failed };
        if let Some(count) = self.counts.get_mut(&key) {
            count.samples += i64::from(call.is_timed);
            count.last_id = id;
            count.is_written = false;
            return Ok(count.samples);
        }
        let known: Option<i64> = connection
            .prepare_cached("SELECT samples FROM execution_keys WHERE tool = ?1 AND mode = ?2 AND failed = ?3")?
            .query_row(params![call.tool, call.mode, failed], |row| row.get(0))
            .optional()?;
        let samples = known.unwrap_or_default() + i64::from(call.is_timed);
        self.counts.insert(key, Count { samples, last_id: id, is_written: false });
        Ok(samples)
    }

    /// Takes note of what the session called before.
    fn follow(&mut self, connection: &Connection, id: i64, session: &str, call: Call<'_>) -> rusqlite::Result<()> {
        let held = self.sessions.get(call.tenant).and_then(|sessions| sessions.get(session)).cloned();
        let earlier = if held.is_some() {
            held
        } else {
            self.held_sessions += 1;
            latest_before(connection, id, call.tenant, session)?
        };
        let before = earlier.as_ref().map(|earlier| earlier.last.clone());
        let latest = Latest { last: call.tool.to_owned(), before };
        self.sessions.entry(call.tenant.to_owned()).or_default().insert(session.to_owned(), latest);
        let Some(Latest { last, before }) = earlier else { return Ok(()) };
        let succeeded = call.outcome == Outcome::Success;
        if before.is_some() {
            self.observe(connection, Prefix { before, last: last.clone() }, call.tool, succeeded)?;
        }
        self.observe(connection, Prefix { before: None, last }, call.tool, succeeded)
    }

    fn observe(
        &mut self,
        connection: &Connection,
        prefix: Prefix,
        tool: &str,
        succeeded: bool,
    ) -> rusqlite::Result<()> {
        self.tick += 1;
        let state = if let Some(state) = self.prefixes.get_mut(&prefix) {
            state
        } else {
            let followers = Arc::new(followers_of(connection, &prefix)?);
            let state = State { followers, is_told: true, ..State::default() };
            self.prefixes.entry(prefix.clone()).or_insert(state)
        };
        Arc::make_mut(&mut state.followers).observe(tool, succeeded);
        (state.tick, state.is_written) = (self.tick, false);
        if std::mem::take(&mut state.is_told) {
            self.changed.push(prefix);
        }
        Ok(())
    }

    /// The prefixes that changed since this was asked before, the one that changed last at the end.
    pub(super) fn take_changes(&mut self) -> Arc<[Transition]> {
        let changes = self.changed.drain(..).filter_map(|prefix| {
            let state = self.prefixes.get_mut(&prefix)?;
            state.is_told = true;
            Some(Transition { prefix, followers: Arc::clone(&state.followers), tick: state.tick.cast_unsigned() })
        });
        let mut changes: Vec<Transition> = changes.collect();
        changes.sort_unstable_by_key(|transition| transition.tick);
        changes.into()
    }

    /// Are there so many records that it is not written with that it should be?
    pub(super) fn is_due(&self) -> bool {
        self.unwritten >= DUE
    }

    /// Are there records that it is not written with?
    pub(super) fn is_unwritten(&self) -> bool {
        self.unwritten > 0
    }

    /// Writes it. If the transaction does not come to its end, the projection has to be read anew.
    pub(super) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut put = connection.prepare_cached(
            "INSERT INTO trails (before, last, followers, tick) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET followers = excluded.followers, tick = excluded.tick",
        )?;
        for (prefix, state) in self.prefixes.iter_mut().filter(|(_, state)| !state.is_written) {
            let before = prefix.before.as_deref().unwrap_or_default();
            put.execute(params![before, prefix.last, state.followers.encode(), state.tick])?;
            state.is_written = true;
        }
        let mut put = connection.prepare_cached(
            "INSERT INTO execution_keys (tool, mode, failed, samples, last_id) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET samples = excluded.samples, last_id = excluded.last_id",
        )?;
        for (key, count) in self.counts.iter_mut().filter(|(_, count)| !count.is_written) {
            put.execute(params![key.tool, key.mode, key.failed, count.samples, count.last_id])?;
            count.is_written = true;
        }
        connection.execute("UPDATE fold SET through = ?1, tick = ?2", [self.through, self.tick])?;
        self.unwritten = 0;
        Ok(())
    }

    /// Keeps it in bounds. All records have to be in the database.
    pub(super) fn trim(&mut self) {
        if self.held_sessions > MAX_SESSIONS {
            self.sessions.clear();
            self.held_sessions = 0;
        }
        if self.is_unwritten() || !self.changed.is_empty() {
            return;
        }
        if self.prefixes.len() > MAX_HELD {
            self.prefixes.clear();
        }
        if self.counts.len() > MAX_HELD {
            self.counts.clear();
        }
    }

    /// Forgets all but the latest prefixes. It has to be written before.
    pub(super) fn prune(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.prefixes.clear();
        self.changed.clear();
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
    use crate::timing::Measures;

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
        projection.add(connection, &execution).unwrap()
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
