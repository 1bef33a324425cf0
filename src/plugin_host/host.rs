//! The host as the rest of the daemon sees it: questions, figures, and a few controls.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::ask::{Ask, Proposal, Proposals, Snapshot};
use super::fault::LibraryFault;
use super::in_process::InProcess;
use super::link::{Link, Unanswered};
use super::settings::Settings;
use super::state::{CallFigures, CallOutcome, LibraryCounts, LibraryStatus, State};
use super::supervisor::{Supervisor, SupervisorMessage};
use super::wire::{Order, encode};
use crate::telemetry::Metrics;

/// All libraries, and the thread that keeps them. Asked from any number of tasks.
#[derive(Debug)]
pub struct Host {
    table: Arc<ArcSwap<HostTable>>,
    messages: Sender<SupervisorMessage>,
    settled: watch::Receiver<bool>,
    numbers: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What calls go by: replaced as a whole, read without waiting.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    /// In the order of their precedence.
    pub(super) entries: Vec<HostEntry>,
    /// How long a call may take.
    pub(super) deadline: Duration,
}

/// A library, as it is to be called and shown.
#[derive(Debug, Clone)]
pub(super) struct HostEntry {
    pub(super) status: LibraryStatus,
    pub(super) serving: Option<Serving>,
    pub(super) figures: Arc<CallFigures>,
}

/// Where a library is called.
#[derive(Clone)]
pub(super) enum Serving {
    Worker(Arc<Link>),
    InProcess(InProcess),
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Worker(_) => "Worker",
            Self::InProcess(_) => "InProcess",
        })
    }
}

/// A library with its figures.
#[derive(Debug, Clone)]
pub struct ListedLibrary {
    pub status: LibraryStatus,
    pub figures: Arc<CallFigures>,
}

/// How a reload left the libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub ready: usize,
    /// Ids of those whose file is not what serves, and why.
    pub failed: Vec<(String, String)>,
}

/// The host's thread is gone.
#[derive(Debug, thiserror::Error)]
#[error("the thread of the rule libraries has ended")]
pub struct HostError;

impl Host {
    /// Starts the thread. Libraries are started when the first catalog is told by [`Host::publish`].
    pub fn start(settings: Settings, metrics: Arc<Metrics>, runtime: Handle) -> io::Result<Self> {
        let (messages, received) = channel();
        let (settle, settled) = watch::channel(false);
        let table = Arc::new(ArcSwap::from_pointee(HostTable::default()));
        let supervisor = Supervisor::new(settings, metrics, runtime, messages.clone(), settle, Arc::clone(&table));
        let thread = Builder::new().name("plugins".into()).spawn(move || supervisor.run(&received))?;
        Ok(Self { table, messages, settled, numbers: AtomicU64::new(0), thread: Mutex::new(Some(thread)) })
    }

    /// Asks all libraries at once, and waits for the slowest, but not beyond the deadline. Never fails: who did not
    /// answer is named.
    pub async fn propose(&self, ask: Ask) -> Proposals {
        let table = self.table.load_full();
        let mut proposals = Proposals::default();
        if table.entries.is_empty() {
            return proposals;
        }
        let begun = Instant::now();
        let until = begun + table.deadline;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let (ask, mut order) = (Arc::new(ask), Vec::with_capacity(512));
        encode(&Order::Ask { number, patience: table.deadline, ask: Arc::clone(&ask) }, &mut order);
        let question = Question { number, order };
        let calls = table.entries.iter().map(|entry| {
            let (question, ask) = (&question, &ask);
            async move {
                let answer = self.ask(entry, question, ask, until).await;
                entry.figures.count(outcome_of(&answer), begun.elapsed());
                answer
            }
        });
        for (entry, answer) in table.entries.iter().zip(join_all(calls).await) {
            let id = entry.status.id.clone();
            match answer {
                Ok(list) => proposals.lists.push((id, list)),
                Err(Unanswered::Late) => {
                    let reason = format!("it did not answer within {} ms", table.deadline.as_millis());
                    proposals.degraded.push((id, reason));
                }
                Err(reason) => proposals.degraded.push((id, reason.to_string())),
            }
        }
        proposals
    }

