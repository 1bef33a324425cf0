//! Standard input and output, a message a line. Whoever is at their other ends may let them block for as long as they
//! like, and other processes may share them: they are never changed, and pipes and sockets are used at once where that
//! does not block.

use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as threads;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::retry_on_intr;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};

use crate::jsonrpc::lines::LineReader;

/// What is read of a line, in bytes: much more than a message may have, so that one that is too long is answered by its
/// id.
const MAX_LINE_BYTES: usize = 64 << 20;

/// What takes something takes as much at once (`PIPE_BUF` of Linux).
const AT_ONCE_BYTES: usize = 4096;

/// For how long the last messages may take: whoever should read them may be gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Lines that are read.
pub(super) type StdioLines = LineReader<StdioInput>;

/// Standard input. Must be called within the runtime.
pub(super) fn input() -> io::Result<StdioLines> {
    let input = || io::stdin().as_fd().try_clone_to_owned();
    // Its successor is `unsafe`, for what closes its descriptor behind its back, which an `OwnedFd` does not.
    #[expect(deprecated, reason = "this file has no `unsafe`")]
    let watched = AsyncFd::with_interest(input()?, Interest::READABLE);
    let input = match watched {
        Ok(input) => StdioInput::Polled(input),
        // What files say to being watched.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => StdioInput::File(input()?),
        Err(error) => return Err(error),
    };
    Ok(LineReader::new(input, MAX_LINE_BYTES))
}

/// An input that may block.
pub(super) enum StdioInput {
    /// Is read only while there is something.
    Polled(AsyncFd<OwnedFd>),
    /// Has all there is from the start, and cannot be waited for.
    File(OwnedFd),
}

impl AsyncRead for StdioInput {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut take = |input: &OwnedFd| {
            let count = retry_on_intr(|| rustix::io::read(input, into.initialize_unfilled()))?;
            into.advance(count);
            io::Result::Ok(())
        };
        let input = match &*self {
            Self::Polled(input) => input,
            Self::File(input) => return Poll::Ready(take(input)),
        };
        loop {
            let mut readiness = ready!(input.poll_read_ready(context))?;
            if is_ready(input.get_ref(), PollFlags::IN)? {
                match take(input.get_ref()) {
                    // Somebody who shares it was faster.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    taken => return Poll::Ready(taken),
                }
            }
            readiness.clear_ready();
        }
    }
}

fn is_ready(descriptor: &impl AsFd, wanted: PollFlags) -> io::Result<bool> {
    let mut asked = [PollFd::new(descriptor, wanted)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(retry_on_intr(|| poll(&mut asked, Some(&at_once)))? > 0)
}

/// Where messages are written.
#[derive(Clone)]
pub(super) struct StdioOutput(Arc<Output>);

struct Output {
    /// To the thread that writes what may block.
    thread: Mutex<threads::Sender<Written>>,
    /// How much that thread has to write.
    waiting: Arc<AtomicUsize>,
    /// Does it take a short line at once when it takes something? A terminal need not.
    is_pipe: bool,
}

/// What goes to the writing thread.
enum Written {
    Line(Vec<u8>),
    /// Tells when all before it is out.
    Flush(threads::Sender<()>),
}

impl StdioOutput {
    pub(super) fn open() -> Self {
        let (thread, written) = threads::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        thread::spawn(move || write_all(BufWriter::new(io::stdout()), &written, &left));
        let kind = fstat(io::stdout()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        let is_pipe = kind.is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::Socket));
        Self(Arc::new(Output { thread: Mutex::new(thread), waiting, is_pipe }))
    }

    /// Writes a message; newlines in it are space between its tokens.
    pub(super) fn write(&self, message: &str) {
        let mut line = Vec::with_capacity(message.len() + 1);
        line.extend_from_slice(message.as_bytes());
        for byte in &mut line {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        line.push(b'\n');
        let thread = self.0.thread.lock();
        if self.0.is_pipe && self.0.waiting.load(Ordering::Acquire) == 0 {
            line.drain(..written_at_once(&line));
        }
        if line.is_empty() {
            return;
        }
        self.0.waiting.fetch_add(1, Ordering::AcqRel);
        // If nobody reads any more, the input ends as well.
        let _ = thread.send(Written::Line(line));
    }

    /// Returns when all is written, or nobody reads.
    pub(super) fn flush(&self) {
        let (done, flushed) = threads::channel();
        if self.0.thread.lock().send(Written::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(LAST_WORDS);
        }
    }
}

/// Writes a line if that does not block; how much of it.
fn written_at_once(line: &[u8]) -> usize {
    let output = io::stdout();
    if line.len() > AT_ONCE_BYTES || !is_ready(&output, PollFlags::OUT).unwrap_or(false) {
        return 0;
    }
    // What is wrong with it is found again by the thread.
    rustix::io::write(&output, line).unwrap_or(0)
}

fn write_all(mut output: impl Write, written: &threads::Receiver<Written>, waiting: &AtomicUsize) {
    while let Ok(first) = written.recv() {
        let (mut next, mut lines) = (Some(first), 0);
        while let Some(one) = next {
            let outcome = match one {
                Written::Line(line) => {
                    lines += 1;
                    output.write_all(&line)
                }
                Written::Flush(done) => output.flush().map(|()| {
                    let _ = done.send(());
                }),
            };
            if outcome.is_err() {
                return;
            }
            next = written.try_recv().ok();
        }
        if output.flush().is_err() {
            return;
        }
        waiting.fetch_sub(lines, Ordering::AcqRel);
    }
}
