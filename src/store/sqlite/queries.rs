//! Reading memories one by one and in order: a memory, its history, a thread, what refers to what, everything.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::memory::stored::{StoredMemory, StoredVersion};
use crate::store::memories::{Linked, Thread};

/// Columns of a memory, in the order of [`memory`].
pub(super) const COLUMNS: &str =
    "m.id, m.kind, m.deleted, m.created_us, m.updated_us, m.version, m.metadata, m.content";

/// Gaps of a thread that are listed.
const MAX_GAPS: usize = 1000;

/// Chats that are listed when a thread's name alone is not enough.
const MAX_CHATS: usize = 20;

/// A row of a memory has something that no daemon wrote.
#[derive(Debug, thiserror::Error)]
#[error("the memory `{id}` is damaged: {what}")]
pub(super) struct DamagedRow {
    pub(super) id: String,
    what: String,
}

impl DamagedRow {
    /// If that is why a statement failed.
    pub(super) fn of(error: &rusqlite::Error) -> Option<&Self> {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, source) = error { source.downcast_ref() } else { None }
    }
}

/// A memory from [`COLUMNS`], which begin at `from`. The error names it.
pub(super) fn memory(row: &Row<'_>, from: usize) -> rusqlite::Result<StoredMemory> {
    read_memory(row, from)
        .map_err(|error| damaged(row.get_ref(from).ok().and_then(|id| id.as_str().ok()).unwrap_or_default(), &error))
}

fn damaged(id: &str, error: &rusqlite::Error) -> rusqlite::Error {
    let damaged = DamagedRow { id: id.to_owned(), what: error.to_string() };
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(damaged))
}

fn read_memory(row: &Row<'_>, from: usize) -> rusqlite::Result<StoredMemory> {
    Ok(StoredMemory {
        id: row.get(from)?,
        kind: row.get(from + 1)?,
        deleted: row.get(from + 2)?,
        created_us: row.get(from + 3)?,
        updated_us: row.get(from + 4)?,
        version: row.get::<_, i64>(from + 5)?.cast_unsigned(),
        metadata: row.get(from + 6)?,
        content: row.get(from + 7)?,
    })
}

pub(super) fn tenant(connection: &Connection, tenant: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM memory_tenants WHERE name = ?1")?
        .query_row([tenant], |row| row.get(0))
        .optional()
}

/// A memory and its row.
pub(super) fn row(connection: &Connection, number: i64, id: &str) -> rusqlite::Result<Option<(i64, StoredMemory)>> {
    connection
        .prepare_cached(&format!("SELECT m.seq, {COLUMNS} FROM memories AS m WHERE m.tenant = ?1 AND m.id = ?2"))?
        .query_row(params![number, id], |row| Ok((row.get(0)?, memory(row, 1)?)))
        .optional()
}

pub(super) fn get(connection: &Connection, tenant: &str, id: &str) -> rusqlite::Result<Option<StoredMemory>> {
    let Some(number) = self::tenant(connection, tenant)? else { return Ok(None) };
    Ok(row(connection, number, id)?.map(|(_, memory)| memory))
}

pub(super) fn history(
    connection: &Connection,
    tenant: &str,
    id: &str,
    before: u64,
    limit: usize,
) -> rusqlite::Result<(Vec<StoredVersion>, u64)> {
    let found = match self::tenant(connection, tenant)? {
        Some(number) => row(connection, number, id)?,
        None => None,
    };
    let Some((seq, StoredMemory { id, .. })) = found else { return Ok((Vec::new(), 0)) };
    let total: i64 =
        connection.query_row("SELECT count(*) FROM memory_history WHERE seq = ?1", [seq], |row| row.get(0))?;
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    Ok((versions(connection, seq, &id, before, limit)?, total.cast_unsigned()))
}

