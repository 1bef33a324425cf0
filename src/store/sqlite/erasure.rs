//! Removing memories for good, in steps between other writes: first the rows, some at a time; then what SQLite left of
//! them in the log and in pages. It is acknowledged when no file has a byte of them any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, params};
use tokio::sync::oneshot;

use super::notes::{self, NotedReader};
use super::postings::Changes;
use super::queries;
use super::row_cache;
use crate::store::clock::Clock;
use crate::store::memories::{Forgotten, MemoryError, Purge, SessionsOf};
use crate::store::noted::Noted;
use crate::store::{ForgottenTexts, StoreError};

/// How long a step may take: whoever writes meanwhile waits for one at most.
pub(super) const STEP: Duration = Duration::from_millis(5);

/// Blocks of the index that a step may touch, unless a single memory has more terms: writing them back takes longest.
const BLOCKS: usize = 250;

/// For so long readers of an older state, which the log is kept for, are waited for before it is said that they keep
/// it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Memories that are to be removed, and who waits for it.
pub(super) struct Erasure {
    tenant: String,
    which: Purge,
    sessions: SessionsOf,
    /// Rows that were there when it began; nothing before.
    through: Option<i64>,
    noted: NotedReader,
    forgotten: Forgotten,
    /// What is told as [`Forgotten::texts`]: too many to be copied at each step.
    texts: ForgottenTexts,
    /// Nothing once it was told.
    reply: Option<oneshot::Sender<Result<Forgotten, MemoryError>>>,
    since: Instant,
}

/// A row that something is to be removed of.
struct Victim {
    seq: i64,
    /// The memory itself, not only earlier versions of it.
    is_whole: bool,
}

impl Erasure {
    pub(super) fn new(
        tenant: String,
        which: Purge,
        sessions: SessionsOf,
    ) -> (Self, oneshot::Receiver<Result<Forgotten, MemoryError>>) {
        let (reply, pending) = oneshot::channel();
        let erasure = Self {
            tenant,
            which,
            sessions,
            through: None,
            noted: NotedReader::default(),
            forgotten: Forgotten::default(),
            texts: ForgottenTexts::default(),
            reply: Some(reply),
            since: Instant::now(),
        };
        (erasure, pending)
    }

    /// Removes some rows. Are all removed?
    pub(super) fn step(&mut self, transaction: &Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<bool> {
        let Some(number) = queries::tenant(transaction, &self.tenant)? else { return Ok(true) };
        let deadline = Instant::now() + STEP;
        let through = match self.through {
            Some(through) => through,
            None => transaction.query_row("SELECT coalesce(max(seq), 0) FROM memories", [], |row| row.get(0))?,
        };
        self.through = Some(through);
        let Self { tenant, which, sessions, noted, forgotten, texts, .. } = self;
        let Some(noted) = noted.read(transaction, tenant, deadline)? else { return Ok(false) };
        if let Purge::NotedSince { texts, sessions } = which {
            noted.forget_texts(texts);
            noted.forget_sessions(sessions.drain(..));
        }
        let (mut changes, mut is_done) = (Changes::default(), false);
        while !is_done && Instant::now() < deadline && changes.len() < BLOCKS {
            let victim = match next(transaction, number, through, which)? {
                Next::Victim(victim) => victim,
                Next::Missing => continue,
                Next::End => {
                    is_done = true;
                    continue;
                }
            };
            note(transaction, (&mut *noted, &mut *texts), which, *sessions, &victim)?;
            if victim.is_whole {
                changes.replace(transaction, number, victim.seq, None)?;
                remove(transaction, number, victim.seq, clock.tick())?;
                forgotten.memories += 1;
            } else if let Purge::Person(user) = which {
                remove_versions(transaction, victim.seq, user)?;
            }
        }
        changes.write(transaction)?;
        notes::forget(noted, transaction, tenant, forgotten)?;
        Ok(is_done)
    }

    /// What went so far.
    pub(super) fn forgotten(&self) -> &Forgotten {
        &self.forgotten
    }

    /// The last step was not committed.
    pub(super) fn take_back(&mut self, before: Forgotten) {
        self.forgotten = before;
    }

    /// Is it waited for no longer, since readers keep the log?
    pub(super) fn is_overdue(&self) -> bool {
        self.since.elapsed() > PATIENCE
    }

    /// Tells whoever waits, if nobody did before.
    pub(super) fn acknowledge(&mut self, outcome: Result<(), StoreError>) {
        let Some(reply) = self.reply.take() else { return };
        let (texts, failure) = (Arc::new(std::mem::take(&mut self.texts)), outcome.err());
        let forgotten = Forgotten { texts, failure, ..std::mem::take(&mut self.forgotten) };
        // Whoever does not wait any more knows that it does not know.
        let _ = reply.send(Ok(forgotten));
    }
}

/// Finds what was noted of a row: choices made for its text in any version, and the sessions that stand at one; of
/// whole persons also those that are named after its chat and thread.
fn note(
    connection: &Connection,
    (noted, gone): (&mut Noted, &mut ForgottenTexts),
    which: &Purge,
    sessions: SessionsOf,
    victim: &Victim,
) -> rusqlite::Result<()> {
    let user = if let Purge::Person(user) = which { Some(user) } else { None };
    if victim.is_whole && matches!(which, Purge::Person(_) | Purge::Everybody) {
        let place = connection
            .prepare_cached("SELECT chat_id, thread_id FROM memories WHERE seq = ?1")?
            .query_row([victim.seq], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?)))
            .optional()?;
        let (chat, thread) = place.unwrap_or_default();
        noted.forget_sessions(chat.as_deref().map(sessions).into_iter().flatten().chain(thread));
    }
    let of_versions = "SELECT content FROM memory_history WHERE seq = ?1";
    let mut texts = connection.prepare_cached(&if victim.is_whole {
        format!("SELECT content FROM memories WHERE seq = ?1 AND ?2 IS ?2 UNION ALL {of_versions}")
    } else {
        format!("{of_versions} AND {}", of_person("user_id"))
    })?;
    let mut rows = texts.query(params![victim.seq, user])?;
    while let Some(row) = rows.next()? {
        // A damaged text was never noted, and must not keep the rest.
        noted.forget_text(row.get_ref(0)?.as_str().unwrap_or_default(), gone);
    }
    Ok(())
}

