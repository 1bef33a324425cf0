//! Copies what several daemons share to a database of one machine, from one state of it. No daemon works on it
//! meanwhile; what was copied halfway is begun anew.

mod learnt;
mod memories;
mod notes;
mod records;

use std::path::Path;
use std::time::Duration;

use tokio_postgres::types::Type;

use super::address::DatabaseAddress;
use super::fault::DatabaseFault;
use super::migrations::{self, Migration};
use super::moving::{Moved, Progress};
use super::session::DatabaseSession;
use crate::store::Settings;
use crate::store::sqlite::target::{SqliteTarget, TargetError};

/// How long one statement may take: the first has to sort all records.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Rows that are read at once.
const AT_ONCE: usize = 4096;

/// A copy was not made.
#[derive(Debug, thiserror::Error)]
pub enum MoveBackError {
    #[error(transparent)]
    Database(#[from] DatabaseFault),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("daemons work on the shared database, by {0} connections; stop all of them first")]
    InUse(i64),
}

/// Copies the shared database to a new one at `path`, which is as durable as these settings say.
///
/// # Errors
/// If it was not made; then nothing stands at `path`.
pub async fn move_back(
    address: &DatabaseAddress,
    migration: Migration,
    path: &Path,
    settings: Settings,
    say: &mut dyn FnMut(u64, u64),
) -> Result<Moved, MoveBackError> {
    let session = migrations::open(address, migration).await?;
    let used = connections(&session).await?;
    if used > 0 {
        return Err(MoveBackError::InUse(used));
    }
    learnt::settle(&session).await?;
    let mut target = SqliteTarget::create(path, settings)?;
    session.begin_snapshot().await?;
    let mut moved = count(&session).await?;
    let all = moved.records.here + moved.memories.here + moved.sessions.here + moved.choices.here;
    let mut progress = Progress::of(all, say);
    let through = records::copy(&session, &mut target, &mut progress).await?;
    learnt::copy(&session, &mut target, through).await?;
    notes::copy(&session, &mut target, &mut progress).await?;
    let target = memories::copy(&session, target, &mut progress).await?;
    session.end(false).await?;
    let counts = target.counts()?;
    moved.records.written = counts.records;
    moved.memories.written = counts.memories;
    moved.sessions.written = counts.turns;
    moved.choices.written = counts.choices;
    for rows in [&mut moved.records, &mut moved.memories, &mut moved.sessions, &mut moved.choices] {
        rows.there = rows.written;
    }
    // Copied there again, all of it would be there twice.
    let note = "INSERT INTO almanac.moved (tenant, origin, what, id, state) VALUES ('', $1, 'back', '', '')";
    let origin = target.origin()?;
    session.query(note, &[(&&origin[..], Type::BYTEA)]).await?;
    target.finish()?;
    Ok(moved)
}

/// How many connections are used: each daemon looks twice a second at what others write, and what a pooler keeps open
/// for nobody asks nothing.
async fn connections(session: &DatabaseSession) -> Result<i64, DatabaseFault> {
    let count = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'almanacd' AND datname = current_database() AND pid <> pg_backend_pid()
            AND query_start > now() - interval '5 seconds'";
    Ok(session.query_one(count, &[]).await?.get(0))
}

/// What there is.
async fn count(session: &DatabaseSession) -> Result<Moved, DatabaseFault> {
    let query = "SELECT (SELECT count(*) FROM almanac.executions), (SELECT count(*) FROM almanac.memories),
        (SELECT count(*) FROM almanac.turns), (SELECT count(*) FROM almanac.choices)";
    let row = session.query_within(query, &[], PATIENCE).await?;
    let mut moved = Moved::default();
    let rows = [&mut moved.records, &mut moved.memories, &mut moved.sessions, &mut moved.choices];
    for (column, rows) in rows.into_iter().enumerate() {
        rows.here = row.first().map_or(0, |row| row.get::<_, i64>(column).cast_unsigned());
    }
    Ok(moved)
}
