//! The host as the rest of the daemon sees it: questions, figures, and a few controls.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::ask::{Ask, Proposal, Proposals, Snapshot};
use super::inside::Inside;
use super::link::{Link, Unanswered};
use super::settings::Settings;
use super::state::{Figures, Outcome, State, Status};
use super::supervisor::{Message, Supervisor};
use super::wire::{Order, encode};
use crate::telemetry::Metrics;

/// All libraries, and the thread that keeps them. Asked from any number of tasks.
#[derive(Debug)]
pub struct Host {
    table: Arc<ArcSwap<Table>>,
    messages: Sender<Message>,
    settled: watch::Receiver<bool>,
    numbers: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What calls go by: replaced as a whole, read without waiting.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// In the order of their precedence.
    pub(super) entries: Vec<Entry>,
    /// How long a call may take.
    pub(super) deadline: Duration,
}

/// A library, as it is to be called and shown.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) status: Status,
    pub(super) serving: Option<Serving>,
    pub(super) figures: Arc<Figures>,
}

/// Where a library is called.
#[derive(Clone)]
pub(super) enum Serving {
    Worker(Arc<Link>),
    Inside(Inside),
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Worker(_) => "Worker",
            Self::Inside(_) => "Inside",
        })
    }
}

/// A library with its figures.
#[derive(Debug, Clone)]
pub struct Listed {
    /// How it is.
    pub status: Status,
    /// What was counted.
    pub figures: Arc<Figures>,
}

/// How a reload left the libraries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Libraries that answer.
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
        let table = Arc::new(ArcSwap::from_pointee(Table::default()));
        let supervisor = Supervisor::new(settings, metrics, runtime, messages.clone(), settle, Arc::clone(&table));
        let thread = Builder::new().name("plugins".into()).spawn(move || supervisor.run(&received))?;
        Ok(Self { table, messages, settled, numbers: AtomicU64::new(0), thread: Mutex::new(Some(thread)) })
    }

    /// Asks all libraries at once, and waits for the slowest, but not beyond the deadline. Never fails: who did not answer is
    /// named.
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
            let (question, ask, deadline) = (&question, &ask, table.deadline);
            async move {
                let outcome = self.ask(entry, question, ask, until).await;
                let (counted, answer) = judge(outcome, entry, deadline);
                entry.figures.count(counted, begun.elapsed());
                answer
            }
        });
        for (entry, answer) in table.entries.iter().zip(all(calls).await) {
            let id = entry.status.id.clone();
            match answer {
                Ok(list) => proposals.lists.push((id, list)),
                Err(reason) => proposals.degraded.push((id, reason)),
            }
        }
        proposals
    }

    /// Asks one library; nothing if it is not ready.
    async fn ask(&self, entry: &Entry, question: &Question, ask: &Arc<Ask>, until: Instant) -> Option<Answer> {
        let Question { number, order } = question;
        let mut serving = entry.serving.clone();
        loop {
            let link = match serving? {
                Serving::Inside(inside) => return Some(inside.ask(Arc::clone(ask), until).await),
                Serving::Worker(link) => link,
            };
            match link.ask(*number, order, until).await {
                // Replaced since the table was looked at; its successor is in the next one.
                Err(Unanswered::Gone) => serving = self.successor(&entry.status.id, &link),
                answer => return Some(answer),
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
        let _ = self.messages.send(Message::Publish(Box::new(snapshot)));
    }

    /// Looks at the files again, under other settings if given, and waits until all that is new serves or has failed.
    pub async fn reload(&self, settings: Option<Settings>) -> Result<Reloaded, HostError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Reload { settings, reply }).map_err(|_| HostError)?;
        answer.await.map_err(|_| HostError)
    }

    /// Forgives a library what it did, and tries it again at once. False if there is none of that id.
    ///
    /// Waits for the host's thread; not for use in a task.
    pub fn reset(&self, id: &str) -> Result<bool, HostError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(Message::Reset { id: id.to_owned(), reply }).map_err(|_| HostError)?;
        answer.blocking_recv().map_err(|_| HostError)
    }

    /// Waits until every library is ready or has failed.
    pub async fn settled(&self) {
        let mut settled = self.settled.clone();
        // If it fails, the thread is gone, and nothing will change any more.
        let _ = settled.wait_for(|settled| *settled).await;
    }

    /// All libraries, in the order of their precedence.
    pub fn list(&self) -> Vec<Listed> {
        let listed = |entry: &Entry| Listed { status: entry.status.clone(), figures: Arc::clone(&entry.figures) };
        self.table.load().entries.iter().map(listed).collect()
    }

    /// How many libraries are ready, and how many are put aside or refused.
    pub fn counts(&self) -> (usize, usize) {
        let table = self.table.load();
        let count =
            |wanted: &[State]| table.entries.iter().filter(|entry| wanted.contains(&entry.status.state)).count();
        (count(&[State::Ready]), count(&[State::Quarantined, State::Refused]))
    }

    /// Does the thread live?
    pub fn lives(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends all workers, and waits for that. Takes a second at most.
    pub fn stop(&self) {
        let _ = self.messages.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
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

/// What comes of a call.
type Answer = Result<Vec<Proposal>, Unanswered>;

/// What is counted of an outcome, and what the answer says of it.
fn judge(outcome: Option<Answer>, entry: &Entry, deadline: Duration) -> (Outcome, Result<Vec<Proposal>, String>) {
    let Some(outcome) = outcome else {
        let state = match (entry.status.state, &entry.serving) {
            // It was a moment ago.
            (State::Ready, Some(_)) => "starting",
            (state, _) => state.as_str(),
        };
        return (Outcome::Unavailable, Err(format!("it is not ready: {state}")));
    };
    match outcome {
        Ok(list) => (Outcome::Answered, Ok(list)),
        Err(Unanswered::Failed(reason)) => (Outcome::Failed, Err(reason)),
        Err(Unanswered::Busy | Unanswered::Gone) => (Outcome::Busy, Err("it is busy with earlier calls".to_owned())),
        Err(Unanswered::Late) => {
            (Outcome::Timeout, Err(format!("it did not answer within {} ms", deadline.as_millis())))
        }
        Err(Unanswered::Fault(fault)) => {
            let counted = if fault.label() == "timeout" { Outcome::Timeout } else { Outcome::Fault };
            (counted, Err(fault.to_string()))
        }
    }
}

/// A future, and its output once it ended.
type Running<F> = (Pin<Box<F>>, Option<<F as Future>::Output>);

/// Runs futures beside each other on this task, which is cheaper than a task for each.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let start = |future| -> Running<F> { (Box::pin(future), None) };
    let mut running: Vec<Running<F>> = futures.map(start).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}
