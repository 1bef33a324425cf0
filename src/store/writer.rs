//! The one thread that writes: takes all that waits into one transaction, flushes once, acknowledges all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::fold::Fold;
use super::notes;
use super::sqlite::{OnCommit, Options, open};
use super::{Execution, Outcome, StoreError, Stored};

/// Records of one commit; more would make the first of them wait for the last.
const MAX_GROUP: usize = 4096;

/// Between two tries to open a database that could not be opened.
const REOPEN: Duration = Duration::from_secs(1);

/// Between two looks for records that are older than the retention.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Records removed at once, so that nobody waits for the removal of all.
const PRUNED_AT_ONCE: u32 = 5000;

/// Without records for so long, the fold is written, so that a start has nothing to do.
const IDLE: Duration = Duration::from_secs(1);

/// Idempotency keys are kept for this long: whoever repeats a call does so sooner.
const IDEMPOTENCY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// In place of a duration that is not known.
const UNTIMED: i64 = -1;

/// What waits to be written.
pub(super) enum Job {
    /// Calls that ended.
    Batch(Batch),
    /// Anything else.
    Task(Box<dyn Task>),
}

/// Calls that ended, all or none.
pub(super) struct Batch {
    pub(super) executions: Vec<Execution>,
    pub(super) reply: oneshot::Sender<Result<Stored, StoreError>>,
}

/// A write that shares the group's transaction with others.
pub(super) trait Task: Send {
    /// How much it weighs, in records.
    fn records(&self) -> usize;

    /// Writes. What it refuses for its own reasons leaves no trace and fails nobody else; an error fails the group.
    fn run(&mut self, transaction: &mut Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<()>;

    /// Must what it removes be in no file once it is acknowledged?
    fn is_erasure(&self) -> bool {
        false
    }

    /// Tells whoever waits how it came out.
    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl Job {
    fn records(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.executions.len(),
            Self::Task(task) => task.records(),
        }
    }
}

/// The writer's clock: microseconds since the epoch, never the same twice.
#[derive(Debug, Default)]
pub(super) struct Clock(i64);

impl Clock {
    /// Now, or as soon after the moment before as can be told.
    pub(super) fn tick(&mut self) -> i64 {
        self.0 = (now().as_micros() as i64).max(self.0 + 1);
        self.0
    }

    /// It is after `moment`.
    pub(super) fn pass(&mut self, moment: i64) {
        self.0 = self.0.max(moment);
    }
}

/// The open database, and what its records come to.
struct Database {
    connection: Connection,
    /// Nothing after a transaction that failed: it is read anew.
    fold: Option<Fold>,
}

pub(super) struct Writer {
    options: Options,
    database: Option<Database>,
    clock: Clock,
    tried: Instant,
    pruned: Option<Instant>,
    queued: Arc<AtomicUsize>,
    trouble: Arc<ArcSwapOption<String>>,
    on_commit: OnCommit,
}

impl Writer {
    pub(super) fn new(
        options: Options,
        queued: Arc<AtomicUsize>,
        trouble: Arc<ArcSwapOption<String>>,
        on_commit: OnCommit,
    ) -> Self {
        let (clock, tried) = (Clock::default(), Instant::now());
        Self { options, database: None, clock, tried, pruned: None, queued, trouble, on_commit }
    }

    /// Opens the database, or says why not.
    pub(super) fn open(&mut self) {
        self.tried = Instant::now();
        match open(&self.options) {
            Ok(connection) => {
                self.database = Some(Database { connection, fold: None });
                // What is read back at the start has it as of the last record.
                self.write_fold();
            }
            Err(error) => self.tell(Some(format!("{}: {error}", self.options.path.display()))),
        }
    }

    /// Writes the fold, which is also how it is read for the first time.
    fn write_fold(&mut self) {
        let Some(database) = &mut self.database else { return };
        let written = database.write_fold().map_err(|error| self.explain(&error));
        self.tell(written.err());
    }

