//! The metadata object on the wire: what is said of a call, what may come next, and what the call was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::wire_timing::{MeasuresBody, Timing, duration, mode_name, text, tool_name, word};
use crate::engine::proposer::{Ask, CallResult, Degraded};
use crate::engine::suggestions::{FittingPreset, NextTool, Suggestions as Suggested};
use crate::strict::{At, Fields, FromNode, Node};

/// Most calls of a history.
const MAX_HISTORY: usize = 1000;

/// Body of `POST /v1/metadata`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MetadataRequest {
    /// The tool.
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    pub complexity: MeasuresBody,
    /// What the call gave.
    #[schemars(default)]
    pub result_context: ResultContext,
    /// The tools called before, oldest first; the session's last 20 by default.
    #[schemars(default)]
    pub tool_history: Option<Vec<String>>,
    /// What the session is about.
    #[schemars(default)]
    pub goal: Option<String>,
    /// none, standard, deep or maximum.
    #[schemars(default)]
    pub thinking_budget: Option<String>,
    /// Whatever the tool says of its session.
    #[schemars(default)]
    pub session_state: Option<String>,
    /// When the caller gives up, in ms.
    #[schemars(default)]
    pub timeout_ms: Option<u64>,
    /// How long the call has run already, in ms.
    #[schemars(default)]
    pub elapsed_ms: Option<u64>,
}

impl MetadataRequest {
    /// The question what should be called next.
    pub fn ask(&self, tenant: &str) -> Ask {
        let ResultContext { num_outputs, has_branches, session_id, complexity } = &self.result_context;
        Ask {
            tenant: tenant.to_owned(),
            tool: self.tool_name.clone(),
            mode: self.mode_name.clone(),
            result: CallResult {
                num_outputs: *num_outputs,
                has_branches: *has_branches,
                session_id: session_id.clone(),
                complexity: complexity.clone(),
            },
            history: self.tool_history.clone(),
            goal: self.goal.clone(),
        }
    }
}

/// What a call gave.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResultContext {
    /// Results, perspectives, nodes.
    #[schemars(default)]
    pub num_outputs: u64,
    /// Did it branch?
    #[schemars(default)]
    pub has_branches: bool,
    /// The session it belongs to.
    #[schemars(default)]
    pub session_id: Option<String>,
    /// simple, moderate or complex.
    #[schemars(default)]
    pub complexity: Option<String>,
}

/// The metadata object.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// What is said of the call.
    pub timing: Timing,
    /// What may come next.
    pub suggestions: Suggestions,
    /// What the call was.
    pub context: CallContext,
}

/// What may come next.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Suggestions {
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

impl From<Suggested> for Suggestions {
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
    /// The tool.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// How long it will take, in ms.
    pub estimated_duration_ms: u64,
}

impl From<NextTool> for ToolSuggestion {
    fn from(NextTool { tool, reason, estimated_duration_ms, .. }: NextTool) -> Self {
        Self { tool, reason, estimated_duration_ms }
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
        let FittingPreset { preset, estimated_duration_ms, remaining_steps, remaining_duration_ms } = fitting;
        Self {
            preset_id: preset.id,
            description: preset.description,
            estimated_duration_ms,
            remaining_steps,
            remaining_duration_ms,
        }
    }
}

/// What the call was.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallContext {
    /// The mode, or `none`.
    pub mode_used: String,
    /// As it was given.
    pub thinking_budget: Option<String>,
    /// As it was given.
    pub session_state: Option<String>,
}

/// Body of `POST /v1/enrich`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EnrichRequest {
    /// The call.
    pub request: MetadataRequest,
    /// The tool's response, to which `metadata` is added.
    pub response: Map<String, Value>,
}

impl FromNode for ResultContext {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            num_outputs: fields.or_default("num_outputs"),
            has_branches: fields.or_default("has_branches"),
            session_id: text(fields, "session_id"),
            complexity: word(fields, "complexity", &["simple", "moderate", "complex"]),
        })
    }
}

/// The tools that were called before.
pub(super) fn tool_history(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let history: Vec<String> = fields.optional("tool_history")?;
    if history.len() > MAX_HISTORY {
        fields.bad_value("tool_history", format!("a history has at most {MAX_HISTORY} calls"));
    }
    Some(history)
}

impl FromNode for MetadataRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            tool_name: tool_name(fields),
            mode_name: mode_name(fields),
            complexity: fields.or_default("complexity"),
            result_context: fields.or_default("result_context"),
            tool_history: tool_history(fields),
            goal: fields.optional("goal"),
            thinking_budget: word(fields, "thinking_budget", &["none", "standard", "deep", "maximum"]),
            session_state: fields.optional("session_state"),
            timeout_ms: duration(fields, "timeout_ms"),
            elapsed_ms: duration(fields, "elapsed_ms"),
        })
    }
}

impl FromNode for EnrichRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let request = Self { request: fields.required("request"), response: fields.required("response") };
            if request.response.contains_key("metadata") {
                fields.bad_value("response", "the response has a `metadata` already");
            }
            request
        })
    }
}
