//! What a connection is doing and since when: the transport notes it, the connection's one timer looks at it.
//!
//! A timer armed and disarmed for every request costs more than the request; a store to an atomic does not.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::config::Http;

/// Notes of one connection.
#[derive(Debug)]
pub(super) struct Progress {
    /// Milliseconds of the clock.
    opened: u64,
    phase: AtomicU8,
    /// Milliseconds from `opened` to when the phase began.
    since: AtomicU64,
    /// How often there was nothing to read.
    lulls: AtomicU64,
}

/// Nothing has come yet.
const FRESH: u8 = 0;
/// Between two requests.
const IDLE: u8 = 1;
/// A head began to arrive.
const HEAD: u8 = 2;
/// A request is worked on, its body included.
const WORKING: u8 = 3;
/// The answer is being written; the request's clock runs on.
const ANSWERING: u8 = 4;

/// A time limit that a connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    Idle,
    Head,
    Request,
}

impl Overdue {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Idle => "idle_timeout",
            Self::Head => "header_read_timeout",
            Self::Request => "request_timeout",
        }
    }
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { opened: coarse_ms(), phase: AtomicU8::new(FRESH), since: AtomicU64::new(0), lulls: AtomicU64::new(0) }
    }

    fn enter(&self, phase: u8) {
        self.since.store(coarse_ms().saturating_sub(self.opened), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    pub(super) fn request_began(&self) {
        self.enter(WORKING);
    }

    pub(super) fn request_ended(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    fn read(&self) {
        if matches!(self.phase.load(Ordering::Relaxed), FRESH | IDLE) {
            self.enter(HEAD);
        }
    }

    /// How often there was nothing to read so far: what was read between two looks at an unchanged count arrived together.
    pub(super) fn lulls(&self) -> u64 {
        self.lulls.load(Ordering::Relaxed)
    }

    pub(super) fn waited(&self) {
        self.lulls.fetch_add(1, Ordering::Relaxed);
    }

    /// All that was to be written has been.
    fn flushed(&self) {
        if self.phase.load(Ordering::Relaxed) == ANSWERING {
            self.enter(IDLE);
        }
    }

    /// How long until a limit is broken, or which one is.
    pub(super) fn check(&self, limits: &Http) -> Result<Duration, Overdue> {
        let (limit, overdue) = match self.phase.load(Ordering::Relaxed) {
            HEAD => (limits.header_read_timeout, Overdue::Head),
            WORKING | ANSWERING => (limits.request_timeout + GRACE, Overdue::Request),
            _ => (limits.idle_timeout, Overdue::Idle),
        };
        let since = self.opened + self.since.load(Ordering::Relaxed);
        let spent = Duration::from_millis(coarse_ms().saturating_sub(since));
        limit.checked_sub(spent).filter(|left| !left.is_zero()).ok_or(overdue)
    }

    /// The shortest time in which a limit can be broken that none is close to now.
    pub(super) fn shortest(limits: &Http) -> Duration {
        limits.header_read_timeout.min(limits.request_timeout).min(limits.idle_timeout)
    }

    /// Has no byte of a request come yet?
    pub(super) fn is_fresh(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == FRESH
    }

    /// Is a request on its way, or may one be?
    pub(super) fn expects_request(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), FRESH | HEAD)
    }
}

/// Milliseconds of a clock that is read in a few nanoseconds, for limits of seconds.
fn coarse_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

/// A handler that reads a slow body answers 408 by itself; the connection is closed only if even that does not get out.
const GRACE: Duration = Duration::from_secs(2);

/// A transport that notes its progress.
#[derive(Debug)]
pub(super) struct Noted<T> {
    inner: T,
    progress: Arc<Progress>,
}

impl<T> Noted<T> {
    pub(super) fn new(inner: T, progress: Arc<Progress>) -> Self {
        Self { inner, progress }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Noted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        match polled {
            Poll::Ready(_) if buffer.filled().len() > before => self.progress.read(),
            Poll::Ready(_) => {}
            Poll::Pending => self.progress.waited(),
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Noted<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // hyper flushes once its own buffer is empty.
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(polled, Poll::Ready(Ok(()))) {
            self.progress.flushed();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_limit() {
        let limits = Http {
            header_read_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(3),
            ..Http::default()
        };
        let progress = Progress { opened: coarse_ms() - 60_000, ..Progress::new() };
        assert_eq!(progress.check(&limits), Err(Overdue::Idle));
        let near = |limit: u64| {
            let left = progress.check(&limits).unwrap();
            assert!(
                left <= Duration::from_secs(limit) && left + Duration::from_millis(900) > Duration::from_secs(limit)
            );
        };
        assert!(progress.is_fresh());
        progress.read();
        near(1);
        progress.request_began();
        progress.read();
        near(5);
        progress.request_ended();
        progress.read();
        near(5);
        progress.flushed();
        near(2);
        assert!(!progress.is_fresh() && !progress.expects_request());
    }
}
