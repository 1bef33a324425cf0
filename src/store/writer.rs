//! The one thread that writes: takes all that waits into one transaction, flushes once, acknowledges all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::notes;
use super::sqlite::{OnCommit, Options, open};
use super::tracker::{self, Tracker};
use super::{Execution, Outcome, StoreError, Stored};

/// Records of one commit; more would make the first of them wait for the last.
const MAX_GROUP: usize = 4096;

/// Between two tries to open a database that could not be opened.
const REOPEN: Duration = Duration::from_secs(1);

/// Between two looks for records that are older than the retention.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Records removed at once, so that nobody waits for the removal of all.
const PRUNED_AT_ONCE: u32 = 5000;

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

pub(super) struct Writer {
    options: Options,
    connection: Option<Connection>,
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
        Self { options, connection: None, clock, tried, pruned: None, queued, trouble, on_commit }
    }

    /// Opens the database, or says why not.
    pub(super) fn open(&mut self) {
        self.tried = Instant::now();
        match open(&self.options) {
            Ok(connection) => {
                self.connection = Some(connection);
                self.tell(None);
            }
            Err(error) => self.tell(Some(format!("{}: {error}", self.options.path.display()))),
        }
    }

    /// Writes until nobody can send any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(PRUNE) {
                Ok(first) => self.write(gather(first, jobs)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE) {
                self.prune();
            }
        }
    }

    fn write(&mut self, mut jobs: Vec<Job>) {
        if self.connection.is_none() && self.tried.elapsed() >= REOPEN {
            self.open();
        }
        let start = Instant::now();
        let outcome = match &mut self.connection {
            Some(connection) => commit(connection, &mut self.clock, &mut jobs).map_err(|error| self.explain(&error)),
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
        let Some(connection) = &self.connection else { return };
        let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
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
            self.connection = None;
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
        let Some(connection) = &mut self.connection else { return };
        let remove = || -> rusqlite::Result<()> {
            let old =
                "DELETE FROM executions WHERE id IN (SELECT id FROM executions WHERE at_ms < ?1 ORDER BY id LIMIT ?2)";
            connection.execute(old, params![before(self.options.retention), PRUNED_AT_ONCE])?;
            connection.execute("DELETE FROM idempotency_keys WHERE at_ms < ?1", [before(IDEMPOTENCY)])?;
            connection.execute("DELETE FROM memory_keys WHERE at_ms < ?1", [before(IDEMPOTENCY)])?;
            tracker::prune(connection)?;
            notes::prune(connection, before(self.options.retention).saturating_mul(1000))
        };
        if let Err(error) = remove() {
            tracing::warn!(%error, "old records could not be removed");
        }
    }
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

fn commit(connection: &mut Connection, clock: &mut Clock, jobs: &mut [Job]) -> rusqlite::Result<Vec<Stored>> {
    let now = now().as_millis() as i64;
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut tracker = Tracker::new(&transaction);
    let mut samples = Vec::with_capacity(jobs.len());
    for job in jobs.iter() {
        let executions: &[Execution] = if let Job::Batch(batch) = job { &batch.executions } else { &[] };
        let stored = executions.iter().map(|execution| insert(&transaction, &mut tracker, execution, now));
        samples.push(stored.collect::<rusqlite::Result<_>>()?);
    }
    let followed = tracker.write()?;
    for job in jobs {
        if let Job::Task(task) = job {
            task.run(&mut transaction, clock)?;
        }
    }
    transaction.commit()?;
    Ok(samples.into_iter().map(|samples| Stored { samples, followed: Arc::clone(&followed) }).collect())
}

/// Its key's lifetime count, if it was new.
fn insert(
    transaction: &Transaction<'_>,
    tracker: &mut Tracker<'_>,
    execution: &Execution,
    now: i64,
) -> rusqlite::Result<Option<u64>> {
    let Execution { tenant, tool, mode, duration_ms, outcome, measures, session, at_ms, idempotency_key } = execution;
    if let Some(key) = idempotency_key {
        let told = "INSERT INTO idempotency_keys (tenant, key, at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        if transaction.prepare_cached(told)?.execute(params![tenant, key, now])? == 0 {
            return Ok(None);
        }
    }
    tracker.called(execution)?;
    let failed = *outcome == Outcome::Error;
    let number = |measure: Option<u64>| measure.map(u64::cast_signed);
    transaction
        .prepare_cached(
            "INSERT INTO executions (tenant, tool, mode, failed, duration_ms, outcome, content_length, num_perspectives,
                                     num_branches, thinking_budget, context_tokens, session, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            tenant,
            tool,
            mode,
            failed,
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
    transaction
        .prepare_cached(
            "INSERT INTO execution_keys (tool, mode, failed, samples) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET samples = samples + excluded.samples RETURNING samples",
        )?
        .query_row(params![tool, mode.as_deref().unwrap_or_default(), failed, duration_ms.is_some()], |row| {
            row.get::<_, i64>(0)
        })
        .map(|samples| Some(samples.cast_unsigned()))
}
