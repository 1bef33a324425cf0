//! How a store on PostgreSQL stands, for whoever operates it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::fault::DatabaseFault;

/// How it stands at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standings {
    /// Why the server does not take what is sent, if it does not.
    pub trouble: Option<String>,
    /// Records that only this machine has.
    pub waiting: usize,
    /// Bytes of the spool that wait.
    pub spooled_bytes: u64,
    /// Since when some do.
    pub since: Option<Instant>,
    /// Records that were acknowledged and then refused by the server, since the start.
    pub put_aside: u64,
    /// How often a connection was opened in place of one that failed.
    pub reconnects: u64,
    /// Records and other transactions of other daemons that are not followed yet, when it was looked last.
    pub behind: u64,
    /// When there was nothing more of others to follow; nothing before the history is read.
    pub followed_at: Option<Instant>,
}

impl Standings {
    /// How long ago all that others wrote was known.
    pub fn following_age(&self) -> Duration {
        self.followed_at.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// How long the oldest record has waited.
    pub fn oldest_age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// What the writer says of it, and others read.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    now: Arc<ArcSwap<Standings>>,
    setting: Arc<Mutex<Option<String>>>,
}

impl Standing {
    pub(super) fn say(&self, standings: Standings) {
        self.now.store(Arc::new(standings));
    }

    pub(super) fn now(&self) -> Arc<Standings> {
        self.now.load_full()
    }

    /// Something failed; what only the operator can mend is kept for whoever started the store.
    pub(super) fn failed(&self, fault: &DatabaseFault) {
        if fault.is_setting() {
            self.setting.lock().get_or_insert_with(|| fault.to_string());
        }
    }

    /// What only the operator can mend, if that is what failed first.
    pub(super) fn setting(&self) -> Option<String> {
        self.setting.lock().clone()
    }
}
