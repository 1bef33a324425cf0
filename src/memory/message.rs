//! Metadata of a message.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::id::StructuredId;
use super::kind::Kind;
use super::metadata::{Base, MessageAttachment, ThreadInfo};
use super::schema;
use super::vocabulary::{CommunicationType, MessagePriority, MessageRole};
use crate::strict::{At, Fields, FromNode, Node};

/// Metadata of a message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageMetadata {
    /// Who speaks.
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
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
    pub other: Map<String, Value>,
}

impl FromNode for MessageMetadata {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(schema::migrated(Kind::Message, node), |fields| {
            let role = fields.needed("role");
            let (user_id, agent_id, chat_id) =
                (fields.needed("userId"), fields.needed("agentId"), fields.needed("chatId"));
            let thread = fields.needed("thread");
            let details = MessageDetails::read(fields);
            Some(Self {
                role: role?,
                user_id: user_id?,
                agent_id: agent_id?,
                chat_id: chat_id?,
                thread: thread?,
                details,
            })
        })?
    }
}

impl MessageDetails {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            base: Base::read(fields),
            message_type: fields.optional("messageType"),
            attachments: fields.optional("attachments"),
            source: fields.optional("source"),
            category: fields.optional("category"),
            sender_agent_id: fields.optional("senderAgentId"),
            receiver_agent_id: fields.optional("receiverAgentId"),
            communication_type: fields.optional("communicationType"),
            priority: fields.optional("priority"),
            requires_response: fields.optional("requiresResponse"),
            other: fields.rest(),
        }
    }
}
