//! Memories: what was said, thought, read and planned before.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Engine;
use super::lane::Lane;
use crate::blocking::{self, NoThread};
use crate::memory::field::{Share, rfc3339};
use crate::memory::merge::{patched, respelt};
use crate::memory::query::{Hit, ScoreSignals};
use crate::memory::search::{ForeignCursor, Recall};
use crate::memory::stored::{Draft, Keys, StoredMemory, StoredVersion};
use crate::memory::{Kind, Metadata, StructuredId, schema, text};
use crate::store::memories::{Acknowledged, IdempotencyKey, Imported, MemoryError, Thread};
use crate::store::{Store, StoreError};
use crate::strict::decode::decode_with;
use crate::strict::{At, Fault, Segment};

#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Unique within its tenant.
    pub id: String,
    /// What kind it is of.
    pub kind: Kind,
    pub content: String,
    /// Its metadata, in the current format.
    pub metadata: Map<String, Value>,
    /// 1 when it is added, one more with each change.
    pub version: u64,
    /// When it was added, µs since the epoch.
    pub created_us: i64,
    /// When it was last changed, µs since the epoch.
    pub updated_us: i64,
    /// Was it deleted softly?
    pub deleted: bool,
}

/// An earlier version of a memory.
#[derive(Debug, Clone, PartialEq)]
pub struct PastVersion {
    /// 1 or more.
    pub version: u64,
    pub content: String,
    pub metadata: Map<String, Value>,
    /// When it became so, µs since the epoch.
    pub updated_us: i64,
}

/// A memory with its history, to be kept elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Archived {
    /// Its id; a new one if it has none.
    pub id: Option<String>,
    pub content: String,
    /// Its metadata, without what a soft delete sets.
    pub metadata: Metadata,
    /// When it was deleted softly, if it was, in RFC 3339.
    pub deletion_time: Option<String>,
    /// 1 or more.
    pub version: u64,
    /// When it was added, µs since the epoch.
    pub created_us: Option<i64>,
    /// When it was last changed, µs since the epoch.
    pub updated_us: Option<i64>,
    /// Its earlier versions, oldest first.
    pub history: Vec<PastVersion>,
}

/// What is to be changed of a memory, as JSON Merge Patch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryPatch {
    pub content: Option<String>,
    /// Merged into the metadata.
    pub metadata: Map<String, Value>,
}

/// A memory that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    pub memory: Memory,
    /// How well it matches, above 0, what it has of the text, and what the score is made of; only if a text was
    /// searched for.
    pub score: Option<(f64, Vec<String>, ScoreSignals)>,
}

/// A page of what was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecallPage {
    /// The memories, in order.
    pub memories: Vec<Recalled>,
    /// How many there are on all pages.
    pub total: u64,
    /// Where the next page starts, if there is one.
    pub next_cursor: Option<String>,
}

/// Why a memory was not changed, or not found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecallError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The values do not make a memory.
    #[error("the memory is faulty: {}", .0.first().map(|fault| fault.message.as_str()).unwrap_or_default())]
    Faulty(Vec<Fault>),
    /// The cursor is of another search.
    #[error(transparent)]
    Cursor(#[from] ForeignCursor),
}

impl From<StoreError> for RecallError {
    fn from(error: StoreError) -> Self {
        Self::Memory(error.into())
    }
}

/// Writers that change one memory at once, and still none of them fails.
const ATTEMPTS: usize = 100;

impl Engine {
    /// Adds a memory. Returns it, and whether it is new: with a key that was used for the same memory before, it is
    /// not.
    pub async fn remember(
        &self,
        tenant: &str,
        content: String,
        metadata: &Metadata,
        key: Option<String>,
    ) -> Result<(Memory, bool), RecallError> {
        let draft = draft(content, metadata, None);
        let key = key.map(|key| IdempotencyKey { key, digest: digest(&draft) });
        let added = self.store.memories().add(tenant, draft, key)?.durable().await?;
        Ok((memory(added.memory)?, added.is_new))
    }

    pub async fn memory(&self, tenant: &str, id: &str, include_deleted: bool) -> Result<Memory, RecallError> {
        let found = self.stored(tenant, id).await?;
        if found.deleted && !include_deleted {
            return Err(MemoryError::Unknown(id.to_owned()).into());
        }
        memory(found)
    }

