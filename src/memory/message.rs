//! Metadata of a message.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::id::StructuredId;
use super::metadata::{Base, MessageAttachment, ThreadInfo};
use super::vocabulary::{CommunicationType, MessagePriority, MessageRole};
use crate::strict::FromNode;

/// Metadata of a message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct MessageMetadata {
    /// Who wrote the message.
    pub role: MessageRole,
    /// The person.
    pub user_id: StructuredId,
    /// The agent.
    pub agent_id: StructuredId,
    /// The chat.
    pub chat_id: StructuredId,
    /// Where it stands in its thread.
    pub thread: ThreadInfo,
    /// What need not be said.
    #[serde(flatten)]
    pub details: MessageDetails,
}

/// What need not be said of a message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct MessageDetails {
    /// What all metadata has.
    #[serde(flatten)]
    pub base: Base,
    /// Such as greeting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    /// What came with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<MessageAttachment>>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The agent that speaks, between agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_agent_id: Option<StructuredId>,
    /// The agent that is spoken to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_agent_id: Option<StructuredId>,
    /// What it is for, between agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communication_type: Option<CommunicationType>,
    /// How pressing it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<MessagePriority>,
    /// Does the sender wait for an answer?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires_response: Option<bool>,
    /// The writer's own keys.
    #[serde(flatten)]
    #[node(rest)]
    pub other: Map<String, Value>,
}
