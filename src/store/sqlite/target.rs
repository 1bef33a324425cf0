//! A new database of one machine, as whoever copies another store writes it: beside its place, where it is put once all
//! of it is there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, lchown};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, params};

use super::insertion::insert;
use super::migrations::MigrationError;
use super::{Options, Sqlite, open};
use crate::store::memories::{Imported, Memories, MemoryError};
use crate::store::projection::CountedKey;
use crate::store::{Settings, Store, StoreError};
use crate::strict::replacement;
use crate::timing::{Execution, Predicted};

use super::source::{ChoiceRow, SourceCounts, SourceError, SqliteSource, ToldKey, TrailRow, TurnRow};

/// The directory that it is written in, within the one that it is for.
const SCRATCH: &str = "copied";

/// A database cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error(
        "there is a database at {} already; move it away: what was copied from it before is in the shared one",
        .0.display()
    )]
    Exists(PathBuf),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the copy cannot be written: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the copy cannot be made: {0}")]
    Schema(String),
    #[error("the copy cannot be written: {0}")]
    Store(#[from] StoreError),
    #[error("a memory cannot be copied: {0}")]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl From<MigrationError> for TargetError {
    fn from(error: MigrationError) -> Self {
        Self::Schema(error.to_string())
    }
}

/// One that is being written.
#[derive(Debug)]
pub(in crate::store) struct SqliteTarget {
    path: PathBuf,
    scratch: PathBuf,
    options: Options,
    connection: Connection,
}

