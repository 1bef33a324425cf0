//! How SQLite fills the cache of rows, and what it writes for it.

use rusqlite::{Connection, Row, params};

use crate::store::finding::row_cache::{CachedRow, GONE, RowCache, RowCaches};
use crate::text::embedding::{Packed, Quantized};

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
    if cache.rows().is_empty() {
        cache.reserve(count(connection, tenant)?);
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

/// Memories of a tenant whose first search would wait for its cache: fewer are read in some 20 ms.
const MANY: i64 = 10_000;

/// Rows that are cached before anybody searches, in all tenants together; about 300 MB.
const PREPARED: i64 = 2_000_000;

/// The tenants whose caches are to be read beforehand: those that have many memories, who wrote last first.
pub(super) fn worth_preparing(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut select = connection.prepare(
        "SELECT tenant, sum(memories) AS many FROM memory_counts GROUP BY tenant HAVING many >= ?1
         ORDER BY (SELECT max(stamp) FROM memory_rows AS r WHERE r.tenant = memory_counts.tenant) DESC",
    )?;
    let mut left = PREPARED;
    let tenants: Vec<(i64, i64)> =
        select.query_map([MANY], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let fits = |(tenant, many): (i64, i64)| {
        left -= many;
        (left >= 0).then_some(tenant)
    };
    Ok(tenants.into_iter().map_while(fits).collect())
}

/// Rows of a tenant that is read with all others'.
const LARGE: usize = 50_000;

/// How many memories a tenant has.
fn count(connection: &Connection, tenant: i64) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("SELECT coalesce(sum(memories), 0) FROM memory_counts WHERE tenant = ?1")?
        .query_row([tenant], |row| Ok(row.get::<_, i64>(0)? as usize))
}

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
        vector: Quantized::from_bytes(row.get_ref(7)?.as_blob()?).map_or(Packed::ZERO, |vector| Packed::from(&vector)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::migrations::migrate;

    #[test]
    fn tenants_with_many_memories_are_prepared_who_wrote_last_first() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let put = |tenant: i64, kind: i64, memories: i64, stamp: i64| {
            let count = "INSERT INTO memory_counts VALUES (?1, ?2, 0, ?3)";
            connection.execute(count, params![tenant, kind, memories]).unwrap();
            let row = "INSERT INTO memory_rows (tenant, stamp, kind, deleted, created_us, length, vector)
                       VALUES (?1, ?2, 1, 0, 1, 1, x'')";
            connection.execute(row, params![tenant, stamp]).unwrap();
        };
        put(1, 1, MANY, 5);
        put(2, 1, MANY - 1, 9);
        put(3, 1, MANY / 2, 7);
        put(3, 2, MANY, 7);
        assert_eq!(worth_preparing(&connection).unwrap(), [3, 1]);
        put(4, 1, PREPARED - 2 * MANY, 8);
        assert_eq!(worth_preparing(&connection).unwrap(), [4, 3], "no more than fit");
    }
}
