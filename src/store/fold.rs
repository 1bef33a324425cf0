//! What follows from the records: how many there are of each key, and what sessions called next.
//!
//! All of it is a fold over the records in their order, so the records alone have to be flushed for each acknowledgement. The
//! fold stands in memory and is written now and then, together with the id of the last record in it; at a start, what was
//! stored after that is folded again, to the same states.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::trail::{Followed, Followers, MAX_TRAILS, Trail};
use super::{Execution, Outcome};

/// Records after which the fold is written: so many are folded again after a kill, which takes some milliseconds.
const DUE: usize = 4096;

/// Sessions whose last calls are held; of others they are looked up.
const MAX_SESSIONS: usize = 10_000;

/// Keys, and trails, that are held once all of them are written.
const MAX_HELD: usize = 20_000;

/// The fold, and the records that it is not written with yet.
#[derive(Debug, Default)]
pub(super) struct Fold {
    through: i64,
    tick: i64,
    unwritten: usize,
    /// By tenant, then by name.
    sessions: HashMap<String, HashMap<String, Latest>>,
    held_sessions: usize,
    trails: HashMap<Trail, State>,
    counts: HashMap<CountedKey, Count>,
    /// Trails that changed since somebody was told.
    changed: Vec<Trail>,
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
    is_written: bool,
}

/// What a record tells the fold.
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

