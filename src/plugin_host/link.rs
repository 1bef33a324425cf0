//! A conversation with one worker: calls one after the other, each within its time.
//!
//! A caller that waits no longer leaves its call behind: the answer is still read, so that it is not taken for the next
//! one's, and a worker that does not give it in time is at fault whether anybody waits or not. Both directions keep
//! what was begun, so a future may be dropped at any point.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

use super::ask::Proposal;
use super::fault::LibraryFault;
use super::thread_limit;
use super::wire::{MAX_REPLY, Order, Refusal, Reply, WireError, clamp, decode, encode, frame_length};

/// How long a library may take to read a catalog.
const SNAPSHOT_TIME: Duration = Duration::from_secs(5);

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
    line: Arc<Mutex<SocketLine>>,
    is_broken: AtomicBool,
    limit: Duration,
    /// What a call usually takes, in microseconds, whether somebody waited for its end or not.
    usual: AtomicU64,
    runtime: Handle,
    on_fault: Box<dyn Fn(LibraryFault) + Send + Sync>,
}

impl Link {
    /// A conversation over `line`, on which a call may take `limit`. The first fault goes to `on_fault`.
    pub(super) fn new(
        line: SocketLine,
        limit: Duration,
        runtime: Handle,
        on_fault: impl Fn(LibraryFault) + Send + Sync + 'static,
    ) -> Self {
        Self {
            line: Arc::new(Mutex::new(line)),
            is_broken: AtomicBool::new(false),
            limit,
            usual: AtomicU64::new(0),
            runtime,
            on_fault: Box::new(on_fault),
        }
    }

    /// Asks the library; the answer is waited for until `until`.
    ///
    /// `order` is the encoded [`Order::Ask`] of this `number`, which no other call to this worker has.
    pub(super) async fn ask(
        self: &Arc<Self>,
        number: u64,
        order: &[u8],
        until: Instant,
    ) -> Result<Vec<Proposal>, Unanswered> {
        // A call that waits for others is not begun so late that it would keep the library from the next one for
        // nothing. One that finds it idle is, however slow the library was: or it would never be seen to be faster.
        let mut line = match Arc::clone(&self.line).try_lock_owned() {
            Ok(line) => line,
            Err(_) => match timeout_at(until - self.usual().min(self.limit), Arc::clone(&self.line).lock_owned()).await
            {
                Ok(line) => line,
                Err(_) => return Err(Unanswered::Busy),
            },
        };
        if self.is_broken() {
            return Err(Unanswered::Gone);
        }
        line.raw(order);
        let begun = Instant::now();
        let mut call = Call { link: Arc::clone(self), line: Some(line), begun, due: begun + self.limit };
        let reply = timeout_at(until.min(call.due), call.converse()).await;
        if Instant::now() < call.due && reply.is_err() {
            return Err(Unanswered::Late);
        }
        let judged = match reply {
            Err(_) => Err(LibraryFault::Timeout(self.limit.as_millis())),
            Ok(Err(fault)) => Err(fault),
            Ok(Ok(Reply::Answer { number: of, outcome })) if of == number => Ok(outcome),
            Ok(Ok(other)) => Err(unexpected(&other)),
        };
        call.line = None;
        self.took(begun.elapsed());
        match judged {
            Ok(Ok(mut proposals)) => {
                clamp(&mut proposals);
                Ok(proposals)
            }
            Ok(Err(refusal)) if refusal.for_good => {
                let fault = LibraryFault::Broken(refusal.message);
                self.fail(fault.clone());
                Err(Unanswered::LibraryFault(fault))
            }
            Ok(Err(refusal)) => Err(Unanswered::Failed(refusal.message)),
            Err(fault) => {
                self.fail(fault.clone());
                Err(Unanswered::LibraryFault(fault))
            }
        }
    }

    fn usual(&self) -> Duration {
        Duration::from_micros(self.usual.load(Ordering::Relaxed))
    }

