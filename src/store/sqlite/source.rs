//! What a database of one machine has, as whoever copies it to another store reads it: in pages, each of one state, so
//! that the daemon beside it is not held up.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row, Statement, params};

use super::history::execution;
use super::is_there;
use super::migrations::{STEPS, version};
use super::queries::{self, COLUMNS, memory};
use crate::memory::kind::Relation;
use crate::memory::stored::{Keys, StoredMemory};
use crate::store::memories::Imported;
use crate::store::projection::CountedKey;
use crate::timing::{Execution, Predicted};

/// The database cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    #[error("{} cannot be read; do this as the daemon's user", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{} has schema {found}, and this almanacd copies {known}; stop the daemon that works on it, or start this \
         version on it once",
        path.display()
    )]
    Version { path: PathBuf, found: usize, known: usize },
    #[error("{}: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::store) struct SourceCounts {
    pub(in crate::store) records: u64,
    pub(in crate::store) memories: u64,
    pub(in crate::store) turns: u64,
    pub(in crate::store) choices: u64,
}

/// A key under which something was told, and what it stands for.
pub(in crate::store) struct ToldKey {
    pub(in crate::store) tenant: String,
    pub(in crate::store) key: String,
    pub(in crate::store) digest: Vec<u8>,
    /// Of a memory.
    pub(in crate::store) id: String,
    pub(in crate::store) at_ms: i64,
}

/// What was counted of a tool and mode, and the latest calls of it with a duration.
pub(in crate::store) struct CountedCalls {
    pub(in crate::store) key: CountedKey,
    pub(in crate::store) samples: i64,
    pub(in crate::store) last: i64,
    pub(in crate::store) latest: Vec<(i64, Execution)>,
}

/// What sessions called next, as it is written.
pub(in crate::store) struct TrailRow {
    pub(in crate::store) before: String,
    pub(in crate::store) last: String,
    pub(in crate::store) followers: String,
    pub(in crate::store) tick: i64,
}

/// What follows from the records, as of one of them.
pub(in crate::store) struct LearntSource {
    pub(in crate::store) through: i64,
    pub(in crate::store) tick: i64,
    pub(in crate::store) counts: Vec<CountedCalls>,
    pub(in crate::store) trails: Vec<TrailRow>,
}

/// Where a session stands, with its turns that are kept.
pub(in crate::store) struct TurnRow {
    pub(in crate::store) tenant: String,
    pub(in crate::store) session: String,
    pub(in crate::store) state: String,
    pub(in crate::store) at_us: i64,
    pub(in crate::store) kept: Vec<KeptRow>,
}

pub(in crate::store) struct KeptRow {
    pub(in crate::store) number: i64,
    pub(in crate::store) digest: Vec<u8>,
    pub(in crate::store) state: String,
    pub(in crate::store) at_us: i64,
}

pub(in crate::store) struct ChoiceRow {
    pub(in crate::store) tenant: String,
    pub(in crate::store) tool: String,
    pub(in crate::store) message: String,
    pub(in crate::store) trust: f32,
    pub(in crate::store) at_us: i64,
    /// What the tenant's choices moved.
    pub(in crate::store) adaptation: Vec<u8>,
}

/// A database that is read and never written.
#[derive(Debug)]
pub(in crate::store) struct SqliteSource {
    connection: Connection,
    path: PathBuf,
}

