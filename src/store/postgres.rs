//! The store on PostgreSQL, which several daemons share: records stand in a journal on this machine first and are sent
//! from there; everything else is read and written in the database.
//!
//! Replication, failover and backup are PostgreSQL's. What is ours is that a group of records is stored once, however
//! often it is sent: each group moves the row of its writer in the same transaction.

pub mod address;
pub mod audit;
mod clock_difference;
pub mod daemon_id;
mod daemon_states;
pub mod fault;
mod following;
pub mod forwarder;
pub mod group;
mod history;
mod learnt;
mod learnt_rows;
mod memories;
pub mod migrations;
mod moved_sessions;
pub mod moving;
pub mod moving_back;
mod notes;
mod other_hosts;
pub mod outbox;
pub mod partitions;
pub mod password_file;
mod purges;
mod readers;
mod retention;
mod revision;
mod server_trouble;
pub mod session;
mod shared_counts;
mod side;
pub mod spool;
pub mod spool_forward;
mod standing;
mod tasks;
#[cfg(test)]
mod test_pooler;
#[cfg(test)]
mod test_server;
mod tls;
mod told_trouble;
mod trails;
mod unfollowed;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use self::address::DatabaseAddress;
use self::daemon_states::DaemonStates;
use self::following::Following;
use self::learnt::LearningDaemon;
use self::migrations::Migration;
use self::outbox::{OutboxSettings, WhenUnreachable};
use self::readers::DatabaseReaders;
use self::side::PostgresSide;
use self::spool::SpoolError;
use self::standing::Standing;
pub use self::standing::Standings;
use self::tasks::DatabaseTask;
use super::finding::row_cache::RowCaches;
use super::fleet::Fleet;
use super::front::{Front, Job, OnCommit, WriterShared};
use super::memories::Memories;
use super::{
    Choice, ChoiceNote, ExecutionFilter, ExecutionPage, Followed, History, KeptTurn, Note, NotesPending, Pending,
    ReplayLimits, SessionFilter, SessionPage, Store, StoreError, TimedCallFilter,
};
use crate::timing::{Execution, Predicted, TimedCall};

/// How the database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    pub address: DatabaseAddress,
    /// Where records wait on this machine; nobody else uses it.
    pub directory: PathBuf,
    pub outbox: OutboxSettings,
    /// May the schema be brought up to date?
    pub migration: Migration,
    /// Daemons of one host share its durations.
    pub host: String,
    /// Months of records that ended longer ago are removed. None are by a command, which may not know for how long they
    /// are to be kept.
    pub retention: Option<Duration>,
    /// Batches that may wait to be written; more are refused.
    pub max_queue: usize,
}

impl PostgresOptions {
    fn spools(&self) -> bool {
        self.outbox.when_unreachable == WhenUnreachable::Spool
    }
}

/// The store cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum PostgresStartError {
    /// Something that only the operator can mend.
    #[error("the database that daemons share (store.url, or ALMANAC_DATABASE_URL): {0}")]
    Setting(String),
    /// Records cannot be kept on this machine.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("cannot start the store's threads: {0}")]
    System(#[from] io::Error),
}

/// The store on PostgreSQL. Dropping it writes what waits, as far as the server takes it; the rest stays on this
/// machine.
#[derive(Debug)]
pub struct Postgres {
    /// Where records wait on this machine.
    directory: PathBuf,
    following: Arc<Following>,
    front: Front<PostgresSide>,
    readers: Arc<DatabaseReaders>,
    row_caches: RowCaches<String>,
    standing: Standing,
    states: Arc<DaemonStates>,
    /// Tells the other daemons how this one is.
    saying: JoinHandle<()>,
    /// Moves connections on. It ends after the writer, which comes before it here.
    runtime: Option<Runtime>,
}

