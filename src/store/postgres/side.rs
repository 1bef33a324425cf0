//! PostgreSQL's side of the writer's thread: records go through the spool, everything else by the connection that they
//! go by. Whether the server is there is looked at beside, so that nobody waits for one that is not.

mod arrival;
mod upkeep;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::PostgresOptions;
use super::fault::DatabaseFault;
use super::following::Following;
use super::group::Incarnation;
use super::learnt::{EarlierCalls, LearningDaemon, LearntRecords};
use super::memories::MemoryErasure;
use super::outbox::{GroupKept, Outbox, OutboxError, Taken};
use super::readers::unavailable;
use super::revision::Revision;
use super::session::DatabaseSession;
use super::spool::SpoolError;
use super::standing::Standing;
use super::tasks::{self, DatabaseTask};
use crate::store::clock::Clock;
use crate::store::front::{Batch, DatabaseSide, WriterShared};
use crate::store::projection::FoldedCall;
use crate::store::told_keys::ToldKeys;
use crate::store::{StoreError, Stored};
use crate::timing::{CallKey, Execution};

/// How long the server is waited for at a start.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);

/// Between two writes of what is learnt.
const LEARNT: Duration = Duration::from_secs(1);

/// Between two looks for what is beyond bounds, and whether there is room for the next months.
const TIDY: Duration = Duration::from_secs(60 * 60);

/// Between two looks whether the server is back.
const LOOK: Duration = Duration::from_millis(25);

/// How long a statement that nobody waits for may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long what is learnt may take to be read: it is much where there are many daemons.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// The way to the server, and what is learnt of what goes there.
pub(super) struct PostgresSide {
    options: PostgresOptions,
    learning: LearningDaemon,
    following: Arc<Following>,
    runtime: Handle,
    outbox: Outbox,
    learnt: LearntRecords,
    /// What is learnt lacks something, or has too much: it is read anew when the server has all records.
    is_tainted: bool,
    /// Was the database ever seen to be one that fits?
    is_known: bool,
    /// The server is there, and is sent what waits; then it is reached.
    is_taking_up: bool,
    /// Records that it was sent then, and are not counted in the database yet.
    sent_unlearnt: usize,
    /// Keys of records that wait.
    waiting_keys: ToldKeys,
    opening: Option<JoinHandle<Result<DatabaseSession, DatabaseFault>>>,
    open_at: Instant,
    /// What is to be removed, one after the other.
    erasures: VecDeque<MemoryErasure>,
    learnt_at: Instant,
    tidy_at: Instant,
    /// When it is looked again whether this machine keeps records, if it did not.
    prove_at: Instant,
    /// Removes old months, beside.
    retaining: Option<JoinHandle<()>>,
    clock: Clock,
    shared: WriterShared,
    standing: Standing,
}

impl PostgresSide {
    /// Begins with what earlier starts left in a directory that nobody else uses.
    pub(super) fn new(
        options: PostgresOptions,
        learning: LearningDaemon,
        runtime: Handle,
        shared: WriterShared,
        standing: Standing,
    ) -> Result<Self, SpoolError> {
        let outbox = {
            let _inside = runtime.enter();
            Outbox::open(&options.directory, options.address.clone(), options.outbox.clone())?
        };
        let following = Arc::new(Following::new(outbox.writer(), learning.clone()));
        let now = Instant::now();
        Ok(Self {
            options,
            learning,
            following,
            runtime,
            outbox,
            learnt: LearntRecords::default(),
            is_tainted: true,
            is_known: false,
            is_taking_up: false,
            sent_unlearnt: 0,
            waiting_keys: ToldKeys::default(),
            opening: None,
            open_at: now,
            erasures: VecDeque::new(),
            learnt_at: now,
            tidy_at: now + TIDY,
            prove_at: now,
            retaining: None,
            clock: Clock::default(),
            shared,
            standing,
        })
    }

    /// Whose records go this way from this start on.
    pub(super) fn writer(&self) -> Incarnation {
        self.outbox.writer()
    }

    /// What others write, as it is followed.
    pub(super) fn following(&self) -> &Arc<Following> {
        &self.following
    }

    /// Is the server one that what is written goes to at once?
    fn is_reached(&self) -> bool {
        self.is_known && self.outbox.trouble().is_none()
    }

    /// May it be asked for something other than to take records?
    fn is_usable(&self) -> bool {
        self.is_reached() || self.is_known && self.is_taking_up
    }

    /// The server does not do what it is asked.
    fn fail(&mut self, fault: &DatabaseFault) {
        self.is_taking_up = false;
        self.outbox.is_troubled(fault);
        if !fault.keeps_session() {
            self.outbox.hang_up();
        }
        self.standing.failed(fault);
        self.say();
    }

