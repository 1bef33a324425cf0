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
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::ask::{Ask, Snapshot};
use super::instance::Instance;
use super::sandbox::{Sandbox, Threads};
use super::start_error::StartError;
use super::wire::{
    Hello, MAX_MESSAGE_BYTES, MAX_ORDER, Order, Reply, Setup, WireError, cut, decode, encode, frame_length,
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
    let setup = match channel.receive()? {
        Some(Order::Setup(setup)) => setup,
        Some(_) => return Err(WorkerError::Order),
        None => return Ok(()),
    };
    let snapshot = match channel.receive()? {
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
    while let Some(order) = channel.receive()? {
        let reply = answer(&mut instance, order).ok_or(WorkerError::Order)?;
        channel.send(&reply)?;
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

/// Nothing if the order makes no sense here.
fn answer(instance: &mut Instance, order: Order<&str>) -> Option<Reply> {
    Some(match order {
        Order::Ask { number, patience, ask } => {
            let mut outcome = instance.ask(&ask, patience);
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
    written: Vec<u8>,
}

/// Read at once, in bytes; only a catalog takes more than one.
const CHUNK: usize = 64 << 10;

impl Channel {
    fn new(socket: File) -> Self {
        Self { socket, chunk: vec![0; CHUNK].into(), read: Vec::new(), taken: 0, written: Vec::new() }
    }

    /// The next order; nothing if the daemon has closed the socket.
    fn receive(&mut self) -> Result<Option<Order<&str>>, WorkerError> {
        self.read.drain(..self.taken);
        self.taken = self.read_frame()?;
        Ok(if self.taken > 0 { Some(decode(&self.read[..self.taken])?) } else { None })
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
                Ok(length) => self.read.extend_from_slice(&self.chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.written.clear();
        encode(reply, &mut self.written);
        self.socket.write_all(&self.written)
    }
}
