//! The metadata object on the wire: what is said of a call, what may come next, and what the call was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timing::{MeasuresBody, Timing, measures, milliseconds};
use crate::access::Grant;
use crate::catalog::document::{MAX_NAME, check_name};
use crate::engine::proposer::{Degraded, RuleAnswers};
use crate::engine::suggestions::{FittingPreset, NextTool, Suggestions as Suggested};
use crate::engine::{Asked, Engine};
use crate::plugin_host::Ask;
pub use crate::plugin_host::ComplexityLevel;
use crate::strict::pattern::{LABEL, MODE, NAME};
use crate::strict::values::{MAX_LABEL, label};
use crate::strict::{FromNode, Word};
use crate::timing::execution::MAX_DURATION_MS;
use crate::timing::key::check_mode;

/// Most calls of a history.
pub(crate) const MAX_HISTORY: usize = 1000;

/// Body of `POST /v1/metadata`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct MetadataRequest {
    /// The tool's name, as its document gives it.
    #[schemars(length(min = 1, max = MAX_NAME), regex(pattern = NAME))]
    #[node(alias = "tool", alias = "name", check = check_name)]
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = MODE))]
    #[node(alias = "mode", read = label, check = check_mode)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    #[node(read = measures)]
    pub complexity: MeasuresBody,
    /// What the call gave.
    #[schemars(default)]
    pub result_context: ResultContext,
    /// The tools called before, oldest first; the session's last 20 by default.
    #[schemars(default, length(max = MAX_HISTORY))]
    pub tool_history: Option<Vec<String>>,
    /// What the session is about.
    #[schemars(default)]
    pub goal: Option<String>,
    /// How long the model may think.
    #[schemars(default)]
    pub thinking_budget: Option<ThinkingBudget>,
    /// Whatever the tool says of its session.
    #[schemars(default)]
    pub session_state: Option<String>,
    /// When the caller gives up, in ms.
    #[schemars(default, with = "Option<f64>", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub timeout_ms: Option<u64>,
    /// How long the call has run already, in ms.
    #[schemars(default, with = "Option<f64>", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub elapsed_ms: Option<u64>,
}

impl MetadataRequest {
    /// The question what should be called next, without the calls before.
    pub fn ask(&self) -> Ask {
        let ResultContext { num_outputs, has_branches, session_id, complexity } = &self.result_context;
        Ask {
            tool: self.tool_name.clone(),
            mode: self.mode_name.clone(),
            num_outputs: *num_outputs,
            has_branches: *has_branches,
            session_id: session_id.clone(),
            complexity: *complexity,
            goal: self.goal.clone(),
            ..Ask::default()
        }
    }
}

/// How long a model may think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a thinking budget")]
pub enum ThinkingBudget {
    /// Not at all.
    None,
    /// As usual.
    Standard,
    /// Longer.
    Deep,
    /// As long as it can.
    Maximum,
}

/// What a call gave.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct ResultContext {
    /// Results, perspectives, nodes.
    #[schemars(default)]
    pub num_outputs: u64,
    /// Did it branch?
    #[schemars(default)]
    pub has_branches: bool,
    /// The session it belongs to.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// How complex it is.
    #[schemars(default)]
    pub complexity: Option<ComplexityLevel>,
}

/// The metadata object.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallMetadata {
    /// What is said of the call.
    pub timing: Timing,
    /// What may come next.
    pub suggestions: SuggestionsAnswer,
    /// What the call was.
    pub context: CallContext,
}

impl CallMetadata {
    /// What is said of a call and of what may come next; `proposals` are those for `ask`, the call's own question, and
    /// `grant` is that of who asks.
    pub fn of(engine: &Engine, grant: &Grant, request: MetadataRequest, ask: &Ask, proposals: RuleAnswers) -> Self {
        let (generation, learnt) = (engine.generation(), engine.learnt());
        let suggestions = engine.suggest(&generation, &learnt, grant, ask, proposals);
        let MetadataRequest { tool_name, mode_name, complexity, thinking_budget, session_state, .. } = request;
        let (timeout_ms, elapsed_ms) = (request.timeout_ms, request.elapsed_ms);
        let mode_used = mode_name.clone().unwrap_or_else(|| "none".to_owned());
        let asked = Asked { tool: tool_name, mode: mode_name, complexity: complexity.into(), timeout_ms, elapsed_ms };
        Self {
            timing: Timing::from(&engine.estimate(&generation, &learnt, &asked)),
            suggestions: suggestions.into(),
            context: CallContext { mode_used, thinking_budget, session_state },
        }
    }
}

/// What may come next.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SuggestionsAnswer {
    /// Tools that may come next.
    pub next_tools: Vec<ToolSuggestion>,
    /// Presets that fit.
    pub relevant_presets: Vec<PresetSuggestion>,
    /// Rule libraries that could not be asked, so that something may be missing; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<MissingPlugin>,
}

/// A rule library that could not be asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct MissingPlugin {
    /// Which one.
    pub plugin: String,
    /// Why not.
    pub reason: String,
}

impl From<Suggested> for SuggestionsAnswer {
    fn from(suggested: Suggested) -> Self {
        let Suggested { next_tools, relevant_presets, degraded } = suggested;
        let missing = |Degraded { plugin, reason }| MissingPlugin { plugin, reason };
        Self {
            next_tools: next_tools.into_iter().map(ToolSuggestion::from).collect(),
            relevant_presets: relevant_presets.into_iter().map(PresetSuggestion::from).collect(),
            degraded: degraded.into_iter().map(missing).collect(),
        }
    }
}

/// A tool that may come next.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolSuggestion {
    /// The tool's name, as its document gives it.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// How long it will take, in ms.
    pub estimated_duration_ms: u64,
    /// How likely it is to be called next by what sessions did, 0 to 1; absent where they say nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl From<NextTool> for ToolSuggestion {
    fn from(NextTool { tool, reason, estimated_duration_ms, confidence, .. }: NextTool) -> Self {
        let confidence = confidence.map(|confidence| (confidence * 1000.0).round() / 1000.0);
        Self { tool, reason, estimated_duration_ms, confidence }
    }
}

/// A preset that fits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PresetSuggestion {
    /// The preset.
    pub preset_id: String,
    /// What it is.
    pub description: String,
    /// How long all of it takes, in ms.
    pub estimated_duration_ms: u64,
    /// The tools that are still to be called, in their order.
    pub remaining_steps: Vec<String>,
    /// How long these take, in ms.
    pub remaining_duration_ms: u64,
}

impl From<FittingPreset> for PresetSuggestion {
    fn from(fitting: FittingPreset) -> Self {
        let FittingPreset { id, description, estimated_duration_ms, remaining_steps, remaining_duration_ms } = fitting;
        Self { preset_id: id, description, estimated_duration_ms, remaining_steps, remaining_duration_ms }
    }
}

/// What the call was.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallContext {
    /// The mode, or `none`.
    pub mode_used: String,
    /// As it was given.
    pub thinking_budget: Option<ThinkingBudget>,
    /// As it was given.
    pub session_state: Option<String>,
}
