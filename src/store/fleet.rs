//! The daemons that share a database, as each says of itself.

use std::time::{Duration, SystemTime};

use super::Standings;
use crate::strict::Word;

/// All of them, or what is known without the database.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// By host and id; among them the one that is asked.
    pub daemons: Vec<FleetDaemon>,
    /// How many there are; more than are listed where there are very many.
    pub total: usize,
    /// Why only the one that is asked is listed, if so.
    pub degraded: Option<String>,
}

/// How a daemon is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "lowercase")]
pub enum DaemonState {
    Alive,
    /// It was not heard of for longer than it is silent between two words.
    Silent,
    /// It said that it ends.
    Stopped,
    /// Its version does not say how it is.
    Unknown,
}

/// A daemon as it was heard of last.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetDaemon {
    /// In hexadecimal digits, as in its state directory.
    pub id: String,
    /// Daemons that say the same share their durations.
    pub host: String,
    /// Is it the one that is asked?
    pub is_self: bool,
    pub state: DaemonState,
    pub version: Option<String>,
    /// By the database's clock, like all moments of others.
    pub started_at: Option<SystemTime>,
    pub seen_at: SystemTime,
    /// How long ago that was.
    pub unseen: Duration,
    /// Nothing of one whose version does not say.
    pub figures: Option<DaemonFigures>,
}

/// How a daemon stands with the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DaemonFigures {
    /// Why the database does not take what it sends, if it does not.
    pub trouble: Option<String>,
    /// Records that only its machine has.
    pub waiting: usize,
    pub spooled_bytes: u64,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// Records that were acknowledged and then refused, since its start.
    pub put_aside: u64,
    /// Records and other transactions of others that it does not follow yet.
    pub behind: u64,
    /// How long before it said so it followed all of them.
    pub followed: Duration,
}

impl From<&Standings> for DaemonFigures {
    fn from(standings: &Standings) -> Self {
        Self {
            trouble: standings.trouble.clone(),
            waiting: standings.waiting,
            spooled_bytes: standings.spooled_bytes,
            oldest: standings.oldest_age(),
            put_aside: standings.put_aside,
            behind: standings.behind,
            followed: standings.following_age(),
        }
    }
}
