//! SQLite's side of the writer's thread: when it is opened, pruned and tidied, and what of its failures is told.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Transaction;

use super::database::{Database, WriteError};
use super::erasure::Erasure;
use super::scrub::ScrubProgress;
use super::{KeptFiles, Options, history};
use crate::store::clock::Clock;
use crate::store::front::{Batch, DatabaseSide, Job, Queued, RETRY, WriterShared};
use crate::store::{ReplayLimits, StoreError, Stored};

/// Between two looks for records that are older than the retention.
const PRUNE: Duration = Duration::from_secs(60 * 60);

/// Between two parts of what is too old: others write meanwhile.
const REST: Duration = Duration::from_millis(200);

/// Without anything to write for so long, the database takes the journal's records over.
const PAUSE: Duration = Duration::from_millis(5);

/// Between two looks whether the files are where they were. Not with each write: the times of a file that was looked at
/// are written with its next flush, which then takes half as long again.
const LOOK: Duration = Duration::from_millis(100);

/// Without anything to write for so long, the projection is written, so that a start has nothing to do.
const QUIET: Duration = Duration::from_secs(1);

/// What is said with why the database cannot be written, as long as the journal stands in for it.
const MEANWHILE: &str = "records wait in the journal, as long as it has room";

/// Why what was removed is not acknowledged.
const HELD: &str = "what was purged is found no more, but a program that reads the database keeps its log; the log is \
                    emptied when that program is done";

/// A write that shares the group's transaction with others.
pub(super) trait Task: Send {
    /// How much it weighs, in records.
    fn records(&self) -> usize;

