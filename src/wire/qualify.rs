//! Selection on the wire, spelled as the clients of chat streams spell it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::document::{MAX_NAME, NameFault, check_name};
use crate::qualify::context::{MAX_INTENT, MAX_NAMES};
use crate::qualify::{IntentContext, Qualification, ScoreParts};
use crate::strict::pattern::{LABEL, NAME};
use crate::strict::values::{MAX_LABEL, check_label, label};
use crate::strict::{FromNode, Violation};

/// Longest message, in bytes. Its first 8 KiB decide.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Most names of one list.
const MAX_LIST: usize = 1000;

/// Most tools that can be asked for.
const MAX_TOOLS: usize = 10_000;

/// Body of `POST /v1/qualify`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct QualifyRequest {
    /// What the user wrote, at most 256 KiB.
    #[node(check = check_message)]
    pub message: String,
    /// The conversation; its context is kept, and what is called in it is learnt from. A token that may only read is
    /// answered by its context, and leaves it as it is.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// The `intentContext` of the answer before, sent back; it wins over that of the session.
    #[schemars(default)]
    pub intent_context: Option<IntentContextBody>,
    /// Networks that matter, beside those that the message names.
    #[schemars(default, length(max = MAX_NAMES), inner(length(min = 1, max = MAX_NAME), regex(pattern = NAME)))]
    #[node(check = check_names)]
    pub networks: Vec<String>,
    /// Offer these categories instead of guessing; empty means to guess.
    #[schemars(default, length(max = MAX_LIST), inner(length(max = MAX_LABEL), regex(pattern = LABEL)))]
    #[node(check = check_labels)]
    pub selected_tool_categories: Vec<String>,
    /// Offer these tools whatever the message is.
    #[schemars(default, length(max = MAX_LIST), inner(length(min = 1, max = MAX_NAME), regex(pattern = NAME)))]
    #[node(check = check_names)]
    pub exact_tool_names: Vec<String>,
    /// Offer no other tools than those of `exactToolNames`.
    #[schemars(default)]
    pub ignore_other_tools: bool,
    /// Never offer these tools.
    #[schemars(default, length(max = MAX_LIST), inner(length(min = 1, max = MAX_NAME), regex(pattern = NAME)))]
    #[node(check = check_names)]
    pub excluded_tools: Vec<String>,
    /// Tools at most; the configuration's `qualifier.max_tools` by default. Those always offered count and are never
    /// cut, and they leave room for the best five.
    #[schemars(default, range(min = 1, max = MAX_TOOLS))]
    pub max_tools: Option<usize>,
    /// Leave out what is less likely, 0 to 1.
    #[schemars(default, range(min = 0.0, max = 1.0))]
    pub min_confidence: Option<f64>,
    /// Also answer with the tools' scores.
    #[schemars(default)]
    pub scores: bool,
    /// Also answer with what each tool's score is made of.
    #[schemars(default)]
    pub explain: bool,
}

/// What a conversation is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct IntentContextBody {
    /// Networks that were named.
    #[schemars(default)]
    #[node(check = check_context_names)]
    pub networks: Vec<String>,
    /// Categories that are offered.
    #[node(default, check = check_context_names)]
    pub categories: Vec<String>,
    /// What the user is after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[node(check = check_intent)]
    pub active_intent: Option<String>,
    /// Turns since a confident message.
    #[node(default)]
    pub turns_since_update: u64,
    /// The confidence of the turn before, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[node(default)]
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
    /// What each of them is made of, in the same order, if asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanations: Option<Vec<ToolExplanation>>,
    /// Tools that the message may well need and that `maxTools` cut, best first, at most five; absent if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_tools: Vec<String>,
    /// How many are offered.
    pub tool_count: usize,
    /// How many there are.
    pub tools_total: usize,
    /// Can a model answer by itself?
    pub no_tool_needed: bool,
    /// The probability of that, 0 to 1; `noToolNeeded` holds from `qualifier.no_tool_threshold` on.
    pub no_tool_probability: f64,
    /// Was an older context kept?
    pub sticky_fallback_applied: bool,
    /// Why the session does not go on with this message; absent if it does, and without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
}

