//! The store on SQLite: a file in the state directory, in WAL mode.

mod ageing;
mod audit;
pub mod backup;
mod condition;
mod damaged_journal;
mod database;
mod erasure;
mod field_order;
mod history;
mod insertion;
mod matched_terms;
mod memories;
mod migrations;
mod notes;
mod postings;
mod projection;
mod queries;
mod ranking;
mod readers;
mod reindex;
mod row_cache;
mod scrub;
mod search;
pub mod source;
pub mod target;
mod writer;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::finding::row_cache::RowCaches;
use super::front::{Front, Job, OnCommit, WriterShared};
use super::memories::Memories;
use super::notes::{ChoiceNote, NotesPending};
use super::{
    Choice, Durability, ExecutionFilter, ExecutionPage, History, KeptTurn, Note, Pending, ReplayLimits, SessionFilter,
    SessionPage, Settings, Store, StoreError, TimedCallFilter,
};
use crate::strict::replacement;
use crate::timing::{Execution, Predicted, TimedCall};
use migrations::{MigrationError, migrate};
use notes::Noting;
use readers::Readers;
use writer::SqliteSide;

/// How the database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub path: PathBuf,
    /// How records are kept.
    pub settings: Settings,
    /// Largest size of the file in pages of 4 KiB; 0 for no limit but the disk's.
    pub max_pages: u32,
    /// Is what is too old removed? Not by a command, which may not know for how long it is to be kept.
    pub is_pruned: bool,
}

impl Options {
    /// A file with defaults: power-safe.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), settings: Settings::default(), max_pages: 0, is_pruned: true }
    }
}

/// The store on SQLite. Dropping it writes what waits, then closes the file.
#[derive(Debug)]
pub struct Sqlite {
    options: Options,
    /// Given up before the writer is: who closes a database last empties its log, which who only reads cannot.
    readers: Readers,
    front: Front<SqliteSide>,
    row_caches: RowCaches<i64>,
    /// Files that stay open until no connection is.
    _kept: Arc<KeptFiles>,
}

/// Files that are open beside SQLite's own connections to them. Closing one gives up all of a process's locks on it.
type KeptFiles = parking_lot::Mutex<Vec<Arc<std::fs::File>>>;

impl Sqlite {
    /// Starts the writer. A database that cannot be opened is no error here: [`Store::trouble`] tells, and each later
    /// batch tries again.
    pub fn start(options: Options, on_commit: OnCommit) -> io::Result<Self> {
        let (kept, shared): (Arc<KeptFiles>, WriterShared) = Default::default();
        let side = SqliteSide::new(options.clone(), Arc::clone(&kept), shared.clone());
        let front = Front::start(side, shared, options.settings.max_queue, on_commit)?;
        let (readers, row_caches) = (Readers::of(&options.path), RowCaches::default());
        Ok(Self { options, front, readers, row_caches, _kept: kept })
    }

    /// Puts a job in the queue.
    fn send(&self, job: Job<SqliteSide>) -> Result<(), StoreError> {
        self.front.send(job)
    }

    /// Takes over what only the journal has. If it cannot be now, what the database has is answered.
    fn take_journal_over(&self) {
        if let Ok(taken_over) = self.note(Vec::new()) {
            taken_over.wait();
        }
    }
}

impl Store for Sqlite {
    fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError> {
        self.front.append(batch)
    }

    fn replay(&self, limits: ReplayLimits) -> Result<History, StoreError> {
        self.front.replay(|| history::read(&self.options.path, limits))
    }

    fn keep_predicted(&self, predicted: Vec<(i64, Predicted)>) {
        self.front.shared().predicted.put(predicted);
    }

    fn note(&self, notes: Vec<Note>) -> Result<NotesPending, StoreError> {
        let (noting, noted) = Noting::new(notes);
        self.send(writer::task(noting))?;
        Ok(noted)
    }

    fn take_leave(&self) {
        self.readers.close();
        self.front.take_leave();
    }

