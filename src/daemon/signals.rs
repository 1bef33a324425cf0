//! The signals that the daemon acts on.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    stop: [Signal; 2],
    hangup: Signal,
    /// Some rotate logs by them and would end by habit what has no use for them.
    idle: [(Signal, &'static str); 2],
}

impl Signals {
    /// From now on they end nothing by themselves. Needs a runtime.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            stop: [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?],
            hangup: signal(SignalKind::hangup())?,
            idle: [
                (signal(SignalKind::user_defined1())?, "SIGUSR1"),
                (signal(SignalKind::user_defined2())?, "SIGUSR2"),
            ],
        })
    }

    fn poll_stop(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let stopped = self.stop.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if stopped { Poll::Ready(()) } else { Poll::Pending }
    }

    /// SIGTERM or SIGINT, or SIGHUP: whichever comes first.
    pub(super) async fn next(&mut self) -> SignalRequest {
        poll_fn(|context| {
            if self.poll_stop(context).is_ready() {
                return Poll::Ready(SignalRequest::Stop);
            }
            for (signal, name) in &mut self.idle {
                while signal.poll_recv(context).is_ready() {
                    tracing::info!("{name} means nothing here; SIGHUP reads everything again");
                }
            }
            self.hangup.poll_recv(context).map(|_| SignalRequest::Reload)
        })
        .await
    }

    pub(super) async fn stop(&mut self) {
        poll_fn(|context| self.poll_stop(context)).await;
    }
}

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalRequest {
    Stop,
    Reload,
}