    async fn stored(&self, tenant: &str, id: &str) -> Result<StoredMemory, RecallError> {
        let (of, wanted) = (tenant.to_owned(), id.to_owned());
        let found = self.read_memories(tenant, move |store| store.memories().get(&of, &wanted)).await?;
        found.ok_or_else(|| MemoryError::Unknown(id.to_owned()).into())
    }

    /// Changes a memory, if it is still at the version that is expected, if any is.
    pub async fn revise_memory(
        &self,
        tenant: &str,
        id: &str,
        expected: Option<u64>,
        patch: MemoryPatch,
    ) -> Result<Memory, RecallError> {
        self.change_memory(tenant, id, expected, |current| {
            if current.deleted {
                return Err(MemoryError::Unknown(current.id.clone()).into());
            }
            let patch_metadata = respelt(patch.metadata.clone(), &current.kind.keys());
            let merged = patched(current.metadata.clone(), patch_metadata);
            let content = patch.content.clone().unwrap_or_else(|| current.content.clone());
            Ok(Some(draft(content, &read_metadata(current.kind, merged)?, None)))
        })
        .await
    }

    /// Deletes a memory softly: from then on nothing finds it that does not ask for deleted ones.
    pub async fn forget_memory(&self, tenant: &str, id: &str, expected: Option<u64>) -> Result<Memory, RecallError> {
        self.change_memory(tenant, id, expected, |current| {
            if current.deleted {
                return Err(MemoryError::Unknown(current.id.clone()).into());
            }
            let metadata = read_metadata(current.kind, current.metadata.clone())?;
            Ok(Some(draft(current.content.clone(), &metadata, Some(&now()))))
        })
        .await
    }

    /// Takes a soft delete back. One that is not deleted is left as it is.
    pub async fn restore_memory(&self, tenant: &str, id: &str, expected: Option<u64>) -> Result<Memory, RecallError> {
        self.change_memory(tenant, id, expected, |current| {
            if !current.deleted {
                return Ok(None);
            }
            let metadata = read_metadata(current.kind, without_deletion(current.metadata.clone()))?;
            Ok(Some(draft(current.content.clone(), &metadata, None)))
        })
        .await
    }

    /// Replaces a memory by what `change` makes of it; tries again if another was faster, unless a version is expected.
    async fn change_memory(
        &self,
        tenant: &str,
        id: &str,
        expected: Option<u64>,
        change: impl Fn(&Memory) -> Result<Option<Draft>, RecallError>,
    ) -> Result<Memory, RecallError> {
        let mut attempts = 0;
        loop {
            let current = memory(self.stored(tenant, id).await?)?;
            let Some(draft) = change(&current)? else { return Ok(current) };
            if expected.is_some_and(|expected| expected != current.version) {
                return Err(MemoryError::Changed { id: id.to_owned(), found: current.version }.into());
            }
            attempts += 1;
            match self.store.memories().revise(tenant, id, current.version, draft)?.durable().await {
                Err(MemoryError::Changed { .. }) if expected.is_none() && attempts < ATTEMPTS => {}
                revised => return memory(revised?),
            }
        }
    }

    /// Earlier versions before `before`, latest first, and how many there are of all. A deleted memory has none unless
    /// deleted ones are asked for.
    pub async fn memory_history(
        &self,
        tenant: &str,
        id: &str,
        include_deleted: bool,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<PastVersion>, u64), RecallError> {
        let kind = self.memory(tenant, id, include_deleted).await?.kind;
        let (of, wanted) = (tenant.to_owned(), id.to_owned());
        let (versions, total) =
            self.read_memories(tenant, move |store| store.memories().history(&of, &wanted, before, limit)).await?;
        Ok((versions.into_iter().map(|version| past(kind, id, version)).collect::<Result<_, _>>()?, total))
    }

    /// Memories that are looked for.
    pub async fn recall(&self, tenant: &str, recall: &Recall) -> Result<RecallPage, RecallError> {
        let (of, asked) = (tenant.to_owned(), recall.clone());
        // Taking a long query apart is work, too.
        let found = self
            .read_in(&self.searches, tenant, move |store| match asked.search(&of) {
                Ok(Some(search)) => {
                    let mut found = store.memories().search(&of, &search)?;
                    // By a text, and by some fields, what is there now was counted.
                    found.total = search.total.unwrap_or(found.total);
                    Ok(Ok((found, search.text.map(|text| text.terms).unwrap_or_default())))
                }
                Ok(None) => Ok(Ok(Default::default())),
                Err(foreign) => Ok(Err(foreign)),
            })
            .await?;
        let (mut found, terms) = found?;
        let has_next = found.hits.len() > recall.limit;
        let next_cursor = if has_next { recall.cursor_after(tenant, &found, recall.limit - 1) } else { None };
        found.hits.truncate(recall.limit);
        let memories = found.hits.into_iter().map(|hit| recalled(hit, &terms)).collect::<Result<_, _>>()?;
        Ok(RecallPage { memories, total: found.total, next_cursor })
    }

