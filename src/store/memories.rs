//! What a store does with memories. It knows no kinds and no fields: whoever writes says what a memory is looked up by.
//!
//! Writing waits in the one queue of the store and is acknowledged when it is durable. Reading blocks its thread and
//! nobody else: it sees what was acknowledged, never half of a write.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::{ForgottenTexts, StoreError};
use crate::memory::query::{Found, Search};
use crate::memory::stored::{Draft, Keys, StoredMemory, StoredVersion};
use crate::memory::text::index_stored;

/// A key under which a call is the same call told again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub key: String,
    /// Of what was sent with it: another one under the same key is refused.
    pub digest: [u8; 32],
}

/// A memory that was kept elsewhere.
#[derive(Debug, Clone)]
pub struct Imported {
    /// Its id; a new one if it has none.
    pub id: Option<String>,
    pub draft: Draft,
    /// 1 or more.
    pub version: u64,
    /// When it was added, µs since the epoch; now if it is not known.
    pub created_us: Option<i64>,
    /// When it was last changed, µs since the epoch; as it was added if it is not known.
    pub updated_us: Option<i64>,
    pub history: Vec<StoredVersion>,
}

impl Imported {
    /// One that another store has, by what it is looked up by there.
    pub(super) fn of(
        kept: StoredMemory,
        keys: Keys,
        links: Vec<(&'static str, String)>,
        history: Vec<StoredVersion>,
    ) -> Self {
        let draft = Draft {
            kind: kept.kind,
            deleted: kept.deleted,
            keys,
            index: index_stored(kept.kind, &kept.metadata, &kept.content),
            links,
            metadata: kept.metadata,
            content: kept.content,
        };
        Self {
            id: Some(kept.id),
            draft,
            version: kept.version,
            created_us: Some(kept.created_us),
            updated_us: Some(kept.updated_us),
            history,
        }
    }
}

/// Which memories to remove for good, with what was noted of what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// Those of these ids.
    Ids(Vec<String>),
    /// Those that were deleted before this, µs since the epoch.
    DeletedBefore(i64),
    /// A person's: an id's text without version, of which all versions are meant. Of memories that are another's by
    /// now, the versions that were the person's.
    Person(String),
    /// All of the tenant's.
    Everybody,
    /// None: what was noted since of texts that went, and of sessions, by whoever still had them in memory.
    NotedSince { texts: Arc<ForgottenTexts>, sessions: Vec<String> },
}

/// The names that sessions of a chat may have, from the chat's key.
pub type SessionsOf = fn(&str) -> Vec<String>;

/// What went with those who were forgotten.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Forgotten {
    pub memories: u64,
    /// Sessions of the tenant whose state went.
    pub sessions: Vec<String>,
    /// What the memories said in any version. Whoever has any of it in memory may note it again, and is to forget it;
    /// then [`Purge::NotedSince`] removes what was noted meanwhile.
    pub texts: Arc<ForgottenTexts>,
    /// Choices of the tenant went; what the others taught is to be learnt anew from [`Store::kept_choices`].
    ///
    /// [`Store::kept_choices`]: super::Store::kept_choices
    pub has_choices: bool,
    /// Why more was to be removed, or is still in a file, if so.
    pub failure: Option<StoreError>,
}

/// Why a memory was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Nothing can be written, or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tenant has no such memory.
    #[error("there is no memory `{0}`")]
    Unknown(String),
    /// It is another version by now.
    #[error("the memory `{id}` is at version {found} by now")]
    Changed { id: String, found: u64 },
    /// Another message stands there.
    #[error("position {position} of the thread `{thread}` is taken by the memory `{by}`")]
    Taken { thread: String, position: u64, by: String },
    /// The idempotency key was used for something else.
    #[error("the idempotency key `{0}` was used for another memory")]
    KeyReused(String),
    /// A memory of that id is there already, and is another one.
    #[error("there is another memory `{0}` already")]
    Exists(String),
}

/// A memory that was added, or had been before under the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The memory as it is now.
    pub memory: StoredMemory,
    pub is_new: bool,
}

/// An acknowledgement that will come when the write is durable.
#[derive(Debug)]
pub struct Acknowledged<T>(pub(super) oneshot::Receiver<Result<T, MemoryError>>);

impl<T> Acknowledged<T> {
    pub async fn durable(self) -> Result<T, MemoryError> {
        self.0.await.map_err(|_| StoreError::Closed)?
    }

    /// Waits for it on a thread that may block.
    #[cfg(test)]
    pub fn durable_blocking(self) -> Result<T, MemoryError> {
        self.0.blocking_recv().map_err(|_| StoreError::Closed)?
    }
}

/// A page of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Chats that have a thread of that name; the rest is empty unless it is one.
    pub chats: Vec<String>,
    /// The messages, by position.
    pub memories: Vec<StoredMemory>,
    /// How many there are on all pages.
    pub total: u64,
    /// Ranges of positions before the last that no message has, both ends included; at most 1,000 of them.
    pub gaps: Vec<(u64, u64)>,
}

/// One reference from a memory that is not deleted to another, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The one that refers.
    pub from: String,
    pub from_kind: u8,
    /// The name of the relation.
    pub relation: String,
    /// The one that is referred to.
    pub target: String,
    /// Its kind; nothing if there is none, or it is deleted.
    pub target_kind: Option<u8>,
}

