//! What stands before any database: a bounded queue, and the one thread that takes all that waits, has it kept, and
//! acknowledges all. Which database is behind it, nobody else knows.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io, mem};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::acknowledgement::{Acknowledger, acknowledge};
use super::predicted_queue::PredictedQueue;
use super::trouble::Trouble;
use super::{History, Pending, StoreError, Stored};
use crate::timing::Execution;

/// Records of one group; more would make the first of them wait for the last.
pub(super) const MAX_GROUP: usize = 4096;

/// Between two tries of what did not work.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Called with the time each commit took and the number of records in it.
pub type OnCommit = Box<dyn FnMut(Duration, usize) + Send>;

/// What waits to be written.
pub(super) enum Job<D: DatabaseSide> {
    Batch(Batch),
    Task(D::Task),
    /// Memories to be removed for good, in steps.
    Erasure(D::Erasure),
    /// What came before is written, then the database is closed.
    Leave,
}

/// Calls that ended, all or none.
pub(super) struct Batch {
    pub(super) executions: Vec<Execution>,
    pub(super) reply: Acknowledger,
}

/// A write that shares the group's transaction with others.
pub(super) trait Queued: Send {
    /// How much it weighs, in records.
    fn records(&self) -> usize;

    /// Tells whoever waits how it came out.
    fn acknowledge(self, outcome: Result<(), StoreError>);
}

/// The journal and the database behind it, as the writer's thread has them.
pub(super) trait DatabaseSide: Send + 'static {
    type Task: Queued;
    type Erasure: Send;

    /// Opens the database; if it cannot be, that is said, and tried again later.
    fn open(&mut self);

    /// How long to wait for something to write before there is something else to do.
    fn patience(&self) -> Duration;

    /// Something is to be written.
    fn prepare(&mut self);

    /// Stores the records of all batches, or with an error none; of a batch that is refused, none. They are durable
    /// when this returns.
    fn record(&mut self, batches: &mut [Batch]) -> Result<Vec<Result<Stored, StoreError>>, StoreError>;

    /// Runs all tasks, or with an error none.
    fn perform(&mut self, tasks: &mut [Self::Task]) -> Result<(), StoreError>;

    /// Takes something that is to be removed for good.
    fn erase(&mut self, erasure: Self::Erasure);

    /// What was waiting is written.
    fn settle(&mut self);

    /// Nothing waited for so long as it had patience.
    fn rest(&mut self);

    /// Does what is to be done now and then.
    fn turn(&mut self);

    /// Nothing more will be written.
    fn close(&mut self);
}

impl<D: DatabaseSide> Job<D> {
    fn records(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.executions.len(),
            Self::Task(task) => task.records(),
            Self::Erasure(_) => 1,
            Self::Leave => 0,
        }
    }
}

/// What a start reads back of a database that could not be opened at first. It is read when the database opens, before
/// anything is added, so that nothing that was recorded since is in it.
#[derive(Debug, Default)]
pub(super) enum LateHistory {
    /// It opened at once, or what it had was read.
    #[default]
    Unneeded,
    /// It did not open yet.
    Awaited,
    Read(Result<History, StoreError>),
}

/// What both sides of the queue see.
#[derive(Debug, Clone, Default)]
pub(super) struct WriterShared {
    pub(super) trouble: Arc<Trouble>,
    pub(super) late_history: Arc<Mutex<LateHistory>>,
    pub(super) predicted: Arc<PredictedQueue>,
}

impl WriterShared {
    /// The database is not open; what it has is read once it is.
    pub(super) fn await_history(&self) {
        *self.late_history.lock() = LateHistory::Awaited;
    }

    /// Is what it has to be read once it is open?
    pub(super) fn awaits_history(&self) -> bool {
        matches!(*self.late_history.lock(), LateHistory::Awaited)
    }

