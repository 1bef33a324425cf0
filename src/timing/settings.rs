//! How durations are said.

use super::execution::MAX_DURATION_MS;
use crate::strict::FromNode;

/// The section `timing` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default, differences)]
pub struct Settings {
    /// When callers that do not say give up, in ms; document 003's factory limit.
    #[schemars(range(min = 1, max = MAX_DURATION_MS))]
    pub factory_timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { factory_timeout_ms: 30_000 }
    }
}
