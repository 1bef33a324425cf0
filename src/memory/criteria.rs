//! What a search may ask for, kind by kind: every field that is a word, a name, a number or an id, or a list of them.
//!
//! The table is also what `sortBy` is read by, so that ids sort as their text and moments by time.

use serde_json::Value;

use super::field::{Moment, Reference, Share, micros};
use super::id::StructuredId;
use super::kind::Kind;
use super::vocabulary::{
    CognitiveProcessType, CommunicationType, DocumentSource, ImportanceLevel, MessagePriority, MessageRole,
    TaskPriority, TaskStatus,
};
use crate::store::memories::{FieldPath, Filter, SortBy, Wanted};
use crate::strict::{At, Fields, FromNode, Node};
use crate::text::near;

/// A field that can be asked for.
struct Field {
    /// Its path in the metadata, which is also its key in the criteria.
    path: &'static str,
    kind: FieldKind,
    read: fn(&mut Fields<'_>, &'static str) -> Option<Wanted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Plain,
    Moment,
    Id,
}

const fn field(path: &'static str, read: fn(&mut Fields<'_>, &'static str) -> Option<Wanted>) -> Field {
    Field { path, kind: FieldKind::Plain, read }
}

const fn id(path: &'static str) -> Field {
    Field { path, kind: FieldKind::Id, read: wanted_id }
}

const fn moment(path: &'static str) -> Field {
    Field { path, kind: FieldKind::Moment, read: wanted_moment }
}

fn text(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    fields.optional(key).map(Wanted::Text)
}

fn number(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    let number: Number = fields.optional(key)?;
    Some(Wanted::Number(number.0))
}

fn truth(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    fields.optional(key).map(Wanted::Bool)
}

fn word<T: FromNode + Into<&'static str>>(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    let word: T = fields.optional(key)?;
    Some(Wanted::Text(word.into().to_owned()))
}

fn wanted_moment(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    let moment: Moment = fields.optional(key)?;
    Some(Wanted::Text(moment.as_str().to_owned()))
}

fn wanted_id(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    let id: StructuredId = fields.optional(key)?;
    Some(Wanted::Id(id.namespace().to_owned(), id.entity().to_owned(), id.id().to_owned(), id.version()))
}

struct Number(f64);

impl FromNode for Number {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match &node {
            Node::Number(number) => number.as_f64().map(Self),
            other => {
                at.wrong_type("a number", other);
                None
            }
        }
    }
}

/// Fields of every kind.
const BASE: &[Field] =
    &[field("importance", word::<ImportanceLevel>), field("importance_score", number), field("schemaVersion", text)];

const MESSAGE: &[Field] = &[
    field("role", word::<MessageRole>),
    id("userId"),
    id("agentId"),
    id("chatId"),
    field("thread.id", text),
    field("thread.position", number),
    field("thread.parentId", text),
    field("messageType", text),
    field("source", text),
    field("category", text),
    id("senderAgentId"),
    id("receiverAgentId"),
    field("communicationType", word::<CommunicationType>),
    field("priority", word::<MessagePriority>),
    field("requiresResponse", truth),
];

const COGNITIVE_PROCESS: &[Field] = &[
    field("processType", word::<CognitiveProcessType>),
    id("agentId"),
    field("contextId", text),
    field("relatedTo", text),
    field("influences", text),
    field("influencedBy", text),
    field("relevance", number),
    field("source", text),
    field("category", text),
];

const DOCUMENT: &[Field] = &[
    field("source", word::<DocumentSource>),
    id("agentId"),
    id("userId"),
    field("title", text),
    field("url", text),
    field("contentType", text),
    field("fileName", text),
    field("fileSize", number),
    moment("creationDate"),
    moment("lastModified"),
    field("authors", text),
];

const TASK: &[Field] = &[
    field("title", text),
    field("status", word::<TaskStatus>),
    field("priority", word::<TaskPriority>),
    id("agentId"),
    id("assignedTo"),
    field("description", text),
    moment("dueDate"),
    moment("completedDate"),
    field("parentTaskId", text),
    field("progress", number),
    field("estimatedDuration", number),
    field("actualDuration", number),
    field("attemptCount", number),
];

fn own_fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Message => MESSAGE,
        Kind::CognitiveProcess => COGNITIVE_PROCESS,
        Kind::Document => DOCUMENT,
        Kind::Task => TASK,
    }
}

fn fields_of(kind: Kind) -> impl Iterator<Item = &'static Field> {
    own_fields(kind).iter().chain(BASE)
}

/// What a key of the writer's own is asked for by.
const OWN: &str = "metadata.";

