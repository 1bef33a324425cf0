//! What a search may ask for, kind by kind: every field that is a word, a name, a number or an id, or a list of them.
//!
//! The table is also what `sortBy` is read by, so that ids sort as their text and moments by time.

use serde_json::{Number, Value};

use super::field::{Moment, Reference, Share, micros};
use super::id::StructuredId;
use super::kind::Kind;
use super::vocabulary::{
    CognitiveProcessType, CommunicationType, DocumentSource, ImportanceLevel, MessagePriority, MessageRole,
    TaskPriority, TaskStatus,
};
use crate::memory::query::{FieldPath, Filter, SortBy, Wanted};
use crate::strict::bounds::length;
use crate::strict::decode::decode;
use crate::strict::spelling;
use crate::strict::values::OneOrMany;
use crate::strict::{At, Fields, FromNode, Node, Segment, Violation};
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
    /// A text, or a word of some.
    Text,
    /// A number, or a truth.
    Value,
    Moment,
    Id,
}

const fn field(path: &'static str, read: fn(&mut Fields<'_>, &'static str) -> Option<Wanted>) -> Field {
    Field { path, kind: FieldKind::Text, read }
}

const fn value(path: &'static str, read: fn(&mut Fields<'_>, &'static str) -> Option<Wanted>) -> Field {
    Field { path, kind: FieldKind::Value, read }
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
    fields.part(key, |node, at| match node {
        Node::Number(number) => Some(wanted_number(&number)),
        other => {
            at.wrong_type("a number", &other);
            None
        }
    })
}

/// Whole numbers by their value: beyond 2^53 several of them are one and the same fraction.
fn wanted_number(number: &Number) -> Wanted {
    match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => Wanted::Whole(whole),
        (None, Some(huge)) => Wanted::Huge(huge),
        (None, None) => Wanted::Number(number.as_f64().unwrap_or_default()),
    }
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
    micros(moment.as_str()).map(Wanted::Moment)
}

fn wanted_id(fields: &mut Fields<'_>, key: &'static str) -> Option<Wanted> {
    fields.optional(key).map(|id| wanted(&id))
}

fn wanted(id: &StructuredId) -> Wanted {
    Wanted::Id(id.namespace().to_owned(), id.entity().to_owned(), id.id().to_owned(), id.version())
}

/// Fields of every kind.
const BASE: &[Field] =
    &[field("importance", word::<ImportanceLevel>), value("importance_score", number), field("schemaVersion", text)];

const MESSAGE: &[Field] = &[
    field("role", word::<MessageRole>),
    id("userId"),
    id("agentId"),
    id("chatId"),
    field("thread.id", text),
    value("thread.position", number),
    field("thread.parentId", text),
    field("messageType", text),
    field("source", text),
    field("category", text),
    id("senderAgentId"),
    id("receiverAgentId"),
    field("communicationType", word::<CommunicationType>),
    field("priority", word::<MessagePriority>),
    value("requiresResponse", truth),
];

const COGNITIVE_PROCESS: &[Field] = &[
    field("processType", word::<CognitiveProcessType>),
    id("agentId"),
    field("contextId", text),
    field("relatedTo", text),
    field("influences", text),
    field("influencedBy", text),
    value("relevance", number),
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
    value("fileSize", number),
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
    value("progress", number),
    value("estimatedDuration", number),
    value("actualDuration", number),
    value("attemptCount", number),
];

fn own_fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Message => MESSAGE,
        Kind::CognitiveProcess => COGNITIVE_PROCESS,
        Kind::Document => DOCUMENT,
        Kind::Task => TASK,
    }
}

/// Of memories of all kinds, what several have, and what is more than a text: of another kind it is a key of the
/// writer's own, so words are taken as they are.
const ANY: &[Field] = &[
    id("agentId"),
    id("userId"),
    id("chatId"),
    id("senderAgentId"),
    id("receiverAgentId"),
    id("assignedTo"),
    moment("creationDate"),
    moment("lastModified"),
    moment("dueDate"),
    moment("completedDate"),
];

/// Of these, what is the same field wherever it is asked for.
const OF_MOST: [&str; 2] = ["agentId", "userId"];

/// Fields of a kind, or of any.
fn fields_of(kind: Option<Kind>) -> impl Iterator<Item = &'static Field> {
    kind.map_or(ANY, own_fields).iter().chain(BASE)
}

/// Does what a kind, or any, has under this path take a text, whatever it looks like? A command line's `42` is one
/// there.
pub fn takes_text(kind: Option<Kind>, path: &str) -> bool {
    let path = path.strip_prefix(OWN).filter(|_| kind.is_some()).unwrap_or(path);
    let is_other = kind == Some(Kind::Message) && spelling::is_same("threadId", path);
    let mut known = fields_of(kind).filter(|field| field.kind != FieldKind::Value);
    is_other || path == "tags" || known.any(|field| spelling::is_same(field.path, path))
}

/// What a key of the writer's own is asked for by.
const OWN: &str = "metadata.";

/// Most tags that are asked for.
const MAX_TAGS: usize = 64;

