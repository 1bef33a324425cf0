//! What all metadata has, and what the kinds share.
//!
//! Each kind is read key by key: all faults are reported at once, and a key that is nearly one of the kind's is a
//! fault. Other keys are the writer's own; they are kept and come back as they were.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::field::{Moment, Reference, Share};
use super::schema::SchemaVersion;
use super::vocabulary::ImportanceLevel;
use crate::strict::{At, Fields, FromNode, Node, Violation};

/// What all metadata has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema, FromNode)]
#[node(check = settle)]
pub struct Base {
    /// How much it matters; made from the score if only that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<ImportanceLevel>,
    /// The same as a number of 0 to 1; made from the level if only that is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance_score: Option<Share>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TAGS))]
    pub tags: Option<Vec<String>>,
    /// Set by a soft delete; writers may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[node(read = refused)]
    pub is_deleted: Option<bool>,
    /// When it was deleted; writers may not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[node(read = refused)]
    pub deletion_time: Option<Moment>,
    /// The version of this format; the current one if it is not given.
    #[serde(rename = "schemaVersion")]
    #[schemars(default)]
    pub schema_version: SchemaVersion,
}

/// Most tags of one memory.
const MAX_TAGS: usize = 256;

/// Refuses what writers may not set.
fn refused<T>(_: Node, at: &mut At) -> Option<T> {
    at.bad_value("only deleting and restoring a memory sets this");
    None
}

fn settle(base: &mut Base, fields: &mut Fields<'_>) {
    if let Err(violation) = base.agree() {
        fields.bad_value("importance_score", violation.to_string());
    }
}

impl Base {
    /// Derives the level from the score or the score from the level; says why if they disagree.
    pub fn agree(&mut self) -> Result<(), Violation> {
        match (self.importance, self.importance_score) {
            (Some(level), Some(score)) if ImportanceLevel::of(score.get()) != level => {
                let score = score.get();
                Err(format!(
                    "{score} is {}, but the importance is {level}; give one of them",
                    ImportanceLevel::of(score)
                )
                .into())
            }
            (Some(level), None) => {
                self.importance_score = Share::new(level.score());
                Ok(())
            }
            (None, Some(score)) => {
                self.importance = Some(ImportanceLevel::of(score.get()));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Where a message stands in its thread.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct ThreadInfo {
    /// The thread.
    pub id: Reference,
    /// 0 for the first message; each position of a thread is taken once.
    #[schemars(range(min = 0, max = MAX_POSITION))]
    pub position: u64,
    /// The thread that this one branched off.
    #[serde(rename = "parentId", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Reference>,
}

/// Largest position: the largest whole number that every JSON reader keeps.
pub const MAX_POSITION: u64 = (1 << 53) - 1;

/// What came with a message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct MessageAttachment {
    /// What it is, such as image or file.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where the content is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Itself, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Its file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Its media type, such as text/plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Whatever else is to be said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}