    /// A thread's messages by position, from `position` on; without a chat, that of the one chat that has such a
    /// thread.
    pub async fn memory_thread(
        &self,
        tenant: &str,
        chat: Option<&StructuredId>,
        thread: &str,
        position: u64,
        limit: usize,
    ) -> Result<(Thread, Vec<Memory>), RecallError> {
        let (of, chat, thread) = (tenant.to_owned(), chat.map(ToString::to_string), thread.to_owned());
        let mut found = self
            .read_memories(tenant, move |store| store.memories().thread(&of, chat.as_deref(), &thread, position, limit))
            .await?;
        let memories = std::mem::take(&mut found.memories).into_iter().map(memory).collect::<Result<_, _>>()?;
        Ok((found, memories))
    }

    /// Memories with their history by id, those after `after`, deleted ones included.
    pub async fn export_memories(
        &self,
        tenant: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Memory, Vec<PastVersion>)>, RecallError> {
        let (of, after) = (tenant.to_owned(), after.to_owned());
        let rows =
            self.read_in(&self.searches, tenant, move |store| store.memories().export(&of, &after, limit)).await?;
        let whole = |(stored, history): (StoredMemory, Vec<StoredVersion>)| {
            let memory = memory(stored)?;
            let versions = history.into_iter().map(|version| past(memory.kind, &memory.id, version));
            let versions = versions.collect::<Result<_, RecallError>>()?;
            Ok((memory, versions))
        };
        rows.into_iter().map(whole).collect()
    }

    /// Takes memories that were kept elsewhere, all or none; those that are there already are left alone. Says how many
    /// were new.
    pub async fn import_memories(&self, tenant: &str, archive: Vec<Archived>) -> Result<u64, RecallError> {
        Ok(self.send_archive(tenant, archive)?.durable().await?)
    }

    fn send_archive(&self, tenant: &str, archive: Vec<Archived>) -> Result<Acknowledged<u64>, StoreError> {
        let batch = archive.into_iter().map(|archived| {
            let history = archived.history.into_iter().map(|past| StoredVersion {
                version: past.version,
                content: past.content,
                metadata: Value::Object(past.metadata).to_string(),
                updated_us: past.updated_us,
            });
            Imported {
                id: archived.id,
                draft: draft(archived.content, &archived.metadata, archived.deletion_time.as_deref()),
                version: archived.version,
                created_us: archived.created_us,
                updated_us: archived.updated_us,
                history: history.collect(),
            }
        });
        self.store.memories().import(tenant, batch.collect())
    }

    /// Reads on a thread that may block, in the lane of those who read a few. The others wait their turn without a
    /// thread.
    pub(super) async fn read_memories<T: Send + 'static>(
        &self,
        tenant: &str,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read_in(&self.reads, tenant, read).await
    }

    async fn read_in<T: Send + 'static>(
        &self,
        lane: &Arc<Lane>,
        tenant: &str,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = lane.enter(tenant).await;
        let store = Arc::clone(&self.store);
        let answer = blocking::run(move || {
            let answer = read(&*store);
            drop(turn);
            answer
        });
        answer.await.map_err(unavailable)?
    }
}

pub(super) fn unavailable(error: NoThread) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_micros() as i64)
}

/// A memory as it is written. What is looked up by is made from the metadata, so that the two cannot differ.
fn draft(content: String, metadata: &Metadata, deletion_time: Option<&str>) -> Draft {
    let mut json = metadata.to_json();
    if let (Value::Object(json), Some(moment)) = (&mut json, deletion_time) {
        json.insert("is_deleted".to_owned(), true.into());
        json.insert("deletion_time".to_owned(), moment.into());
    }
    let message = if let Metadata::Message(message) = metadata { Some(message) } else { None };
    Draft {
        kind: metadata.kind().number(),
        deleted: deletion_time.is_some(),
        keys: Keys {
            user: metadata.user_id().map(ToString::to_string),
            agent: Some(metadata.agent_id().to_string()),
            chat: message.map(|message| message.chat_id.to_string()),
            place: message.map(|message| (message.thread.id.as_str().to_owned(), message.thread.position)),
            importance: metadata.base().importance_score.map(Share::get),
        },
        index: text::index(metadata, &content),
        links: metadata.links().into_iter().map(|(relation, name)| (relation.as_str(), name.to_owned())).collect(),
        metadata: json.to_string(),
        content,
    }
}

