//! A copy of the database while it is in use, through SQLite's own means.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::store::journal::JournalError;
use crate::store::{Execution, database};

/// Pages copied at once. All of one state: whoever writes meanwhile does not wait.
const PAGES: i32 = 4096;

/// A copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("there is no database at {0}")]
    Missing(PathBuf),
    /// Something stands there already, and is not written over.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// What was acknowledged last cannot be read.
    #[error("cannot read the journal of {path}")]
    Journal {
        /// The database.
        path: PathBuf,
        /// Why not.
        source: JournalError,
    },
    /// The database refused.
    #[error("cannot copy {from} to {to}")]
    Sqlite {
        /// The database.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
}

/// Copies the database at `from` to the new file `to`. Returns its size in bytes.
pub fn backup(from: &Path, to: &Path) -> Result<u64, BackupError> {
    if !from.is_file() {
        return Err(BackupError::Missing(from.to_owned()));
    }
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // Before the copy: what the database takes over meanwhile is in one of the two at least.
    let journalled =
        database::journalled(from).map_err(|source| BackupError::Journal { path: from.to_owned(), source })?;
    let failed = |source| BackupError::Sqlite { from: from.to_owned(), to: to.to_owned(), source };
    copy(from, to, journalled).map_err(failed)
}

fn copy(from: &Path, to: &Path, journalled: Vec<(i64, Execution)>) -> rusqlite::Result<u64> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    source.busy_timeout(Duration::from_secs(10))?;
    // One state throughout, however long it takes.
    let held = source.unchecked_transaction()?;
    held.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let mut copy = Connection::open(to)?;
    Backup::new(&held, &mut copy)?.run_to_completion(PAGES, Duration::ZERO, None)?;
    database::complete(&mut copy, journalled)?;
    let pages: u64 = copy.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))?.cast_unsigned();
    let size: u64 = copy.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.cast_unsigned();
    Ok(pages * size)
}