    async fn ask(&self, entry: &HostEntry, question: &Question, ask: &Arc<Ask>, until: Instant) -> Answer {
        let Question { number, order } = question;
        let mut serving = entry.serving.clone();
        loop {
            let link = match serving {
                None => return Err(Unanswered::Unavailable(unavailable(entry))),
                Some(Serving::InProcess(inside)) => return inside.ask(Arc::clone(ask), until).await,
                Some(Serving::Worker(link)) => link,
            };
            match link.ask(*number, order, until).await {
                // Replaced since the table was looked at; its successor is in the next one.
                Err(Unanswered::Gone) => serving = self.successor(&entry.status.id, &link),
                answer => return answer,
            }
        }
    }

    /// What serves under this id now, if it is not `old`.
    fn successor(&self, id: &str, old: &Arc<Link>) -> Option<Serving> {
        let table = self.table.load();
        let serving = table.entries.iter().find(|entry| entry.status.id == id)?.serving.clone()?;
        let is_old = matches!(&serving, Serving::Worker(link) if Arc::ptr_eq(link, old));
        (!is_old).then_some(serving)
    }

    /// Tells all libraries a catalog. `snapshot` is called on the host's thread, unless a newer one comes first.
    pub fn publish(&self, snapshot: impl FnOnce() -> Snapshot + Send + 'static) {
        // If it fails, nobody is left to tell.
        let _ = self.messages.send(SupervisorMessage::Publish(Box::new(snapshot)));
    }

    /// Looks at the files again, under other settings if given, and waits until all that is new serves or has failed.
    pub async fn reload(&self, settings: Option<Settings>) -> Result<Reloaded, HostError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(SupervisorMessage::Reload { settings, reply }).map_err(|_| HostError)?;
        answer.await.map_err(|_| HostError)
    }

    /// Forgives a library what it did, and tries it again at once. False if there is none of that id.
    ///
    /// Waits for the host's thread; not for use in a task.
    pub fn reset(&self, id: &str) -> Result<bool, HostError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(SupervisorMessage::Reset { id: id.to_owned(), reply }).map_err(|_| HostError)?;
        answer.blocking_recv().map_err(|_| HostError)
    }

    /// Waits until every library is ready or has failed.
    pub async fn settled(&self) {
        let mut settled = self.settled.clone();
        // If it fails, the thread is gone, and nothing will change any more.
        let _ = settled.wait_for(|settled| *settled).await;
    }

    /// All libraries, in the order of their precedence.
    pub fn list(&self) -> Vec<ListedLibrary> {
        let listed =
            |entry: &HostEntry| ListedLibrary { status: entry.status.clone(), figures: Arc::clone(&entry.figures) };
        self.table.load().entries.iter().map(listed).collect()
    }

    /// How many libraries are how.
    pub fn counts(&self) -> LibraryCounts {
        let table = self.table.load();
        let count = |is: fn(&LibraryStatus) -> bool| table.entries.iter().filter(|entry| is(&entry.status)).count();
        LibraryCounts {
            ready: count(|status| status.state == State::Ready),
            quarantined: count(|status| status.state == State::Quarantined),
            refused: count(|status| status.state == State::Refused),
            outdated: count(|status| status.update_refused().is_some()),
        }
    }

    /// Does the thread live?
    pub fn lives(&self) -> bool {
        let thread = self.thread.lock();
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends all workers, and waits for that. Takes a second at most.
    pub fn stop(&self) {
        let _ = self.messages.send(SupervisorMessage::Stop);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread of the rule libraries had panicked");
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A call as it is sent to workers.
struct Question {
    number: u64,
    order: Vec<u8>,
}

type Answer = Result<Vec<Proposal>, Unanswered>;

/// What the state of a library is called in the answer to a call that it could not be asked.
fn unavailable(entry: &HostEntry) -> &'static str {
    match (entry.status.state, &entry.serving) {
        // It was ready a moment ago.
        (State::Ready, Some(_)) => "starting",
        (state, _) => state.as_str(),
    }
}

/// What an answer is counted as.
fn outcome_of(answer: &Answer) -> CallOutcome {
    match answer {
        Ok(_) => CallOutcome::Answered,
        Err(Unanswered::Unavailable(_)) => CallOutcome::Unavailable,
        Err(Unanswered::Failed(_)) => CallOutcome::Failed,
        Err(Unanswered::Busy | Unanswered::Gone) => CallOutcome::Busy,
        Err(Unanswered::Late | Unanswered::LibraryFault(LibraryFault::Timeout(_))) => CallOutcome::Timeout,
        Err(Unanswered::LibraryFault(_)) => CallOutcome::LibraryFault,
    }
}