    /// Says how it stands.
    fn say(&mut self) {
        let unreachable = || self.outbox.trouble().filter(|_| !self.options.spools()).map(str::to_owned);
        let trouble = self.outbox.refusal().or_else(unreachable);
        let takes_records = trouble.is_none();
        self.shared.trouble.report(trouble, takes_records);
        self.standing.say(self.outbox.standings(), self.outbox.server_trouble().cloned());
    }

    /// What the database knows of records that are to be stored: what was told under their keys, and what their
    /// sessions called before.
    fn look_up(&mut self, batches: &[Batch]) -> (ToldKeys, EarlierCalls) {
        let records = || batches.iter().flat_map(|batch| &batch.executions);
        let keys: BTreeSet<(&str, &str)> = records()
            .filter_map(|record| Some((record.tenant.as_str(), record.idempotency_key.as_ref()?.name.as_str())))
            .collect();
        // What waits here is in no answer, so what is held of it stands.
        let (moved, is_all_there) = (self.following.moved_sessions(), self.outbox.waiting() == 0);
        if is_all_there && moved.were_cut() {
            self.learnt.projection.forget_sessions();
        }
        let sessions: BTreeSet<(String, String)> = records()
            .filter_map(|record| Some((&record.tenant, record.session.as_ref()?)))
            .filter(|(tenant, session)| {
                !self.learnt.projection.knows(tenant, session) || is_all_there && moved.has(tenant, session)
            })
            .map(|(tenant, session)| (tenant.clone(), session.clone()))
            .collect();
        if !self.is_reached() || keys.is_empty() && sessions.is_empty() {
            return Default::default();
        }
        let sessions: Vec<(String, String)> = sessions.into_iter().collect();
        let (runtime, patience) = (self.runtime.clone(), self.options.outbox.commit_within);
        let looked = runtime.block_on(async {
            let session = self.outbox.session(patience).await?;
            let look = async {
                let told = super::group::told_under(session, &keys).await?;
                Ok((told, EarlierCalls::of(session, &sessions).await?))
            };
            timeout(patience, look).await.unwrap_or(Err(DatabaseFault::Late(patience)))
        });
        if looked.is_ok() {
            for (tenant, session) in &sessions {
                self.learnt.projection.forget_session(tenant, session);
            }
        }
        looked.unwrap_or_else(|fault: DatabaseFault| {
            self.fail(&fault);
            Default::default()
        })
    }

    fn store(&mut self, batches: &mut [Batch]) -> Result<Vec<Result<Stored, StoreError>>, StoreError> {
        let (known, mut earlier) = self.look_up(batches);
        let mut new_keys = ToldKeys::default();
        let (mut outcomes, mut groups) = (Vec::with_capacity(batches.len()), Vec::new());
        for batch in batches.iter_mut() {
            let look_up = |name: &(String, String)| Ok::<_, StoreError>(known.get(name).cloned());
            let told = new_keys.sort_out(&self.waiting_keys, &batch.executions, look_up)?;
            if let Ok(told) = &told {
                let fresh = batch.executions.iter().zip(told).filter(|(_, told)| !**told);
                groups.push(fresh.map(|(execution, _)| execution.clone()).collect::<Vec<_>>());
            }
            outcomes.push(told);
        }
        let runtime = self.runtime.clone();
        let sent = groups.clone();
        let Taken { first, groups: kept } = if groups.iter().all(Vec::is_empty) {
            Taken { first: 0, groups: groups.iter().map(|_| GroupKept::InJournal).collect() }
        } else {
            runtime.block_on(self.outbox.send_groups(sent)).map_err(|error| refusal(&error))?
        };
        if self.outbox.waiting() > 0 {
            self.waiting_keys.extend(new_keys);
        }
        let mut stored = Vec::with_capacity(outcomes.len());
        let (mut groups, mut kept, mut number) = (groups.into_iter(), kept.into_iter(), first);
        for outcome in outcomes {
            let told = match outcome {
                Ok(told) => told,
                Err(refused) => {
                    stored.push(Err(refused));
                    continue;
                }
            };
            let (Some(group), Some(kept)) = (groups.next(), kept.next()) else { continue };
            let from = number;
            number += group.len() as i64;
            stored.push(self.learn(&told, &group, from, kept, &mut earlier));
        }
        let transitions = self.following.trails().add(&self.learnt.projection.take_changes());
        for stored in stored.iter_mut().flatten() {
            stored.transitions = Arc::clone(&transitions);
        }
        Ok(stored)
    }

