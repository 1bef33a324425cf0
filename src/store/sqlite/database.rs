//! The open database: records are durable in the journal first, everything else in a transaction that takes them over.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, mem};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};

use super::ageing::{Ageing, ClockReading};
use super::erasure::{Erasure, STEP};
use super::insertion::insert;
use super::migrations::MigrationError;
use super::scrub::{ScrubError, ScrubProgress, Scrubber};
use super::writer::Task;
use super::{KeptFiles, Options, damaged_journal, notes, open, row_cache};
use crate::store::clock::Clock;
use crate::store::file_identity::FileIdentity;
use crate::store::front::Batch;
use crate::store::journal::{self, Journal, JournalError};
use crate::store::predicted_queue::PredictedQueue;
use crate::store::projection::Projection;
use crate::store::told_keys::ToldKeys;
use crate::store::{Durability, StoreError, Stored};
use crate::timing::{Execution, Predicted};

/// Records in the journal that are taken over although there is no pause: so many that a transaction's own cost is
/// divided, so few that nobody waits long.
const MAX_BACKLOG: usize = 512;

/// Records that wait in the journal while the database cannot be written; beyond them, records are refused. Some 30 MB
/// in memory and on the disk.
const MAX_WAITING: usize = 1 << 16;

/// How long a transaction that nobody waits for waits for another program's.
const SHORT_PATIENCE: Duration = Duration::from_millis(20);

/// How long one that is waited for does.
pub(super) const LONG_PATIENCE: Duration = Duration::from_secs(1);

/// A write-ahead log of more bytes is emptied. By itself SQLite begins it anew only in a moment at which nobody reads
/// it, and it has none under readers that overlap.
const LONG_LOG: u64 = 16 << 20;

/// Between two tries, since each may wait for readers.
const LOG_TRIES: Duration = Duration::from_secs(1);

/// Records removed at once, so that nobody waits for the removal of all.
const PRUNED_AT_ONCE: u32 = 5000;

/// Idempotency keys are kept for this long: whoever repeats a call does so sooner.
const IDEMPOTENCY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("{}: {source}{}", path.display(), way_out(source))]
    Database { path: PathBuf, source: MigrationError },
    #[error("{}: {source}{}", path.display(), way_in(path, source))]
    Journal { path: PathBuf, source: JournalError },
}

/// What to do about a file that cannot be opened, to be said behind why: whose is it?
fn way_in(path: &Path, error: &JournalError) -> String {
    let JournalError::Io(error) = error else { return String::new() };
    let owner = fs::metadata(path).map(|file| file.uid()).ok();
    match owner {
        Some(owner) if error.kind() == io::ErrorKind::PermissionDenied => {
            let user = rustix::process::geteuid().as_raw();
            let owner = if owner == 0 { "root".to_owned() } else { format!("the user {owner}") };
            format!(
                "; it belongs to {owner}, and the daemon is the user {user}: let the daemon's user write it (`chown`)"
            )
        }
        _ => String::new(),
    }
}

/// What to do about a database that cannot be opened, to be said behind why.
fn way_out(error: &MigrationError) -> String {
    let hint = match error {
        MigrationError::Sqlite(error) => hint_of(error),
        MigrationError::Newer { .. } => "",
    };
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

/// What to do about a fault of the database; may be empty.
fn hint_of(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk, or the limit on the database's size, is full",
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "let the daemon's user write it"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program holds it",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "it is damaged; stop the daemon, and put a backup in its place, or move it away with its `-wal` and \
             `-shm`: a new one is made"
        }
        _ => "",
    }
}

/// Something could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error("its journal: {0}")]
    Journal(#[from] io::Error),
    #[error("its pages: {0}")]
    Pages(#[source] io::Error),
    #[error("it, or its `-wal` file, was removed or replaced while it is in use")]
    Gone,
}

impl WriteError {
    /// What to do about it; may be empty.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Journal(error) if error.kind() == io::ErrorKind::StorageFull => "the disk is full",
            Self::Journal(_) | Self::Pages(_) => "",
            Self::Gone => "put it back, or restart the daemon",
            Self::Database(error) => hint_of(error),
        }
    }

    /// Is it that another program holds the database? The journal takes records all the same.
    pub(super) fn is_busy(&self) -> bool {
        let Self::Database(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// May the same connection do better next time?
    pub(super) fn may_pass(&self) -> bool {
        let Self::Database(error) = self else { return true };
        let code = error.sqlite_error_code();
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull))
    }
}