    /// Takes note of what a call took: the first one as it is, then so that single ones count for little.
    fn took(&self, time: Duration) {
        let (time, before) = (time.as_micros() as u64, self.usual.load(Ordering::Relaxed));
        let usual = if before == 0 { time } else { before - before / 8 + time / 8 };
        // Of two at once, which there are not, one would count.
        self.usual.store(usual, Ordering::Relaxed);
    }

    /// Tells the catalog, as an order that was encoded once for all.
    pub(super) async fn send_snapshot(self: &Arc<Self>, snapshot: &[u8]) -> Result<(), Refusal> {
        let mut line = Arc::clone(&self.line).lock_owned().await;
        if self.is_broken() {
            return Ok(());
        }
        line.raw(snapshot);
        match timeout_at(Instant::now() + SNAPSHOT_TIME, line.converse()).await {
            Ok(Ok(Reply::Snapshotted(taken))) => return taken,
            Ok(Ok(other)) => self.fail(unexpected(&other)),
            Ok(Err(fault)) => self.fail(fault),
            Err(_) => self.fail(LibraryFault::Timeout(SNAPSHOT_TIME.as_millis())),
        }
        Ok(())
    }

    /// Waits until no call is under way, and lets none begin.
    pub(super) async fn drain(&self) {
        self.retire();
        let _ = self.line.lock().await;
    }

    /// Lets no further call begin, and no fault count.
    pub(super) fn retire(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// The worker is at fault. Only the first time counts.
    pub(super) fn fail(&self, fault: LibraryFault) {
        if !self.is_broken.swap(true, Ordering::Relaxed) {
            (self.on_fault)(fault);
        }
    }
}

/// What the worker said makes no sense here.
fn unexpected(reply: &Reply) -> LibraryFault {
    LibraryFault::Protocol(match reply {
        Reply::Answer { number, .. } => format!("an answer to call {number}, which is not the one under way"),
        _ => "an answer of another kind than the question".to_owned(),
    })
}

/// A call under way. Dropped before its end, it is seen to its end without the caller.
struct Call {
    link: Arc<Link>,
    line: Option<OwnedMutexGuard<SocketLine>>,
    begun: Instant,
    due: Instant,
}

impl Call {
    async fn converse(&mut self) -> Result<Reply, LibraryFault> {
        let line = self.line.as_mut().expect("a call has its line until it ended");
        line.converse().await
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        let (link, begun, due) = (Arc::clone(&self.link), self.begun, self.due);
        self.link.runtime.spawn(async move {
            match timeout_at(due, line.converse()).await {
                Ok(Ok(Reply::Answer { .. })) => link.took(begun.elapsed()),
                Ok(Ok(other)) => link.fail(unexpected(&other)),
                Ok(Err(fault)) => link.fail(fault),
                Err(_) => link.fail(LibraryFault::Timeout(link.limit.as_millis())),
            }
        });
    }
}

/// The socket to a worker, with what is still to be sent and what has come in.
pub(super) struct SocketLine {
    socket: UnixStream,
    unsent: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
}

/// Read at once, in bytes, or more.
const CHUNK: usize = 4 << 10;

impl SocketLine {
    /// A line over `socket`. Needs a runtime.
    pub(super) fn new(socket: std::os::unix::net::UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        Ok(Self { socket, unsent: Vec::new(), sent: 0, received: Vec::new() })
    }

    /// Has the order sent with the next conversation.
    pub(super) fn order(&mut self, order: &Order) {
        encode(order, &mut self.unsent);
    }