impl SqliteSource {
    pub(in crate::store) fn open(path: &Path) -> Result<Self, SourceError> {
        if !is_there(path).map_err(|source| SourceError::Unreadable { path: path.to_owned(), source })? {
            return Err(SourceError::Missing(path.to_owned()));
        }
        let failed = |source| SourceError::Sqlite { path: path.to_owned(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(super::database::LONG_PATIENCE).map_err(failed)?;
        let found = version(&connection).map_err(failed)?;
        if found != STEPS.len() {
            return Err(SourceError::Version { path: path.to_owned(), found, known: STEPS.len() });
        }
        Ok(Self { connection, path: path.to_owned() })
    }

    fn read<T>(&self, body: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, SourceError> {
        let failed = |source| SourceError::Sqlite { path: self.path.clone(), source };
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        body(&transaction).map_err(failed)
    }

    /// Which database it is: 128 random bits.
    pub(in crate::store) fn origin(&self) -> Result<[u8; 16], SourceError> {
        self.read(|connection| connection.query_row("SELECT incarnation FROM origin", [], |row| row.get(0)))
    }

    pub(in crate::store) fn counts(&self) -> Result<SourceCounts, SourceError> {
        self.read(|connection| {
            let query = "SELECT (SELECT count(*) FROM executions), (SELECT count(*) FROM memories),
                (SELECT count(*) FROM turns), (SELECT count(*) FROM choices)";
            connection.query_row(query, [], |row| {
                let count = |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(column)?.cast_unsigned());
                Ok(SourceCounts { records: count(0)?, memories: count(1)?, turns: count(2)?, choices: count(3)? })
            })
        })
    }

    /// The ids of the first record that is there, and of the last that ever was; 1 and 0 if there is none.
    pub(in crate::store) fn bounds(&self) -> Result<(i64, i64), SourceError> {
        let query = "SELECT coalesce((SELECT min(id) FROM executions), through + 1),
            max(coalesce((SELECT max(id) FROM executions), 0), through) FROM fold";
        self.read(|connection| connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))))
    }

    /// Records behind an id, in their order.
    pub(in crate::store) fn records(&self, after: i64, limit: usize) -> Result<Vec<(i64, Execution)>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
                    thinking_budget, context_tokens, session, at_ms, id
                 FROM executions WHERE id > ?1 ORDER BY id LIMIT ?2",
            )?;
            let rows = select.query_map(params![after, limit as i64], |row| Ok((row.get(12)?, execution(row)?)))?;
            rows.collect()
        })
    }

    /// What was predicted of records behind an id, up to another.
    pub(in crate::store) fn predicted(&self, after: i64, until: i64) -> Result<Vec<(i64, Predicted)>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT id, predicted FROM executions WHERE id > ?1 AND id <= ?2 AND predicted IS NOT NULL ORDER BY id",
            )?;
            let rows = select.query_map([after, until], |row| {
                Ok((row.get(0)?, Predicted::from_bytes(row.get_ref(1)?.as_blob()?)))
            })?;
            let rows: Vec<(i64, Option<Predicted>)> = rows.collect::<rusqlite::Result<_>>()?;
            Ok(rows.into_iter().filter_map(|(id, predicted)| Some((id, predicted?))).collect())
        })
    }

    /// Keys that calls were told under.
    pub(in crate::store) fn call_keys(&self) -> Result<Vec<ToldKey>, SourceError> {
        self.read(|connection| {
            let select =
                connection.prepare("SELECT tenant, key, CAST(digest AS BLOB), '', at_ms FROM idempotency_keys")?;
            told_keys(select)
        })
    }

    /// Keys that memories were told under.
    pub(in crate::store) fn memory_keys(&self) -> Result<Vec<ToldKey>, SourceError> {
        self.read(|connection| {
            let select = connection.prepare(
                "SELECT t.name, k.key, k.digest, k.id, k.at_ms FROM memory_keys AS k
                 JOIN memory_tenants AS t ON t.number = k.tenant",
            )?;
            told_keys(select)
        })
    }

    /// What follows from the records, as far as it changed behind a record and a state; of each key the latest `calls`.
    pub(in crate::store) fn learnt(&self, through: i64, tick: i64, calls: usize) -> Result<LearntSource, SourceError> {
        self.read(|connection| {
            let (now, now_tick) =
                connection.query_row("SELECT through, tick FROM fold", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut select = connection
                .prepare("SELECT tool, mode, failed, samples, last_id FROM execution_keys WHERE last_id > ?1")?;
            let counted = select.query_map([through], |row| {
                let key = CountedKey { tool: row.get(0)?, mode: row.get(1)?, failed: row.get(2)? };
                Ok(CountedCalls { key, samples: row.get(3)?, last: row.get(4)?, latest: Vec::new() })
            })?;
            let mut counts: Vec<CountedCalls> = counted.collect::<rusqlite::Result<_>>()?;
            for counted in &mut counts {
                counted.latest = latest(connection, &counted.key, now, calls)?;
            }
            let mut select =
                connection.prepare("SELECT before, last, followers, tick FROM trails WHERE tick > ?1 ORDER BY tick")?;
            let trails = select.query_map([tick], |row| {
                Ok(TrailRow { before: row.get(0)?, last: row.get(1)?, followers: row.get(2)?, tick: row.get(3)? })
            })?;
            let trails = trails.collect::<rusqlite::Result<_>>()?;
            Ok(LearntSource { through: now, tick: now_tick, counts, trails })
        })
    }

    /// The tenants that have memories, with their numbers.
    pub(in crate::store) fn tenants(&self) -> Result<Vec<(i64, String)>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare("SELECT number, name FROM memory_tenants ORDER BY name")?;
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// Ids of a tenant's memories behind one, in their order, each with a text that differs when the memory does.
    pub(in crate::store) fn memory_states(
        &self,
        tenant: i64,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, String)>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached(
                "SELECT id, version || '/' || (SELECT count(*) FROM memory_history AS h WHERE h.seq = m.seq)
                 FROM memories AS m WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            select.query_map(params![tenant, after, limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// These memories of a tenant, as far as they are there.
    pub(in crate::store) fn memories(&self, tenant: i64, ids: &[String]) -> Result<Vec<Imported>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached(&format!(
                "SELECT {COLUMNS}, m.seq, m.user_id, m.agent_id, m.chat_id, m.thread_id, m.position, m.importance
                 FROM memories AS m WHERE m.tenant = ?1 AND m.id = ?2"
            ))?;
            let mut found = Vec::with_capacity(ids.len());
            for id in ids {
                let mut rows = select.query(params![tenant, id])?;
                if let Some(row) = rows.next()? {
                    found.push(imported(connection, row)?);
                }
            }
            Ok(found)
        })
    }

    /// Where sessions stand, in the order of tenants and sessions.
    pub(in crate::store) fn turns(&self) -> Result<Vec<TurnRow>, SourceError> {
        self.read(|connection| {
            let mut select =
                connection.prepare("SELECT tenant, session, state, at_us FROM turns ORDER BY tenant, session")?;
            let rows = select.query_map([], |row| {
                let (tenant, session) = (row.get(0)?, row.get(1)?);
                Ok(TurnRow { tenant, session, state: row.get(2)?, at_us: row.get(3)?, kept: Vec::new() })
            })?;
            let mut turns: Vec<TurnRow> = rows.collect::<rusqlite::Result<_>>()?;
            let mut select = connection.prepare(
                "SELECT number, digest, state, at_us FROM kept_turns WHERE tenant = ?1 AND session = ?2
                 ORDER BY number",
            )?;
            for turn in &mut turns {
                let kept = select.query_map([&turn.tenant, &turn.session], |row| {
                    Ok(KeptRow { number: row.get(0)?, digest: row.get(1)?, state: row.get(2)?, at_us: row.get(3)? })
                })?;
                turn.kept = kept.collect::<rusqlite::Result<_>>()?;
            }
            Ok(turns)
        })
    }

    /// Choices in the order of tenants and of time.
    pub(in crate::store) fn choices(&self) -> Result<Vec<ChoiceRow>, SourceError> {
        self.read(|connection| {
            let mut select = connection.prepare(
                "SELECT c.tenant, c.tool, c.message, c.trust, c.at_us, coalesce(a.state, x'') FROM choices AS c
                 LEFT JOIN adaptations AS a USING (tenant) ORDER BY c.tenant, c.at_us",
            )?;
            let rows = select.query_map([], |row| {
                Ok(ChoiceRow {
                    tenant: row.get(0)?,
                    tool: row.get(1)?,
                    message: row.get(2)?,
                    trust: row.get(3)?,
                    at_us: row.get(4)?,
                    adaptation: row.get(5)?,
                })
            })?;
            rows.collect()
        })
    }
}

