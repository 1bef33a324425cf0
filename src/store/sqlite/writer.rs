//! The one thread that writes: takes all that waits, flushes once, acknowledges all.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rusqlite::Transaction;
use tokio::sync::oneshot;

use super::database::{Database, WriteError, now};
use super::erasure::Erasure;
use super::predicted_queue::PredictedQueue;
use super::scrub::ScrubProgress;
use super::{KeptFiles, LateHistory, OnCommit, Options, history};
use crate::store::{ReplayLimits, StoreError, Stored};
use crate::timing::Execution;

/// Records of one group; more would make the first of them wait for the last.
const MAX_GROUP: usize = 4096;

/// Between two tries of what did not work.
const RETRY: Duration = Duration::from_secs(1);

/// Between two looks for records that are older than the retention.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Without anything to write for so long, the database takes the journal's records over.
const PAUSE: Duration = Duration::from_millis(5);

/// Between two looks whether the files are where they were. Not with each write: the times of a file that was looked at
/// are written with its next flush, which then takes half as long again.
const LOOK: Duration = Duration::from_millis(100);

/// Without anything to write for so long, the projection is written, so that a start has nothing to do.
const QUIET: Duration = Duration::from_secs(1);

/// Why what was removed is not acknowledged.
const HELD: &str = "what was purged is found no more, but a program that reads the database keeps its log; the log is \
                    emptied when that program is done";

/// What waits to be written.
pub(super) enum Job {
    Batch(Batch),
    Task(Box<dyn Task>),
    /// Memories to be removed for good, in steps.
    Erasure(Box<Erasure>),
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

    /// Tells whoever waits how it came out.
    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>);
}

impl Job {
    fn records(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.executions.len(),
            Self::Task(task) => task.records(),
            Self::Erasure(_) => 1,
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
    database: Option<Database>,
    clock: Clock,
    tried: Instant,
    /// When the files were seen to be where they were.
    looked: Option<Instant>,
    prune_at: Instant,
    queued: Arc<AtomicUsize>,
    trouble: Arc<ArcSwapOption<String>>,
    kept: Arc<KeptFiles>,
    /// What the database had when it opened, if it did not at first.
    pub(super) late_history: Arc<Mutex<LateHistory>>,
    pub(super) predicted: Arc<PredictedQueue>,
    on_commit: OnCommit,
    /// What is to be removed, one after the other.
    erasures: VecDeque<Box<Erasure>>,
    /// What is removed, and not yet overwritten everywhere.
    removed: Vec<Erasure>,
    /// Somebody keeps the log from being emptied.
    is_held: bool,
}

impl Writer {
    pub(super) fn new(
        options: Options,
        queued: Arc<AtomicUsize>,
        trouble: Arc<ArcSwapOption<String>>,
        kept: Arc<KeptFiles>,
        on_commit: OnCommit,
    ) -> Self {
        let now = Instant::now();
        Self {
            options,
            database: None,
            clock: Clock::default(),
            tried: now,
            looked: None,
            prune_at: now,
            queued,
            trouble,
            kept,
            late_history: Arc::default(),
            predicted: Arc::default(),
            on_commit,
            erasures: VecDeque::new(),
            removed: Vec::new(),
            is_held: false,
        }
    }

    /// Opens the database, or says why not.
    pub(super) fn open(&mut self) {
        self.tried = Instant::now();
        match Database::open(&self.options, &self.kept) {
            Ok(mut database) => {
                database.predicted = Arc::clone(&self.predicted);
                self.clock.pass(database.latest_stamp().unwrap_or_default());
                self.database = Some(database);
                let mut late = self.late_history.lock();
                if matches!(*late, LateHistory::Awaited) {
                    *late = LateHistory::Read(history::read(&self.options.path, ReplayLimits::default()));
                }
                drop(late);
                self.report(None);
            }
            Err(error) => self.report(Some(error.to_string())),
        }
    }

    /// If the database is not open, what it has is read once it is.
    pub(super) fn await_history(&self) {
        if self.database.is_none() {
            *self.late_history.lock() = LateHistory::Awaited;
        }
    }

