//! The task that answers a request, whoever waits for it.

use tokio::task::{AbortHandle, JoinHandle};

use super::request::{ClientPresence, McpCaller, RpcAnswer};
use super::running::KnownRequest;
use crate::jsonrpc::Era;
use crate::telemetry::metrics::McpMetrics;

/// Work on a request. That of a modern client ends when nobody waits for it any more.
pub(super) struct Work {
    handle: JoinHandle<RpcAnswer>,
    is_abandoned: bool,
    presence: ClientPresence,
    /// Found by its id, while it runs.
    pub(super) known: Option<KnownRequest>,
}

impl Work {
    pub(super) fn start(
        caller: &McpCaller,
        presence: ClientPresence,
        work: impl Future<Output = RpcAnswer> + Send + 'static,
    ) -> Self {
        Self { handle: tokio::spawn(work), is_abandoned: caller.era() == Era::Modern, presence, known: None }
    }

    /// The client left, or is back.
    pub(super) fn set_followed(&self, is_there: bool) {
        self.presence.set(is_there);
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.handle.abort_handle()
    }

    /// The answer; nothing once the client has given it up by name, which is not answered.
    pub(super) async fn done(&mut self) -> Option<RpcAnswer> {
        match (&mut self.handle).await {
            Ok(answer) => Some(answer),
            Err(error) if error.is_cancelled() => None,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.presence.set(false);
        if self.is_abandoned {
            self.handle.abort();
        }
    }
}

/// Counts a request that is given up before it is answered.
pub(super) struct CountCancelled<'m> {
    metrics: &'m McpMetrics,
    method: &'static str,
    era: Era,
    is_done: bool,
}

impl<'m> CountCancelled<'m> {
    pub(super) fn new(metrics: &'m McpMetrics, method: &'static str, era: Era) -> Self {
        Self { metrics, method, era, is_done: false }
    }

    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for CountCancelled<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.metrics.requests.with_label_values(&[self.method, self.era.as_str(), "cancelled"]).inc();
        }
    }
}