impl SqliteTarget {
    /// Begins one that is to stand at `path`. What an earlier one left unfinished goes.
    pub(in crate::store) fn create(path: &Path, settings: Settings) -> Result<Self, TargetError> {
        if path.exists() {
            return Err(TargetError::Exists(path.to_owned()));
        }
        let scratch = path.parent().unwrap_or_else(|| Path::new("")).join(SCRATCH);
        let failed = |source| TargetError::Io { path: scratch.clone(), source };
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&scratch).map_err(failed)?;
        let options = Options { settings, is_pruned: false, ..Options::file(super::file_in(&scratch)) };
        let (connection, _) = open(&options)?;
        Ok(Self { path: path.to_owned(), scratch, options, connection })
    }

    /// Which database it will be.
    pub(in crate::store) fn origin(&self) -> Result<[u8; 16], TargetError> {
        Ok(self.connection.query_row("SELECT incarnation FROM origin", [], |row| row.get(0))?)
    }

    fn write(&mut self, body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<(), TargetError> {
        let transaction = self.connection.transaction()?;
        body(&transaction)?;
        Ok(transaction.commit()?)
    }

    /// Records with their ids, which rise, and what was predicted of them.
    pub(in crate::store) fn records(
        &mut self,
        records: &[(i64, Execution)],
        predicted: &[(i64, Predicted)],
    ) -> Result<(), TargetError> {
        self.write(|transaction| insert(transaction, records, predicted))
    }

    /// Keys that calls were told under.
    pub(in crate::store) fn call_keys(&mut self, keys: &[ToldKey]) -> Result<(), TargetError> {
        self.write(|transaction| {
            let mut put = transaction.prepare_cached(
                "INSERT INTO idempotency_keys (tenant, key, digest, at_ms) VALUES (?1, ?2, CAST(?3 AS TEXT), ?4)",
            )?;
            for ToldKey { tenant, key, digest, at_ms, .. } in keys {
                put.execute(params![tenant, key, digest, at_ms])?;
            }
            Ok(())
        })
    }

    /// What follows from all records up to `through`: how many there are of each key, and what sessions called next.
    pub(in crate::store) fn learnt(
        &mut self,
        through: i64,
        counts: &[(CountedKey, i64)],
        trails: &[TrailRow],
    ) -> Result<(), TargetError> {
        self.write(|transaction| {
            let mut put = transaction.prepare_cached(
                "INSERT INTO execution_keys (tool, mode, failed, samples, last_id) VALUES (?1, ?2, ?3, ?4, coalesce((
                     SELECT id FROM executions WHERE tool = ?1 AND mode IS nullif(?2, '') AND failed = ?3
                     ORDER BY id DESC LIMIT 1), 0))",
            )?;
            for (CountedKey { tool, mode, failed }, samples) in counts {
                put.execute(params![tool, mode, failed, samples])?;
            }
            let mut put = transaction
                .prepare_cached("INSERT INTO trails (before, last, followers, tick) VALUES (?1, ?2, ?3, ?4)")?;
            for TrailRow { before, last, followers, tick } in trails {
                put.execute(params![before, last, followers, tick])?;
            }
            let tick = trails.iter().map(|trail| trail.tick).max().unwrap_or_default();
            transaction.execute("UPDATE fold SET through = ?1, tick = ?2", [through, tick]).map(drop)
        })
    }

    /// Where sessions stand, with their last turns.
    pub(in crate::store) fn turns(&mut self, turns: &[TurnRow]) -> Result<(), TargetError> {
        self.write(|transaction| {
            let mut put = transaction
                .prepare_cached("INSERT INTO turns (tenant, session, state, at_us) VALUES (?1, ?2, ?3, ?4)")?;
            let mut keep = transaction.prepare_cached(
                "INSERT INTO kept_turns (tenant, session, number, digest, state, at_us)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for TurnRow { tenant, session, state, at_us, kept } in turns {
                put.execute(params![tenant, session, state, at_us])?;
                for row in kept {
                    keep.execute(params![tenant, session, row.number, row.digest, row.state, row.at_us])?;
                }
            }
            Ok(())
        })
    }

    /// Choices, oldest first, with what they moved.
    pub(in crate::store) fn choices(&mut self, choices: &[ChoiceRow]) -> Result<(), TargetError> {
        self.write(|transaction| {
            let mut put = transaction.prepare_cached(
                "INSERT INTO choices (tenant, tool, message, trust, at_us) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let mut moved =
                transaction.prepare_cached("INSERT OR IGNORE INTO adaptations (tenant, state) VALUES (?1, ?2)")?;
            for ChoiceRow { tenant, tool, message, trust, at_us, adaptation } in choices {
                put.execute(params![tenant, tool, message, trust, at_us])?;
                moved.execute(params![tenant, adaptation])?;
            }
            Ok(())
        })
    }

    /// Memories, in pages as `next` hands them over, until it has none; then the keys that they were told under.
    pub(in crate::store) async fn memories(
        self,
        mut next: impl AsyncFnMut() -> Result<Option<(String, Vec<Imported>)>, TargetError>,
        keys: &[ToldKey],
    ) -> Result<Self, TargetError> {
        let Self { path, scratch, options, connection } = self;
        drop(connection);
        let failed = |source| TargetError::Io { path: options.path.clone(), source };
        let store = Sqlite::start(options.clone(), Box::new(|_, _| ())).map_err(failed)?;
        if let Some(trouble) = store.trouble() {
            return Err(TargetError::Schema(trouble));
        }
        while let Some((tenant, page)) = next().await? {
            Memories::import(&store, &tenant, page)?.durable().await?;
        }
        drop(store);
        let (connection, _) = open(&options)?;
        let mut target = Self { path, scratch, options, connection };
        target.write(|transaction| {
            let mut put = transaction.prepare_cached(
                "INSERT INTO memory_keys (tenant, key, digest, id, at_ms)
                 SELECT number, ?2, ?3, ?4, ?5 FROM memory_tenants WHERE name = ?1",
            )?;
            for ToldKey { tenant, key, digest, id, at_ms } in keys {
                put.execute(params![tenant, key, digest, id, at_ms])?;
            }
            Ok(())
        })?;
        Ok(target)
    }

    /// How much is in it.
    pub(in crate::store) fn counts(&self) -> Result<SourceCounts, TargetError> {
        Ok(SqliteSource::open(&self.options.path)?.counts()?)
    }

    /// Puts it in its place: all of it, or nothing.
    pub(in crate::store) fn finish(self) -> Result<(), TargetError> {
        let Self { path, scratch, options, connection } = self;
        // The file alone has all of it then.
        connection.pragma_update(None, "journal_mode", "delete")?;
        drop(connection);
        let failed = |source| TargetError::Io { path: path.clone(), source };
        fs::File::open(&options.path).and_then(|file| file.sync_all()).map_err(failed)?;
        let owner = fs::metadata(replacement::directory_of(&path)).map_err(failed)?;
        // Who may do so has the daemon's user read it; who may not is that user, or nobody can help it.
        let _ = lchown(&options.path, Some(owner.uid()), Some(owner.gid()));
        fs::rename(&options.path, &path).map_err(failed)?;
        replacement::sync_directory_of(&path).map_err(failed)?;
        fs::remove_dir_all(&scratch).map_err(|source| TargetError::Io { path: scratch, source })
    }
}