    /// Counts the records of a batch that are stored. `told` are those of it that had been told before; the others are
    /// the group, numbered from `first`.
    fn learn(
        &mut self,
        told: &[bool],
        group: &[Execution],
        first: i64,
        kept: GroupKept,
        earlier: &mut EarlierCalls,
    ) -> Result<Stored, StoreError> {
        let mut degraded = None;
        let told_elsewhere = match kept {
            GroupKept::AtDatabase { told } => told,
            GroupKept::InJournal => Vec::new(),
            GroupKept::InJournalAlone => {
                degraded = Some(SPOOLING.into());
                Vec::new()
            }
            GroupKept::Refused(DatabaseFault::KeyReused) => {
                let key = group.iter().find_map(|execution| execution.idempotency_key.as_ref());
                return Err(StoreError::KeyReused(key.map(CallKey::shown).unwrap_or_default().to_owned()));
            }
            GroupKept::Refused(fault) => return Err(StoreError::Unstorable(fault.to_string())),
        };
        let mut stored = Stored { degraded, ..Stored::default() };
        let mut records = (first..).zip(group);
        for told in told {
            let next = if *told { None } else { records.next() };
            let learnt = next.filter(|(number, _)| !told_elsewhere.contains(number));
            stored.ids.push(learnt.map(|(number, _)| number));
            stored.samples.push(learnt.map(|(_, execution)| {
                let own = self.learnt.add(earlier, execution);
                self.following.counts().count_own(FoldedCall::of(execution).key(), own)
            }));
        }
        Ok(stored)
    }

    /// Does a step of what is to be removed for good.
    fn go_on_erasing(&mut self) {
        let Some(mut erasure) = self.erasures.pop_front() else { return };
        let runtime = self.runtime.clone();
        let step = runtime.block_on(async {
            let writer = self.outbox.writer();
            let session = self.outbox.session(PATIENCE).await?;
            within(erasure.step(session, writer)).await
        });
        self.following.purges().has_purged();
        match step {
            Ok(true) => erasure.acknowledge(Ok(())),
            // It goes on, also if another transaction was in the way.
            Ok(false) | Err(DatabaseFault::Conflict(_) | DatabaseFault::GivenUp(_)) => {
                self.erasures.push_front(erasure);
            }
            Err(fault) => {
                self.fail(&fault);
                erasure.acknowledge(Err(unavailable(&fault)));
            }
        }
    }

    /// Takes note of what went wrong, if anything.
    fn judge(&mut self, done: Result<(), OutboxError>) -> Result<(), StoreError> {
        match done {
            Ok(()) => {
                self.say();
                Ok(())
            }
            Err(error) => {
                let refusal = refusal(&error);
                match error {
                    // It is the fault of what was to be written.
                    OutboxError::Database(fault @ DatabaseFault::Record(_)) => {
                        tracing::error!(%fault, "something other than records was not stored");
                    }
                    OutboxError::Database(fault) => self.fail(&fault),
                    OutboxError::Spool(error) => self.spool_fails(&error),
                }
                Err(refusal)
            }
        }
    }

    async fn transact(&mut self, tasks: &mut [DatabaseTask]) -> Result<(), OutboxError> {
        // What waited long is sent beside.
        if self.is_reached() {
            self.catch_up(self.slice()).await?;
        }
        let writer = self.outbox.writer();
        let Self { outbox, clock, .. } = self;
        let session = outbox.session(PATIENCE).await?;
        let run = async {
            session.begin().await?;
            let revision = Revision::next(session, writer).await?;
            Ok((tasks::run(tasks, session, &revision, clock).await?, revision))
        };
        let (gone, revision) = match within(run).await {
            Ok(done) => done,
            Err(fault) => {
                if fault.keeps_session() {
                    session.end(false).await?;
                }
                return Err(fault.into());
            }
        };
        match within(session.end(true)).await {
            Err(fault) if !fault.keeps_session() => self.find_out(&revision, fault).await?,
            done => done?,
        }
        self.following.purges().learn_anew(gone);
        Ok(())
    }

    /// A commit was not answered; succeeds if it was done all the same.
    async fn find_out(&mut self, revision: &Revision, fault: DatabaseFault) -> Result<(), DatabaseFault> {
        self.outbox.hang_up();
        let patience = self.options.outbox.commit_within;
        let asked = async {
            loop {
                let asked = async { revision.is_committed(self.outbox.session(patience).await?).await };
                if let Ok(is_committed) = asked.await {
                    return is_committed;
                }
                self.outbox.hang_up();
                tokio::time::sleep(LOOK).await;
            }
        };
        match timeout(patience, asked).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(fault),
            Err(_) => Err(DatabaseFault::CommitUnanswered(fault.to_string())),
        }
    }
}