fn digest(draft: &Draft) -> [u8; 32] {
    let said = serde_json::json!([draft.kind, draft.content, draft.metadata]);
    Sha256::digest(said.to_string()).into()
}

/// Reads metadata that was merged, with the faults where they stand in the memory.
fn read_metadata(kind: Kind, metadata: Map<String, Value>) -> Result<Metadata, RecallError> {
    let read = |node, at: &mut At| at.within(Segment::Key("metadata".to_owned()), |at| Metadata::read(kind, node, at));
    decode_with(Value::Object(metadata).into(), read).map_err(RecallError::Faulty)
}

/// Metadata without what a soft delete sets.
pub fn without_deletion(mut metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.shift_remove("is_deleted");
    metadata.shift_remove("deletion_time");
    metadata
}

fn damaged(id: &str) -> RecallError {
    StoreError::Damaged(id.to_owned()).into()
}

fn parse(id: &str, metadata: &str) -> Result<Map<String, Value>, RecallError> {
    serde_json::from_str(metadata).map_err(|_| damaged(id))
}

fn memory(stored: StoredMemory) -> Result<Memory, RecallError> {
    let kind = Kind::of_number(stored.kind).ok_or_else(|| damaged(&stored.id))?;
    let mut metadata = parse(&stored.id, &stored.metadata)?;
    schema::migrate(kind, &mut metadata);
    let StoredMemory { id, content, version, created_us, updated_us, deleted, .. } = stored;
    Ok(Memory { id, kind, content, metadata, version, created_us, updated_us, deleted })
}

fn past(kind: Kind, id: &str, stored: StoredVersion) -> Result<PastVersion, RecallError> {
    let mut metadata = parse(id, &stored.metadata)?;
    schema::migrate(kind, &mut metadata);
    let StoredVersion { version, content, updated_us, .. } = stored;
    Ok(PastVersion { version, content, metadata, updated_us })
}

fn recalled(hit: Hit, terms: &[String]) -> Result<Recalled, RecallError> {
    let matched = |signals: &ScoreSignals| {
        terms
            .iter()
            .enumerate()
            .filter(|(number, _)| signals.matched >> number & 1 == 1)
            .map(|(_, term)| term.clone())
            .collect()
    };
    Ok(Recalled {
        score: hit.score.map(|(score, signals)| (score, matched(&signals), signals)),
        memory: memory(hit.memory)?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;
    use tokio::time::timeout;

    use super::*;
    use crate::memory::query::Filter;
    use crate::store::suite::memories::draft as stored_draft;
    use crate::store::{Sqlite, sqlite};

    const TENANT: &str = "default";

    #[test]
    fn who_asks_for_one_waits_for_no_search() {
        let directory = TempDir::new().unwrap();
        let options = sqlite::Options::file(sqlite::file_in(directory.path()));
        let store = Arc::new(Sqlite::start(options, Box::new(|_, _| ())).unwrap());
        let engine = Arc::new(Engine::on(Arc::clone(&store) as Arc<dyn Store>));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let draft = Draft { kind: Kind::Task.number(), ..stored_draft("tea", &Value::Object(Map::new())) };
            let id = store.memories().add(TENANT, draft, None).unwrap().durable().await.unwrap().memory.id;
            // All turns are taken, by others and by the tenant itself.
            let mut turns = Vec::new();
            for tenant in 0..100 {
                if let Ok(turn) = timeout(Duration::ZERO, engine.searches.enter(&format!("{tenant}"))).await {
                    turns.push(turn);
                }
            }
            let recall = Recall::all(Kind::Task, Filter::default());
            let searches: Vec<_> = (0..16)
                .map(|_| {
                    let (engine, recall) = (Arc::clone(&engine), recall.clone());
                    tokio::spawn(async move { engine.recall(TENANT, &recall).await.unwrap().memories.len() })
                })
                .collect();
            assert_eq!(engine.memory(TENANT, &id, false).await.unwrap().content, "tea");
            assert!(searches.iter().all(|search| !search.is_finished()));
            drop(turns);
            for search in searches {
                assert_eq!(search.await.unwrap(), 1);
            }
        });
    }
}