/// That a column says the person of the parameter 2, in any version: one comes after a colon, which no part of an id
/// has.
fn of_person(column: &str) -> String {
    format!("({column} = ?2 OR {column} > ?2 || ':' AND {column} < ?2 || ';')")
}

/// What is found next of what is to be removed.
enum Next {
    Victim(Victim),
    /// There is no memory of an id.
    Missing,
    End,
}

/// The next row that something is to be removed of. An id that was looked up is taken out.
fn next(connection: &Connection, number: i64, through: i64, which: &mut Purge) -> rusqlite::Result<Next> {
    let whole = |sql: &str, value: &dyn ToSql| first(connection, sql, number, value, through, true);
    let found = match which {
        Purge::Ids(ids) => match ids.pop() {
            Some(id) => return Ok(whole(OF_ID, &id)?.map_or(Next::Missing, Next::Victim)),
            None => None,
        },
        Purge::DeletedBefore(moment) => whole(DELETED, moment)?,
        Purge::Everybody => whole(OF_TENANT, &Null)?,
        Purge::NotedSince { .. } => None,
        Purge::Person(user) => match whole(OF_PERSON, user)? {
            Some(victim) => Some(victim),
            // Memories that are another's by now, or nobody's.
            None => first(connection, ONCE_OF_PERSON, number, user, through, false)?,
        },
    };
    Ok(found.map_or(Next::End, Next::Victim))
}

/// The first row that a statement finds of a tenant's (parameter 1) by a value (2) up to a number (3).
fn first(
    connection: &Connection,
    sql: &str,
    number: i64,
    value: &dyn ToSql,
    through: i64,
    is_whole: bool,
) -> rusqlite::Result<Option<Victim>> {
    connection
        .prepare_cached(sql)?
        .query_row(params![number, value, through], |row| Ok(Victim { seq: row.get(0)?, is_whole }))
        .optional()
}

// Each looks in one index only, whatever SQLite guesses: whoever writes waits for it.

const OF_ID: &str = "SELECT seq FROM memories WHERE tenant = ?1 AND id = ?2 AND +seq <= ?3";

const DELETED: &str = "SELECT seq FROM memories INDEXED BY memories_by_change
    WHERE tenant = ?1 AND kind IN (SELECT kind FROM memory_counts WHERE tenant = ?1 AND deleted = 1 AND memories > 0)
        AND deleted = 1 AND updated_us < ?2 AND +seq <= ?3 LIMIT 1";

const OF_TENANT: &str = "SELECT seq FROM memories INDEXED BY memories_by_id
    WHERE tenant = ?1 AND ?2 IS NULL AND +seq <= ?3 LIMIT 1";

/// In any version of the id: one comes after a colon, which no part of an id has.
const OF_PERSON: &str = "SELECT seq FROM memories INDEXED BY memories_by_user
    WHERE tenant = ?1 AND user_id = ?2 AND +seq <= ?3
    UNION ALL SELECT seq FROM memories INDEXED BY memories_by_user
    WHERE tenant = ?1 AND user_id > ?2 || ':' AND user_id < ?2 || ';' AND +seq <= ?3 LIMIT 1";

const ONCE_OF_PERSON: &str = "SELECT seq FROM memory_history INDEXED BY memory_history_by_user
    WHERE tenant = ?1 AND user_id = ?2 AND +seq <= ?3
    UNION ALL SELECT seq FROM memory_history INDEXED BY memory_history_by_user
    WHERE tenant = ?1 AND user_id > ?2 || ':' AND user_id < ?2 || ';' AND +seq <= ?3 LIMIT 1";

fn remove(connection: &Connection, number: i64, seq: i64, stamp: i64) -> rusqlite::Result<()> {
    row_cache::leave(connection, seq, stamp)?;
    for table in ["memory_history", "memory_links"] {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE seq = ?1"))?.execute([seq])?;
    }
    connection
        .prepare_cached("DELETE FROM memory_keys WHERE tenant = ?1 AND id = (SELECT id FROM memories WHERE seq = ?2)")?
        .execute([number, seq])?;
    connection.prepare_cached("DELETE FROM memories WHERE seq = ?1")?.execute([seq]).map(drop)
}

fn remove_versions(connection: &Connection, seq: i64, user: &str) -> rusqlite::Result<()> {
    let sql = format!("DELETE FROM memory_history WHERE seq = ?1 AND {}", of_person("user_id"));
    connection.prepare_cached(&sql)?.execute(params![seq, user]).map(drop)
}

#[cfg(test)]
mod tests;