    /// Writes until nobody can send any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(self.patience()) {
                Ok(first) => self.write(gather(first, jobs)),
                Err(RecvTimeoutError::Timeout) if self.is_erasing() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.open_again();
                    self.attempt(Database::tidy);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let retention = self.options.settings.retention;
                    self.attempt(|database| database.mark_age(retention));
                    return;
                }
            }
            self.erase();
            if self.prune_at <= Instant::now() {
                self.prune();
            }
        }
    }

    fn is_erasing(&self) -> bool {
        !self.erasures.is_empty() || !self.removed.is_empty()
    }

    /// Does a step of what is to be removed for good.
    fn erase(&mut self) {
        if let Some(mut erasure) = self.erasures.pop_front() {
            match self.with_database(|database, clock| database.erase(&mut erasure, clock)) {
                Ok(true) => self.removed.push(*erasure),
                Ok(false) => self.erasures.push_front(erasure),
                Err(error) => erasure.acknowledge(Err(error)),
            }
        } else if !self.removed.is_empty() {
            let progress = self.with_database(|database, _| database.scrub());
            self.is_held = matches!(progress, Ok(ScrubProgress::Held));
            let outcome = match progress {
                Ok(ScrubProgress::Done) => Ok(()),
                Ok(ScrubProgress::More) => return,
                Ok(ScrubProgress::Held) => {
                    // They are told, and it goes on being tried.
                    for erasure in self.removed.iter_mut().filter(|erasure| erasure.is_overdue()) {
                        erasure.acknowledge(Err(StoreError::Unavailable(HELD.to_owned())));
                    }
                    return;
                }
                Err(error) => Err(error),
            };
            for mut erasure in mem::take(&mut self.removed) {
                erasure.acknowledge(outcome.clone());
            }
        }
    }

    /// Removes old records; if there are many, the rest a moment later.
    fn prune(&mut self) {
        let (retention, mut is_rest) = (self.options.settings.retention, false);
        self.attempt(|database| {
            is_rest = database.prune(retention)?;
            Ok(())
        });
        self.prune_at = Instant::now() + if is_rest { QUIET } else { PRUNE };
    }

    /// How long to wait for something to write before there is something else to do.
    fn patience(&self) -> Duration {
        let pause = match &self.database {
            // Nobody may come who is not told that it works again.
            _ if self.trouble.load().is_some() => RETRY,
            Some(_) if self.is_held => PAUSE,
            Some(_) if self.is_erasing() => Duration::ZERO,
            Some(database) if database.is_stuck() => RETRY,
            Some(database) if database.is_behind() => PAUSE,
            Some(database) if database.is_projection_unwritten() => QUIET,
            Some(_) | None => PRUNE,
        };
        pause.min(self.prune_at.saturating_duration_since(Instant::now()))
    }

    /// Opens the database if it is not, now and then.
    fn open_again(&mut self) {
        if self.database.is_none() && self.tried.elapsed() >= RETRY {
            self.open();
        }
    }

    /// Does something that nobody waits for; if it fails, everybody is told until it works. That another program holds
    /// the database is no failure as long as the journal takes what is to be kept.
    fn attempt(&mut self, work: impl FnOnce(&mut Database) -> Result<(), WriteError>) {
        if self.database.is_some() {
            let _ = self.with_database(|database, _| match work(database) {
                Err(error) if error.is_busy() => {
                    tracing::warn!(
                        waiting = database.waiting(),
                        "another program holds the database; records wait in the journal"
                    );
                    Ok(())
                }
                done => done,
            });
        }
    }

    fn write(&mut self, jobs: Vec<Job>) {
        self.open_again();
        let (mut batches, mut tasks, waited) = (Vec::new(), Vec::new(), jobs.len());
        for job in jobs {
            match job {
                Job::Batch(batch) => batches.push(batch),
                Job::Task(task) => tasks.push(task),
                Job::Erasure(erasure) => self.erasures.push_back(erasure),
            }
        }
        if !batches.is_empty() {
            self.record(batches);
        }
        if !tasks.is_empty() {
            self.perform(tasks);
        }
        self.queued.fetch_sub(waited, Ordering::Relaxed);
        if self.database.as_ref().is_some_and(|database| database.is_far_behind() && !database.is_stuck()) {
            self.attempt(|database| Ok(database.apply_journal()?));
        }
    }

    fn record(&mut self, mut batches: Vec<Batch>) {
        let (start, records) = (Instant::now(), batches.iter().map(|batch| batch.executions.len()).sum());
        let outcome = self.with_database(|database, _| database.record(&mut batches));
        if outcome.is_ok() {
            (self.on_commit)(start.elapsed(), records);
        }
        match outcome {
            Ok(stored) => {
                for (batch, stored) in batches.into_iter().zip(stored) {
                    // Whoever does not wait any more knows that it does not know.
                    let _ = batch.reply.send(stored);
                }
            }
            Err(refused) => {
                for batch in batches {
                    let _ = batch.reply.send(Err(refused.clone()));
                }
            }
        }
    }

    fn perform(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        let (start, records) = (Instant::now(), tasks.iter().map(|task| task.records()).sum());
        let done = self.with_database(|database, clock| database.perform(&mut tasks, clock));
        let outcome = done.and_then(|done| done.map_err(|error| self.blame(&error)));
        if outcome.is_ok() {
            (self.on_commit)(start.elapsed(), records);
        }
        for task in tasks {
            task.acknowledge(outcome.clone());
        }
    }

    /// Does something that is waited for, and says whether the store works.
    fn with_database<T>(
        &mut self,
        work: impl FnOnce(&mut Database, &mut Clock) -> Result<T, WriteError>,
    ) -> Result<T, StoreError> {
        let outcome = match &mut self.database {
            Some(database) => match look(database, &mut self.looked).and_then(|()| work(database, &mut self.clock)) {
                // Other work may do although records cannot be taken.
                Ok(done) if database.is_doubtful() => return Ok(done),
                // Records can be taken although other work cannot be done.
                Err(error) if error.is_busy() && !database.is_full() => {
                    return Err(StoreError::Unavailable(self.explain(&error)));
                }
                done => done.map_err(|error| self.explain(&error)),
            },
            None => Err(self.trouble.load().as_deref().cloned().unwrap_or_default()),
        };
        self.report(outcome.as_ref().err().cloned());
        outcome.map_err(StoreError::Unavailable)
    }

    /// Tasks failed, and nothing else does.
    fn blame(&self, error: &rusqlite::Error) -> StoreError {
        let path = self.options.path.display();
        tracing::error!(%error, "{path}: something other than records was not stored");
        StoreError::Unavailable(format!("{path}: {error}"))
    }

    /// A reason for people; a connection that is of no more use is closed, so that the next write opens a new one.
    fn explain(&mut self, error: &WriteError) -> String {
        if !error.may_pass() {
            self.database = None;
        }
        let (path, hint) = (self.options.path.display(), error.hint());
        if hint.is_empty() { format!("{path}: {error}") } else { format!("{path}: {error}; {hint}") }
    }

    fn report(&self, trouble: Option<String>) {
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
}

