//! A socket that notes what passes through it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::progress::Progress;
use super::socket::Socket;

/// How long what a client still sends is read after its answer, so that the answer is not lost.
const LINGER: Duration = Duration::from_secs(5);

/// How much of it, in bytes.
const MAX_LINGER_BYTES: usize = 256 << 20;

/// A socket and the progress of its connection.
///
/// A client may close its side once it has asked, or go altogether. That is withheld while work goes on that is done
/// all the same; otherwise hyper is told of it at once, and gives the work up.
#[derive(Debug)]
pub(super) struct Transport<T> {
    inner: T,
    progress: Arc<Progress>,
    /// Has the peer closed its side?
    has_ended: bool,
    /// After the answer: what is still read, and for how long.
    rest: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    end: Pin<Box<Sleep>>,
    read: usize,
}

impl<T> Transport<T> {
    pub(super) fn new(inner: T, progress: Arc<Progress>) -> Self {
        Self { inner, progress, has_ended: false, rest: None }
    }
}

impl<T: Socket> AsyncRead for Transport<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_ended {
            let before = buffer.filled().len();
            match Pin::new(&mut self.inner).poll_read(context, buffer) {
                Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                    self.progress.read();
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Err(error)) if self.progress.reports_failure() => return Poll::Ready(Err(error)),
                Poll::Ready(_) => {
                    self.has_ended = true;
                    self.progress.ended();
                }
                Poll::Pending => {
                    // What has just come is told of later.
                    if self.progress.is_ending() && self.inner.has_unread() {
                        self.progress.read();
                    }
                    self.progress.found_nothing();
                    return Poll::Pending;
                }
            }
        }
        // Whoever waits is polled again when the answer has been written.
        if self.progress.reports_end() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl<T: Socket> AsyncWrite for Transport<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.progress.wrote(taken(&polled));
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.progress.wrote(taken(&polled));
        polled
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

    /// Tells the peer that nothing follows, and reads away what it still sends.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_none() {
            ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
            if self.has_ended || !self.progress.lingers() {
                return Poll::Ready(Ok(()));
            }
        }
        let Self { inner, rest, .. } = &mut *self;
        let rest = rest.get_or_insert_with(|| Rest { end: Box::pin(sleep(LINGER)), read: 0 });
        let mut space = [std::mem::MaybeUninit::uninit(); 8192];
        while rest.read < MAX_LINGER_BYTES && rest.end.as_mut().poll(context).is_pending() {
            let mut nowhere = ReadBuf::uninit(&mut space);
            match ready!(Pin::new(&mut *inner).poll_read(context, &mut nowhere)) {
                Ok(()) if !nowhere.filled().is_empty() => rest.read += nowhere.filled().len(),
                // It has read the answer, or does not want it.
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn taken(written: &Poll<io::Result<usize>>) -> Option<usize> {
    match written {
        Poll::Ready(Ok(bytes)) => Some(*bytes),
        Poll::Ready(Err(_)) => Some(0),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::task::Waker;

    use super::*;

    /// A peer that resets the connection.
    struct Gone;

    impl AsyncRead for Gone {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
    }

    impl AsyncWrite for Gone {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Socket for Gone {
        fn has_unread(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn at_the_end_a_request_is_seen_before_it_is_told_of() {
        let (mut client, server) = std::os::unix::net::UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let progress = Arc::new(Progress::new(None));
        progress.request_ended();
        progress.flushed();
        let mut transport = Transport::new(tokio::net::UnixStream::from_std(server).unwrap(), Arc::clone(&progress));
        client.write_all(b"GET ").unwrap();
        // Nothing is awaited, so that the runtime does not look at its sockets.
        let mut look = || {
            let mut space = [0; 16];
            let mut context = Context::from_waker(Waker::noop());
            assert!(Pin::new(&mut transport).poll_read(&mut context, &mut ReadBuf::new(&mut space)).is_pending());
            progress.expects_request()
        };
        assert!(!look());
        progress.end();
        assert!(look());
    }

    #[test]
    fn work_that_is_done_all_the_same_outlives_its_client() {
        let check = |begin: fn(&Progress), is_told: bool| {
            let progress = Arc::new(Progress::new(None));
            begin(&progress);
            let mut transport = Transport::new(Gone, Arc::clone(&progress));
            let mut space = [0; 16];
            let mut context = Context::from_waker(Waker::noop());
            let polled = Pin::new(&mut transport).poll_read(&mut context, &mut ReadBuf::new(&mut space));
            assert_eq!(matches!(polled, Poll::Ready(Err(_))), is_told);
            assert_eq!(polled.is_pending(), !is_told);
        };
        check(|_| (), true);
        check(|progress| progress.request_began(false), false);
        check(|progress| progress.request_began(true), true);
        check(
            |progress| {
                progress.request_began(false);
                progress.set_unread(true);
            },
            true,
        );
    }
}