/// Body of `POST /v1/qualify/miss`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct MissRequest {
    /// The tool that was needed.
    #[schemars(length(min = 1, max = MAX_NAME), regex(pattern = NAME))]
    #[node(alias = "tool", alias = "name")]
    pub tool_name: String,
    /// The conversation.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// The message that needed it; the session's last one by default.
    #[schemars(default)]
    #[node(check = check_message)]
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
    /// The tool's name, as its document gives it.
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

impl QualifyAnswer {
    /// The answer for what was found, each tool with its score if `scores` are wanted, and with what that is made of if
    /// it is to `explain` them.
    pub fn new(found: Qualification, scores: bool, explain: bool, timestamp: String) -> Self {
        Self {
            intent_context: IntentContextBody::from(&found.context),
            networks: found.networks,
            categories: found.categories,
            confidence: round(found.confidence),
            reasoning: found.reasoning,
            tool_hints: found.tool_hints.iter().map(ToString::to_string).collect(),
            active_intent: found.active_intent,
            scores: scores.then(|| found.available.iter().map(|tool| round(tool.confidence)).collect()),
            explanations: explain.then(|| found.available.iter().map(|tool| tool.parts.into()).collect()),
            cut_tools: found.cut.iter().map(ToString::to_string).collect(),
            tool_count: found.available.len(),
            available_tools: found.available.iter().map(|tool| tool.entry.name().to_string()).collect(),
            tools_total: found.tools_total,
            no_tool_needed: found.no_tool_needed,
            no_tool_probability: round(found.no_tool_probability),
            sticky_fallback_applied: found.sticky,
            degraded: None,
            timestamp,
        }
    }
}

/// What a tool's score is made of: parts of a logarithm of odds, which add up. Probabilities are made of these and of
/// how the tool stands among all others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolExplanation {
    /// Words that the message shares with the document.
    pub words: f64,
    /// How much of the tool's name the message says, and how literally.
    pub name: f64,
    /// How alike the message and the document are in meaning.
    pub meaning: f64,
    /// What choices taught.
    pub usage: f64,
    /// What the conversation and its categories add, and what a document takes away that says what it is not for.
    pub context: f64,
}

impl From<ScoreParts> for ToolExplanation {
    fn from(parts: ScoreParts) -> Self {
        let ScoreParts { words, name, meaning, usage, context } = parts;
        let [words, name, meaning, usage, context] = [words, name, meaning, usage, context].map(round);
        Self { words, name, meaning, usage, context }
    }
}

/// Its size counts in bytes, as it does for whoever reads it.
fn check_message(message: &str) -> Result<(), Violation> {
    let bytes = message.len();
    if bytes > MAX_MESSAGE_BYTES {
        Err(format!("must have at most {MAX_MESSAGE_BYTES} bytes, not {bytes}").into())
    } else {
        Ok(())
    }
}

/// A document may say any category.
fn check_labels(names: &[String]) -> Result<(), Violation> {
    names.iter().try_for_each(|name| check_label(name))
}

/// Tools and networks are named by one grammar.
fn check_names(names: &[String]) -> Result<(), NameFault> {
    names.iter().try_for_each(|name| check_name(name))
}

/// What is sent back is bounded here and not in the schema, which is that of the answer as well.
fn check_context_names(names: &[String]) -> Result<(), Violation> {
    if names.len() > MAX_NAMES {
        return Err(format!("must have at most {MAX_NAMES} names, not {}", names.len()).into());
    }
    check_labels(names)
}

fn check_intent(intent: &str) -> Result<(), Violation> {
    let characters = intent.chars().count();
    if characters > MAX_INTENT {
        return Err(format!("must have at most {MAX_INTENT} characters, not {characters}").into());
    }
    Ok(())
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
pub(crate) fn round(probability: f32) -> f64 {
    (f64::from(probability) * 1000.0).round() / 1000.0
}
