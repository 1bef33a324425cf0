//! Memories on the wire. Metadata has the fields of its kind and whatever else its writer gave it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::memory::{Memory, MemoryPatch, PastVersion, Recalled};
use crate::engine::memory_relations::RelatedMemory;
use crate::memory::field::{Moment, micros, rfc3339};
use crate::memory::search::{MAX_LIMIT, MAX_OFFSET};
use crate::memory::{Kind, Metadata, StructuredId};
use crate::strict::decode::decode_with;
use crate::strict::{At, Fault, FromNode, Node, Violation, spelling};

/// Body of `POST /v1/memories/{kind}`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "NewMemoryWith{M}")]
pub struct AddRequest<M> {
    /// The text, as it was given.
    pub content: String,
    /// Its metadata, by its kind.
    pub metadata: M,
}

/// Reads the body of an addition: the text and its metadata.
pub(crate) fn read_addition(kind: Kind, body: Node) -> Result<(String, Metadata), Vec<Fault>> {
    decode_with(body, |node, at| {
        at.map(node, |fields| {
            let content: Option<String> = fields.needed("content");
            let metadata = fields.needed_part("metadata", |node, at| Metadata::read(kind, node, at));
            Some((content?, metadata?))
        })?
    })
}

/// Body of `POST /v1/memories/{kind}/search`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SearchRequest {
    /// What must hold, all of it: the kind's fields by their paths, of which a list must hold the value; `threadId`
    /// for `thread.id`; `tags`, one or a list of which all are meant; `minImportance`, a level or a score; `from`
    /// and `to`, when it was added; and `metadata.` and a path for keys of the writer's own.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    pub criteria: Option<Map<String, Value>>,
    /// How it is searched.
    #[serde(default)]
    pub options: Option<SearchOptionsBody>,
}

/// How memories are searched for.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "SearchOptions", deny_unknown_fields)]
pub struct SearchOptionsBody {
    /// What they are about; only those that match are found.
    #[schemars(regex(pattern = r"\S"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// At most so many, 1 to 200; 10 by default.
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// So many left out; not together with a cursor.
    #[schemars(range(min = 0, max = MAX_OFFSET))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// A path in the metadata, `createdAt`, `updatedAt` or, with a query, `score`. By default the score or, without a
    /// query, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_by: Option<String>,
    /// asc or desc; asc by default, but desc for the score.
    #[schemars(regex(pattern = "^(asc|desc)$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_direction: Option<String>,
    /// Also what was deleted softly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_deleted: Option<bool>,
    /// `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Say what each score is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<bool>,
}

/// Body of `PATCH /v1/memories/{id}`: a JSON Merge Patch.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PatchRequest {
    /// Another text.
    #[schemars(default, with = "String")]
    pub content: Option<String>,
    /// Merged into the metadata; null removes a key.
    #[schemars(default)]
    pub metadata: Map<String, Value>,
}

impl FromNode for MemoryPatch {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            // Null would remove what every memory has.
            let patch =
                Self { content: fields.given("content"), metadata: fields.given("metadata").unwrap_or_default() };
            for key in ["is_deleted", "deletion_time"] {
                if patch.metadata.keys().any(|given| spelling::is_same(given, key)) {
                    fields.bad_value("metadata", format!("only deleting and restoring a memory sets `{key}`"));
                }
            }
            patch
        })
    }
}

/// A memory.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryAnswer {
    /// Unique within its tenant.
    pub id: String,
    /// message, cognitive_process, document or task.
    #[schemars(extend("enum" = Kind::WORDS))]
    pub kind: String,
    /// The text, as it was given.
    pub content: String,
    /// Its metadata, by its kind.
    pub metadata: Map<String, Value>,
    /// 1 when it is added, one more with each change.
    pub version: u64,
    /// When it was added, RFC 3339.
    pub created_at: String,
    /// When it was last changed, RFC 3339.
    pub updated_at: String,
    /// How well it matches the query; comparable within one answer only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The terms of the query that it has itself in any form, stemmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<Vec<String>>,
    /// What the score is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<ScoreExplanation>,
}

/// What a score is made of. Words and meaning are each divided by their spread among the candidates; meaning counts 1.3
/// times, the less the fewer words there are, and that of neighbours a tenth of it; a named date adds 2, or more
/// than all else comes to where nothing else is asked for, and a time that is named where one is asked for 2.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreExplanation {
    /// BM25 of its words and its speaker's name.
    pub words: f64,
    /// Likeness of its meaning, -1 to 1.
    pub meaning: f64,
    /// What the words of the messages beside it in its thread, and of its date, add to that.
    pub near_words: f64,
    /// The sum of `meaning` of the messages beside it.
    pub near_meaning: f64,
    /// Was it added on a day, or in a month of a year, that the text names? Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_named_date: bool,
    /// Does it name a time, such as `yesterday`, where the text asks when something was? Left out if not, or if it is
    /// none of the best hundred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_time: bool,
}