/// Reads the criteria of a search for a kind, or for all.
pub(super) fn read(kind: Option<Kind>, node: Node, at: &mut At) -> Option<Filter> {
    refuse_nothing(&node, at);
    if node == Node::Null {
        return None;
    }
    at.map(node, |fields| {
        let mut filter = Filter { kind: kind.map(Kind::number), ..Filter::default() };
        for field in fields_of(kind) {
            // Among all kinds others are keys of the writer's own as well, which is told by what is asked for.
            if kind.is_some() || OF_MOST.contains(&field.path) {
                fields.alias(field.path, &format!("{OWN}{}", field.path));
            }
            if let Some(wanted) = (field.read)(fields, field.path) {
                want(kind, &mut filter, field.path, wanted);
            }
        }
        if kind == Some(Kind::Message) {
            thread(fields, &mut filter);
        }
        filter.tags = fields.optional("tags").map(|OneOrMany(tags)| tags).unwrap_or_default();
        if let Err(said) = length(&filter.tags, None, Some(MAX_TAGS)) {
            fields.bad_value("tags", said.to_string());
        }
        filter.min_importance = fields.part("minImportance", least_importance);
        let (from, to): (Option<Moment>, Option<Moment>) = (fields.optional("from"), fields.optional("to"));
        filter.from_us = from.and_then(|from| micros(from.as_str()));
        filter.to_us = to.and_then(|to| micros(to.as_str()));
        for (key, value) in fields.rest() {
            own_field(kind, fields, &mut filter, &key, &value);
        }
        filter
    })
}

/// Whoever asks for nothing has lost a value on the way, and must not be answered with everybody's.
fn refuse_nothing(node: &Node, at: &mut At) {
    let refuse = |at: &mut At| at.bad_value("null is nothing to look for; leave the key out");
    match node {
        Node::Null => refuse(at),
        Node::Map(entries) => {
            for (key, _) in entries.iter().filter(|(_, value)| *value == Node::Null) {
                at.within(Segment::Key(key.clone()), refuse);
            }
        }
        _ => {}
    }
}

/// `threadId` is another name of `thread.id`.
fn thread(fields: &mut Fields<'_>, filter: &mut Filter) {
    fields.alias("threadId", "metadata.threadId");
    let Some(name) = fields.optional::<Reference>("threadId") else { return };
    if filter.thread.as_deref().is_some_and(|other| other != name.as_str()) {
        fields.bad_value("threadId", "`thread.id` says another thread");
    }
    filter.thread = Some(name.as_str().to_owned());
}

/// Puts a wanted value where the store looks for it fastest.
fn want(kind: Option<Kind>, filter: &mut Filter, path: &str, wanted: Wanted) {
    let key = match path {
        "userId" => &mut filter.user,
        "agentId" => &mut filter.agent,
        "chatId" => &mut filter.chat,
        "thread.id" => &mut filter.thread,
        _ if kind.is_some_and(|kind| path == kind.word()) => &mut filter.word,
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
        Wanted::Number(_) | Wanted::Whole(_) | Wanted::Huge(_) | Wanted::Moment(_) | Wanted::Bool(_) => None,
    };
}

/// What to write instead of a key that is no criterion.
fn instead(kind: Option<Kind>, key: &str) -> String {
    match key {
        "metadata" => format!("a value of the metadata is asked for as `{OWN}` and its path, such as `{OWN}project`"),
        "id" => "one memory is read by `GET /v1/memories/{id}`".to_owned(),
        "kind" => "a kind is searched at `/v1/memories/{kind}/search`".to_owned(),
        "content" => "a text is looked for by `options.query`".to_owned(),
        "createdAt" | "created_at" => "when it was added is asked for by `from` and `to`".to_owned(),
        "is_deleted" | "isDeleted" => "what was deleted is found with `options.includeDeleted`".to_owned(),
        _ => {
            let is_thread = kind.is_none() && spelling::is_same("threadId", key);
            let key = if is_thread { "thread.id" } else { key };
            let owner = Kind::ALL.into_iter().find(|other| {
                kind != Some(*other) && own_fields(*other).iter().any(|field| spelling::is_same(field.path, key))
            });
            let shown: String = key.chars().take(40).collect();
            match owner {
                Some(owner) => {
                    let or = if kind.is_none() { "search that, or ask for" } else { "a key of your own is" };
                    format!("it is a field of the kind `{}`; {or} `{OWN}{shown}`", owner.as_str())
                }
                None => format!("a key of your own is asked for as `{OWN}{shown}`"),
            }
        }
    }
}

/// What a value means to a field that is more than a text, if it does.
fn typed(field: &Field, value: &Value) -> Option<Wanted> {
    match field.kind {
        FieldKind::Moment => value.as_str().and_then(micros).map(Wanted::Moment),
        FieldKind::Id => decode(value.clone().into()).ok().map(|id| wanted(&id)),
        FieldKind::Text | FieldKind::Value => None,
    }
}