    /// The database is open; reads what it has if that is awaited.
    pub(super) fn opened(&self, read: impl FnOnce() -> Result<History, StoreError>) {
        let mut late = self.late_history.lock();
        if matches!(*late, LateHistory::Awaited) {
            *late = LateHistory::Read(read());
        }
    }
}

/// The one thread that writes.
pub(super) struct Writer<D> {
    side: D,
    queued: Arc<AtomicUsize>,
    on_commit: OnCommit,
}

impl<D: DatabaseSide> Writer<D> {
    pub(super) fn new(side: D, queued: Arc<AtomicUsize>, on_commit: OnCommit) -> Self {
        Self { side, queued, on_commit }
    }

    pub(super) fn open(&mut self) {
        self.side.open();
    }

    /// Writes until leave is taken.
    fn run(mut self, jobs: &Receiver<Job<D>>) {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() {
            match jobs.recv_timeout(self.side.patience()) {
                Ok(first) => flow = self.write(gather(first, jobs)),
                Err(RecvTimeoutError::Timeout) => self.side.rest(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.side.turn();
        }
        self.side.close();
    }

    /// Writes all jobs. Is that the end?
    pub(super) fn write(&mut self, jobs: Vec<Job<D>>) -> ControlFlow<()> {
        self.side.prepare();
        let (mut batches, mut tasks, waited) = (Vec::new(), Vec::new(), jobs.len());
        let mut flow = ControlFlow::Continue(());
        for job in jobs {
            match job {
                Job::Batch(batch) => batches.push(batch),
                Job::Task(task) => tasks.push(task),
                Job::Erasure(erasure) => self.side.erase(erasure),
                Job::Leave => flow = ControlFlow::Break(()),
            }
        }
        if !batches.is_empty() {
            self.record(batches);
        }
        if !tasks.is_empty() {
            self.perform(tasks);
        }
        self.queued.fetch_sub(waited, Ordering::Relaxed);
        self.side.settle();
        flow
    }

    fn record(&mut self, mut batches: Vec<Batch>) {
        let (start, records) = (Instant::now(), batches.iter().map(|batch| batch.executions.len()).sum());
        let outcome = self.side.record(&mut batches);
        if outcome.is_ok() {
            (self.on_commit)(start.elapsed(), records);
        }
        let replies = batches.into_iter().map(|batch| batch.reply);
        match outcome {
            Ok(stored) => acknowledge(replies.zip(stored)),
            Err(refused) => acknowledge(replies.map(|reply| (reply, Err(refused.clone())))),
        }
    }

    fn perform(&mut self, mut tasks: Vec<D::Task>) {
        let (start, records) = (Instant::now(), tasks.iter().map(Queued::records).sum());
        let outcome = self.side.perform(&mut tasks);
        if outcome.is_ok() {
            (self.on_commit)(start.elapsed(), records);
        }
        for task in tasks {
            task.acknowledge(outcome.clone());
        }
    }
}

/// Databases differ in whether they keep that character, so none is asked to.
fn has_null(execution: &Execution) -> bool {
    let Execution { tenant, tool, mode, session, idempotency_key, .. } = execution;
    let key = idempotency_key.as_ref().map(|key| &key.name);
    [Some(tenant), Some(tool), mode.as_ref(), session.as_ref(), key]
        .into_iter()
        .flatten()
        .any(|text| text.contains('\0'))
}

/// All that waits, up to the size of a group.
fn gather<D: DatabaseSide>(first: Job<D>, jobs: &Receiver<Job<D>>) -> Vec<Job<D>> {
    // Who is about to send does so first. Else, where processors are busy, one flush is made for each, not for all.
    thread::yield_now();
    let mut records = first.records();
    let mut group = vec![first];
    while records < MAX_GROUP {
        let Ok(job) = jobs.try_recv() else { break };
        records += job.records();
        group.push(job);
    }
    group
}

/// The other end of the queue. Dropping it takes leave.
pub(super) struct Front<D: DatabaseSide> {
    jobs: SyncSender<Job<D>>,
    max_queue: usize,
    queued: Arc<AtomicUsize>,
    /// Set once the database was opened, or was found not to be usable.
    opened: Arc<OnceLock<()>>,
    shared: WriterShared,
    /// Nothing once leave was taken.
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl<D: DatabaseSide> fmt::Debug for Front<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Front")
            .field("queued", &self.queued)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl<D: DatabaseSide> Front<D> {
    /// Starts the writer, which opens the database: it flushes the disk, or asks a server, which need not be waited for
    /// while documents are read.
    pub(super) fn start(side: D, shared: WriterShared, max_queue: usize, on_commit: OnCommit) -> io::Result<Self> {
        let (sender, jobs) = sync_channel(max_queue);
        let (queued, opened) = (Arc::<AtomicUsize>::default(), Arc::<OnceLock<()>>::default());
        let mut writer = Writer::new(side, Arc::clone(&queued), on_commit);
        let done = Arc::clone(&opened);
        let thread = Builder::new().name("store".into()).spawn(move || {
            writer.open();
            done.get_or_init(|| ());
            writer.run(&jobs);
        })?;
        Ok(Self { jobs: sender, max_queue, queued, opened, shared, writer: Mutex::new(Some(thread)) })
    }

    /// Puts a job in the queue.
    pub(super) fn send(&self, job: Job<D>) -> Result<(), StoreError> {
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.jobs.try_send(job).map_err(|error| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => StoreError::Busy(self.max_queue),
                TrySendError::Disconnected(_) => StoreError::Closed,
            }
        })
    }

    pub(super) fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError> {
        if batch.iter().any(has_null) {
            return Err(StoreError::Unstorable("a text of it has the character U+0000".to_owned()));
        }
        let (reply, pending) = oneshot::channel();
        self.send(Job::Batch(Batch { executions: batch, reply }))?;
        Ok(Pending(pending))
    }

    /// What the database had when it opened: read now if it opened at once.
    pub(super) fn replay(&self, read: impl FnOnce() -> Result<History, StoreError>) -> Result<History, StoreError> {
        let trouble = self.trouble();
        let mut late_history = self.shared.late_history.lock();
        match mem::take(&mut *late_history) {
            LateHistory::Read(read) => read,
            awaited @ LateHistory::Awaited => {
                *late_history = awaited;
                Err(StoreError::Unavailable(trouble.unwrap_or_default()))
            }
            // Where only the journal takes records, the database can still be read.
            LateHistory::Unneeded => match trouble.filter(|_| !self.shared.trouble.takes_records()) {
                Some(trouble) => Err(StoreError::Unavailable(trouble)),
                None => read(),
            },
        }
    }

    pub(super) fn shared(&self) -> &WriterShared {
        &self.shared
    }

    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Waits until the database was opened, or found not to be usable.
    pub(super) fn wait(&self) {
        self.opened.wait();
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.wait();
        self.shared.trouble.get()
    }

    /// Are records taken? They may be although not all can be stored.
    pub(super) fn takes_records(&self) -> bool {
        self.wait();
        self.shared.trouble.takes_records()
    }

    /// Called now and then, so that what is over is told while nothing is written.
    pub(super) fn look_again(&self) {
        self.shared.trouble.look_again();
    }
}

impl<D: DatabaseSide> Front<D> {
    /// Waits until what waits is written and the database is closed; nothing more is taken.
    pub(super) fn take_leave(&self) {
        let Some(writer) = self.writer.lock().take() else { return };
        self.queued.fetch_add(1, Ordering::Relaxed);
        // If it fails, the thread is gone already.
        let _ = self.jobs.send(Job::Leave);
        if writer.join().is_err() && !thread::panicking() {
            tracing::error!("the store's writer panicked");
        }
    }
}

impl<D: DatabaseSide> Drop for Front<D> {
    fn drop(&mut self) {
        self.take_leave();
    }
}