/// A place for memories. Every operation sees one tenant's only.
pub trait Memories: Send + Sync + fmt::Debug {
    fn add(&self, tenant: &str, draft: Draft, key: Option<IdempotencyKey>) -> Result<Acknowledged<Added>, StoreError>;

    /// Replaces `version` of a memory, and keeps it in the history.
    fn revise(
        &self,
        tenant: &str,
        id: &str,
        version: u64,
        draft: Draft,
    ) -> Result<Acknowledged<StoredMemory>, StoreError>;

    /// Takes memories that were kept elsewhere, all or none; says how many were not there already.
    fn import(&self, tenant: &str, batch: Vec<Imported>) -> Result<Acknowledged<u64>, StoreError>;

    /// Removes memories with all traces, and what selection noted of what they say; of a person or of everybody also
    /// the sessions named after their chats and threads. `sessions` says which those of a chat are. It is acknowledged
    /// when no file has a byte of them, which may take a while; others write meanwhile. What is found no more when it
    /// fails is acknowledged as well, with the failure.
    fn purge(&self, tenant: &str, which: Purge, sessions: SessionsOf) -> Result<Acknowledged<Forgotten>, StoreError>;

    /// One memory, also if it is deleted softly.
    fn get(&self, tenant: &str, id: &str) -> Result<Option<StoredMemory>, StoreError>;

    /// Earlier versions of a memory before the version `before`, latest first, and how many there are of all.
    fn history(
        &self,
        tenant: &str,
        id: &str,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<StoredVersion>, u64), StoreError>;

    /// A page of what is looked for.
    fn search(&self, tenant: &str, search: &Search) -> Result<Found, StoreError>;

    /// Messages of a thread from `position` on. Without a chat, the one chat that has such a thread is meant.
    fn thread(
        &self,
        tenant: &str,
        chat: Option<&str>,
        thread: &str,
        position: u64,
        limit: usize,
    ) -> Result<Thread, StoreError>;

    /// References from and to each of `ids`, in order of their ids, at most `limit`.
    fn links(&self, tenant: &str, ids: &[String], limit: usize) -> Result<Vec<Linked>, StoreError>;

    /// Memories with their history in order of ids, deleted ones included, those after `after`.
    fn export(
        &self,
        tenant: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(StoredMemory, Vec<StoredVersion>)>, StoreError>;
}

/// Whose a version is: the person of its metadata as text, whether that is said by text or by parts.
pub(super) fn person_of(metadata: &str) -> Option<String> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    match metadata.get("userId")? {
        Value::String(id) => Some(id.clone()),
        parts => id_text(parts),
    }
}

/// An object of namespace, type, id and version as the text of the id.
pub(super) fn id_text(id: &Value) -> Option<String> {
    let part = |key: &str| Some(id.get(key)?.as_str()?.replace('%', "%25").replace(':', "%3A"));
    let version = match id.get("version") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(version)) => format!(":{version}"),
        Some(version) => format!(":{version}"),
    };
    Some(format!("{}:{}:{}{version}", part("namespace")?, part("type")?, part("id")?))
}

/// An id that sorts by the moment: UUIDv7, whose twelve bits after the milliseconds are the microseconds.
pub(super) fn new_id(micros: i64) -> String {
    let mut random = [0; 10];
    // Without randomness the moment still makes it unique in its store.
    let _ = getrandom::fill(&mut random);
    let [high, low] = ((micros % 1000) as u16).to_be_bytes();
    (random[0], random[1]) = (high, low);
    uuid::Builder::from_unix_timestamp_millis((micros / 1000) as u64, &random).into_uuid().to_string()
}

/// Databases differ in whether they keep the character U+0000, so none is asked to.
pub(super) fn refuse_null<'d>(drafts: impl IntoIterator<Item = &'d Draft>) -> Result<(), StoreError> {
    // JSON may say it by its number; behind another backslash it says something else.
    let says_null = |json: &str| {
        json.match_indices("\\u0000").any(|(at, _)| {
            let before = json.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            before.is_multiple_of(2)
        })
    };
    let has_null = |draft: &Draft| {
        let Keys { user, agent, chat, place, .. } = &draft.keys;
        let keys = [user.as_ref(), agent.as_ref(), chat.as_ref(), place.as_ref().map(|(thread, _)| thread)];
        let links = draft.links.iter().map(|(_, target)| target);
        let texts = [&draft.content, &draft.metadata].into_iter().chain(keys.into_iter().flatten()).chain(links);
        texts.into_iter().any(|text| text.contains('\0')) || says_null(&draft.metadata)
    };
    if drafts.into_iter().any(has_null) {
        return Err(StoreError::Unstorable("a text of the memory has the character U+0000".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_person_s_by_parts_and_by_text() {
        let check = |metadata: &str, expected: Option<&str>| {
            assert_eq!(person_of(metadata).as_deref(), expected, "{metadata}");
        };
        check(r#"{"userId": {"namespace": "user", "type": "u:s", "id": "a%"}}"#, Some("user:u%3As:a%25"));
        check(r#"{"userId": {"namespace": "user", "type": "user", "id": "a", "version": 2}}"#, Some("user:user:a:2"));
        check(r#"{"userId": {"namespace": "user", "type": "user", "id": "a", "version": "2"}}"#, Some("user:user:a:2"));
        check(r#"{"userId": "user:user:a"}"#, Some("user:user:a"));
        check(r#"{"userId": {"namespace": "user"}}"#, None);
        check("{}", None);
        check("no json", None);
    }
}