    /// Writes. What it refuses for its own reasons leaves no trace and fails nobody else; an error fails the group.
    fn run(&mut self, transaction: &mut Transaction<'_>, clock: &mut Clock) -> rusqlite::Result<()>;

    /// Tells whoever waits how it came out.
    fn acknowledge(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A task as a job.
pub(super) fn task(task: impl Task + 'static) -> Job<SqliteSide> {
    let task: Box<dyn Task> = Box::new(task);
    Job::Task(task)
}

impl Queued for Box<dyn Task> {
    fn records(&self) -> usize {
        (**self).records()
    }

    fn acknowledge(self, outcome: Result<(), StoreError>) {
        Task::acknowledge(self, outcome);
    }
}

/// The database, if it could be opened, and what is to be done with it.
pub(super) struct SqliteSide {
    options: Options,
    database: Option<Database>,
    clock: Clock,
    tried: Instant,
    /// When the journal was last applied amid records.
    applied: Instant,
    /// Why the open database cannot be written. Records that only the journal takes are no sign that it can be again.
    unwritable: Option<String>,
    /// When the files were seen to be where they were.
    looked: Option<Instant>,
    /// Nothing if nothing is removed for its age.
    prune_at: Option<Instant>,
    kept: Arc<KeptFiles>,
    shared: WriterShared,
    /// What is to be removed, one after the other.
    erasures: VecDeque<Box<Erasure>>,
    /// What is removed, and not yet overwritten everywhere.
    removed: Vec<Erasure>,
    /// Somebody keeps the log from being emptied.
    is_held: bool,
}

impl DatabaseSide for SqliteSide {
    type Task = Box<dyn Task>;
    type Erasure = Box<Erasure>;

    fn open(&mut self) {
        self.try_to_open();
        if self.database.is_none() {
            self.shared.await_history();
        }
    }

    fn patience(&self) -> Duration {
        let pause = match &self.database {
            // Nobody may come who is not told that it works again.
            _ if self.shared.trouble.is_some() => RETRY,
            Some(_) if self.is_held => PAUSE,
            Some(_) if self.is_erasing() => Duration::ZERO,
            Some(database) if database.is_stuck() => RETRY,
            Some(database) if database.is_behind() => PAUSE,
            Some(database) if database.is_projection_unwritten() => QUIET,
            Some(_) | None => PRUNE,
        };
        self.prune_at.map_or(pause, |at| pause.min(at.saturating_duration_since(Instant::now())))
    }

    fn prepare(&mut self) {
        self.open_again();
    }

    fn record(&mut self, batches: &mut [Batch]) -> Result<Vec<Result<Stored, StoreError>>, StoreError> {
        self.with_database(|database, _| database.record(batches))
    }

    fn perform(&mut self, tasks: &mut [Box<dyn Task>]) -> Result<(), StoreError> {
        let done = self.with_database(|database, clock| database.perform(tasks, clock));
        done.and_then(|done| done.map_err(|error| self.blame(&error)))
    }

    fn erase(&mut self, erasure: Box<Erasure>) {
        self.erasures.push_back(erasure);
    }

    fn settle(&mut self) {
        let Some(database) = &self.database else { return };
        // Records that come all the time leave no rest in which it would be tried.
        let is_due = if database.is_stuck() { self.applied.elapsed() >= RETRY } else { database.is_far_behind() };
        if is_due {
            self.applied = Instant::now();
            self.attempt(|database| Ok(database.apply_journal()?));
        }
    }

    fn rest(&mut self) {
        if !self.is_erasing() {
            self.open_again();
            self.attempt(Database::tidy);
        }
    }

    fn turn(&mut self) {
        self.go_on_erasing();
        if self.prune_at.is_some_and(|at| at <= Instant::now()) {
            self.prune();
        }
    }

    fn close(&mut self) {
        let retention = self.options.settings.retention;
        self.attempt(|database| database.mark_age(retention));
        // A command looks, and leaves: what it needed of the journal goes with it.
        if let Some(database) = self.database.as_ref().filter(|_| !self.options.is_pruned) {
            database.leave_no_new_journal();
        }
    }
}

impl SqliteSide {
    pub(super) fn new(options: Options, kept: Arc<KeptFiles>, shared: WriterShared) -> Self {
        let now = Instant::now();
        let prune_at = options.is_pruned.then_some(now);
        Self {
            options,
            database: None,
            clock: Clock::default(),
            tried: now,
            applied: now,
            unwritable: None,
            looked: None,
            prune_at,
            kept,
            shared,
            erasures: VecDeque::new(),
            removed: Vec::new(),
            is_held: false,
        }
    }

    /// Opens the database, or says why not.
    fn try_to_open(&mut self) {
        (self.tried, self.unwritable) = (Instant::now(), None);
        match Database::open(&self.options, &self.kept) {
            Ok(mut database) => {
                database.predicted = Arc::clone(&self.shared.predicted);
                self.clock.pass(database.latest_stamp().unwrap_or_default());
                self.database = Some(database);
                self.shared.opened(|| history::read(&self.options.path, ReplayLimits::default()));
                self.shared.trouble.report(None, true);
            }
            Err(error) => self.shared.trouble.report(Some(error.to_string()), false),
        }
    }

    fn is_erasing(&self) -> bool {
        !self.erasures.is_empty() || !self.removed.is_empty()
    }

    /// Does a step of what is to be removed for good.
    fn go_on_erasing(&mut self) {
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
        self.prune_at = Some(Instant::now() + if is_rest { REST } else { PRUNE });
    }

    /// Opens the database if it is not, now and then.
    fn open_again(&mut self) {
        if self.database.is_none() && self.tried.elapsed() >= RETRY {
            self.try_to_open();
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
            None => Err(self.shared.trouble.get().unwrap_or_default()),
        };
        self.say(outcome.as_ref().err());
        outcome.map_err(StoreError::Unavailable)
    }

    /// Says how it stands after something was done, or was not for this reason.
    fn say(&mut self, failed: Option<&String>) {
        let database = self.database.as_ref();
        if !database.is_some_and(Database::is_stuck) {
            self.unwritable = None;
        }
        // Anything else that failed, such as that the files are gone, keeps records from being taken as well.
        let is_no_other = failed.is_none_or(|failed| self.unwritable.as_ref() == Some(failed));
        let takes_records =
            is_no_other && database.is_some_and(|database| !database.is_doubtful() && !database.is_full());
        let trouble = match &self.unwritable {
            Some(why) if takes_records => Some(format!("{why}; {MEANWHILE}")),
            why => failed.or(why.as_ref()).cloned(),
        };
        self.shared.trouble.report(trouble, takes_records);
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
        let why = if hint.is_empty() { format!("{path}: {error}") } else { format!("{path}: {error}; {hint}") };
        if matches!(error, WriteError::Database(_)) && !error.is_busy() {
            self.unwritable = Some(why.clone());
        }
        why
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

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use tempfile::TempDir;
    use tokio::sync::oneshot;

    use super::super::file_in;
    use super::*;
    use crate::store::front::Writer;
    use crate::store::{Sqlite, Store};
    use crate::timing::{Execution, Measures, Outcome};

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
        let options = Options::file(file_in(directory.path()));
        let shared = WriterShared::default();
        let trouble = Arc::clone(&shared.trouble);
        let side = SqliteSide::new(options, Arc::default(), shared);
        let mut writer = Writer::new(side, Arc::default(), Box::new(|_, _| ()));
        writer.open();
        for expected in 1..5 {
            let (failed, mut task) = oneshot::channel();
            let (reply, mut stored) = oneshot::channel();
            let batch = Batch { executions: vec![execution()], reply };
            let flow = writer.write(vec![super::task(Impossible(failed)), Job::Batch(batch)]);
            assert!(flow.is_continue());
            assert!(matches!(task.try_recv().unwrap(), Err(StoreError::Unavailable(why)) if why.contains("nowhere")));
            assert_eq!(stored.try_recv().unwrap().outcome().unwrap().samples, [Some(expected)]);
            assert_eq!(trouble.get(), None, "records are taken");
            assert!(trouble.takes_records());
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
