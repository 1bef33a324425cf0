//! Calls whose legacy server asks something of a modern client: they wait here until it is back with the answer.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ongoing::{CallOwner, Waiting};

/// Calls of one tenant that wait.
const MAX_PARKED: usize = 64;

/// For how long a client can come back.
pub(super) const PARKED_FOR: Duration = Duration::from_secs(300);

/// What a parked call's question is called.
pub(super) const QUESTION: &str = "question";

/// Answers a server's question. Dropped, it refuses it.
pub(super) type ServerQuestion = oneshot::Sender<Result<Box<RawValue>, Box<RawValue>>>;

/// A call that waits. Dropped, it is given up.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) owner: CallOwner,
    pub(super) waiting: Waiting,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) answer: ServerQuestion,
    pub(super) since: Instant,
}

/// All calls that wait.
#[derive(Debug, Default)]
pub(super) struct ParkedCalls(Mutex<HashMap<String, Parked>>);

impl ParkedCalls {
    /// Is there room for one more of this tenant, of which so many wait otherwise?
    pub(super) fn has_room(&self, tenant: &str, others: usize) -> bool {
        self.0.lock().values().filter(|parked| *parked.owner.tenant == *tenant).count() + others < MAX_PARKED
    }

    /// Keeps a call, and says under which name; nothing without randomness.
    pub(super) fn park(&self, parked: Parked) -> Option<String> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).ok()?;
        // A name of before a restart is no call of now.
        let name = hex::encode(random);
        self.0.lock().insert(name.clone(), parked);
        Some(name)
    }

    /// The call of this name, if it is its owner's.
    pub(super) fn take(&self, name: &str, owner: &CallOwner) -> Option<Parked> {
        let mut all = self.0.lock();
        all.get(name).filter(|parked| parked.owner == *owner)?;
        all.remove(name)
    }

    /// Gives the call of this name up once its client could have been back.
    pub(super) async fn expire(&self, name: &str) {
        tokio::time::sleep(PARKED_FOR).await;
        let late = self.0.lock().remove(name);
        drop(late);
    }
}
