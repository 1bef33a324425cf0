//! Requests of legacy sessions that are worked on, so that their clients can give them up by name.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::jsonrpc::Id;

type Known = Mutex<HashMap<(u64, Id), AbortHandle>>;

/// The requests.
#[derive(Debug, Default)]
pub(super) struct Running(Arc<Known>);

/// A request is known for as long as this lives.
#[derive(Debug)]
pub(super) struct KnownRequest {
    key: (u64, Id),
    known: Arc<Known>,
}

impl Running {
    /// A request of a session is worked on.
    pub(super) fn add(&self, session: u64, id: &Id, work: AbortHandle) -> KnownRequest {
        let key = (session, id.clone());
        self.0.lock().insert(key.clone(), work);
        KnownRequest { key, known: Arc::clone(&self.0) }
    }

    /// Ends the work on it, if there is any.
    pub(super) fn cancel(&self, session: u64, id: &Id) {
        if let Some(work) = self.0.lock().remove(&(session, id.clone())) {
            work.abort();
        }
    }
}

impl Drop for KnownRequest {
    fn drop(&mut self) {
        self.known.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_is_given_up_by_its_session_alone() {
        let running = Running::default();
        let work = tokio::spawn(std::future::pending::<()>());
        let known = running.add(1, &Id::number(7), work.abort_handle());
        running.cancel(2, &Id::number(7));
        running.cancel(1, &Id::text("7"));
        assert!(!work.is_finished());
        running.cancel(1, &Id::number(7));
        assert!(work.await.unwrap_err().is_cancelled());
        drop(known);
        assert!(running.0.lock().is_empty());
    }
}