impl Postgres {
    /// Starts the writer, and waits for the server, for five seconds at most. One that is away is no error: records
    /// wait on this machine, and it is looked for.
    ///
    /// # Errors
    /// If a setting is wrong, which waiting does not mend.
    pub fn start(options: PostgresOptions, on_commit: OnCommit) -> Result<Self, PostgresStartError> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("store-io").enable_all().build()?;
        match Self::start_on(runtime.handle(), options, on_commit) {
            Ok(mut store) => {
                store.runtime = Some(runtime);
                Ok(store)
            }
            Err(error) => {
                // Who starts it may be in another runtime, where none may be waited for.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    fn start_on(runtime: &Handle, options: PostgresOptions, on_commit: OnCommit) -> Result<Self, PostgresStartError> {
        let learning = LearningDaemon { daemon: daemon_id::daemon_of(&options.directory)?, host: options.host.clone() };
        let (shared, standing) = (WriterShared::default(), Standing::default());
        let readers = Arc::new(DatabaseReaders::of(runtime.clone(), options.address.clone(), standing.clone()));
        let (max_queue, directory) = (options.max_queue, options.directory.clone());
        let handle = runtime.clone();
        let side = PostgresSide::new(options, learning, handle, shared.clone(), standing.clone())?;
        let following = Arc::clone(side.following());
        let states = DaemonStates::new(side.writer(), Arc::clone(&following), standing.clone(), Arc::clone(&readers));
        let front = Front::start(side, shared, max_queue, on_commit)?;
        front.wait();
        if let Some(setting) = standing.setting() {
            return Err(PostgresStartError::Setting(setting));
        }
        let states = Arc::new(states);
        let saying = runtime.spawn(Arc::clone(&states).go_on_saying());
        let row_caches = RowCaches::default();
        Ok(Self { directory, following, front, readers, row_caches, standing, states, saying, runtime: None })
    }

    /// Has the server take what only this machine has. If it cannot now, what the server has is answered.
    fn send_journal(&self) {
        if let Ok(sent) = self.note(Vec::new()) {
            sent.wait();
        }
    }

    /// Says what only this machine has when the daemon ends.
    fn say_what_stays(&self) {
        let (waiting, directory) = (self.standing.now().waiting, self.directory.display());
        if waiting > 0 {
            tracing::warn!(
                waiting,
                %directory,
                "records are on this machine alone; keep the state directory until a start has sent them"
            );
        }
    }

    /// Waits for the writer before the runtime goes that it needs.
    fn close(&mut self) {
        self.front.take_leave();
        self.saying.abort();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for Postgres {
    fn append(&self, batch: Vec<Execution>) -> Result<Pending, StoreError> {
        self.front.append(batch)
    }

    fn keep_predicted(&self, predicted: Vec<(i64, Predicted)>) {
        self.front.shared().predicted.put(predicted);
    }

    fn note(&self, notes: Vec<Note>) -> Result<NotesPending, StoreError> {
        let (task, noted) = DatabaseTask::notes(notes, self.following.purges().forgotten());
        let choosing: Vec<String> = task.choosing().map(str::to_owned).collect();
        let sent = self.front.send(Job::Task(task));
        if sent.is_err() {
            self.following.purges().learn_anew(choosing);
        }
        sent.map(|()| noted)
    }

    fn replay(&self, limits: ReplayLimits) -> Result<History, StoreError> {
        if let Some(trouble) = self.unreadable() {
            return Err(StoreError::Unavailable(trouble));
        }
        self.front.replay(|| self.readers.read(async |session| history::read(session, &self.following, limits).await))
    }

    fn follow(&self) -> Result<Followed, StoreError> {
        let followed = self.readers.follow(async |session| self.following.follow(session).await);
        self.front.look_again();
        followed
    }

    fn has_relearnt(&self) {
        self.following.has_relearnt();
    }

    fn has_forgotten(&self) {
        self.following.purges().has_forgotten();
    }

    fn executions(&self, wanted: &ExecutionFilter) -> Result<ExecutionPage, StoreError> {
        self.send_journal();
        self.readers.read(async |session| audit::page(session, wanted).await)
    }

    fn timed_calls(&self, wanted: &TimedCallFilter) -> Result<Vec<TimedCall>, StoreError> {
        self.send_journal();
        self.readers.read(async |session| audit::timed_calls(session, wanted).await)
    }

    fn choices(&self, tenant: &str, tool: &str, limit: usize) -> Result<Vec<Choice>, StoreError> {
        self.readers.read(async |session| notes::choices(session, tenant, tool, limit).await)
    }

    fn kept_choices(&self, tenant: &str) -> Result<Vec<ChoiceNote>, StoreError> {
        self.readers.read(async |session| notes::choices_of(session, Some(tenant)).await)
    }

    fn kept_turns(&self, tenant: &str, name: &str) -> Result<Vec<KeptTurn>, StoreError> {
        self.readers.read(async |session| notes::kept_turns(session, tenant, name).await)
    }

    fn sessions(&self, wanted: &SessionFilter) -> Result<SessionPage, StoreError> {
        self.send_journal();
        self.readers.read(async |session| audit::sessions(session, wanted).await)
    }

    fn memories(&self) -> &dyn Memories {
        self
    }

    fn queued(&self) -> usize {
        self.front.queued()
    }

    fn trouble(&self) -> Option<String> {
        self.front.trouble()
    }

    fn unreadable(&self) -> Option<String> {
        self.front.trouble().or_else(|| self.standing.writing_trouble())
    }

    fn standings(&self) -> Option<Arc<Standings>> {
        Some(Arc::new(self.states.standings()))
    }

    fn fleet(&self) -> Option<Fleet> {
        let listed = self.readers.read(async |session| self.states.listed(session).await);
        Some(listed.unwrap_or_else(|error| self.states.alone(error.to_string())))
    }

    fn take_leave(&self) {
        self.send_journal();
        self.states.take_leave();
        self.front.take_leave();
        self.say_what_stays();
    }
}

#[cfg(test)]
mod tests;
