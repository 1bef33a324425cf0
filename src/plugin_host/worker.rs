//! The worker: a process that runs one library and nothing else.
//!
//! It starts as the daemon's own binary with an empty environment, the socket to the daemon at descriptor 3 and the
//! library at 4. Before a byte of foreign code runs it gives up everything that it does not need; from then on it
//! answers orders, one after the other, until the daemon closes the socket or dies.
#![allow(unsafe_code, reason = "takes descriptors that it was started with")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::ask::{Ask, Snapshot};
use super::instance::Instance;
use super::sandbox::{Sandbox, Threads};
use super::start_error::StartError;
use super::wire::{
    Hello, MAX_MESSAGE_BYTES, MAX_ORDER, Order, Refusal, Reply, Setup, WireError, cut, decode, encode, frame_length,
};
use super::{experiment, sandbox, thread_limit};

/// The argument that makes the daemon's binary a worker. Not for people.
pub const ARGUMENT: &str = "plugin-worker";

/// The socket to the daemon.
pub(super) const SOCKET: RawFd = 3;

pub(super) const IMAGE: RawFd = 4;

/// The library, as the dynamic loader opens it.
const IMAGE_PATH: &str = "/proc/self/fd/4";

/// How long the first call may take, as the library is told.
const FIRST_CALL: Duration = Duration::from_millis(50);

const NOT_BY_HAND: u8 = 64;

/// Something broke between daemon and worker.
#[derive(Debug, thiserror::Error)]
enum WorkerError {
    #[error("the daemon's socket broke")]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("an order came before the worker was set up")]
    Order,
}

/// Runs this process as a worker until the daemon is done with it.
pub fn main() -> ExitCode {
    if !was_started_by_daemon() {
        let _ = writeln!(io::stderr(), "almanacd: {ARGUMENT} is how the daemon starts its own workers");
        return NOT_BY_HAND.into();
    }
    // SAFETY: the daemon put a socket there for this process, and nothing else here uses it.
    let socket = unsafe { OwnedFd::from_raw_fd(SOCKET) };
    match serve(&mut Channel::new(File::from(socket))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "<1>{error}");
            ExitCode::FAILURE
        }
    }
}

fn was_started_by_daemon() -> bool {
    // SAFETY: asking about a descriptor that is not open is answered by an error.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
    fstat(socket).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket)
}

fn serve(channel: &mut Channel) -> Result<(), WorkerError> {
    // The daemon's death ends the socket as well; this ends a library that is in a loop by then.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    ignore_signals();
    close_rest()?;
    // The end of the socket is the daemon's, which may stop while this starts.
    let setup = match channel.receive()?.map(|received| received.order) {
        Some(Order::Setup(setup)) => setup,
        Some(_) => return Err(WorkerError::Order),
        None => return Ok(()),
    };
    let snapshot = match channel.receive()?.map(|received| received.order) {
        Some(Order::Snapshot(snapshot)) => snapshot,
        Some(_) => return Err(WorkerError::Order),
        None => return Ok(()),
    };
    let mut instance = match start(channel.socket.as_fd(), setup, &snapshot) {
        Ok((instance, hello)) => {
            channel.send(&Reply::Ready(hello))?;
            instance
        }
        Err(error) => {
            let mut reason = chain(&error);
            cut(&mut reason, MAX_MESSAGE_BYTES);
            return Ok(channel.send(&Reply::Failed(reason))?);
        }
    };
    while let Some(Received { order, since }) = channel.receive()? {
        let begun = Instant::now();
        let reply = answer(&mut instance, order, begun - since).ok_or(WorkerError::Order)?;
        channel.reply(&reply, begun, Instant::now())?;
    }
    Ok(())
}

