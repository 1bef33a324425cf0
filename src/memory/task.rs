//! Metadata of something to do.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::{Amount, Moment, Reference, Share};
use super::id::StructuredId;
use super::metadata::Base;
use super::vocabulary::{TaskPriority, TaskStatus};
use crate::strict::FromNode;

/// Metadata of a task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct TaskMetadata {
    /// What is to be done, in short.
    pub title: String,
    /// How far it is.
    pub status: TaskStatus,
    /// How pressing it is.
    pub priority: TaskPriority,
    /// Who keeps it.
    pub agent_id: StructuredId,
    /// What need not be said.
    #[serde(flatten)]
    pub details: TaskDetails,
}

/// What need not be said of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetails {
    /// What all metadata has.
    #[serde(flatten)]
    pub base: Base,
    /// What is to be done, at length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who is to do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assigned_to: Option<StructuredId>,
    /// When it should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_date: Option<Moment>,
    /// When it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_date: Option<Moment>,
    /// The task it is a part of: a memory's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<Reference>,
    /// How far it is, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Share>,
    /// How long it should take, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<Amount>,
    /// How long it took, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual_duration: Option<Amount>,
    /// How often it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_count: Option<u64>,
    /// The writer's own keys.
    #[serde(flatten)]
    #[node(rest)]
    pub other: Map<String, Value>,
}