fn own_field(kind: Option<Kind>, fields: &mut Fields<'_>, filter: &mut Filter, key: &str, value: &Value) {
    let Some(name) = key.strip_prefix(OWN) else {
        return fields.unknown(key, Some(instead(kind, key)));
    };
    let Some(path) = FieldPath::parse(name) else {
        fields.bad_value(key, PATH);
        return;
    };
    let known = ANY.iter().find(|field| kind.is_none() && field.path == name);
    if let Some(wanted) = known.and_then(|field| typed(field, value)) {
        return want(kind, filter, name, wanted);
    }
    let wanted = match value {
        Value::String(text) => Wanted::Text(text.clone()),
        Value::Bool(truth) => Wanted::Bool(*truth),
        Value::Number(number) => wanted_number(number),
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

fn not_a_path() -> Violation {
    PATH.to_owned().into()
}

/// Reads what is sorted by: a path from the metadata, else one of the memory's own values.
pub(super) fn sort_by(kind: Option<Kind>, text: &str) -> Result<SortBy, Violation> {
    let known = text.strip_prefix(OWN).unwrap_or(text);
    let is_exact = kind.is_none() && text.starts_with(OWN);
    let is_meant = |path: &str| if is_exact { path == known } else { spelling::is_same(path, known) };
    if let Some(field) = fields_of(kind).find(|field| is_meant(field.path)) {
        let path = FieldPath::parse(field.path).ok_or_else(not_a_path)?;
        return Ok(match field.kind {
            FieldKind::Text | FieldKind::Value => SortBy::Field(path),
            FieldKind::Moment => SortBy::Moment(path),
            FieldKind::Id => SortBy::Id(path),
        });
    }
    if let Some(own) = text.strip_prefix(OWN) {
        return FieldPath::parse(own).map(SortBy::Field).ok_or_else(not_a_path);
    }
    match text {
        "createdAt" => return Ok(SortBy::Created),
        "updatedAt" => return Ok(SortBy::Updated),
        "score" => return Ok(SortBy::Score),
        "deletion_time" => return FieldPath::parse(text).map(SortBy::Moment).ok_or_else(not_a_path),
        "content" | "id" | "kind" | "version" => {
            let what = "memories are sorted by `createdAt`, `updatedAt`, `score` or a key of their metadata";
            return Err(format!("{what}, not by `{text}`; a key of that name is `metadata.{text}`").into());
        }
        _ => {}
    }
    let known = fields_of(kind).map(|field| field.path).chain(["createdAt", "updatedAt", "score"]);
    // A single letter is near to nothing but itself.
    if text.len() > 2
        && let Some(near) = near::nearest(text, known)
    {
        let own = format!("a key of your own is `{OWN}{text}`");
        return Err(format!("there is no field `{text}`; did you mean `{near}`? {own}").into());
    }
    FieldPath::parse(text).map(SortBy::Field).ok_or_else(not_a_path)
}

/// A level, or a score.
fn least_importance(node: Node, at: &mut At) -> Option<f64> {
    if !matches!(node, Node::String(_)) {
        return Share::from_node(node, at).map(Share::get);
    }
    // From where the level begins, not from the number that stands for it.
    ImportanceLevel::from_node(node, at).map(ImportanceLevel::least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_takes_a_text_or_a_value() {
        let check = |kind: Kind, paths: &str, expected: bool| {
            for path in paths.split(' ') {
                assert_eq!(takes_text(Some(kind), path), expected, "{path}");
            }
        };
        check(Kind::Message, "thread.id threadId thread_id metadata.threadId role userId tags schemaVersion", true);
        check(Kind::Message, "thread.position requiresResponse importance_score minImportance own title", false);
        check(Kind::Document, "title creationDate", true);
        check(Kind::Document, "fileSize metadata.year", false);
        assert!(takes_text(None, "dueDate") && !takes_text(None, "title") && !takes_text(None, "metadata.dueDate"));
    }

    #[test]
    fn a_field_of_a_kind_is_told_by_the_name_that_finds_it() {
        let check = |kind: Option<Kind>, key: &str, expected: &str| assert_eq!(instead(kind, key), expected, "{key}");
        check(None, "role", "it is a field of the kind `message`; search that, or ask for `metadata.role`");
        for key in ["threadId", "thread_id", "thread.id"] {
            check(None, key, "it is a field of the kind `message`; search that, or ask for `metadata.thread.id`");
        }
        check(Some(Kind::Document), "threadId", "a key of your own is asked for as `metadata.threadId`");
        check(Some(Kind::Message), "project", "a key of your own is asked for as `metadata.project`");
    }

    /// Any JSON is criteria of each kind, or faults.
    #[test]
    fn fuzz_criteria() {
        use crate::strict::decode::decode_with;
        use crate::strict::{Limits, read::json};
        crate::text::edits::fuzz("criteria", |bytes| {
            let Ok(node) = json(bytes, &Limits::of_bytes(1 << 16)) else { return };
            for kind in [None].into_iter().chain(Kind::ALL.map(Some)) {
                let _ = decode_with(node.clone(), |node, at| read(kind, node, at));
                let _ = sort_by(kind, &String::from_utf8_lossy(bytes));
            }
        });
    }
}