impl From<ScrubError> for WriteError {
    fn from(error: ScrubError) -> Self {
        match error {
            ScrubError::Database(error) => Self::Database(error),
            ScrubError::File(error) => Self::Pages(error),
        }
    }
}

/// Is that the fault of what was to be written, or of what it met, rather than of the disk?
fn is_of_work(error: &rusqlite::Error) -> bool {
    use ErrorCode::{ConstraintViolation, DatabaseCorrupt, ParameterOutOfRange, TooBig, TypeMismatch, Unknown};
    error.sqlite_error_code().is_none_or(|code| {
        matches!(code, ConstraintViolation | DatabaseCorrupt | ParameterOutOfRange | TooBig | TypeMismatch | Unknown)
    })
}

/// The digest of what was told under a key of a tenant, if it was.
fn told_under(connection: &Connection, (tenant, key): &(String, String)) -> rusqlite::Result<Option<String>> {
    let query = "SELECT digest FROM idempotency_keys WHERE tenant = ?1 AND key = ?2";
    connection.prepare_cached(query)?.query_row([tenant, key], |row| row.get(0)).optional()
}

/// The database, the journal before it, and what follows from the records of both.
pub(super) struct Database {
    connection: Connection,
    identity: FileIdentity,
    /// Of its write-ahead log.
    wal_identity: FileIdentity,
    /// When the log was last found too long.
    log_tried: Option<Instant>,
    durability: Durability,
    scrubber: Scrubber,
    journal: Journal,
    backlog: Vec<(i64, Execution)>,
    /// Their idempotency keys, with what was told under them.
    journalled_keys: ToldKeys,
    /// Nothing after a failure: it is read anew.
    projection: Option<Projection>,
    ageing: Ageing,
    /// Taken along by each transaction.
    pub(super) predicted: Arc<PredictedQueue>,
    /// The last transaction failed, so the next must succeed before more is taken.
    is_stuck: bool,
}

