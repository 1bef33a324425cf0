//! Reading memories one by one and in order: a memory, its history, a thread, what refers to what, everything.

use std::collections::HashMap;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::memory::kind::Relation;
use crate::memory::stored::{Keys, StoredMemory, StoredVersion};
use crate::store::memories::{Imported, Linked, Thread};
use crate::store::postgres::fault::DatabaseFault;
use crate::store::postgres::session::DatabaseSession;

/// Columns of a memory, in the order of [`memory`].
pub(super) const COLUMNS: &str =
    "m.id, m.kind, m.deleted, m.created_us, m.updated_us, m.version, m.metadata, m.content";

/// Gaps of a thread that are listed.
const MAX_GAPS: usize = 1000;

/// Chats that are listed when a thread's name alone is not enough.
const MAX_CHATS: i64 = 20;

/// A memory from [`COLUMNS`], which begin at `from`.
pub(super) fn memory(row: &Row, from: usize) -> StoredMemory {
    StoredMemory {
        id: row.get(from),
        kind: row.get::<_, i16>(from + 1) as u8,
        deleted: row.get::<_, i16>(from + 2) != 0,
        created_us: row.get(from + 3),
        updated_us: row.get(from + 4),
        version: row.get::<_, i64>(from + 5).cast_unsigned(),
        metadata: row.get(from + 6),
        content: row.get(from + 7),
    }
}

/// A memory and its number.
pub(super) async fn row(
    session: &DatabaseSession,
    tenant: &str,
    id: &str,
) -> Result<Option<(i64, StoredMemory)>, DatabaseFault> {
    let query = format!("SELECT m.seq, {COLUMNS} FROM almanac.memories AS m WHERE m.tenant = $1 AND m.id = $2");
    let rows = session.query(&query, &[(&tenant, Type::TEXT), (&id, Type::TEXT)]).await?;
    Ok(rows.first().map(|row| (row.get(0), memory(row, 1))))
}

pub(super) async fn get(
    session: &DatabaseSession,
    tenant: &str,
    id: &str,
) -> Result<Option<StoredMemory>, DatabaseFault> {
    Ok(row(session, tenant, id).await?.map(|(_, memory)| memory))
}

pub(super) async fn history(
    session: &DatabaseSession,
    tenant: &str,
    id: &str,
    before: u64,
    limit: usize,
) -> Result<(Vec<StoredVersion>, u64), DatabaseFault> {
    let Some((seq, _)) = row(session, tenant, id).await? else { return Ok((Vec::new(), 0)) };
    let count = "SELECT count(*) FROM almanac.memory_history WHERE tenant = $1 AND seq = $2";
    let total: i64 = session.query_one(count, &[(&tenant, Type::TEXT), (&seq, Type::INT8)]).await?.get(0);
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    Ok((versions(session, tenant, seq, before, limit as i64).await?, total.cast_unsigned()))
}

async fn versions(
    session: &DatabaseSession,
    tenant: &str,
    seq: i64,
    before: i64,
    limit: i64,
) -> Result<Vec<StoredVersion>, DatabaseFault> {
    let query = "SELECT version, updated_us, metadata, content FROM almanac.memory_history
        WHERE tenant = $1 AND seq = $2 AND version < $3 ORDER BY version DESC LIMIT $4";
    let values =
        [(&tenant as _, Type::TEXT), (&seq as _, Type::INT8), (&before as _, Type::INT8), (&limit as _, Type::INT8)];
    let version = |row: &Row| StoredVersion {
        version: row.get::<_, i64>(0).cast_unsigned(),
        updated_us: row.get(1),
        metadata: row.get(2),
        content: row.get(3),
    };
    Ok(session.query(query, &values).await?.iter().map(version).collect())
}

pub(super) async fn thread(
    session: &DatabaseSession,
    tenant: &str,
    chat: Option<&str>,
    thread: &str,
    position: u64,
    limit: usize,
) -> Result<Thread, DatabaseFault> {
    let query = "SELECT DISTINCT chat_id FROM almanac.memories WHERE tenant = $1 AND thread_id = $2 AND deleted = 0
        AND chat_id = coalesce($3, chat_id) ORDER BY chat_id LIMIT $4";
    let values = [
        (&tenant as _, Type::TEXT),
        (&thread as _, Type::TEXT),
        (&chat as _, Type::TEXT),
        (&MAX_CHATS as _, Type::INT8),
    ];
    let chats: Vec<String> = session.query(query, &values).await?.iter().map(|row| row.get(0)).collect();
    let [chat] = chats.as_slice() else { return Ok(Thread { chats, ..Thread::default() }) };
    let of = "m.tenant = $1 AND m.chat_id = $2 AND m.thread_id = $3 AND m.deleted = 0";
    let page = format!(
        "SELECT {COLUMNS} FROM almanac.memories AS m WHERE {of} AND m.position >= $4 ORDER BY m.position LIMIT $5"
    );
    let (from, most) = (position.cast_signed(), limit as i64);
    let values = [
        (&tenant as _, Type::TEXT),
        (chat as _, Type::TEXT),
        (&thread as _, Type::TEXT),
        (&from as _, Type::INT8),
        (&most as _, Type::INT8),
    ];
    let memories = session.query(&page, &values).await?.iter().map(|row| memory(row, 0)).collect();
    let positions = format!("SELECT m.position FROM almanac.memories AS m WHERE {of} ORDER BY m.position");
    let (mut total, mut next, mut gaps) = (0, 0_u64, Vec::new());
    for row in session.query(&positions, &values[..3]).await? {
        let position = row.get::<_, i64>(0).cast_unsigned();
        if position > next && gaps.len() < MAX_GAPS {
            gaps.push((next, position - 1));
        }
        (total, next) = (total + 1, position + 1);
    }
    Ok(Thread { chats, memories, total, gaps })
}