/// What is sent to all processes of a service, such as a reload, is for the daemon: a worker that died of it would seem
/// to fail.
fn ignore_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: no handler is installed, and the signals exist.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Whatever else came along is not for the library.
fn close_rest() -> io::Result<()> {
    let (first, none) = ((IMAGE + 1) as libc::c_uint, 0);
    // SAFETY: nothing in this process has opened a descriptor yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, none) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Confines the process, then loads the library, makes its instance, tells it the catalog and asks it once.
fn start(socket: BorrowedFd<'_>, setup: Setup, snapshot: &Snapshot) -> Result<(Instance, Hello), StartError> {
    let listener = thread_limit::install().ok();
    let threads = if listener.is_some() { Threads::Limited } else { Threads::None };
    thread_limit::hand_over(socket, listener.as_ref()).map_err(StartError::Daemon)?;
    drop(listener);
    let Sandbox { confined, lacks } = sandbox::enter(setup.max_memory_bytes, setup.require_sandbox, threads)?;
    let noted = (setup.noted.0.as_str(), setup.noted.1.as_str());
    let mut instance = Instance::load(Path::new(IMAGE_PATH), noted, setup.settings, Box::new(say))?;
    first_call(&mut instance, snapshot)?;
    let hello = Hello { sandbox: confined, lacks, ..instance.about().clone() };
    Ok((instance, hello))
}

/// Tells the catalog, and asks once: a library that cannot do even that is not ready.
pub(super) fn first_call(instance: &mut Instance, snapshot: &Snapshot) -> Result<(), StartError> {
    instance.set_snapshot(snapshot).map_err(StartError::Catalog)?;
    let tool = snapshot.tools.first().map_or_else(|| "none".to_owned(), |tool| tool.name.clone());
    match instance.ask(&Ask { tool, ..Ask::default() }, FIRST_CALL) {
        Err(refusal) if refusal.for_good => Err(StartError::FirstCall(refusal)),
        _ => Ok(()),
    }
}

/// Nothing if the order makes no sense here. One that `waited` longer than anybody waits for it is not for the library.
fn answer(instance: &mut Instance, order: Order<&str>, waited: Duration) -> Option<Reply> {
    Some(match order {
        Order::Ask { number, patience, .. } if waited >= patience => {
            let message = "the calls before it took all of its time".to_owned();
            Reply::Answer { number, outcome: Err(Refusal { message, for_good: false }) }
        }
        Order::Ask { number, patience, ask } => {
            let mut outcome = instance.ask(&ask, patience.saturating_sub(waited));
            if let Err(refusal) = &mut outcome {
                cut(&mut refusal.message, MAX_MESSAGE_BYTES);
            }
            Reply::Answer { number, outcome }
        }
        Order::Snapshot(snapshot) => Reply::Snapshotted(instance.set_snapshot(&snapshot).map_err(|mut refusal| {
            cut(&mut refusal.message, MAX_MESSAGE_BYTES);
            refusal
        })),
        Order::Try(experiment) => Reply::Tried(experiment::run(instance, experiment)),
        Order::Setup(_) => return None,
    })
}

/// A library's message, as the daemon reads it from standard error: its level before the text.
fn say(level: i32, message: &str) {
    let line = format!("<{}>{message}\n", level.clamp(1, 5));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// The socket, and what was read from it ahead.
struct Channel {
    socket: File,
    chunk: Box<[u8]>,
    read: Vec<u8>,
    /// Bytes of `read` that were handed out as an order.
    taken: usize,
    /// When the last of `read` came in.
    read_at: Instant,
    /// Replies that are not sent yet, and when the first of these calls began.
    held: Vec<u8>,
    held_since: Instant,
}

/// An order, and since when it is here.
struct Received<'r> {
    order: Order<&'r str>,
    since: Instant,
}

/// Read at once, in bytes; only a catalog takes more than one.
const CHUNK: usize = 64 << 10;

/// Calls that take longer together are answered at once; the replies to quicker ones wait for those to orders that came
/// with theirs.
const HELD: Duration = Duration::from_micros(50);

impl Channel {
    fn new(socket: File) -> Self {
        Self {
            socket,
            chunk: vec![0; CHUNK].into(),
            read: Vec::new(),
            taken: 0,
            read_at: Instant::now(),
            held: Vec::new(),
            held_since: Instant::now(),
        }
    }

    /// The next order; nothing if the daemon has closed the socket.
    fn receive(&mut self) -> Result<Option<Received<'_>>, WorkerError> {
        self.read.drain(..self.taken);
        self.taken = self.read_frame()?;
        if self.taken == 0 {
            return Ok(None);
        }
        Ok(Some(Received { order: decode(&self.read[..self.taken])?, since: self.read_at }))
    }

    /// Reads until there is a whole frame. Returns its length, 0 if the daemon has closed the socket.
    fn read_frame(&mut self) -> Result<usize, WorkerError> {
        loop {
            if let Some(length) = frame_length(&self.read, MAX_ORDER)? {
                if length <= self.read.len() {
                    return Ok(length);
                }
                self.read.reserve(length - self.read.len());
            }
            match self.socket.read(&mut self.chunk) {
                Ok(0) => return Ok(0),
                Ok(length) => {
                    self.read.extend_from_slice(&self.chunk[..length]);
                    self.read_at = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends the reply, with those to the orders that have come in already.
    fn reply(&mut self, reply: &Reply, begun: Instant, now: Instant) -> Result<(), WorkerError> {
        if self.held.is_empty() {
            self.held_since = begun;
        }
        encode(reply, &mut self.held);
        let rest = &self.read[self.taken..];
        let has_order = frame_length(rest, MAX_ORDER)?.is_some_and(|length| length <= rest.len());
        if has_order && now - self.held_since < HELD { Ok(()) } else { Ok(self.send_held()?) }
    }

    fn send(&mut self, reply: &Reply) -> io::Result<()> {
        encode(reply, &mut self.held);
        self.send_held()
    }

    fn send_held(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;

    fn frame() -> Vec<u8> {
        let mut frame = Vec::new();
        encode(&Order::<String>::Ask { number: 1, patience: HELD, ask: Arc::default() }, &mut frame);
        frame
    }

    #[test]
    fn replies_to_orders_that_came_together_are_sent_together_but_not_held_for_long() {
        let (theirs, mut ours) = UnixStream::pair().unwrap();
        ours.write_all(&frame().repeat(6)).unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut channel = Channel::new(File::from(OwnedFd::from(theirs)));
        let (begun, reply) = (Instant::now(), Reply::Snapshotted(Ok(())));
        let mut check = |from: Duration, to: Duration, sent: usize| {
            channel.receive().unwrap().unwrap();
            channel.reply(&reply, begun + from, begun + to).unwrap();
            let mut one = Vec::new();
            encode(&reply, &mut one);
            assert_eq!(ours.read(&mut [0; 100]).unwrap_or_default(), sent * one.len(), "{from:?} {to:?}");
        };
        let short = HELD / 4;
        check(Duration::ZERO, short, 0);
        check(short, 2 * short, 0);
        check(2 * short, HELD, 3);
        // A slow one holds up nobody.
        check(HELD, 2 * HELD, 1);
        check(2 * HELD, 2 * HELD + short, 0);
        check(2 * HELD + short, 2 * HELD + 2 * short, 2);
    }
}