    /// Writes until nobody can send any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let is_unwritten = self.database.as_ref().is_some_and(Database::is_unwritten);
            match jobs.recv_timeout(if is_unwritten { IDLE } else { PRUNE }) {
                Ok(first) => self.write(gather(first, jobs)),
                Err(RecvTimeoutError::Timeout) => self.write_fold(),
                Err(RecvTimeoutError::Disconnected) => return self.write_fold(),
            }
            if self.pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE) {
                self.prune();
            }
        }
    }

    fn write(&mut self, mut jobs: Vec<Job>) {
        if self.database.is_none() && self.tried.elapsed() >= REOPEN {
            self.open();
        }
        let start = Instant::now();
        let outcome = match &mut self.database {
            Some(database) => database.commit(&mut self.clock, &mut jobs).map_err(|error| self.explain(&error)),
            None => Err(self.trouble.load().as_deref().cloned().unwrap_or_default()),
        };
        self.queued.fetch_sub(jobs.len(), Ordering::Relaxed);
        match outcome {
            Ok(stored) => {
                self.tell(None);
                if jobs.iter().any(|job| matches!(job, Job::Task(task) if task.is_erasure())) {
                    self.empty_log();
                }
                (self.on_commit)(start.elapsed(), jobs.iter().map(Job::records).sum());
                for (job, stored) in jobs.into_iter().zip(stored) {
                    match job {
                        // Whoever does not wait any more knows that it does not know.
                        Job::Batch(batch) => drop(batch.reply.send(Ok(stored))),
                        Job::Task(task) => task.acknowledge(Ok(())),
                    }
                }
            }
            Err(reason) => {
                self.tell(Some(reason.clone()));
                for job in jobs {
                    let refused = StoreError::Unavailable(reason.clone());
                    match job {
                        Job::Batch(batch) => drop(batch.reply.send(Err(refused))),
                        Job::Task(task) => task.acknowledge(Err(refused)),
                    }
                }
            }
        }
    }

    /// Moves all that was committed out of the write-ahead log, which still has what was there before.
    fn empty_log(&self) {
        let Some(database) = &self.database else { return };
        let emptied = database.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        match emptied {
            Ok(false) => {}
            Ok(true) => tracing::warn!("readers keep the log; what was removed stays in it until it is written over"),
            Err(error) => tracing::warn!(%error, "the log was not emptied; what was removed stays in it for now"),
        }
    }

    /// A reason for people; a connection that is of no more use is closed, so that the next write opens a new one.
    fn explain(&mut self, error: &rusqlite::Error) -> String {
        let hint = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk, or the limit on the database's size, is full",
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                "let the daemon's user write it"
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program holds it",
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                "it is damaged; move it away, or restore a backup"
            }
            _ => "",
        };
        if !matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull)
        ) {
            self.database = None;
        }
        let path = self.options.path.display();
        if hint.is_empty() { format!("{path}: {error}") } else { format!("{path}: {error}; {hint}") }
    }

    fn tell(&self, trouble: Option<String>) {
        let before = self.trouble.load();
        if before.as_deref() == trouble.as_ref() {
            return;
        }
        match &trouble {
            Some(reason) => tracing::error!(reason, "nothing can be stored"),
            None if before.is_some() => tracing::info!("the store works again"),
            None => {}
        }
        self.trouble.store(trouble.map(Arc::new));
    }

    fn prune(&mut self) {
        self.pruned = Some(Instant::now());
        let before = |age: Duration| now().saturating_sub(age).as_millis() as i64;
        // What is not in the fold that is written must stay.
        self.write_fold();
        let Some(Database { connection, fold: Some(fold) }) = &mut self.database else { return };
        let mut remove = || -> rusqlite::Result<()> {
            let old =
                "DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE at_ms < ?1 ORDER BY id LIMIT ?2)";
            connection.execute(old, params![before(self.options.retention), PRUNED_AT_ONCE])?;
            connection.execute("DELETE FROM idempotency_keys WHERE at_ms < ?1", [before(IDEMPOTENCY)])?;
            connection.execute("DELETE FROM memory_keys WHERE at_ms < ?1", [before(IDEMPOTENCY)])?;
            fold.prune(connection)?;
            notes::prune(connection, before(self.options.retention).saturating_mul(1000))
        };
        if let Err(error) = remove() {
            tracing::warn!(%error, "old records could not be removed");
        }
    }
}

