//! Presets on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metadata::{MAX_HISTORY, PresetSuggestion};
use crate::strict::FromNode;
use crate::strict::pattern::LABEL;
use crate::strict::values::{MAX_LABEL, label};
use crate::suggest::Preset;

/// A preset: a workflow of tools.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PresetMetadata {
    /// Its identity.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The tools in the order of their calls; a tool may occur more than once.
    pub tools: Vec<String>,
    /// How long all of it takes, in ms.
    pub estimated_duration_ms: u64,
    /// What it is good for.
    pub use_cases: Vec<String>,
    /// Words by which a goal calls for it.
    pub keywords: Vec<String>,
}

impl PresetMetadata {
    pub(crate) fn new(preset: &Preset, estimated_duration_ms: u64) -> Self {
        let Preset { id, name, description, tools, use_cases, keywords } = preset.clone();
        Self { id, name, description, tools, estimated_duration_ms, use_cases, keywords }
    }
}

/// `GET /v1/presets`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PresetPage {
    /// The presets, by id.
    pub items: Vec<PresetMetadata>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Body of `POST /v1/presets/match`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct MatchRequest {
    /// The tools that were called, oldest first; the session's last 20 by default.
    #[schemars(default, length(max = MAX_HISTORY))]
    pub tool_history: Option<Vec<String>>,
    /// What the session is about.
    #[schemars(default)]
    pub goal: Option<String>,
    /// The session whose calls stand in for `tool_history`.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
}

/// Answer of `POST /v1/presets/match`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MatchAnswer {
    /// Presets that fit and are not finished, the best first; at most 3.
    pub items: Vec<PresetSuggestion>,
    /// How many these are.
    pub total: usize,
}
