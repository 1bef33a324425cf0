//! Selection on the wire, spelled as the clients of chat streams spell it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_timing::text;
use crate::catalog::document::check_name;
use crate::qualify::IntentContext;
use crate::qualify::context::{MAX_INTENT, MAX_NAMES};
use crate::strict::{At, Fields, FromNode, Node};

/// Longest message, in bytes. Its first 8 KiB decide.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Most names of one list.
const MAX_LIST: usize = 1000;

/// Most tools that can be asked for.
const MAX_TOOLS: usize = 10_000;

/// Body of `POST /v1/qualify`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct QualifyRequest {
    /// What the user wrote, at most 256 KiB.
    pub message: String,
    /// The conversation; its context is kept, and what is called in it is learnt from.
    #[schemars(default)]
    pub session_id: Option<String>,
    /// The `intentContext` of the answer before, sent back; it wins over that of the session.
    #[schemars(default)]
    pub intent_context: Option<IntentContextBody>,
    /// Networks that matter, beside those that the message names.
    #[schemars(default)]
    pub networks: Vec<String>,
    /// Offer these categories instead of guessing; empty means to guess.
    #[schemars(default)]
    pub selected_tool_categories: Vec<String>,
    /// Offer these tools whatever the message is.
    #[schemars(default)]
    pub exact_tool_names: Vec<String>,
    /// Offer no other tools than those of `exactToolNames`.
    #[schemars(default)]
    pub ignore_other_tools: bool,
    /// Never offer these tools.
    #[schemars(default)]
    pub excluded_tools: Vec<String>,
    /// Tools at most; the configuration's `qualifier.max_tools` by default.
    #[schemars(default)]
    pub max_tools: Option<usize>,
    /// Leave out what is less likely, 0 to 1.
    #[schemars(default)]
    pub min_confidence: Option<f64>,
    /// Also answer with the tools' scores.
    #[schemars(default)]
    pub scores: bool,
}

/// What a conversation is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct IntentContextBody {
    /// Networks that were named.
    #[schemars(default)]
    pub networks: Vec<String>,
    /// Categories that are offered.
    pub categories: Vec<String>,
    /// What the user is after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_intent: Option<String>,
    /// Turns since a confident message.
    pub turns_since_update: u64,
    /// The confidence of the turn before, 0 to 1.
    pub last_confidence: f64,
}

/// Answer of `POST /v1/qualify`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QualifyAnswer {
    /// Networks that matter.
    pub networks: Vec<String>,
    /// Categories that are offered, those always offered first.
    pub categories: Vec<String>,
    /// The best category's probability, or what the context has left of its own; 0 to 1.
    pub confidence: f64,
    /// Why, in plain words.
    pub reasoning: String,
    /// Up to five best tools, best first.
    pub tool_hints: Vec<String>,
    /// Send it back with the next message of the conversation.
    pub intent_context: IntentContextBody,
    /// What the user is after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_intent: Option<String>,
    /// The tools that are offered, best first.
    pub available_tools: Vec<String>,
    /// Their scores in the same order, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Vec<f64>>,
    /// How many are offered.
    pub tool_count: usize,
    /// How many there are.
    pub tools_total: usize,
    /// Can a model answer by itself?
    pub no_tool_needed: bool,
    /// Was an older context kept?
    pub sticky_fallback_applied: bool,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
}

/// Body of `POST /v1/qualify/miss`.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct MissRequest {
    /// The tool that was needed.
    pub tool_name: String,
    /// The conversation.
    #[schemars(default)]
    pub session_id: Option<String>,
    /// The message that needed it; the session's last one by default.
    #[schemars(default)]
    pub message: Option<String>,
}

/// Answer of `POST /v1/qualify/miss`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissAnswer {
    /// `missing_tool`, then `auto_retry`.
    pub events: Vec<MissEvent>,
    /// The session's context, with the category added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_context: Option<IntentContextBody>,
    /// Why it may be forgotten when the daemon ends; absent if it is durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
}