impl From<Memory> for MemoryAnswer {
    fn from(memory: Memory) -> Self {
        Self {
            id: memory.id,
            kind: memory.kind.as_str().to_owned(),
            content: memory.content,
            metadata: memory.metadata,
            version: memory.version,
            created_at: rfc3339(memory.created_us),
            updated_at: rfc3339(memory.updated_us),
            score: None,
            matched: None,
            explanation: None,
        }
    }
}

impl MemoryAnswer {
    /// A memory that was found, with what its score is made of if that is asked for.
    pub fn found(recalled: Recalled, explain: bool) -> Self {
        let answer = Self::from(recalled.memory);
        let Some((score, matched, signals)) = recalled.score else { return answer };
        let explanation = explain.then_some(ScoreExplanation {
            words: signals.lexical,
            meaning: signals.similarity,
            near_words: signals.near_lexical,
            near_meaning: signals.near_similarity,
            of_named_date: signals.is_of_date,
            names_time: signals.names_time,
        });
        Self { score: Some(score), matched: Some(matched), explanation, ..answer }
    }
}

/// Answer of a search.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// The memories, in order.
    pub memories: Vec<MemoryAnswer>,
    /// How many there are on all pages; of a text all that match.
    pub total: u64,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `GET /v1/memories/{id}/history`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryAnswer {
    /// Earlier versions, latest first.
    pub items: Vec<VersionAnswer>,
    /// How many there are on all pages.
    pub total: u64,
    /// Where the next page starts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An earlier version of a memory.
#[derive(Debug, Serialize, Deserialize, JsonSchema, FromNode)]
#[serde(rename_all = "camelCase")]
pub struct VersionAnswer {
    /// 1 or more.
    pub version: u64,
    /// The text of that version.
    pub content: String,
    /// The metadata of that version.
    pub metadata: Map<String, Value>,
    /// When it became so, RFC 3339.
    #[node(default, check = check_moment)]
    pub updated_at: String,
}

fn check_moment(text: &str) -> Result<(), Violation> {
    Moment::try_from(text.to_owned()).map(drop)
}

impl From<VersionAnswer> for PastVersion {
    fn from(answer: VersionAnswer) -> Self {
        let VersionAnswer { version, content, metadata, updated_at } = answer;
        Self { version, content, metadata, updated_us: micros(&updated_at).unwrap_or_default() }
    }
}

impl From<PastVersion> for VersionAnswer {
    fn from(past: PastVersion) -> Self {
        let PastVersion { version, content, metadata, updated_us } = past;
        Self { version, content, metadata, updated_at: rfc3339(updated_us) }
    }
}

/// `GET /v1/memories/{id}/relations`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RelationsAnswer {
    /// Memories that it leads to, nearest first.
    pub items: Vec<RelatedAnswer>,
    /// How many are listed.
    pub total: usize,
    /// References to what is not there.
    pub dangling: Vec<DanglingAnswer>,
    /// Were there more than are listed?
    pub truncated: bool,
}

/// A memory that another leads to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RelatedAnswer {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: &'static str,
    /// What it is to `via`: `ledTo` if `via` led to it, `cameFrom` if `via` came from it, else `related`.
    pub direction: &'static str,
    /// The key that says so, on either side.
    pub relation: &'static str,
    /// References between it and the memory that was asked about.
    pub depth: usize,
    /// The memory it was reached from.
    pub via: String,
}

impl From<RelatedMemory> for RelatedAnswer {
    fn from(related: RelatedMemory) -> Self {
        let RelatedMemory { depth, id, kind, direction, relation, via } = related;
        let (kind, direction, relation) = (kind.as_str(), direction.as_str(), relation.as_str());
        Self { id, kind, direction, relation, depth, via }
    }
}

/// A reference to what is not there.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DanglingAnswer {
    /// The memory that refers.
    pub from: String,
    /// The key.
    pub relation: &'static str,
    /// The name it refers by.
    pub target: String,
}

/// `GET /v1/threads/{id}`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadAnswer {
    /// The thread.
    pub id: String,
    /// The chat it is in.
    pub chat_id: StructuredId,
    /// Its messages by position.
    pub items: Vec<MemoryAnswer>,
    /// How many there are on all pages.
    pub total: u64,
    /// Positions before the last that no message has; at most 1,000 ranges.
    pub gaps: Vec<Gap>,
    /// Where the next page starts, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Positions that no message has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Gap {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}
