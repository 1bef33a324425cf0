//! How SQLite fills the cache of rows, and what it writes for it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Params, Row, params};

use crate::parallel;
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
        fill(connection, tenant, cache)?;
    } else {
        let sql = format!("{COLUMNS} INDEXED BY memory_rows_by_stamp WHERE stamp > ?1 AND tenant = ?2 ORDER BY stamp");
        let known = cache.stamp;
        read(connection, &sql, params![known, tenant], |row| cache.put(row))?;
    }
    cache.stamp = stamp;
    Ok(())
}

const COLUMNS: &str = "SELECT seq, created_us, thread, position, length, kind, deleted, vector FROM memory_rows";

/// Reads all of a tenant, in the order of the rows, which is that of the cache.
fn fill(connection: &Connection, tenant: i64, cache: &mut RowCache) -> rusqlite::Result<()> {
    cache.reserve(count(connection, tenant)?);
    let is_large = is_large(connection, tenant)?;
    if let Some(path) = connection.path().filter(|path| is_large && !path.is_empty()) {
        let filled = fill_together(connection, Path::new(path), tenant, PIECE, cache);
        if filled.is_ok() {
            return filled;
        }
        // Where no other connection can be had, this one reads all.
        *cache = RowCache::default();
        cache.reserve(count(connection, tenant)?);
    }
    let of = if is_large { "NOT INDEXED" } else { "INDEXED BY memory_rows_by_tenant" };
    let sql = format!("{COLUMNS} {of} WHERE tenant = ?1 ORDER BY seq");
    read(connection, &sql, [tenant], |row| cache.put(row))
}

/// Numbers of rows that are read at once; some four megabytes.
const PIECE: i64 = 32_768;

/// Pieces that are read at once, at most.
const TOGETHER: usize = 8;

/// Reads a large tenant on several processors, without an index, since most rows between its first and its last are
/// its own.
///
/// Others read a later state of the database than `connection` does. What they see that is newer is read again by
/// whoever asks next, since it has a later stamp.
fn fill_together(
    connection: &Connection,
    path: &Path,
    tenant: i64,
    piece: i64,
    cache: &mut RowCache,
) -> rusqlite::Result<()> {
    let end = |order: &str| {
        let sql = format!(
            "SELECT seq FROM memory_rows INDEXED BY memory_rows_by_tenant
             WHERE tenant = ?1 ORDER BY seq {order} LIMIT 1"
        );
        connection.query_row(&sql, [tenant], |row| row.get::<_, i64>(0))
    };
    let (first, last) = (end("ASC")?, end("DESC")?);
    let sql = format!("{COLUMNS} NOT INDEXED WHERE seq BETWEEN ?1 AND ?2 AND tenant = ?3 ORDER BY seq");
    let read_piece = |&from: &i64| -> rusqlite::Result<Vec<CachedRow>> {
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        let mut rows = Vec::with_capacity(piece as usize);
        read(&connection, &sql, params![from, from + piece - 1, tenant], |row| rows.push(row))?;
        Ok(rows)
    };
    let pieces: Vec<i64> = (first..=last).step_by(piece as usize).collect();
    for together in pieces.chunks(parallel::processors().min(TOGETHER)) {
        for rows in parallel::map_each(together, read_piece) {
            rows?.into_iter().for_each(|row| cache.put(row));
        }
    }
    Ok(())
}

fn read(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    mut put: impl FnMut(CachedRow),
) -> rusqlite::Result<()> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(parameters)?;
    while let Some(row) = rows.next()? {
        put(cached(row)?);
    }
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
    // A parameter would not let the index of such rows be used.
    connection.execute(&format!("DELETE FROM memory_rows WHERE deleted = {GONE}"), []).map(drop)
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
    use std::path::PathBuf;

    use super::*;
    use crate::memory::query::Filter;
    use crate::store::sqlite::migrations::migrate;

    /// A database in a directory of its own.
    fn database() -> (tempfile::TempDir, PathBuf, Connection) {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("x.db");
        let mut connection = Connection::open(&path).unwrap();
        migrate(&mut connection).unwrap();
        (directory, path, connection)
    }

    #[test]
    fn a_large_tenant_is_read_in_pieces_as_it_is_in_one() {
        let (_directory, path, connection) = database();
        // Of two tenants in turns, with numbers that are missing.
        let rows = "WITH RECURSIVE n (x) AS (SELECT 3 UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
             INSERT INTO memory_rows (seq, tenant, stamp, kind, deleted, created_us, thread, position, length, vector)
             SELECT x, 1 + x % 2, x, x % 4, x % 3, x * 10, x / 20, x % 20, x % 50, x'' FROM n WHERE x % 11 <> 0";
        connection.execute_batch(rows).unwrap();
        for tenant in [1, 2] {
            let mut whole = RowCache::default();
            fill(&connection, tenant, &mut whole).unwrap();
            assert!(whole.rows().len() > 400);
            for piece in [1000, 64, 7] {
                let mut pieces = RowCache::default();
                fill_together(&connection, &path, tenant, piece, &mut pieces).unwrap();
                assert_eq!(format!("{:?}", pieces.rows()), format!("{:?}", whole.rows()), "{piece}");
                let all = Filter { include_deleted: true, ..Filter::default() };
                assert_eq!(pieces.sums(&all), whole.sums(&all));
            }
        }
    }

    #[test]
    fn a_large_tenant_is_read_by_one_connection_where_no_other_can_be_had() {
        let (_directory, path, connection) = database();
        let rows = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?1)
             INSERT INTO memory_rows (seq, tenant, stamp, kind, deleted, created_us, length, vector)
             SELECT x, 1, x, 1, 0, x, 1, x'' FROM n";
        connection.execute(rows, [LARGE as i64 + 1]).unwrap();
        assert!(is_large(&connection, 1).unwrap());
        for is_there in [true, false] {
            if !is_there {
                std::fs::remove_file(&path).unwrap();
            }
            let mut cache = RowCache::default();
            fill(&connection, 1, &mut cache).unwrap();
            assert_eq!((cache.rows().len(), cache.rows()[LARGE].seq), (LARGE + 1, LARGE as i64 + 1), "{is_there}");
        }
    }

    #[test]
    fn a_sweep_looks_at_what_is_gone_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN DELETE FROM memory_rows WHERE deleted = {GONE}");
        let plan: String = connection.query_row(&plan, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("memory_rows_gone"), "{plan}");
    }

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
