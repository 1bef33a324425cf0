//! A conversation with one worker: calls in the order in which they are asked, each within its time.
//!
//! Calls of a library that answers quickly are sent together, as many as it usually answers within
//! [`TOGETHER`], since what a call costs beside the library's own work is mostly the switch to its process and back. A
//! call that comes alone is sent by its caller, while the task that reads the answer wakes up.
//!
//! A caller that waits no longer leaves its call behind: the answer is still read, so that it is not taken for the next
//! one's, and a worker that does not give it in time is at fault whether anybody waits or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

use super::ask::Proposal;
use super::fault::LibraryFault;
use super::socket_line::{FreeLine, SocketLine};
use super::wire::{Refusal, Reply, clamp};

/// How long a library may take to read a catalog.
const SNAPSHOT_TIME: Duration = Duration::from_secs(5);

/// What a library's calls under way may usually take together, if they are more than one.
const TOGETHER: Duration = Duration::from_millis(1);

/// Shares of that time, and so the most calls under way at once.
const SHARES: u32 = 32;

/// Why a call was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unanswered {
    /// No worker serves: the library is in this state.
    #[error("it is not ready: {0}")]
    Unavailable(&'static str),
    /// Nobody waits any more.
    #[error("it is busy with earlier calls")]
    Busy,
    /// Not asked: this worker is being replaced, or is at fault. Another may be there.
    #[error("it is busy with earlier calls")]
    Gone,
    /// The call is given up.
    #[error("it did not answer before the deadline")]
    Late,
    /// The library may answer the next call.
    #[error("{0}")]
    Failed(String),
    /// It is at fault, now or since.
    #[error(transparent)]
    LibraryFault(LibraryFault),
}

pub(super) struct Link {
    /// Orders that are to be sent, and who waits for their answers.
    queue: Mutex<Queue>,
    line: FreeLine,
    /// Tells the conversation of an order, or of the end.
    news: Notify,
    /// Shares of [`TOGETHER`] that no call under way has.
    shares: Arc<Semaphore>,
    /// Nothing more is sent. Set under the queue's lock, so that what is sent was in time, and is seen to its end.
    is_broken: AtomicBool,
    limit: Duration,
    /// What a call usually takes, in nanoseconds, whether somebody waited for its end or not; 0 before the first.
    usual: AtomicU64,
    on_fault: Box<dyn Fn(LibraryFault) + Send + Sync>,
}

#[derive(Default)]
struct Queue {
    unsent: Vec<u8>,
    /// Of those that were sent and those that are to be, in this order.
    under_way: VecDeque<Waiting>,
    /// When the first order under way was sent, if by who asked, and the conversation does not know yet.
    sent: Option<Instant>,
    /// Orders came in numbers: they are sent together.
    is_busy: bool,
}

/// An order under way.
struct Waiting {
    asked: Asked,
    /// From the answer before it.
    limit: Duration,
    _share: OwnedSemaphorePermit,
}

enum Asked {
    Call { number: u64, answer: oneshot::Sender<Answer> },
    Snapshot { answer: oneshot::Sender<Result<(), Refusal>> },
}

type Answer = Result<Vec<Proposal>, Unanswered>;

impl Link {
    /// A conversation over `line`, on which a call may take `limit`, until it breaks or [`Link::retire`]. The first
    /// fault goes to `on_fault`.
    pub(super) fn start(
        line: SocketLine,
        limit: Duration,
        runtime: &Handle,
        on_fault: impl Fn(LibraryFault) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let link = Arc::new(Self {
            queue: Mutex::default(),
            line: line.free(),
            news: Notify::new(),
            shares: Arc::new(Semaphore::new(SHARES as usize)),
            is_broken: AtomicBool::new(false),
            limit,
            usual: AtomicU64::new(0),
            on_fault: Box::new(on_fault),
        });
        runtime.spawn(Arc::clone(&link).converse(line));
        link
    }

