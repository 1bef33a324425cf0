//! Metadata of a document that was read.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::Moment;
use super::id::StructuredId;
use super::metadata::Base;
use super::vocabulary::DocumentSource;
use crate::strict::FromNode;

/// Metadata of a document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct DocumentDetails {
    /// What all metadata has.
    #[serde(flatten)]
    pub base: Base,
    /// Its title, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the content is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its media type, such as text/plain.
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
    #[node(rest)]
    pub other: Map<String, Value>,
}