pub(super) async fn links(
    session: &DatabaseSession,
    tenant: &str,
    ids: &[String],
    limit: usize,
) -> Result<Vec<Linked>, DatabaseFault> {
    let query = "WITH wanted AS (SELECT unnest($2::text[]) AS id),
         found AS (
            SELECT l.seq, l.relation, l.target FROM wanted AS w
                JOIN almanac.memories AS m ON m.tenant = $1 AND m.id = w.id
                JOIN almanac.memory_links AS l ON l.tenant = $1 AND l.seq = m.seq
            UNION
            SELECT l.seq, l.relation, l.target FROM wanted AS w
                JOIN almanac.memory_links AS l ON l.tenant = $1 AND l.target = w.id
         )
         SELECT f.id, f.kind, found.relation, found.target, t.kind FROM found
         JOIN almanac.memories AS f ON f.tenant = $1 AND f.seq = found.seq AND f.deleted = 0
         LEFT JOIN almanac.memories AS t ON t.tenant = $1 AND t.id = found.target AND t.deleted = 0
         ORDER BY f.id, found.relation, found.target LIMIT $3";
    let most = limit as i64;
    let values = [(&tenant as _, Type::TEXT), (&ids as _, Type::TEXT_ARRAY), (&most as _, Type::INT8)];
    let link = |row: &Row| Linked {
        from: row.get(0),
        from_kind: row.get::<_, i16>(1) as u8,
        relation: row.get(2),
        target: row.get(3),
        target_kind: row.get::<_, Option<i16>>(4).map(|kind| kind as u8),
    };
    Ok(session.query(query, &values).await?.iter().map(link).collect())
}

pub(super) async fn export(
    session: &DatabaseSession,
    tenant: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, DatabaseFault> {
    let page = format!(
        "SELECT m.seq, {COLUMNS} FROM almanac.memories AS m WHERE m.tenant = $1 AND m.id > $2 ORDER BY m.id LIMIT $3"
    );
    let most = limit as i64;
    let values = [(&tenant as _, Type::TEXT), (&after as _, Type::TEXT), (&most as _, Type::INT8)];
    let mut exported = Vec::new();
    for row in session.query(&page, &values).await? {
        let (seq, memory): (i64, StoredMemory) = (row.get(0), memory(&row, 1));
        let mut history =
            if memory.version > 1 { versions(session, tenant, seq, i64::MAX, i64::MAX).await? } else { Vec::new() };
        history.reverse();
        exported.push((memory, history));
    }
    Ok(exported)
}

/// Memories of a tenant behind a number, in the order of their numbers, as another store takes them.
pub(in crate::store::postgres) async fn page_of(
    session: &DatabaseSession,
    tenant: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<(i64, Imported)>, DatabaseFault> {
    let page = format!(
        "SELECT {COLUMNS}, m.seq, m.user_id, m.agent_id, m.chat_id, m.thread_id, m.position, m.importance
         FROM almanac.memories AS m WHERE m.tenant = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3"
    );
    let values = [(&tenant as _, Type::TEXT), (&after as _, Type::INT8), (&limit as _, Type::INT8)];
    let rows = session.query(&page, &values).await?;
    let seqs: Vec<i64> = rows.iter().map(|row| row.get(8)).collect();
    let of_page = [(&tenant as _, Type::TEXT), (&seqs as _, Type::INT8_ARRAY)];
    let versions = "SELECT seq, version, updated_us, metadata, content FROM almanac.memory_history
        WHERE tenant = $1 AND seq = ANY($2) ORDER BY seq, version";
    let mut history: HashMap<i64, Vec<StoredVersion>> = HashMap::new();
    for row in session.query(versions, &of_page).await? {
        history.entry(row.get(0)).or_default().push(StoredVersion {
            version: row.get::<_, i64>(1).cast_unsigned(),
            updated_us: row.get(2),
            metadata: row.get(3),
            content: row.get(4),
        });
    }
    let linked = "SELECT seq, relation, target FROM almanac.memory_links
        WHERE tenant = $1 AND seq = ANY($2) ORDER BY seq, relation, target";
    let mut links: HashMap<i64, Vec<(&'static str, String)>> = HashMap::new();
    for row in session.query(linked, &of_page).await? {
        if let Some(relation) = Relation::parse(row.get(1)) {
            links.entry(row.get(0)).or_default().push((relation.as_str(), row.get(2)));
        }
    }
    let imported = |row: &Row| {
        let seq: i64 = row.get(8);
        let links = links.remove(&seq).unwrap_or_default();
        (seq, Imported::of(memory(row, 0), keys(row), links, history.remove(&seq).unwrap_or_default()))
    };
    Ok(rows.iter().map(imported).collect())
}

fn keys(row: &Row) -> Keys {
    let position = row.get::<_, Option<i64>>(13).map(i64::cast_unsigned);
    Keys {
        user: row.get(9),
        agent: row.get(10),
        chat: row.get(11),
        place: row.get::<_, Option<String>>(12).zip(position),
        importance: row.get(14),
    }
}
