//! Removing memories for good, in steps between other writes: first the rows, some at a time; then what SQLite left of
//! them in the log and in pages. It is acknowledged when no file has a byte of them any more.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tokio::sync::oneshot;

use super::notes;
use super::postings::Changes;
use super::queries;
use super::row_cache;
use crate::store::StoreError;
use crate::store::clock::Clock;
use crate::store::memories::{Forgotten, MemoryError, Purge, SessionsOf};
use crate::store::noted::Noted;

/// How long a step may take: whoever writes meanwhile waits for one at most.
pub(super) const STEP: Duration = Duration::from_millis(10);

/// Rows that are looked for at once.
const AT_ONCE: i64 = 4;

/// Blocks of the index that a step may touch, unless a single memory has more terms; so many take some milliseconds.
const BLOCKS: usize = 500;

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
    noted: Option<Noted>,
    forgotten: Forgotten,
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
        let (through, noted, forgotten, since) = (None, None, Forgotten::default(), Instant::now());
        (Self { tenant, which, sessions, through, noted, forgotten, reply: Some(reply), since }, pending)
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
        let mut noted = match self.noted.take() {
            Some(noted) => noted,
            None => notes::noted_of(transaction, &self.tenant)?,
        };
        let (mut changes, mut is_done) = (Changes::default(), false);
        while !is_done && Instant::now() < deadline && changes.len() < BLOCKS {
            let victims = victims(transaction, number, through, &self.which)?;
            is_done = victims.is_empty();
            for victim in victims {
                self.note(transaction, &mut noted, &victim)?;
                if victim.is_whole {
                    changes.replace(transaction, number, victim.seq, None)?;
                    remove(transaction, number, victim.seq, clock.tick())?;
                    self.forgotten.memories += 1;
                } else if let Purge::Person(user) = &self.which {
                    remove_versions(transaction, victim.seq, user)?;
                }
            }
        }
        changes.write(transaction)?;
        notes::forget(&mut noted, transaction, &self.tenant, &mut self.forgotten)?;
        self.noted = Some(noted);
        Ok(is_done)
    }

    /// Finds what was noted of a row: choices made for its text in any version, and the sessions that stand at one; of
    /// whole persons also those that are named after its chat and thread.
    fn note(&self, connection: &Connection, noted: &mut Noted, victim: &Victim) -> rusqlite::Result<()> {
        let user = if let Purge::Person(user) = &self.which { Some(user) } else { None };
        if victim.is_whole && matches!(self.which, Purge::Person(_) | Purge::Everybody) {
            let place = connection
                .prepare_cached("SELECT chat_id, thread_id FROM memories WHERE seq = ?1")?
                .query_row([victim.seq], |row| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?)))
                .optional()?;
            let (chat, thread) = place.unwrap_or_default();
            noted.forget_sessions(chat.as_deref().map(self.sessions).into_iter().flatten().chain(thread));
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
            noted.forget_text(row.get_ref(0)?.as_str().unwrap_or_default());
        }
        Ok(())
    }

    /// Is it waited for no longer, since readers keep the log?
    pub(super) fn is_overdue(&self) -> bool {
        self.since.elapsed() > PATIENCE
    }

    /// Tells whoever waits, if nobody did before.
    pub(super) fn acknowledge(&mut self, outcome: Result<(), StoreError>) {
        let Some(reply) = self.reply.take() else { return };
        let forgotten = std::mem::take(&mut self.forgotten);
        // Whoever does not wait any more knows that it does not know.
        let _ = reply.send(outcome.map(|()| forgotten).map_err(MemoryError::from));
    }
}

/// That a column says the person of the parameter 2, in any version: one comes after a colon, which no part of an id
/// has.
fn of_person(column: &str) -> String {
    format!("({column} = ?2 OR {column} > ?2 || ':' AND {column} < ?2 || ';')")
}

fn victims(connection: &Connection, number: i64, through: i64, which: &Purge) -> rusqlite::Result<Vec<Victim>> {
    let of = |sql: &str, value: &dyn rusqlite::ToSql, is_whole: bool| -> rusqlite::Result<Vec<Victim>> {
        connection
            .prepare_cached(sql)?
            .query_map(params![number, value, through, AT_ONCE], |row| Ok(Victim { seq: row.get(0)?, is_whole }))?
            .collect()
    };
    let whole = |condition: &str, value: &dyn rusqlite::ToSql| {
        of(&format!("SELECT seq FROM memories WHERE tenant = ?1 AND {condition} AND seq <= ?3 LIMIT ?4"), value, true)
    };
    match which {
        Purge::Ids(ids) => {
            whole("id IN (SELECT value FROM json_each(?2))", &serde_json::to_string(ids).unwrap_or_default())
        }
        Purge::DeletedBefore(moment) => whole("deleted = 1 AND updated_us < ?2", moment),
        Purge::Everybody => whole("?2 IS NULL", &rusqlite::types::Null),
        Purge::Person(user) => {
            let mut victims = whole(&of_person("user_id"), user)?;
            if victims.is_empty() {
                // Memories that are another's by now, or nobody's.
                let sql = format!(
                    "SELECT DISTINCT h.seq FROM memory_history AS h JOIN memories AS m ON m.seq = h.seq
                     WHERE m.tenant = ?1 AND {} AND h.seq <= ?3 LIMIT ?4",
                    of_person("h.user_id")
                );
                victims = of(&sql, user, false)?;
            }
            Ok(victims)
        }
    }
}

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