impl Database {
    /// Opens the database, and takes over what an earlier daemon left in the journal.
    pub(super) fn open(options: &Options, kept: &KeptFiles) -> Result<Self, OpenError> {
        let (connection, is_new) =
            open(options).map_err(|source| OpenError::Database { path: options.path.clone(), source })?;
        let path = journal_of(&options.path);
        let unusable = |source: JournalError| OpenError::Journal { path: path.clone(), source };
        let failed = |error: rusqlite::Error| OpenError::Database { path: options.path.clone(), source: error.into() };
        let place_of = |path: PathBuf| {
            FileIdentity::of(&path).map_err(|error| OpenError::Journal { path: path.clone(), source: error.into() })
        };
        let (identity, wal_identity) = (place_of(options.path.clone())?, place_of(log_of(&options.path))?);
        let page_size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed)?;
        let keep = |file| kept.lock().push(file);
        let scrubber = Scrubber::open(&options.path, &log_of(&options.path), page_size as usize, is_new, keep);
        let scrubber =
            scrubber.map_err(|error| OpenError::Journal { path: log_of(&options.path), source: error.into() })?;
        let (journal, content) = Journal::open(&path, options.settings.durability).map_err(unusable)?;
        let projection = Projection::read(&connection).map_err(failed)?;
        damaged_journal::keep(&path, &content, projection.next_id());
        let mut backlog = content.records;
        backlog.retain(|(id, _)| *id >= projection.next_id());
        if let Some((first, _)) = backlog.first() {
            tracing::info!(records = backlog.len(), first, "records of the journal are taken over");
        }
        let projection = backlog.is_empty().then_some(projection);
        let (durability, journalled_keys) = (options.settings.durability, ToldKeys::default());
        let mut database = Self {
            connection,
            identity,
            wal_identity,
            log_tried: None,
            durability,
            scrubber,
            journal,
            backlog,
            journalled_keys,
            projection,
            ageing: Ageing::default(),
            predicted: Arc::default(),
            is_stuck: false,
        };
        // What is read back at the start has it as of the last record.
        database.write_projection().map_err(failed)?;
        database.journal.clear().map_err(|error| unusable(error.into()))?;
        Ok(database)
    }

    /// Sees to it that what is written will be found: a journal that was removed is made anew; a database cannot be,
    /// while others read it.
    pub(super) fn keep_place(&mut self) -> Result<(), WriteError> {
        if !self.wal_identity.is_unchanged() {
            // What only the log had is in the database then.
            self.empty_log();
        }
        if !self.identity.is_unchanged() || !self.wal_identity.is_unchanged() {
            return Err(WriteError::Gone);
        }
        if !self.journal.is_in_place() {
            tracing::warn!("the journal was removed or replaced while it is in use, and is made anew");
            self.renew_journal()?;
        }
        self.keep_log_short()?;
        Ok(())
    }

    /// Empties the log if it is long; if somebody reads an older state for long, it is tried again later.
    fn keep_log_short(&mut self) -> rusqlite::Result<()> {
        let is_long = fs::metadata(self.wal_identity.path()).is_ok_and(|log| log.len() > LONG_LOG);
        if !is_long || self.log_tried.is_some_and(|tried| tried.elapsed() < LOG_TRIES) {
            return Ok(());
        }
        self.connection.busy_timeout(SHORT_PATIENCE)?;
        // A disk that is full, or fails, is told by what is written.
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        self.log_tried = (!matches!(emptied, Ok(false))).then(Instant::now);
        self.connection.busy_timeout(LONG_PATIENCE)
    }

    /// Makes another journal, with what only the one that is gone had.
    fn renew_journal(&mut self) -> Result<(), WriteError> {
        let path = journal_of(self.identity.path());
        let (mut journal, _) = Journal::open(&path, self.durability).map_err(io::Error::other)?;
        journal.clear()?;
        if let Some((first, _)) = self.backlog.first() {
            let records: Vec<Execution> = self.backlog.iter().map(|(_, execution)| execution.clone()).collect();
            journal.append(*first, &records)?;
        }
        self.journal = journal;
        Ok(())
    }

    /// Removes a journal that was made for this opening alone.
    pub(super) fn leave_no_new_journal(&self) {
        if self.backlog.is_empty() {
            self.journal.remove_if_new();
        }
    }

    /// Has the journal failed, and not worked since?
    pub(super) fn is_doubtful(&self) -> bool {
        self.journal.is_doubtful()
    }

    /// Does what a pause is good for.
    pub(super) fn tidy(&mut self) -> Result<(), WriteError> {
        if self.is_behind() {
            self.apply_journal()?;
        } else {
            self.write_projection()?;
        }
        Ok(self.journal.prove()?)
    }

    /// Are there records that only the journal has?
    pub(super) fn is_behind(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Are there so many that no more are taken?
    pub(super) fn is_full(&self) -> bool {
        self.backlog.len() >= MAX_WAITING
    }

    /// How many there are.
    pub(super) fn waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Are there more of them than should be?
    pub(super) fn is_far_behind(&self) -> bool {
        self.backlog.len() >= MAX_BACKLOG
    }

    /// Has the last transaction failed?
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Is the projection older than the last record?
    pub(super) fn is_projection_unwritten(&self) -> bool {
        self.projection.as_ref().is_some_and(Projection::is_unwritten)
    }

    /// Stores the records of all batches, or with an error none; of a batch that uses a key again for something else,
    /// none. They are durable when this returns.
    pub(super) fn record(&mut self, batches: &mut [Batch]) -> Result<Vec<Result<Stored, StoreError>>, WriteError> {
        if self.is_full() {
            self.apply_journal()?;
        }
        let mut projection = self.take_projection()?;
        let first = projection.next_id();
        let (mut new, mut new_keys) = (Vec::new(), ToldKeys::default());
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            let executions = mem::take(&mut batch.executions);
            let look_up = |name: &_| told_under(&self.connection, name);
            let told = match new_keys.sort_out(&self.journalled_keys, &executions, look_up)? {
                Ok(told) => told,
                Err(reused) => {
                    outcomes.push(Err(reused));
                    continue;
                }
            };
            let (mut samples, mut ids) = (Vec::with_capacity(executions.len()), Vec::with_capacity(executions.len()));
            for (execution, told) in executions.into_iter().zip(told) {
                if told {
                    samples.push(None);
                    ids.push(None);
                } else {
                    ids.push(Some(projection.next_id()));
                    samples.push(Some(projection.add(&mut &self.connection, &execution)?));
                    new.push(execution);
                }
            }
            outcomes.push(Ok((samples, ids)));
        }
        if !new.is_empty() {
            self.journal.append(first, &new)?;
        }
        let transitions = projection.take_changes();
        self.projection = Some(projection);
        self.journalled_keys.extend(new_keys);
        self.backlog.extend((first..).zip(new));
        let stored =
            |(samples, ids)| Stored { samples, ids, transitions: Arc::clone(&transitions), ..Stored::default() };
        Ok(outcomes.into_iter().map(|outcome| outcome.map(stored)).collect())
    }

    /// The projection of all records, the journal's included, which is put back once nothing went wrong.
    fn take_projection(&mut self) -> rusqlite::Result<Projection> {
        if let Some(projection) = self.projection.take() {
            return Ok(projection);
        }
        let mut projection = Projection::read(&self.connection)?;
        for (_, execution) in &self.backlog {
            projection.add(&mut &self.connection, execution)?;
        }
        Ok(projection)
    }

    /// Runs all tasks, or with an error none. An error of theirs alone is no error of the database.
    pub(super) fn perform(
        &mut self,
        tasks: &mut [Box<dyn Task>],
        clock: &mut Clock,
    ) -> Result<rusqlite::Result<()>, WriteError> {
        match self.transact(|transaction, _| tasks.iter_mut().try_for_each(|task| task.run(transaction, clock))) {
            Err(error) if is_of_work(&error) && self.apply_journal().is_ok() => Ok(Err(error)),
            done => Ok(Ok(done?)),
        }
    }

    /// Writes the journal's records to the database. Nobody waits for it, so it does not wait for other programs
    /// either.
    pub(super) fn apply_journal(&mut self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(SHORT_PATIENCE)?;
        let applied = self.transact(|_, _| Ok(()));
        self.connection.busy_timeout(LONG_PATIENCE)?;
        applied
    }

    pub(super) fn write_projection(&mut self) -> rusqlite::Result<()> {
        self.transact(
            |transaction, projection| if projection.is_unwritten() { projection.write(transaction) } else { Ok(()) },
        )
    }

    /// Takes the journal's records over, with what was predicted of them, and does `work`, all or nothing.
    fn transact(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>, &mut Projection) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let predicted = self.predicted.take();
        let done = self.transact_with(&predicted, work);
        if done.is_err() {
            self.predicted.put_back(predicted);
        }
        done
    }

    fn transact_with(
        &mut self,
        predicted: &[(i64, Predicted)],
        work: impl FnOnce(&mut Transaction<'_>, &mut Projection) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let was_stuck = mem::replace(&mut self.is_stuck, true);
        let mut transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if was_stuck {
            // One that had nothing to write would prove nothing.
            transaction.execute("UPDATE fold SET tick = tick", [])?;
        }
        insert(&transaction, &self.backlog, predicted)?;
        let mut projection = match self.projection.take() {
            Some(projection) => projection,
            None => Projection::read(&transaction)?,
        };
        if projection.is_due() {
            projection.write(&transaction)?;
        }
        work(&mut transaction, &mut projection)?;
        transaction.commit()?;
        self.scrubber.note();
        projection.trim();
        (self.projection, self.is_stuck) = (Some(projection), false);
        self.backlog.clear();
        self.journalled_keys.clear();
        self.journal.rewind();
        Ok(())
    }

    /// Removes some of the memories that are to be removed. Are all of them?
    pub(super) fn erase(&mut self, erasure: &mut Erasure, clock: &mut Clock) -> Result<bool, WriteError> {
        let (before, mut is_done) = (erasure.forgotten().clone(), false);
        let step = self.transact(|transaction, _| {
            is_done = erasure.step(transaction, clock)?;
            Ok(())
        });
        if step.is_err() {
            erasure.take_back(before);
        }
        step?;
        Ok(is_done)
    }

    /// Overwrites for a while what was left of what was removed.
    pub(super) fn scrub(&mut self) -> Result<ScrubProgress, WriteError> {
        self.connection.busy_timeout(Duration::ZERO)?;
        let progress = self.scrubber.scrub(&self.connection, STEP);
        self.connection.busy_timeout(LONG_PATIENCE)?;
        match progress.map_err(WriteError::from) {
            Err(error) if error.is_busy() => Ok(ScrubProgress::Held),
            progress => progress,
        }
    }

    /// The latest moment that memories were written at.
    pub(super) fn latest_stamp(&self) -> rusqlite::Result<i64> {
        row_cache::latest_stamp(&self.connection)
    }

    /// Moves all that was committed out of the write-ahead log, which still has what was there before.
    pub(super) fn empty_log(&self) {
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        match emptied {
            Ok(false) => {}
            Ok(true) => tracing::warn!("readers keep the log; what was removed stays in it until it is written over"),
            Err(error) => tracing::warn!(%error, "the log was not emptied; what was removed stays in it for now"),
        }
    }

    /// Notes how much time has passed, for what is kept to grow old by.
    pub(super) fn mark_age(&mut self, retention: Duration) -> Result<(), WriteError> {
        self.write_projection()?;
        let Self { connection, projection: Some(projection), ageing, .. } = self else { return Ok(()) };
        self.is_stuck = true;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        ageing.mark(&transaction, ClockReading::now(), projection.next_id() - 1, retention)?;
        transaction.commit()?;
        self.is_stuck = false;
        self.scrubber.note();
        Ok(())
    }

    /// Removes what came before the retention, and all that is beyond the bounds. Is there more to remove?
    pub(super) fn prune(&mut self, retention: Duration) -> Result<bool, WriteError> {
        // Records that the written projection does not have must stay.
        self.mark_age(retention)?;
        let Self { connection, projection: Some(projection), ageing, .. } = self else { return Ok(false) };
        self.is_stuck = true;
        // One transaction, so that the log is not begun anew before its pages are noted.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (mut removed, mut keys) = (0, 0);
        if let Some(old) = ageing.old(&transaction, retention)? {
            let oldest = "DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE id <= ?1 ORDER BY id \
                          LIMIT ?2)";
            removed = transaction.execute(oldest, params![old.through, PRUNED_AT_ONCE])?;
            notes::prune_old(&transaction, old.before_ms.saturating_mul(1000))?;
        }
        if let Some(old) = ageing.old(&transaction, IDEMPOTENCY)? {
            keys = forget_keys(&transaction, old.before_ms)?;
        }
        projection.prune(&transaction)?;
        notes::prune(&transaction)?;
        ageing.prune(&transaction, retention.max(IDEMPOTENCY))?;
        transaction.commit()?;
        self.is_stuck = false;
        self.scrubber.note();
        if removed > 0 {
            tracing::info!(removed, "records that came before the retention are removed");
        }
        Ok(removed.max(keys) >= PRUNED_AT_ONCE as usize)
    }
}