/// Reads the criteria of a search for a kind.
pub(super) fn read(kind: Kind, node: Node, at: &mut At) -> Option<Filter> {
    at.map(node, |fields| {
        let mut filter = Filter { kind: Some(kind.number()), ..Filter::default() };
        for field in fields_of(kind) {
            if let Some(wanted) = (field.read)(fields, field.path) {
                want(kind, &mut filter, field.path, wanted);
            }
        }
        if kind == Kind::Message {
            thread(fields, &mut filter);
        }
        filter.tags = fields.optional("tags").map(|Tags(tags)| tags).unwrap_or_default();
        filter.min_importance = fields.optional("minImportance").map(|Importance(least)| least);
        let (from, to): (Option<Moment>, Option<Moment>) = (fields.optional("from"), fields.optional("to"));
        filter.from_us = from.and_then(|from| micros(from.as_str()));
        filter.to_us = to.and_then(|to| micros(to.as_str()));
        for (key, value) in fields.rest() {
            own_field(fields, &mut filter, &key, &value);
        }
        filter
    })
}

/// `threadId` is another name of `thread.id`.
fn thread(fields: &mut Fields<'_>, filter: &mut Filter) {
    let Some(name) = fields.optional::<Reference>("threadId") else { return };
    if filter.thread.as_deref().is_some_and(|other| other != name.as_str()) {
        fields.bad_value("threadId", "`thread.id` says another thread");
    }
    filter.thread = Some(name.as_str().to_owned());
}

/// Puts a wanted value where the store looks for it fastest.
fn want(kind: Kind, filter: &mut Filter, path: &str, wanted: Wanted) {
    let key = match path {
        "userId" => &mut filter.user,
        "agentId" => &mut filter.agent,
        "chatId" => &mut filter.chat,
        "thread.id" => &mut filter.thread,
        _ if path == kind.word() => &mut filter.word,
        _ => {
            filter.fields.extend(FieldPath::parse(path).map(|path| (path, wanted)));
            return;
        }
    };
    *key = match wanted {
        Wanted::Id(namespace, entity, id, version) => {
            // It was an id before it was taken apart.
            StructuredId::new(namespace, entity, id, version).ok().map(|id| id.to_string())
        }
        Wanted::Text(text) => Some(text),
        Wanted::Number(_) | Wanted::Bool(_) => None,
    };
}

fn own_field(fields: &mut Fields<'_>, filter: &mut Filter, key: &str, value: &Value) {
    let Some(name) = key.strip_prefix(OWN) else {
        fields.unknown(
            key,
            Some(format!("a key of your own is asked for as `{OWN}{}`", key.chars().take(40).collect::<String>())),
        );
        return;
    };
    let Some(path) = FieldPath::parse(name) else {
        fields.bad_value(key, PATH);
        return;
    };
    let wanted = match value {
        Value::String(text) => Wanted::Text(text.clone()),
        Value::Bool(truth) => Wanted::Bool(*truth),
        Value::Number(number) => Wanted::Number(number.as_f64().unwrap_or_default()),
        Value::Null => return,
        Value::Array(_) | Value::Object(_) => {
            fields.bad_value(key, "a text, a number, true or false is asked for");
            return;
        }
    };
    filter.fields.push((path, wanted));
}

/// What a path may be.
const PATH: &str = "a path is up to 8 keys of letters, digits, `_` and `-`, joined by dots";

/// Reads what is sorted by: a path from the metadata, else one of the memory's own values.
pub(super) fn sort_by(kind: Kind, text: &str) -> Result<SortBy, String> {
    if let Some(field) = fields_of(kind).find(|field| field.path == text) {
        let path = FieldPath::parse(text).ok_or(PATH)?;
        return Ok(match field.kind {
            FieldKind::Plain => SortBy::Field(path),
            FieldKind::Moment => SortBy::Moment(path),
            FieldKind::Id => SortBy::Id(path),
        });
    }
    match text {
        "createdAt" => return Ok(SortBy::Created),
        "updatedAt" => return Ok(SortBy::Updated),
        "score" => return Ok(SortBy::Score),
        "deletion_time" => return FieldPath::parse(text).map(SortBy::Moment).ok_or_else(|| PATH.to_owned()),
        _ => {}
    }
    let known = fields_of(kind).map(|field| field.path).chain(["createdAt", "updatedAt", "score"]);
    // A single letter is near to nothing but itself.
    if text.len() > 2
        && let Some(near) = near::nearest(text, known)
    {
        return Err(format!("there is no field `{text}`; did you mean `{near}`?"));
    }
    FieldPath::parse(text).map(SortBy::Field).ok_or_else(|| PATH.to_owned())
}

struct Tags(Vec<String>);

impl FromNode for Tags {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::String(tag) => Some(Self(vec![tag])),
            Node::List(items) if items.len() > 64 => {
                at.bad_value("at most 64 tags are asked for");
                None
            }
            list => Vec::from_node(list, at).map(Self),
        }
    }
}

/// A level, or a score.
struct Importance(f64);

impl FromNode for Importance {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::String(_) => {
                let level = ImportanceLevel::from_node(node, at)?;
                // From where the level begins, not from the number that stands for it.
                let begins =
                    [(ImportanceLevel::Critical, 0.9), (ImportanceLevel::High, 0.6), (ImportanceLevel::Medium, 0.3)];
                Some(Self(begins.into_iter().find(|(known, _)| *known == level).map_or(0.0, |(_, begins)| begins)))
            }
            number => Share::from_node(number, at).map(|share| Self(share.get())),
        }
    }
}