impl Fold {
    /// Brings the fold that was written up to the last record.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let (through, tick) =
            connection.query_row("SELECT through, tick FROM fold", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut fold = Self { through, tick, ..Self::default() };
        let mut later = connection
            .prepare("SELECT id, tenant, tool, mode, outcome, session, duration_ms >= 0 FROM executions WHERE id > ?1 ORDER BY id")?;
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
            fold.take(connection, row.get(0)?, call)?;
        }
        fold.tell();
        Ok(fold)
    }

    /// The id of the next record.
    pub(super) fn next_id(&self) -> i64 {
        self.through + 1
    }

    /// Folds the record of [`Fold::next_id`]. Returns how many of its key there are with a duration.
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
        self.count(connection, call)
    }

    fn count(&mut self, connection: &Connection, call: Call<'_>) -> rusqlite::Result<i64> {
        let failed = call.outcome == Outcome::Error;
        let key = CountedKey { tool: call.tool.to_owned(), mode: call.mode.to_owned(), failed };
        if let Some(count) = self.counts.get_mut(&key) {
            count.samples += i64::from(call.is_timed);
            count.is_written = false;
            return Ok(count.samples);
        }
        let known: Option<i64> = connection
            .prepare_cached("SELECT samples FROM execution_keys WHERE tool = ?1 AND mode = ?2 AND failed = ?3")?
            .query_row(params![call.tool, call.mode, failed], |row| row.get(0))
            .optional()?;
        let samples = known.unwrap_or_default() + i64::from(call.is_timed);
        self.counts.insert(key, Count { samples, is_written: false });
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
            self.observe(connection, Trail { before, last: last.clone() }, call.tool, succeeded)?;
        }
        self.observe(connection, Trail { before: None, last }, call.tool, succeeded)
    }

    fn observe(&mut self, connection: &Connection, trail: Trail, tool: &str, succeeded: bool) -> rusqlite::Result<()> {
        self.tick += 1;
        let state = if let Some(state) = self.trails.get_mut(&trail) {
            state
        } else {
            let followers = Arc::new(followers_of(connection, &trail)?);
            let state = State { followers, is_told: true, ..State::default() };
            self.trails.entry(trail.clone()).or_insert(state)
        };
        Arc::make_mut(&mut state.followers).observe(tool, succeeded);
        (state.tick, state.is_written) = (self.tick, false);
        if std::mem::take(&mut state.is_told) {
            self.changed.push(trail);
        }
        Ok(())
    }

    /// The trails that changed since this was asked before, the one that changed last at the end.
    pub(super) fn tell(&mut self) -> Arc<[Followed]> {
        let told = self.changed.drain(..).filter_map(|trail| {
            let state = self.trails.get_mut(&trail)?;
            state.is_told = true;
            Some(Followed { trail, followers: Arc::clone(&state.followers), tick: state.tick.cast_unsigned() })
        });
        let mut told: Vec<Followed> = told.collect();
        told.sort_unstable_by_key(|followed| followed.tick);
        told.into()
    }

    /// Are there so many records that it is not written with that it should be?
    pub(super) fn is_due(&self) -> bool {
        self.unwritten >= DUE
    }

    /// Are there records that it is not written with?
    pub(super) fn is_unwritten(&self) -> bool {
        self.unwritten > 0
    }

    /// Writes it. If the transaction does not come to its end, the fold has to be read anew.
    pub(super) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut put = connection.prepare_cached(
            "INSERT INTO trails (before, last, followers, tick) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET followers = excluded.followers, tick = excluded.tick",
        )?;
        for (trail, state) in self.trails.iter_mut().filter(|(_, state)| !state.is_written) {
            let before = trail.before.as_deref().unwrap_or_default();
            put.execute(params![before, trail.last, state.followers.encode(), state.tick])?;
            state.is_written = true;
        }
        let mut put = connection.prepare_cached(
            "INSERT INTO execution_keys (tool, mode, failed, samples) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET samples = excluded.samples",
        )?;
        for (key, count) in self.counts.iter_mut().filter(|(_, count)| !count.is_written) {
            put.execute(params![key.tool, key.mode, key.failed, count.samples])?;
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
        if self.trails.len() > MAX_HELD {
            self.trails.clear();
        }
        if self.counts.len() > MAX_HELD {
            self.counts.clear();
        }
    }

    /// Forgets all but the latest trails. It has to be written before.
    pub(super) fn prune(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.trails.clear();
        self.changed.clear();
        let beyond = "DELETE FROM trails WHERE tick <= (SELECT tick FROM trails ORDER BY tick DESC LIMIT 1 OFFSET ?1)";
        connection.execute(beyond, [MAX_TRAILS as i64]).map(drop)
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

fn followers_of(connection: &Connection, trail: &Trail) -> rusqlite::Result<Followers> {
    let written = connection
        .prepare_cached("SELECT followers FROM trails WHERE before = ?1 AND last = ?2")?
        .query_row(params![trail.before.as_deref().unwrap_or_default(), trail.last], |row| {
            Ok(Followers::decode(row.get_ref(0)?.as_str()?))
        })
        .optional()?;
    Ok(written.unwrap_or_default())
}

/// The latest trails that were written, earliest first.
pub(super) fn read_trails(connection: &Connection) -> rusqlite::Result<Vec<Followed>> {
    let mut select =
        connection.prepare("SELECT before, last, followers, tick FROM trails ORDER BY tick DESC LIMIT ?1")?;
    let rows = select.query_map([MAX_TRAILS as i64], |row| {
        let before: String = row.get(0)?;
        let trail = Trail { before: Some(before).filter(|before| !before.is_empty()), last: row.get(1)? };
        let followers = Arc::new(Followers::decode(row.get_ref(2)?.as_str()?));
        Ok(Followed { trail, followers, tick: row.get::<_, i64>(3)?.cast_unsigned() })
    })?;
    let mut all: Vec<Followed> = rows.collect::<rusqlite::Result<_>>()?;
    all.reverse();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Measures;
    use super::super::migrations::migrate;
    use super::*;

    fn database() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    /// Stores the record as the writer does.
    fn store(connection: &Connection, fold: &mut Fold, (session, tool, outcome): (u8, &str, Outcome)) -> u64 {
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
                    fold.next_id(),
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
        fold.add(connection, &execution).unwrap()
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
        /// Written at any time, told at any time, killed at any time: it comes to the same.
        #[test]
        fn a_kill_changes_nothing(
            records in prop::collection::vec((0u8..5, "[a-c]", 0usize..4, 0u8..8), 1..60),
        ) {
            let (steady, killed) = (database(), database());
            let (mut one, mut other) = (Fold::read(&steady).unwrap(), Fold::read(&killed).unwrap());
            let mut told: HashMap<Trail, Followed> = HashMap::new();
            for (session, tool, outcome, then) in &records {
                let record = (*session, tool.as_str(), Outcome::ALL[*outcome]);
                prop_assert_eq!(store(&steady, &mut one, record), store(&killed, &mut other, record));
                one.write(&steady).unwrap();
                for followed in other.tell().iter() {
                    told.insert(followed.trail.clone(), followed.clone());
                }
                match then {
                    0 => other.write(&killed).unwrap(),
                    1 => other = Fold::read(&killed).unwrap(),
                    2 => { other.write(&killed).unwrap(); other.prune(&killed).unwrap() }
                    _ => {}
                }
            }
            Fold::read(&killed).unwrap().write(&killed).unwrap();
            prop_assert_eq!(written(&steady), written(&killed));
            let mut told: Vec<Followed> = told.into_values().collect();
            told.sort_unstable_by_key(|followed| followed.tick);
            prop_assert_eq!(told, read_trails(&killed).unwrap(), "what was handed out is what is read back");
        }
    }

    #[test]
    fn ids_are_not_used_again_when_all_records_are_gone() {
        let connection = database();
        let mut fold = Fold::read(&connection).unwrap();
        for _ in 0..3 {
            store(&connection, &mut fold, (1, "a", Outcome::Success));
        }
        fold.write(&connection).unwrap();
        connection.execute("DELETE FROM executions", []).unwrap();
        let mut fold = Fold::read(&connection).unwrap();
        assert_eq!((fold.next_id(), store(&connection, &mut fold, (1, "a", Outcome::Success))), (4, 4));
    }
}
