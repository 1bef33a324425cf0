//! Metadata of what an agent thought.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::{Reference, References, Share};
use super::id::StructuredId;
use super::metadata::Base;
use super::vocabulary::CognitiveProcessType;
use crate::strict::FromNode;

/// Metadata of a thought, reflection, insight, plan, evaluation or decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct CognitiveProcessMetadata {
    /// What kind of thinking it was.
    pub process_type: CognitiveProcessType,
    /// Who thought.
    pub agent_id: StructuredId,
    /// What need not be said.
    #[serde(flatten)]
    pub details: CognitiveProcessDetails,
}

/// What need not be said of a cognitive process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct CognitiveProcessDetails {
    /// What all metadata has.
    #[serde(flatten)]
    pub base: Base,
    /// What it was thought about, such as a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<Reference>,
    /// Memories it has to do with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related_to: Option<References>,
    /// Memories it led to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub influences: Option<References>,
    /// Memories it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub influenced_by: Option<References>,
    /// How much it is to the point, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Share>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The writer's own keys.
    #[serde(flatten)]
    #[node(rest)]
    pub other: Map<String, Value>,
}
