//! How SQLite fills the cache of rows, and what it writes for it.

use rusqlite::{Connection, Row, params};

use crate::store::finding::row_cache::{CachedRow, GONE, RowCache, RowCaches};
use crate::text::embedding::Quantized;

/// Asks the tenant's cache, as it is in the state of the database that `connection` reads, or newer.
pub(super) fn with<T>(
    caches: &RowCaches<i64>,
    connection: &Connection,
    tenant: i64,
    ask: impl FnOnce(&RowCache) -> T,
) -> rusqlite::Result<T> {
    let cache = caches.cache(&tenant);
    let stamp: i64 = connection
        .prepare_cached("SELECT coalesce(max(stamp), 0) FROM memory_rows WHERE tenant = ?1")?
        .query_row([tenant], |row| row.get(0))?;
    let current = cache.read();
    if current.stamp >= stamp {
        return Ok(ask(&current));
    }
    drop(current);
    {
        let mut behind = cache.write();
        catch_up(connection, tenant, stamp, &mut behind)?;
        caches.measure(&tenant, behind.rows().len());
    }
    Ok(ask(&cache.read()))
}

/// Reads what was written since.
fn catch_up(connection: &Connection, tenant: i64, stamp: i64, cache: &mut RowCache) -> rusqlite::Result<()> {
    if cache.stamp >= stamp {
        return Ok(());
    }
    // A new cache is read in the order of the rows, which is that of the cache; of a large tenant without an index,
    // since most rows are its own.
    let (of, order) = if !cache.rows().is_empty() {
        ("INDEXED BY memory_rows_by_stamp", "stamp")
    } else if is_large(connection, tenant)? {
        ("NOT INDEXED", "seq")
    } else {
        ("INDEXED BY memory_rows_by_tenant", "seq")
    };
    let mut select = connection.prepare_cached(&format!(
        "SELECT seq, created_us, thread, position, length, kind, deleted, vector FROM memory_rows {of}
         WHERE stamp > ?1 AND tenant = ?2 ORDER BY {order}"
    ))?;
    let mut rows = select.query(params![cache.stamp, tenant])?;
    while let Some(row) = rows.next()? {
        cache.put(cached(row)?);
    }
    cache.stamp = stamp;
    Ok(())
}

/// Rows of a tenant that is read with all others'.
const LARGE: usize = 50_000;

fn is_large(connection: &Connection, tenant: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT count(*) FROM
                (SELECT 1 FROM memory_rows INDEXED BY memory_rows_by_tenant WHERE tenant = ?1 LIMIT ?2)",
        )?
        .query_row(params![tenant, LARGE as i64], |row| Ok(row.get::<_, i64>(0)? >= LARGE as i64))
}

fn cached(row: &Row<'_>) -> rusqlite::Result<CachedRow> {
    Ok(CachedRow {
        seq: row.get(0)?,
        created_us: row.get(1)?,
        thread: row.get::<_, Option<i64>>(2)?.unwrap_or_default(),
        position: row.get::<_, Option<i64>>(3)?.unwrap_or_default().cast_unsigned(),
        length: row.get(4)?,
        kind: row.get(5)?,
        deleted: row.get(6)?,
        // What is gone, or damaged, means nothing.
        vector: Quantized::from_bytes(row.get_ref(7)?.as_blob()?).unwrap_or(Quantized::ZERO),
    })
}

/// Writes a memory's row.
pub(super) struct RowOf<'d> {
    pub(super) seq: i64,
    pub(super) tenant: i64,
    pub(super) stamp: i64,
    pub(super) kind: u8,
    pub(super) deleted: bool,
    pub(super) created_us: i64,
    pub(super) thread: Option<(i64, u64)>,
    pub(super) length: u16,
    pub(super) vector: &'d Quantized,
}

impl RowOf<'_> {
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO memory_rows
                    (seq, tenant, stamp, kind, deleted, created_us, thread, position, length, vector)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                self.seq,
                self.tenant,
                self.stamp,
                self.kind,
                self.deleted,
                self.created_us,
                self.thread.map(|(thread, _)| thread),
                self.thread.map(|(_, position)| position.cast_signed()),
                self.length,
                self.vector.to_bytes(),
            ])
            .map(drop)
    }
}

/// Leaves of a row its number, by which readers see that it went.
pub(super) fn leave(connection: &Connection, seq: i64, stamp: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE memory_rows SET stamp = ?2, deleted = ?3, created_us = 0, thread = NULL, position = NULL,
                    length = 0, vector = x'' WHERE seq = ?1",
        )?
        .execute(params![seq, stamp, GONE])
        .map(drop)
}

/// Takes away the numbers that [`leave`] left, before anybody reads.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM memory_rows WHERE deleted = ?1", [GONE]).map(drop)
}

/// The latest stamp of all.
pub(super) fn latest_stamp(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT coalesce(max((SELECT max(stamp) FROM memory_rows AS r WHERE r.tenant = t.number)), 0)
         FROM memory_tenants AS t",
        [],
        |row| row.get(0),
    )
}