    fn executions(&self, wanted: &ExecutionFilter) -> Result<ExecutionPage, StoreError> {
        self.take_journal_over();
        self.readers.read(|transaction| audit::page(transaction, wanted))
    }

    fn timed_calls(&self, wanted: &TimedCallFilter) -> Result<Vec<TimedCall>, StoreError> {
        self.take_journal_over();
        self.readers.read(|transaction| audit::timed_calls(transaction, wanted))
    }

    fn choices(&self, tenant: &str, tool: &str, limit: usize) -> Result<Vec<Choice>, StoreError> {
        self.readers.read(|transaction| audit::choices(transaction, tenant, tool, limit))
    }

    fn kept_choices(&self, tenant: &str) -> Result<Vec<ChoiceNote>, StoreError> {
        self.readers.read(|transaction| notes::choices(transaction, Some(tenant)))
    }

    fn kept_turns(&self, tenant: &str, session: &str) -> Result<Vec<KeptTurn>, StoreError> {
        self.readers.read(|transaction| audit::kept_turns(transaction, tenant, session))
    }

    fn sessions(&self, wanted: &SessionFilter) -> Result<SessionPage, StoreError> {
        self.take_journal_over();
        self.readers.read(|transaction| audit::sessions(transaction, wanted))
    }

    fn memories(&self) -> &dyn Memories {
        self
    }

    fn prepare_searches(&self) -> Result<(), StoreError> {
        for tenant in self.readers.read(|transaction| row_cache::worth_preparing(transaction))? {
            self.readers.read(|transaction| row_cache::with(&self.row_caches, transaction, tenant, |_| ()))?;
        }
        Ok(())
    }

    fn queued(&self) -> usize {
        self.front.queued()
    }

    fn trouble(&self) -> Option<String> {
        self.front.trouble()
    }

    fn takes_records(&self) -> bool {
        self.front.takes_records()
    }

    fn unreadable(&self) -> Option<String> {
        self.trouble().filter(|_| !self.takes_records())
    }
}

/// Takes from others what an older version, or a copy, gave them. Who may not do so is told by what is opened next.
fn close_to_others(path: &Path) {
    for path in database::files_of(path) {
        // What a link leads to may be anybody's.
        let Ok(file) = std::fs::symlink_metadata(&path) else { continue };
        let is_open = file.is_file() && file.permissions().mode() & 0o077 != 0;
        if is_open && std::fs::set_permissions(&path, Permissions::from_mode(0o600)).is_ok() {
            tracing::warn!("{}: others could read it, and cannot any more", path.display());
        }
    }
}

/// Opens the file for writing, with the schema up to date. Is it a new one?
fn open(options: &Options) -> Result<(Connection, bool), MigrationError> {
    // SQLite would make it for everybody to read. Its other files get the mode of this one. A failure is told when it
    // is opened.
    let _ = replacement::open_or_make(&options.path, 0o600);
    close_to_others(&options.path);
    let mut connection = Connection::open_with_flags(
        &options.path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(database::LONG_PATIENCE)?;
    planned_once(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    let synchronous = match options.settings.durability {
        Durability::Power => "full",
        Durability::Crash => "normal",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // What is replaced and what is freed is overwritten; what SQLite leaves all the same, [`scrub`] does.
    connection.pragma_update(None, "secure_delete", true)?;
    if options.max_pages > 0 {
        connection.pragma_update(None, "max_page_count", options.max_pages)?;
    }
    let is_new = connection.pragma_query_value(None, "page_count", |row| row.get::<_, i64>(0))? == 0;
    migrate(&mut connection)?;
    reindex::reindex(&mut connection)?;
    row_cache::sweep(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok((connection, is_new))
}

/// Plans of statements hold for all values. Else those with a limit, or a value of 0 or 1 such as the first tenant's
/// number, are made anew each time.
fn planned_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Is there a database at `path`?
///
/// # Errors
/// If that cannot be looked for, as in a directory of somebody else's.
pub fn is_there(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file where a state directory keeps the database.
pub fn file_in(state_dir: &Path) -> PathBuf {
    state_dir.join("almanac.db")
}

#[cfg(test)]
mod tests;
