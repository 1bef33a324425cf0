//! A copy of the database while it is in use, through SQLite's own means.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::{database, is_there};
use crate::store::journal::JournalError;
use crate::timing::Execution;

/// Pages copied at once. All of one state: whoever writes meanwhile does not wait.
const PAGES: i32 = 4096;

/// A copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is nothing to copy.
    #[error("there is no database at {0}")]
    Missing(PathBuf),
    /// It is somebody else's.
    #[error("{path} cannot be read; do this as the daemon's user")]
    Unreadable { path: PathBuf, source: io::Error },
    /// Something stands there already, and is not written over.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// The copy cannot be made there.
    #[error("cannot make {0}")]
    Create(PathBuf, #[source] io::Error),
    /// What was acknowledged last cannot be read.
    #[error("cannot read the journal of {path}")]
    Journal { path: PathBuf, source: JournalError },
    #[error("cannot copy {from} to {to}")]
    Sqlite { from: PathBuf, to: PathBuf, source: rusqlite::Error },
}

/// Copies the database at `from` to the new file `to`. Returns its size in bytes.
pub fn backup(from: &Path, to: &Path) -> Result<u64, BackupError> {
    if !is_there(from).map_err(|source| BackupError::Unreadable { path: from.to_owned(), source })? {
        return Err(BackupError::Missing(from.to_owned()));
    }
    // Before the copy: what the database takes over meanwhile is in one of the two at least.
    let journalled =
        database::journalled(from).map_err(|source| BackupError::Journal { path: from.to_owned(), source })?;
    create(to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(to.to_owned()),
        _ => BackupError::Create(to.to_owned(), error),
    })?;
    copy(from, to, journalled).map_err(|source| {
        // Half a copy is none, and would be in the way of the next.
        let _ = fs::remove_file(to);
        BackupError::Sqlite { from: from.to_owned(), to: to.to_owned(), source }
    })
}

/// Makes the file of the copy, for nobody else to read.
fn create(to: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map(drop)
}

fn copy(from: &Path, to: &Path, journalled: Vec<(i64, Execution)>) -> rusqlite::Result<u64> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    source.busy_timeout(Duration::from_secs(10))?;
    // One state throughout, however long it takes.
    let held = source.unchecked_transaction()?;
    held.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    let mut copy = Connection::open(to)?;
    Backup::new(&held, &mut copy)?.run_to_completion(PAGES, Duration::ZERO, None)?;
    // The daemon's log need not grow for as long as the copy is looked at.
    drop(held);
    database::complete(&mut copy, journalled)?;
    check(&copy)?;
    let pages: u64 = copy.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))?.cast_unsigned();
    let size: u64 = copy.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))?.cast_unsigned();
    Ok(pages * size)
}

/// A copy of what is damaged is damaged as well, and whoever needs it finds out too late.
fn check(copy: &Connection) -> rusqlite::Result<()> {
    let found: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    let damaged = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(damaged, Some(format!("the database is damaged: {found}"))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_copy_is_read_by_nobody_else_and_half_of_one_does_not_stay() {
        let directory = tempfile::TempDir::new().unwrap();
        let [from, to] = ["almanac.db", "copy.db"].map(|name| directory.path().join(name));
        fs::write(&from, "this is no database. ".repeat(100)).unwrap();
        assert!(matches!(backup(&from, &to), Err(BackupError::Sqlite { .. })));
        assert!(!to.exists());
        fs::remove_file(&from).unwrap();
        Connection::open(&from).unwrap().execute_batch("CREATE TABLE fold (through, tick)").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o644)).unwrap();
        backup(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(backup(&from, &to), Err(BackupError::Exists(_))));
    }
}