    /// Asks the library; the answer is waited for until `until`.
    ///
    /// `order` is the encoded [`Order::Ask`](super::wire::Order::Ask) of this `number`, which no other call to this
    /// worker has.
    pub(super) async fn ask(&self, number: u64, order: &[u8], until: Instant) -> Answer {
        if self.is_broken() {
            return Err(Unanswered::Gone);
        }
        let share = self.share(until).await?;
        let (answer, answered) = oneshot::channel();
        let asked = Asked::Call { number, answer };
        if !self.send(order, Waiting { asked, limit: self.limit, _share: share }) {
            return Err(Unanswered::Gone);
        }
        match timeout_at(until, answered).await {
            Ok(Ok(Ok(mut proposals))) => {
                clamp(&mut proposals);
                Ok(proposals)
            }
            Ok(Ok(unanswered)) => unanswered,
            Ok(Err(_)) => Err(Unanswered::Gone),
            Err(_) => Err(Unanswered::Late),
        }
    }

    /// A call's share of the library's time.
    ///
    /// A call that waits for others is not begun so late that it would keep the library from the next one for nothing.
    /// One that finds it idle is, however slow the library was: or it would never be seen to be faster.
    async fn share(&self, until: Instant) -> Result<OwnedSemaphorePermit, Unanswered> {
        let usual = self.usual();
        let count = shares(usual);
        if let Ok(share) = Arc::clone(&self.shares).try_acquire_many_owned(count) {
            return Ok(share);
        }
        let share = timeout_at(until - usual.min(self.limit), Arc::clone(&self.shares).acquire_many_owned(count)).await;
        share.map_err(|_| Unanswered::Busy)?.map_err(|_| Unanswered::Gone)
    }

    /// Tells the catalog, as an order that was encoded once for all. One that is replaced meanwhile needs to know none.
    pub(super) async fn send_snapshot(&self, snapshot: &[u8]) -> Result<(), Refusal> {
        let Ok(share) = Arc::clone(&self.shares).acquire_many_owned(SHARES).await else { return Ok(()) };
        let (answer, answered) = oneshot::channel();
        let asked = Asked::Snapshot { answer };
        if !self.send(snapshot, Waiting { asked, limit: SNAPSHOT_TIME, _share: share }) {
            return Ok(());
        }
        answered.await.unwrap_or(Ok(()))
    }

    /// Has an order sent, unless the link was retired or broke, which may be while its share was waited for.
    fn send(&self, order: &[u8], waiting: Waiting) -> bool {
        let mut queue = self.queue.lock();
        if self.is_broken() {
            return false;
        }
        // All that was sent before was answered, so it was sent whole.
        let mut sent = 0;
        if queue.under_way.is_empty() && !queue.is_busy {
            queue.sent = Some(Instant::now());
            sent = self.line.send(order);
        }
        queue.unsent.extend_from_slice(&order[sent..]);
        queue.under_way.push_back(waiting);
        drop(queue);
        self.news.notify_one();
        true
    }

    fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual.load(Ordering::Relaxed))
    }

    /// Takes note of what a call took: the first one as it is, then so that single ones count for little.
    fn took(&self, time: Duration) {
        let (time, before) = (time.as_nanos() as u64, self.usual.load(Ordering::Relaxed));
        let usual = if before == 0 { time.max(1) } else { before - before / 8 + time / 8 };
        // Of two at once, which there are not, one would count.
        self.usual.store(usual, Ordering::Relaxed);
    }

    /// Waits until no call is under way, and lets none begin.
    pub(super) async fn drain(&self) {
        self.retire();
        let _ = self.shares.acquire_many(SHARES).await;
    }

    /// Lets no further call begin, and no fault count. What is under way is seen to its end.
    pub(super) fn retire(&self) {
        self.close();
        self.news.notify_one();
    }

    /// Has nothing more sent. Is that new?
    fn close(&self) -> bool {
        let _queue = self.queue.lock();
        !self.is_broken.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// The worker is at fault. Only the first time counts.
    fn fail(&self, fault: LibraryFault) {
        if self.close() {
            (self.on_fault)(fault);
        }
    }

    /// Sends orders and reads their answers, until the link is retired or broken.
    async fn converse(self: Arc<Self>, mut line: SocketLine) {
        let mut is_busy = false;
        while !self.is_done() {
            self.news.notified().await;
            if is_busy {
                // They come in numbers: who else is about to ask sends along.
                tokio::task::yield_now().await;
            }
            match self.exchange(&mut line).await {
                // What woke this was answered along with others.
                Ok(0) => {}
                Ok(answered) => {
                    is_busy = answered > 1;
                    self.queue.lock().is_busy = is_busy;
                }
                Err(fault) => {
                    self.break_off(fault);
                    break;
                }
            }
        }
        self.queue.lock().under_way.clear();
        self.shares.close();
    }

    /// Nothing is under way, and nothing will be.
    fn is_done(&self) -> bool {
        let queue = self.queue.lock();
        self.is_broken() && queue.under_way.is_empty()
    }

    /// Until nothing is under way. Returns how many orders were answered.
    async fn exchange(&self, line: &mut SocketLine) -> Result<usize, LibraryFault> {
        let (mut begun, mut answered) = (Instant::now(), 0);
        while let Some((limit, sent)) = self.next(line) {
            begun = sent.unwrap_or(begun);
            let reply = tokio::select! {
                biased;
                reply = timeout_at(begun + limit, line.converse()) => reply,
                () = self.news.notified() => continue,
            };
            let reply = reply.map_err(|_| LibraryFault::Timeout(limit.as_millis()))??;
            let took = begun.elapsed();
            begun += took;
            self.answer(reply, took)?;
            answered += 1;
        }
        Ok(answered)
    }

    /// Hands over what is to be sent. Returns how long the first order under way may take, if there is one, and when it
    /// was sent if it was already.
    fn next(&self, line: &mut SocketLine) -> Option<(Duration, Option<Instant>)> {
        let mut queue = self.queue.lock();
        line.raw(&queue.unsent);
        queue.unsent.clear();
        let sent = queue.sent.take();
        queue.under_way.front().map(|waiting| (waiting.limit, sent))
    }

    /// Gives the answer to who waits for it. Whom it does not reach waits no longer.
    fn answer(&self, reply: Reply, took: Duration) -> Result<(), LibraryFault> {
        match (self.take_asked(&reply).ok_or_else(|| unexpected(&reply))?, reply) {
            (Asked::Call { answer, .. }, Reply::Answer { outcome, .. }) => {
                self.took(took);
                let _ = answer.send(outcome.map_err(|refusal| self.refused(refusal)));
            }
            (Asked::Snapshot { answer }, Reply::Snapshotted(taken)) => {
                let _ = answer.send(taken);
            }
            _ => {}
        }
        Ok(())
    }

    /// The first order under way, if this is its reply.
    fn take_asked(&self, reply: &Reply) -> Option<Asked> {
        let mut queue = self.queue.lock();
        queue.under_way.front().filter(|first| first.asked.is_of(reply))?;
        queue.under_way.pop_front().map(|waiting| waiting.asked)
    }

    fn refused(&self, refusal: Refusal) -> Unanswered {
        if !refusal.for_good {
            return Unanswered::Failed(refusal.message);
        }
        let fault = LibraryFault::Broken(refusal.message);
        self.fail(fault.clone());
        Unanswered::LibraryFault(fault)
    }

    /// The worker is at fault, as far as can be told in the first of the calls under way; unless it was to end.
    fn break_off(&self, fault: LibraryFault) {
        if !self.close() {
            return;
        }
        let first = self.queue.lock().under_way.pop_front();
        if let Some(Waiting { asked: Asked::Call { answer, .. }, .. }) = first {
            let _ = answer.send(Err(Unanswered::LibraryFault(fault.clone())));
        }
        (self.on_fault)(fault);
    }
}

impl Asked {
    fn is_of(&self, reply: &Reply) -> bool {
        match (self, reply) {
            (Self::Call { number, .. }, Reply::Answer { number: of, .. }) => of == number,
            (Self::Snapshot { .. }, Reply::Snapshotted(_)) => true,
            _ => false,
        }
    }
}

/// How many shares of [`TOGETHER`] a call has that usually takes this long; all of them before it is known.
fn shares(usual: Duration) -> u32 {
    if usual.is_zero() {
        return SHARES;
    }
    let shares = (usual.as_nanos() * u128::from(SHARES)).div_ceil(TOGETHER.as_nanos());
    u32::try_from(shares).unwrap_or(SHARES).clamp(1, SHARES)
}

/// What the worker said makes no sense here.
fn unexpected(reply: &Reply) -> LibraryFault {
    LibraryFault::Protocol(match reply {
        Reply::Answer { number, .. } => format!("an answer to call {number}, which is not the one under way"),
        _ => "an answer of another kind than the question".to_owned(),
    })
}

#[cfg(test)]
mod tests;