/// Sees now and then to the files' being where they were.
fn look(database: &mut Database, looked: &mut Option<Instant>) -> Result<(), WriteError> {
    if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
        *looked = None;
        database.keep_place()?;
        *looked = Some(Instant::now());
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use tempfile::TempDir;

    use super::super::file_in;
    use super::*;
    use crate::store::{Sqlite, Store};
    use crate::timing::{Measures, Outcome};

    /// A task that no database can do.
    struct Impossible(oneshot::Sender<Result<(), StoreError>>);

    impl Task for Impossible {
        fn records(&self) -> usize {
            1
        }

        fn run(&mut self, transaction: &mut Transaction<'_>, _: &mut Clock) -> rusqlite::Result<()> {
            transaction.execute("INSERT INTO fold VALUES (1000, 1000)", [])?;
            transaction.execute("INSERT INTO nowhere VALUES (1)", []).map(drop)
        }

        fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>) {
            self.0.send(outcome).unwrap();
        }
    }

    fn execution() -> Execution {
        Execution {
            tenant: "t".to_owned(),
            tool: "a".to_owned(),
            mode: None,
            duration_ms: Some(1),
            outcome: Outcome::Success,
            measures: Measures::default(),
            session: None,
            at_ms: 1,
            idempotency_key: None,
        }
    }

    #[test]
    fn a_task_that_fails_keeps_no_record_out() {
        let directory = TempDir::new().unwrap();
        let trouble: Arc<ArcSwapOption<String>> = Arc::default();
        let options = Options::file(file_in(directory.path()));
        let mut writer =
            Writer::new(options, Arc::default(), Arc::clone(&trouble), Arc::default(), Box::new(|_, _| ()));
        writer.open();
        for expected in 1..5 {
            let (failed, mut task) = oneshot::channel();
            let (reply, mut stored) = oneshot::channel();
            let batch = Batch { executions: vec![execution()], reply };
            writer.write(vec![Job::Task(Box::new(Impossible(failed))), Job::Batch(batch)]);
            assert!(matches!(task.try_recv().unwrap(), Err(StoreError::Unavailable(why)) if why.contains("nowhere")));
            assert_eq!(stored.try_recv().unwrap().unwrap().samples, [Some(expected)]);
            assert_eq!(trouble.load().as_deref(), None, "records are taken");
        }
    }

    #[test]
    fn a_store_works_again_before_anybody_asks() {
        let directory = TempDir::new().unwrap();
        let path = file_in(directory.path());
        fs::write(&path, "this is no database. ".repeat(100)).unwrap();
        let store = Sqlite::start(Options::file(&path), Box::new(|_, _| ())).unwrap();
        assert!(store.trouble().is_some());
        fs::remove_file(&path).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while let Some(trouble) = store.trouble() {
            assert!(Instant::now() < deadline, "{trouble}");
            thread::yield_now();
        }
    }
}