fn told_keys(mut select: Statement<'_>) -> rusqlite::Result<Vec<ToldKey>> {
    let rows = select.query_map([], |row| {
        Ok(ToldKey { tenant: row.get(0)?, key: row.get(1)?, digest: row.get(2)?, id: row.get(3)?, at_ms: row.get(4)? })
    })?;
    rows.collect()
}

/// The latest calls of a key with a duration up to a record, in their order.
fn latest(
    connection: &Connection,
    key: &CountedKey,
    through: i64,
    calls: usize,
) -> rusqlite::Result<Vec<(i64, Execution)>> {
    let mut select = connection.prepare_cached(
        "SELECT tenant, tool, mode, duration_ms, outcome, content_length, num_perspectives, num_branches,
            thinking_budget, context_tokens, session, at_ms, id
         FROM executions WHERE tool = ?1 AND mode IS nullif(?2, '') AND failed = ?3 AND duration_ms >= 0 AND id <= ?4
         ORDER BY id DESC LIMIT ?5",
    )?;
    let rows = select.query_map(params![key.tool, key.mode, key.failed, through, calls as i64], |row| {
        Ok((row.get(12)?, execution(row)?))
    })?;
    let mut latest: Vec<(i64, Execution)> = rows.collect::<rusqlite::Result<_>>()?;
    latest.reverse();
    Ok(latest)
}

/// A memory with its history and links: what it is looked up by stands in columns.
fn imported(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Imported> {
    let (kept, seq): (StoredMemory, i64) = (memory(row, 0)?, row.get(8)?);
    let position: Option<i64> = row.get(13)?;
    let mut history = queries::versions(connection, seq, &kept.id, i64::MAX, usize::MAX >> 1)?;
    history.reverse();
    let mut select = connection
        .prepare_cached("SELECT relation, target FROM memory_links WHERE seq = ?1 ORDER BY relation, target")?;
    let links = select.query_map([seq], |row| {
        let relation = Relation::parse(row.get_ref(0)?.as_str()?).map(Relation::as_str);
        Ok((relation, row.get(1)?))
    })?;
    let links: Vec<(Option<&'static str>, String)> = links.collect::<rusqlite::Result<_>>()?;
    let keys = Keys {
        user: row.get(9)?,
        agent: row.get(10)?,
        chat: row.get(11)?,
        place: row.get::<_, Option<String>>(12)?.zip(position.map(i64::cast_unsigned)),
        importance: row.get(14)?,
    };
    let links = links.into_iter().filter_map(|(relation, target)| Some((relation?, target))).collect();
    Ok(Imported::of(kept, keys, links, history))
}