impl Database {
    fn is_unwritten(&self) -> bool {
        self.fold.as_ref().is_some_and(Fold::is_unwritten)
    }

    /// All of it or, with an error, nothing.
    fn commit(&mut self, clock: &mut Clock, jobs: &mut [Job]) -> rusqlite::Result<Vec<Stored>> {
        let mut transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut fold = match self.fold.take() {
            Some(fold) => fold,
            None => Fold::read(&transaction)?,
        };
        let samples = store(&transaction, &mut fold, jobs)?;
        let followed = fold.tell();
        if fold.is_due() {
            fold.write(&transaction)?;
        }
        for job in jobs {
            if let Job::Task(task) = job {
                task.run(&mut transaction, clock)?;
            }
        }
        transaction.commit()?;
        self.fold = Some(fold);
        Ok(samples.into_iter().map(|samples| Stored { samples, followed: Arc::clone(&followed) }).collect())
    }

    fn write_fold(&mut self) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut fold = match self.fold.take() {
            Some(fold) => fold,
            None => Fold::read(&transaction)?,
        };
        if fold.is_unwritten() {
            fold.write(&transaction)?;
        }
        transaction.commit()?;
        self.fold = Some(fold);
        Ok(())
    }
}

/// Stores the records of all batches. Returns for each batch its keys' lifetime counts, nothing for what was told before.
fn store(transaction: &Transaction<'_>, fold: &mut Fold, jobs: &[Job]) -> rusqlite::Result<Vec<Vec<Option<u64>>>> {
    let now = now().as_millis() as i64;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO executions (id, tenant, tool, mode, failed, duration_ms, outcome, content_length, num_perspectives,
                                 num_branches, thinking_budget, context_tokens, session, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let mut put = |execution: &Execution| -> rusqlite::Result<Option<u64>> {
        let Execution { tenant, tool, mode, duration_ms, outcome, measures, session, at_ms, idempotency_key } =
            execution;
        if let Some(key) = idempotency_key {
            let told = "INSERT INTO idempotency_keys (tenant, key, at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            if transaction.prepare_cached(told)?.execute(params![tenant, key, now])? == 0 {
                return Ok(None);
            }
        }
        let number = |measure: Option<u64>| measure.map(u64::cast_signed);
        insert.execute(params![
            fold.next_id(),
            tenant,
            tool,
            mode,
            *outcome == Outcome::Error,
            duration_ms.map_or(UNTIMED, u64::cast_signed),
            outcome.as_str(),
            number(measures.content_length),
            number(measures.num_perspectives),
            number(measures.num_branches),
            number(measures.thinking_budget),
            number(measures.context_tokens),
            session,
            at_ms,
        ])?;
        fold.add(transaction, execution).map(Some)
    };
    let of_job = |job: &Job| match job {
        Job::Batch(batch) => batch.executions.iter().map(&mut put).collect(),
        Job::Task(_) => Ok(Vec::new()),
    };
    jobs.iter().map(of_job).collect()
}

/// All that waits, up to the size of a group.
fn gather(first: Job, jobs: &Receiver<Job>) -> Vec<Job> {
    let mut records = first.records();
    let mut group = vec![first];
    while records < MAX_GROUP {
        let Ok(job) = jobs.try_recv() else { break };
        records += job.records();
        group.push(job);
    }
    group
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
