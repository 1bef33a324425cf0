//! How durations are said.

use super::execution::MAX_DURATION_MS;
use super::model::Model;
use crate::strict::FromNode;

/// The section `timing` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(default, differences)]
pub struct Settings {
    /// When callers that do not say give up, in ms; document 003's factory limit.
    #[schemars(range(min = 1, max = MAX_DURATION_MS))]
    pub factory_timeout_ms: u64,
    /// Are forecasts corrected by what was fitted on public histories?
    pub correction: bool,
}

impl Settings {
    /// A model that has seen nothing.
    pub(crate) fn blank(&self) -> Model {
        if self.correction { Model::default() } else { Model::default().uncorrected() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { factory_timeout_ms: 30_000, correction: true }
    }
}
