//! The four kinds of memories, and metadata of any of them.

use serde::Serialize;
use serde_json::{Map, Value};

use super::cognitive::CognitiveProcessMetadata;
use super::document::DocumentMetadata;
use super::id::StructuredId;
use super::message::MessageMetadata;
use super::metadata::Base;
use super::schema;
use super::task::TaskMetadata;
use super::vocabulary::MessageRole;
use crate::strict::decode::keys_of;
use crate::strict::{At, FromNode, Node, Word, spelling};

/// What kind of memory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a kind")]
pub enum Kind {
    Message,
    CognitiveProcess,
    Document,
    Task,
}

impl Kind {
    /// The word in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Message => "messages",
            Self::CognitiveProcess => "cognitive-processes",
            Self::Document => "documents",
            Self::Task => "tasks",
        }
    }

    /// The kind of that word, in either form.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word || kind.plural() == word)
    }

    /// Its number in the database, which never changes.
    pub fn number(self) -> u8 {
        match self {
            Self::Message => 1,
            Self::CognitiveProcess => 2,
            Self::Document => 3,
            Self::Task => 4,
        }
    }

    /// The kind of that number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The key of the word that memories of the kind are told apart by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Message => "role",
            Self::CognitiveProcess => "processType",
            Self::Document => "source",
            Self::Task => "status",
        }
    }

    /// The keys that its metadata knows, as they are written.
    pub fn keys(self) -> Vec<&'static str> {
        match self {
            Self::Message => keys_of::<MessageMetadata>(),
            Self::CognitiveProcess => keys_of::<CognitiveProcessMetadata>(),
            Self::Document => keys_of::<DocumentMetadata>(),
            Self::Task => keys_of::<TaskMetadata>(),
        }
    }

    /// The kind that has such metadata, by the keys that only it requires.
    pub fn of_metadata(metadata: &Map<String, Value>) -> Option<Self> {
        let has = |key: &str| metadata.keys().any(|given| spelling::is_same(given, key));
        match () {
            () if has("processType") => Some(Self::CognitiveProcess),
            () if has("role") => Some(Self::Message),
            () if has("status") && has("title") => Some(Self::Task),
            () if has("source") => Some(Self::Document),
            () => None,
        }
    }
}

/// Metadata of any kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "most of all memories are messages, the largest")]
pub enum Metadata {
    Message(MessageMetadata),
    /// Of a cognitive process.
    CognitiveProcess(CognitiveProcessMetadata),
    Document(DocumentMetadata),
    Task(TaskMetadata),
}

impl Metadata {
    /// Reads metadata of a kind.
    pub fn read(kind: Kind, node: Node, at: &mut At) -> Option<Self> {
        let node = schema::migrated(kind, node);
        match kind {
            Kind::Message => FromNode::from_node(node, at).map(Self::Message),
            Kind::CognitiveProcess => FromNode::from_node(node, at).map(Self::CognitiveProcess),
            Kind::Document => FromNode::from_node(node, at).map(Self::Document),
            Kind::Task => FromNode::from_node(node, at).map(Self::Task),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Message(_) => Kind::Message,
            Self::CognitiveProcess(_) => Kind::CognitiveProcess,
            Self::Document(_) => Kind::Document,
            Self::Task(_) => Kind::Task,
        }
    }

    /// What all metadata has.
    pub fn base(&self) -> &Base {
        match self {
            Self::Message(message) => &message.details.base,
            Self::CognitiveProcess(process) => &process.details.base,
            Self::Document(document) => &document.details.base,
            Self::Task(task) => &task.details.base,
        }
    }

    /// The person it is about.
    pub fn user_id(&self) -> Option<&StructuredId> {
        match self {
            Self::Message(message) => Some(&message.user_id),
            Self::Document(document) => document.details.user_id.as_ref(),
            Self::CognitiveProcess(_) | Self::Task(_) => None,
        }
    }

    /// The agent it belongs to.
    pub fn agent_id(&self) -> &StructuredId {
        match self {
            Self::Message(message) => &message.agent_id,
            Self::CognitiveProcess(process) => &process.agent_id,
            Self::Document(document) => &document.agent_id,
            Self::Task(task) => &task.agent_id,
        }
    }

    /// Who speaks, if it is a message of a person or an agent.
    pub fn speaker(&self) -> Option<&StructuredId> {
        let Self::Message(message) = self else { return None };
        match (&message.details.sender_agent_id, message.role) {
            (Some(sender), _) => Some(sender),
            (None, MessageRole::User) => Some(&message.user_id),
            (None, MessageRole::Assistant) => Some(&message.agent_id),
            (None, MessageRole::System | MessageRole::Tool) => None,
        }
    }

    /// What it refers to: how, and the name it refers by.
    pub fn links(&self) -> Vec<(Relation, &str)> {
        match self {
            Self::CognitiveProcess(process) => {
                let details = &process.details;
                [
                    (Relation::RelatedTo, &details.related_to),
                    (Relation::Influences, &details.influences),
                    (Relation::InfluencedBy, &details.influenced_by),
                ]
                .into_iter()
                .flat_map(|(relation, names)| {
                    names.iter().flat_map(move |names| names.iter().map(move |name| (relation, name)))
                })
                .collect()
            }
            Self::Task(task) => {
                task.details.parent_task_id.iter().map(|parent| (Relation::ParentTask, parent.as_str())).collect()
            }
            Self::Message(_) | Self::Document(_) => Vec::new(),
        }
    }

    /// As it is written, keys in the order of the contract, the writer's own last.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("metadata has string keys and finite numbers")
    }
}

/// How one memory refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Word)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// It has to do with it.
    RelatedTo,
    /// It led to it.
    Influences,
    /// It came from it.
    InfluencedBy,
    /// It is a part of it.
    #[serde(rename = "parentTaskId")]
    ParentTask,
}

impl Relation {
    /// What the memory that is referred to is to the one that refers.
    pub fn direction(self) -> Direction {
        match self {
            Self::RelatedTo => Direction::Related,
            Self::Influences => Direction::LedTo,
            Self::InfluencedBy | Self::ParentTask => Direction::CameFrom,
        }
    }
}

/// What one memory is to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Word)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// The other came of it.
    LedTo,
    /// It came of the other.
    CameFrom,
    /// Neither, or nobody says which.
    Related,
}

impl Direction {
    /// The same seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::LedTo => Self::CameFrom,
            Self::CameFrom => Self::LedTo,
            Self::Related => Self::Related,
        }
    }
}
