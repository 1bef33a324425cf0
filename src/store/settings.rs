//! How records are kept.

use std::time::Duration;

use super::Durability;
use super::postgres::address::DatabaseAddress;
use super::postgres::migrations::Migration;
use super::postgres::outbox::{Acknowledge, OutboxSettings, WhenUnreachable};
use crate::strict::{FromNode, values};

/// The section `store` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default, differences)]
pub struct Settings {
    /// What an acknowledgement is worth.
    pub durability: Durability,
    /// How long records are kept: an hour to ten years.
    #[node(read = values::retention)]
    pub retention: Duration,
    /// Batches that may wait to be written; more are refused.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_queue: usize,
    /// The PostgreSQL that several daemons share; without one all is kept in the state directory.
    pub url: Option<DatabaseAddress>,
    /// May its schema be brought up to date at a start?
    pub migrate: Migration,
    /// When records are acknowledged that go there.
    pub acknowledge: Acknowledge,
    /// How long it may take before the journal stands in for it.
    pub commit_within: Duration,
    /// What becomes of records while it cannot be reached.
    pub when_unreachable: WhenUnreachable,
    /// Bytes that may wait for it on this machine.
    #[schemars(range(min = 65_536, max = 1_099_511_627_776_u64))]
    pub spool_max: u64,
    /// Daemons that say the same share their durations; by default those of one machine.
    pub host: Option<String>,
}

impl Settings {
    /// How records are sent to a database.
    pub fn outbox(&self) -> OutboxSettings {
        OutboxSettings {
            acknowledge: self.acknowledge,
            commit_within: self.commit_within,
            when_unreachable: self.when_unreachable,
            spool_max: self.spool_max,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        // Half a year: longer than any tool's habits hold.
        let retention = Duration::from_secs(183 * 24 * 60 * 60);
        let OutboxSettings { acknowledge, commit_within, when_unreachable, spool_max } = OutboxSettings::default();
        Self {
            durability: Durability::Power,
            retention,
            max_queue: 1024,
            url: None,
            migrate: Migration::Auto,
            acknowledge,
            commit_within,
            when_unreachable,
            spool_max,
            host: None,
        }
    }
}