/// Versions of a memory before one, the latest first. The error names the memory.
pub(super) fn versions(
    connection: &Connection,
    seq: i64,
    id: &str,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<StoredVersion>> {
    connection
        .prepare_cached(
            "SELECT version, updated_us, metadata, content FROM memory_history
             WHERE seq = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3",
        )?
        .query_map(params![seq, before, limit as i64], |row| read_version(row).map_err(|error| damaged(id, &error)))?
        .collect()
}

fn read_version(row: &Row<'_>) -> rusqlite::Result<StoredVersion> {
    Ok(StoredVersion {
        version: row.get::<_, i64>(0)?.cast_unsigned(),
        updated_us: row.get(1)?,
        metadata: row.get(2)?,
        content: row.get(3)?,
    })
}

pub(super) fn thread(
    connection: &Connection,
    tenant: &str,
    chat: Option<&str>,
    thread: &str,
    position: u64,
    limit: usize,
) -> rusqlite::Result<Thread> {
    let Some(number) = self::tenant(connection, tenant)? else { return Ok(Thread::default()) };
    let chats: Vec<String> = connection
        .prepare_cached(
            "SELECT DISTINCT chat_id FROM memories WHERE tenant = ?1 AND thread_id = ?2 AND deleted = 0
             AND chat_id = coalesce(?3, chat_id) ORDER BY chat_id LIMIT ?4",
        )?
        .query_map(params![number, thread, chat, MAX_CHATS as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let [chat] = chats.as_slice() else { return Ok(Thread { chats, ..Thread::default() }) };
    let memories = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM memories AS m WHERE m.tenant = ?1 AND m.chat_id = ?2 AND m.thread_id = ?3
             AND m.deleted = 0 AND m.position >= ?4 ORDER BY m.position LIMIT ?5"
        ))?
        .query_map(params![number, chat, thread, position.cast_signed(), limit as i64], |row| memory(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut positions = connection.prepare_cached(
        "SELECT position FROM memories WHERE tenant = ?1 AND chat_id = ?2 AND thread_id = ?3 AND deleted = 0
         ORDER BY position",
    )?;
    let (mut total, mut next, mut gaps) = (0, 0_u64, Vec::new());
    for position in positions.query_map(params![number, chat, thread], |row| row.get::<_, i64>(0))? {
        let position = position?.cast_unsigned();
        if position > next && gaps.len() < MAX_GAPS {
            gaps.push((next, position - 1));
        }
        (total, next) = (total + 1, position + 1);
    }
    Ok(Thread { chats, memories, total, gaps })
}

pub(super) fn links(
    connection: &Connection,
    tenant: &str,
    ids: &[String],
    limit: usize,
) -> rusqlite::Result<Vec<Linked>> {
    let Some(number) = self::tenant(connection, tenant)? else { return Ok(Vec::new()) };
    let ids = serde_json::to_string(ids).unwrap_or_default();
    connection
        .prepare_cached(
            "WITH wanted (id) AS (SELECT value FROM json_each(?2)),
             found (seq, relation, target) AS (
                SELECT l.seq, l.relation, l.target FROM wanted AS w
                    JOIN memories AS m ON m.tenant = ?1 AND m.id = w.id JOIN memory_links AS l ON l.seq = m.seq
                UNION
                SELECT l.seq, l.relation, l.target FROM wanted AS w
                    JOIN memory_links AS l ON l.tenant = ?1 AND l.target = w.id
             )
             SELECT f.id, f.kind, found.relation, found.target, t.kind FROM found
             JOIN memories AS f ON f.seq = found.seq AND f.deleted = 0
             LEFT JOIN memories AS t ON t.tenant = ?1 AND t.id = found.target AND t.deleted = 0
             ORDER BY f.id, found.relation, found.target LIMIT ?3",
        )?
        .query_map(params![number, ids, limit as i64], |row| {
            Ok(Linked {
                from: row.get(0)?,
                from_kind: row.get(1)?,
                relation: row.get(2)?,
                target: row.get(3)?,
                target_kind: row.get(4)?,
            })
        })?
        .collect()
}

pub(super) fn export(
    connection: &Connection,
    tenant: &str,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(StoredMemory, Vec<StoredVersion>)>> {
    let Some(number) = self::tenant(connection, tenant)? else { return Ok(Vec::new()) };
    let mut select = connection.prepare_cached(&format!(
        "SELECT m.seq, {COLUMNS} FROM memories AS m WHERE m.tenant = ?1 AND m.id > ?2 ORDER BY m.id LIMIT ?3"
    ))?;
    let rows = select.query_map(params![number, after, limit as i64], |row| Ok((row.get(0)?, memory(row, 1)?)))?;
    rows.map(|row| {
        let (seq, memory): (i64, StoredMemory) = row?;
        let mut history = if memory.version > 1 {
            versions(connection, seq, &memory.id, i64::MAX, usize::MAX >> 1)?
        } else {
            Vec::new()
        };
        history.reverse();
        Ok((memory, history))
    })
    .collect()
}