/// What an answer says of records that are on this machine alone.
const SPOOLING: &str = "database unreachable: spooling";

fn refusal(error: &OutboxError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Bounds what may take long.
async fn within<T>(work: impl Future<Output = Result<T, DatabaseFault>>) -> Result<T, DatabaseFault> {
    timeout(PATIENCE, work).await.unwrap_or(Err(DatabaseFault::Late(PATIENCE)))
}

impl DatabaseSide for PostgresSide {
    type Task = DatabaseTask;
    type Erasure = MemoryErasure;

    fn open(&mut self) {
        let begun = Instant::now();
        self.look_for_server();
        let runtime = self.runtime.clone();
        if let Some(opening) = &mut self.opening
            && let Ok(opened) = runtime.block_on(async { timeout(FIRST_PATIENCE, opening).await })
        {
            self.take_opened(opened);
        }
        while self.is_taking_up && begun.elapsed() < FIRST_PATIENCE {
            self.go_on();
        }
        if !self.is_known {
            self.shared.await_history();
            if self.outbox.trouble().is_none() {
                self.fail(&DatabaseFault::Late(FIRST_PATIENCE));
            }
        }
        self.say();
    }

    fn patience(&self) -> Duration {
        let now = Instant::now();
        let due = if self.is_taking_up {
            now
        } else if !self.is_reached() {
            return if self.opening.is_some() { LOOK } else { self.open_at.saturating_duration_since(now).max(LOOK) };
        } else if self.outbox.waiting() > 0 || !self.erasures.is_empty() {
            now
        } else if self.learnt.projection.is_unwritten() {
            self.learnt_at + LEARNT
        } else {
            self.tidy_at
        };
        let prove_at = if self.outbox.refusal().is_some() { self.prove_at } else { self.tidy_at };
        due.min(self.tidy_at).min(prove_at).saturating_duration_since(now)
    }

    fn prepare(&mut self) {
        self.look_for_server();
    }

    fn record(&mut self, batches: &mut [Batch]) -> Result<Vec<Result<Stored, StoreError>>, StoreError> {
        let stored = self.store(batches);
        self.say();
        stored
    }

    fn perform(&mut self, tasks: &mut [DatabaseTask]) -> Result<(), StoreError> {
        let choosing = tasks.iter().flat_map(DatabaseTask::choosing).map(str::to_owned).collect::<Vec<_>>();
        if !self.is_usable() {
            self.following.purges().learn_anew(choosing);
            let trouble = self.outbox.trouble().unwrap_or("the database is not open yet");
            return Err(StoreError::Unavailable(trouble.to_owned()));
        }
        let runtime = self.runtime.clone();
        let mut done = runtime.block_on(self.transact(tasks));
        if let Err(OutboxError::Database(fault)) = &done
            && fault.is_of_moment()
        {
            done = runtime.block_on(self.transact(tasks));
        }
        if done.is_err() {
            self.following.purges().learn_anew(choosing);
        }
        // Somebody else was in the way twice, and the server is as it was.
        if let Err(error @ OutboxError::Database(fault)) = &done
            && fault.is_of_moment()
        {
            tracing::warn!(%error, "something other than records was not stored");
            return Err(refusal(error));
        }
        self.judge(done)
    }

    fn erase(&mut self, erasure: MemoryErasure) {
        self.erasures.push_back(erasure);
    }

    fn settle(&mut self) {}

    fn rest(&mut self) {
        self.look_for_server();
    }

    fn turn(&mut self) {
        self.look_for_room();
        if !self.is_usable() {
            let trouble = self.outbox.trouble().unwrap_or("the database is not open yet").to_owned();
            for erasure in self.erasures.drain(..) {
                erasure.acknowledge(Err(StoreError::Unavailable(trouble.clone())));
            }
            return;
        }
        self.go_on_erasing();
        if !self.is_reached() {
            return;
        }
        let runtime = self.runtime.clone();
        let is_due = self.learnt_at + LEARNT <= Instant::now();
        if is_due || self.outbox.waiting() > 0 {
            let done = runtime.block_on(async {
                if is_due { self.keep_learnt(self.slice()).await } else { self.catch_up(self.slice()).await }
            });
            // What went wrong is said, and tried again.
            let _ = self.judge(done);
        }
        if self.tidy_at <= Instant::now() {
            self.tidy_at = Instant::now() + TIDY;
            self.retain();
            let done = runtime.block_on(self.tidy());
            let _ = self.judge(done);
        }
    }

    fn close(&mut self) {
        if self.is_reached() {
            let runtime = self.runtime.clone();
            let done = runtime.block_on(self.keep_learnt(PATIENCE));
            let _ = self.judge(done);
        }
        self.outbox.hang_up();
    }
}
