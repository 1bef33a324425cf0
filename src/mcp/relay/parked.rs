//! Calls whose legacy server asks something of a modern client: they wait here until it is back with the answer.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::ongoing::CallOwner;

/// Of one tenant that wait, in whatever way.
pub(super) const MAX_PARKED: usize = 64;

/// For how long a client can come back.
pub(super) const PARKED_FOR: Duration = Duration::from_secs(300);

/// What the question is called.
pub(super) const QUESTION: &str = "question";

/// Answers a server's question. Dropped, it refuses it.
pub(super) type ServerQuestion = oneshot::Sender<Result<Box<RawValue>, Box<RawValue>>>;

/// A call or another request that waits. Dropped, it is given up.
#[derive(Debug)]
pub(super) struct Parked<W> {
    pub(super) owner: CallOwner,
    pub(super) waiting: W,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) answer: ServerQuestion,
    pub(super) since: Instant,
}

/// All of a kind that wait.
#[derive(Debug)]
pub(super) struct ParkingPlace<W>(Mutex<HashMap<String, Parked<W>>>);

impl<W> Default for ParkingPlace<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W> ParkingPlace<W> {
    /// How many of this tenant wait.
    pub(super) fn count(&self, tenant: &str) -> usize {
        self.0.lock().values().filter(|parked| *parked.owner.tenant == *tenant).count()
    }

    /// Keeps a call, and says under which name; nothing without randomness.
    pub(super) fn park(&self, parked: Parked<W>) -> Option<String> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).ok()?;
        // A name of before a restart is no call of now.
        let name = hex::encode(random);
        self.0.lock().insert(name.clone(), parked);
        Some(name)
    }

    /// The call of this name, if it is its owner's.
    pub(super) fn take(&self, name: &str, owner: &CallOwner) -> Option<Parked<W>> {
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