    /// Sends nothing any more.
    pub(super) fn hang_up(&self) {
        // It fails if the other end is gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Has bytes sent that are an order already.
    pub(super) fn raw(&mut self, order: &[u8]) {
        self.unsent.extend_from_slice(order);
    }

    /// Sends what is to be sent, and takes the listener for the threads of a worker that has just started.
    pub(super) async fn receive_listener(&mut self) -> Result<Option<OwnedFd>, LibraryFault> {
        self.send().await?;
        thread_limit::receive(&self.socket).await.map_err(|error| broken(&error))
    }

    /// Sends what is to be sent, and reads one reply. May be dropped and called again.
    pub(super) async fn converse(&mut self) -> Result<Reply, LibraryFault> {
        if let Some(reply) = self.take()? {
            return Ok(reply);
        }
        self.send().await?;
        loop {
            if let Some(reply) = self.take()? {
                return Ok(reply);
            }
            self.received.reserve(CHUNK);
            match self.socket.read_buf(&mut self.received).await {
                Ok(0) => return Err(LibraryFault::Crash("it closed its socket".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    async fn send(&mut self) -> Result<(), LibraryFault> {
        while self.sent < self.unsent.len() {
            match self.socket.try_write(&self.unsent[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await.map_err(|error| broken(&error))?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(())
    }

    /// The reply that has come in whole, if one has.
    fn take(&mut self) -> Result<Option<Reply>, LibraryFault> {
        let length = frame_length(&self.received, MAX_REPLY).map_err(|error| garbled(&error))?;
        let Some(length) = length.filter(|&length| length <= self.received.len()) else { return Ok(None) };
        let reply = decode(&self.received[..length]).map_err(|error| garbled(&error))?;
        self.received.drain(..length);
        Ok(Some(reply))
    }
}

fn broken(error: &io::Error) -> LibraryFault {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return LibraryFault::Crash("it closed its socket".to_owned());
    }
    LibraryFault::Crash(format!("its socket broke: {error}"))
}

fn garbled(error: &WireError) -> LibraryFault {
    match error {
        WireError::Long(_) => LibraryFault::Oversized(error.to_string()),
        WireError::Garbled(_) | WireError::Trailing(_) => LibraryFault::Protocol(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net;

    use super::*;
    use crate::plugin_host::wire::HEAD;

    /// Reads one question of the worker's end, and answers it as the call `number`.
    fn answer(worker: &mut net::UnixStream, number: u64) {
        let mut head = [0; HEAD];
        worker.read_exact(&mut head).unwrap();
        worker.read_exact(&mut vec![0; u32::from_le_bytes(head) as usize]).unwrap();
        let mut reply = Vec::new();
        encode(&Reply::Answer { number, outcome: Ok(Vec::new()) }, &mut reply);
        worker.write_all(&reply).unwrap();
    }

    #[test]
    fn a_call_is_begun_if_its_time_may_do_and_at_an_idle_library_whatever_it_takes() {
        const LIMIT: Duration = Duration::from_secs(60);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (socket, mut worker) = net::UnixStream::pair().unwrap();
        let link = runtime.block_on(async {
            let line = SocketLine::new(socket).unwrap();
            Arc::new(Link::new(line, LIMIT, Handle::current(), |fault| panic!("{fault}")))
        });
        let ask = |number: u64| {
            let (link, mut order) = (Arc::clone(&link), Vec::new());
            let ask = Arc::default();
            encode(&Order::<String>::Ask { number, patience: LIMIT, ask }, &mut order);
            runtime.spawn(async move { link.ask(number, &order, Instant::now() + LIMIT).await })
        };
        // As slow as can be, and idle.
        link.took(LIMIT);
        let first = ask(1);
        answer(&mut worker, 1);
        assert_eq!(runtime.block_on(first).unwrap(), Ok(Vec::new()));
        assert!(link.usual() < LIMIT);
        // One that waits for another is told at once that there is no time for it.
        let first = ask(2);
        let mut head = [0; HEAD];
        worker.read_exact(&mut head).unwrap();
        link.usual.store(LIMIT.as_micros() as u64, Ordering::Relaxed);
        assert_eq!(runtime.block_on(ask(3)).unwrap(), Err(Unanswered::Busy));
        // One that has the time waits.
        link.usual.store(1, Ordering::Relaxed);
        let waiting = ask(4);
        worker.read_exact(&mut vec![0; u32::from_le_bytes(head) as usize]).unwrap();
        let mut reply = Vec::new();
        encode(&Reply::Answer { number: 2, outcome: Ok(Vec::new()) }, &mut reply);
        worker.write_all(&reply).unwrap();
        answer(&mut worker, 4);
        assert_eq!(runtime.block_on(first).unwrap(), Ok(Vec::new()));
        assert_eq!(runtime.block_on(waiting).unwrap(), Ok(Vec::new()));
    }
}
