//! How records are kept.

use std::time::Duration;

use super::Durability;
use crate::strict::{FromNode, values};

/// The section `store` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default)]
pub struct Settings {
    /// What an acknowledgement is worth.
    pub durability: Durability,
    /// How long records are kept: an hour to ten years.
    #[node(read = values::retention)]
    pub retention: Duration,
    /// Batches that may wait to be written; more are refused.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_queue: usize,
}

impl Default for Settings {
    fn default() -> Self {
        // Half a year: longer than any tool's habits hold.
        let retention = Duration::from_secs(183 * 24 * 60 * 60);
        Self { durability: Durability::Power, retention, max_queue: 1024 }
    }
}
