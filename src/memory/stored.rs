//! A memory as it is kept, and as it is handed over to be kept: its text, its metadata as JSON, and what it is found
//! by.

use crate::text::embedding::Quantized;

/// A memory as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMemory {
    /// Unique within its tenant.
    pub id: String,
    /// A number of its kind, which never changes.
    pub kind: u8,
    pub content: String,
    pub metadata: String,
    /// 1 when it is added, one more with each change.
    pub version: u64,
    /// When it was added, µs since the epoch. No two of a store are added at the same.
    pub created_us: i64,
    /// When it was last changed, µs since the epoch.
    pub updated_us: i64,
    /// Was it deleted softly?
    pub deleted: bool,
}

/// An earlier version of a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// 1 or more.
    pub version: u64,
    pub content: String,
    /// The JSON object then.
    pub metadata: String,
    /// When it became so, µs since the epoch.
    pub updated_us: i64,
}

/// A memory to be written.
#[derive(Debug, Clone)]
pub struct Draft {
    /// A number of its kind.
    pub kind: u8,
    pub content: String,
    pub metadata: String,
    /// Is it deleted softly?
    pub deleted: bool,
    /// What it is looked up by.
    pub keys: Keys,
    /// What it is searched by.
    pub index: SearchKeys,
    /// What it refers to: the name of the relation, and the id of the other.
    pub links: Vec<(&'static str, String)>,
}

/// What a memory is looked up by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keys {
    /// The person, as text.
    pub user: Option<String>,
    /// The agent, as text.
    pub agent: Option<String>,
    /// The chat, as text.
    pub chat: Option<String>,
    /// The thread and the position in it. No two memories of a chat that are not deleted share one.
    pub place: Option<(String, u64)>,
    /// 0 to 1.
    pub importance: Option<f64>,
}

/// What a memory is searched by.
#[derive(Debug, Clone)]
pub struct SearchKeys {
    /// Terms of its text, separated by spaces.
    pub words: String,
    /// Terms of its speaker's name.
    pub speaker: String,
    pub vector: Quantized,
}
