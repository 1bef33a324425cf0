//! Memories on their way elsewhere and back, and out of the world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::memory::VersionAnswer;
use crate::engine::memory::{Archived, Memory, PastVersion, without_deletion};
use crate::memory::field::{Moment, Reference, micros, rfc3339};
use crate::memory::{Kind, Metadata, StructuredId};
use crate::store::memories::Purge;
use crate::strict::{At, Fields, FromNode, Node};

/// A memory with its history, to be kept elsewhere: a line of an export.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ArchivedMemory {
    /// Its id; a new one if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// message, cognitive_process, document or task; told by the metadata if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The text, as it was given.
    pub content: String,
    /// Its metadata, by its kind.
    pub metadata: Map<String, Value>,
    /// 1 or more; 1 if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When it was added, RFC 3339; now if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last changed, RFC 3339; as it was added if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Its earlier versions, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<VersionAnswer>,
}

impl From<(Memory, Vec<PastVersion>)> for ArchivedMemory {
    fn from((memory, history): (Memory, Vec<PastVersion>)) -> Self {
        Self {
            id: Some(memory.id),
            kind: Some(memory.kind.as_str().to_owned()),
            content: memory.content,
            metadata: memory.metadata,
            version: Some(memory.version),
            created_at: Some(rfc3339(memory.created_us)),
            updated_at: Some(rfc3339(memory.updated_us)),
            history: history.into_iter().map(VersionAnswer::from).collect(),
        }
    }
}

impl FromNode for Archived {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let id: Option<Reference> = fields.optional("id");
            let kind: Option<String> = fields.optional("kind");
            let content = fields.needed("content");
            let whole: Option<Map<String, Value>> = fields.needed("metadata");
            let version = fields.optional("version").unwrap_or(1);
            if version == 0 {
                fields.bad_value("version", "a version is 1 or more");
            }
            let (created_us, updated_us) = (moment(fields, "createdAt"), moment(fields, "updatedAt"));
            let history: Vec<VersionAnswer> = fields.optional("history").unwrap_or_default();
            let history = history.into_iter().map(PastVersion::from).collect();
            let whole = whole?;
            let known = kind.as_deref().map_or_else(|| Kind::of_metadata(&whole), Kind::named);
            let Some(kind) = known else {
                let kinds = "message, cognitive_process, document or task";
                fields.bad_value(
                    "kind",
                    match kind {
                        Some(_) => format!("a kind is {kinds}"),
                        None => format!("the metadata does not tell the kind; say {kinds}"),
                    },
                );
                return None;
            };
            let deletion_time = whole.get("deletion_time").and_then(Value::as_str).map(str::to_owned);
            let deletion_time = deletion_time.filter(|_| whole.get("is_deleted") == Some(&Value::Bool(true)));
            let metadata = Value::Object(without_deletion(whole)).into();
            let metadata = fields.at_key("metadata", |at| Metadata::read(kind, metadata, at))?;
            let id = id.map(|id| id.as_str().to_owned());
            Some(Self { id, content: content?, metadata, deletion_time, version, created_us, updated_us, history })
        })?
    }
}

fn moment(fields: &mut Fields<'_>, key: &'static str) -> Option<i64> {
    let moment: Moment = fields.optional(key)?;
    micros(moment.as_str())
}

/// Answer of `GET /-/memories/export`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportAnswer {
    /// Memories by id, deleted ones included.
    pub items: Vec<ArchivedMemory>,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Body of `POST /-/memories/import`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ImportRequest {
    /// At most 1,000, taken all or none. Those that are there already are left alone.
    #[schemars(length(max = MAX_IMPORT))]
    pub memories: Vec<ArchivedMemory>,
}

/// Most memories of one import.
pub(crate) const MAX_IMPORT: usize = 1000;

#[derive(FromNode)]
pub(crate) struct ImportBody {
    #[schemars(length(max = MAX_IMPORT))]
    pub(crate) memories: Vec<Archived>,
}

/// Answer of `POST /-/memories/import`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportAnswer {
    /// Memories that were new.
    pub imported: u64,
}

/// Body of `POST /-/memories/purge`: exactly one of these.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct PurgeRequest {
    /// These memories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// All that is known of this person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StructuredId>")]
    pub user_id: Option<String>,
    /// What was deleted softly before this, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_before: Option<String>,
    /// true: everything of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// What is to be removed for good.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PurgeBody {
    /// A person, with all that was learnt of it.
    User(StructuredId),
    /// Everybody of the tenant, with all that was learnt of them.
    All,
    Memories(Purge),
}

impl FromNode for PurgeBody {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let before = fields.faults();
            let ids = fields.optional("ids").map(|ids| Self::Memories(Purge::Ids(ids)));
            let user = fields.optional("userId").map(Self::User);
            let deleted = moment(fields, "deletedBefore").map(|moment| Self::Memories(Purge::DeletedBefore(moment)));
            let all = fields.optional("all").filter(|all| *all).map(|_: bool| Self::All);
            let mut asked = [ids, user, deleted, all].into_iter().flatten();
            if let (Some(purge), None) = (asked.next(), asked.next()) {
                return Some(purge);
            }
            // One that is there and faulty was told already.
            if fields.faults() > before {
                return None;
            }
            fields.bad_value("ids", "exactly one of ids, userId, deletedBefore and all is needed");
            None
        })?
    }
}

/// Answer of `POST /-/memories/purge`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PurgeAnswer {
    /// Memories that were removed.
    pub purged: u64,
}
