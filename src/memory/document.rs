//! Metadata of a document that was read.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::Moment;
use super::id::StructuredId;
use super::kind::Kind;
use super::metadata::Base;
use super::schema;
use super::vocabulary::DocumentSource;
use crate::strict::{At, Fields, FromNode, Node};

/// Metadata of a document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentMetadata {
    /// Where it came from.
    pub source: DocumentSource,
    /// Who keeps it.
    pub agent_id: StructuredId,
    /// What need not be said.
    #[serde(flatten)]
    pub details: DocumentDetails,
}

/// What need not be said of a document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentDetails {
    /// What all metadata has.
    #[serde(flatten)]
    pub base: Base,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Its file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<u64>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_date: Option<Moment>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<Moment>,
    /// Who wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authors: Option<Vec<String>>,
    /// The person it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<StructuredId>,
    /// The writer's own keys.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl FromNode for DocumentMetadata {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(schema::migrated(Kind::Document, node), |fields| {
            let (source, agent_id) = (fields.needed("source"), fields.needed("agentId"));
            let details = DocumentDetails::read(fields);
            Some(Self { source: source?, agent_id: agent_id?, details })
        })?
    }
}

impl DocumentDetails {
    fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            base: Base::read(fields),
            title: fields.optional("title"),
            url: fields.optional("url"),
            content_type: fields.optional("contentType"),
            file_name: fields.optional("fileName"),
            file_size: fields.optional("fileSize"),
            creation_date: fields.optional("creationDate"),
            last_modified: fields.optional("lastModified"),
            authors: fields.optional("authors"),
            user_id: fields.optional("userId"),
            other: fields.rest(),
        }
    }
}
