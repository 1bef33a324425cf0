//! How a store on PostgreSQL stands, for whoever operates it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::clock_difference::ClockDifference;
use super::fault::DatabaseFault;
use super::server_trouble::ServerTrouble;
use super::told_trouble::{ToldTrouble, TroubleNews};

/// How it stands at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standings {
    /// Why the server does not take what is sent, or does not answer what it is asked, if so.
    pub trouble: Option<String>,
    /// Records are refused while the server cannot be used.
    pub is_refusing: bool,
    /// Records that only this machine has.
    pub waiting: usize,
    /// Bytes of them.
    pub spooled_bytes: u64,
    /// Bytes that may wait.
    pub spool_max: u64,
    /// Since when some wait, as far as this start saw it.
    pub since: Option<Instant>,
    /// How long the oldest had waited by then.
    pub waited_before: Duration,
    /// Records that had waited and were sent then, since the start.
    pub sent: u64,
    /// Records that were acknowledged and then refused by the server, since the start.
    pub put_aside: u64,
    /// How often a connection was opened in place of one that failed.
    pub reconnects: u64,
    /// Records and other transactions of other daemons that are not followed yet, when it was looked last.
    pub behind: u64,
    /// When there was nothing more of others to follow; nothing before the history is read.
    pub followed_at: Option<Instant>,
    /// How far this machine's clock is from the server's, if that is too much.
    pub clock: Option<ClockDifference>,
}

impl Standings {
    /// How long ago all that others wrote was known.
    pub fn following_age(&self) -> Duration {
        self.followed_at.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// How long the oldest record has waited.
    pub fn oldest_age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| self.waited_before + since.elapsed())
    }
}

/// What is in the way, by who met it: who records nothing would not notice by its writer, nor who reads nothing by its
/// readers.
#[derive(Debug, Default)]
struct Troubles {
    writing: Option<ServerTrouble>,
    connecting: Option<ServerTrouble>,
    following: Option<ServerTrouble>,
    told: ToldTrouble,
}

impl Troubles {
    /// The first of them, if any.
    fn first(&self) -> Option<&ServerTrouble> {
        self.writing.as_ref().or(self.connecting.as_ref()).or(self.following.as_ref())
    }
}

/// What the writer and the readers say of it, and others read.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    now: Arc<ArcSwap<Standings>>,
    troubles: Arc<Mutex<Troubles>>,
    setting: Arc<Mutex<Option<String>>>,
    clock: Arc<Mutex<Option<ClockDifference>>>,
}

impl Standing {
    /// How it stands by the writer, whose trouble is beside.
    pub(super) fn say(&self, standings: Standings, trouble: Option<ServerTrouble>) {
        self.now.store(Arc::new(standings));
        self.hear(|troubles| troubles.writing = trouble);
    }

    /// Whether a reader has a connection.
    pub(super) fn connected(&self, fault: Option<&DatabaseFault>) {
        self.hear(|troubles| troubles.connecting = fault.map(ServerTrouble::from));
    }

    /// Whether what others wrote could be read, which is asked for all the time.
    pub(super) fn followed(&self, fault: Option<&DatabaseFault>) {
        // Of a server that took back what was asked nothing follows.
        let fault = fault.filter(|fault| !fault.is_of_moment());
        self.hear(|troubles| troubles.following = fault.map(ServerTrouble::from));
    }

    /// Takes note of it, and tells the log what is new.
    fn hear(&self, note: impl FnOnce(&mut Troubles)) {
        let Standings { sent, is_refusing, .. } = **self.now.load();
        let mut troubles = self.troubles.lock();
        note(&mut troubles);
        let first = troubles.first().cloned();
        match troubles.told.hear(first.as_ref(), sent, Instant::now()) {
            Some(TroubleNews::Is(fault)) if is_refusing => {
                tracing::warn!(fault, "the database cannot be used; records are refused until it can be");
            }
            Some(TroubleNews::Is(fault)) => {
                tracing::warn!(fault, "the database cannot be used; records wait on this machine");
            }
            Some(TroubleNews::Over { sent }) => tracing::info!(sent, "the database can be used again"),
            None => {}
        }
    }

    pub(super) fn now(&self) -> Standings {
        let trouble = self.troubles.lock().first().map(|trouble| trouble.why.clone());
        Standings { trouble, clock: *self.clock.lock(), ..(**self.now.load()).clone() }
    }

    /// The server said what its clock says, between two moments of this machine's.
    pub(super) fn compare_clocks(&self, before: SystemTime, said: SystemTime, after: SystemTime) {
        let mut clock = self.clock.lock();
        let difference = ClockDifference::of(before, said, after, *clock);
        match (*clock, difference) {
            (None, Some(difference)) => tracing::warn!("{difference}"),
            (Some(_), None) => tracing::info!("this machine's clock and the database server's agree again"),
            _ => {}
        }
        *clock = difference;
    }

    /// Why the writer cannot use the server, if so.
    pub(super) fn writing_trouble(&self) -> Option<String> {
        self.troubles.lock().writing.as_ref().map(|trouble| trouble.why.clone())
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
