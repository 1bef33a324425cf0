//! The daemons that share a database, on the wire.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::catalog::DatabaseState;
use crate::store::{DaemonFigures, DaemonState, Fleet, FleetDaemon};

/// Answer of `GET /v1/fleet`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetAnswer {
    /// postgresql, which daemons share, or sqlite: this one is alone, and no daemon is listed.
    #[schemars(extend("enum" = ["postgresql", "sqlite"]))]
    pub store: String,
    /// The daemons, by host and id. One that was not heard of for a week is left out; at most 1,000 are listed, those
    /// that were heard of last.
    pub items: Vec<FleetDaemonItem>,
    /// How many there are.
    pub total: usize,
    /// Why only the daemon that answers is listed, if so: the database cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// A daemon of the fleet, as it said of itself last. It does so every five seconds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FleetDaemonItem {
    /// What `daemon.id` in its state directory says.
    pub id: String,
    /// Its `store.host`: daemons that say the same share their durations.
    pub host: String,
    /// Is it the one that answers?
    #[serde(rename = "self")]
    pub is_self: bool,
    /// alive; silent: not heard of for 15 seconds; stopped: it said that it ends; or unknown: its version does not say.
    #[schemars(extend("enum" = DaemonState::WORDS))]
    pub state: String,
    /// Its version; absent if that does not say how it is, like all that follows but `seen_at` and `unseen_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it started, RFC 3339, by the clock of the database; of the one that answers by its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it was last heard of, RFC 3339, by the same clock.
    pub seen_at: String,
    /// Seconds since then.
    pub unseen_seconds: f64,
    /// How it stood with the database then; of the one that answers, as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseState>,
}

impl From<Option<Fleet>> for FleetAnswer {
    fn from(fleet: Option<Fleet>) -> Self {
        let store = if fleet.is_some() { "postgresql" } else { "sqlite" };
        let Fleet { daemons, total, degraded } =
            fleet.unwrap_or(Fleet { daemons: Vec::new(), total: 0, degraded: None });
        Self {
            store: store.to_owned(),
            items: daemons.into_iter().map(FleetDaemonItem::from).collect(),
            total,
            degraded: degraded.into_iter().collect(),
        }
    }
}

impl From<FleetDaemon> for FleetDaemonItem {
    fn from(daemon: FleetDaemon) -> Self {
        Self {
            id: daemon.id,
            host: daemon.host,
            is_self: daemon.is_self,
            state: daemon.state.as_str().to_owned(),
            version: daemon.version,
            started_at: daemon.started_at.map(timestamp),
            seen_at: timestamp(daemon.seen_at),
            unseen_seconds: daemon.unseen.as_secs_f64(),
            database: daemon.figures.map(DatabaseState::from),
        }
    }
}

impl From<DaemonFigures> for DatabaseState {
    fn from(figures: DaemonFigures) -> Self {
        Self {
            reachable: figures.trouble.is_none(),
            trouble: figures.trouble,
            waiting: figures.waiting,
            spooled_bytes: figures.spooled_bytes,
            oldest_seconds: figures.oldest.as_secs_f64(),
            put_aside: figures.put_aside,
            behind: figures.behind,
            followed_seconds: figures.followed.as_secs_f64(),
        }
    }
}

fn timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}