/// Forgets keys that were told before this, ms since the epoch; how many at most of either kind.
fn forget_keys(connection: &Connection, before_ms: i64) -> rusqlite::Result<usize> {
    let forget = |table: &str, key: &str| {
        let old = format!("SELECT {key} FROM {table} WHERE at_ms < ?1 LIMIT ?2");
        connection.execute(&format!("DELETE FROM {table} WHERE ({key}) IN ({old})"), params![before_ms, PRUNED_AT_ONCE])
    };
    Ok(forget("idempotency_keys", "tenant, key")?.max(forget("memory_keys", "tenant, key")?))
}

/// The journal of the database at `path`.
fn journal_of(path: &Path) -> PathBuf {
    path.with_extension("journal")
}

/// The write-ahead log of the database at `path`.
fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The database at `path` with all that stands beside it.
pub(super) fn files_of(path: &Path) -> [PathBuf; 4] {
    [path.to_owned(), log_of(path), beside(path, "-shm"), journal_of(path)]
}

/// What was acknowledged before the database at `path` is copied, and may be missing in the copy.
pub(super) fn journalled(path: &Path) -> Result<Vec<(i64, Execution)>, JournalError> {
    journal::peek(&journal_of(path))
}

/// Adds to a copy what it lacks of that.
pub(super) fn complete(copy: &mut Connection, mut journalled: Vec<(i64, Execution)>) -> rusqlite::Result<()> {
    if journalled.is_empty() {
        return Ok(());
    }
    let transaction = copy.transaction()?;
    let next = Projection::read(&transaction)?.next_id();
    journalled.retain(|(id, _)| *id >= next);
    insert(&transaction, &journalled, &[])?;
    transaction.commit()
}

#[cfg(test)]
mod tests;