/// A tool was missed, or its category was added.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MissEvent {
    /// `missing_tool` or `auto_retry`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The tool.
    pub tool_name: String,
    /// Its category, of `missing_tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_id: Option<String>,
    /// The category that was added, of `auto_retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_category: Option<String>,
    /// Misses of this turn, of `auto_retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u64>,
    /// What to tell a developer.
    pub message: String,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
}

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
struct Share(f64);

impl FromNode for Share {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let Node::Number(number) = &node else {
            at.wrong_type("a number", &node);
            return None;
        };
        let share = number.as_f64().unwrap_or(f64::NAN);
        if !(0.0..=1.0).contains(&share) {
            at.bad_value("must be 0 to 1");
        }
        Some(Self(share))
    }
}

fn message(fields: &mut Fields<'_>, message: &str) {
    if message.len() > MAX_MESSAGE_BYTES {
        fields.bad_value("message", format!("at most {MAX_MESSAGE_BYTES} bytes"));
    }
}

fn names(fields: &mut Fields<'_>, key: &'static str, most: usize) -> Vec<String> {
    let names: Vec<String> = fields.or_default(key);
    if names.len() > most {
        fields.bad_value(key, format!("at most {most} names"));
    }
    if let Some(fault) = names.iter().find_map(|name| check_name(name).err()) {
        fields.bad_value(key, fault.to_string().replace("a tool's name", "a name"));
    }
    names
}

impl FromNode for QualifyRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let request = Self {
                message: fields.required("message"),
                session_id: text(fields, "sessionId"),
                intent_context: fields.optional("intentContext"),
                networks: names(fields, "networks", MAX_NAMES),
                selected_tool_categories: names(fields, "selectedToolCategories", MAX_LIST),
                exact_tool_names: names(fields, "exactToolNames", MAX_LIST),
                ignore_other_tools: fields.or_default("ignoreOtherTools"),
                excluded_tools: names(fields, "excludedTools", MAX_LIST),
                max_tools: fields.optional("maxTools"),
                min_confidence: fields.optional::<Share>("minConfidence").map(|share| share.0),
                scores: fields.or_default("scores"),
            };
            message(fields, &request.message);
            if request.max_tools.is_some_and(|most| !(1..=MAX_TOOLS).contains(&most)) {
                fields.bad_value("maxTools", format!("must be 1 to {MAX_TOOLS}"));
            }
            request
        })
    }
}

impl FromNode for IntentContextBody {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let body = Self {
                networks: names(fields, "networks", MAX_NAMES),
                categories: names(fields, "categories", MAX_NAMES),
                active_intent: fields.optional("activeIntent"),
                turns_since_update: fields.or_default("turnsSinceUpdate"),
                last_confidence: fields.or_default::<Share>("lastConfidence").0,
            };
            if body.active_intent.as_ref().is_some_and(|intent| intent.chars().count() > MAX_INTENT) {
                fields.bad_value("activeIntent", format!("at most {MAX_INTENT} characters"));
            }
            body
        })
    }
}

impl FromNode for MissRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let request = Self {
                tool_name: fields.required("toolName"),
                session_id: text(fields, "sessionId"),
                message: fields.optional("message"),
            };
            message(fields, request.message.as_deref().unwrap_or_default());
            request
        })
    }
}

impl From<IntentContextBody> for IntentContext {
    fn from(body: IntentContextBody) -> Self {
        let IntentContextBody { networks, categories, active_intent, turns_since_update, last_confidence } = body;
        Self { networks, categories, active_intent, turns_since_update, last_confidence: last_confidence as f32 }
    }
}

impl From<&IntentContext> for IntentContextBody {
    fn from(context: &IntentContext) -> Self {
        Self {
            networks: context.networks.clone(),
            categories: context.categories.clone(),
            active_intent: context.active_intent.clone(),
            turns_since_update: context.turns_since_update,
            last_confidence: round(context.last_confidence),
        }
    }
}

/// Three decimals: more of a probability is noise.
pub(super) fn round(probability: f32) -> f64 {
    (f64::from(probability) * 1000.0).round() / 1000.0
}
