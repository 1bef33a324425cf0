//! `remember` and `recall`: what was said, thought, read and planned.

use serde_json::{Value, json};

use super::{OwnError, ToolResult};
use crate::Engine;
use crate::access::Grant;
use crate::engine::memory::RecallError;
use crate::memory::search::Recall;
use crate::memory::{Kind, Metadata};
use crate::strict::decode::decode_with;
use crate::strict::{At, Node, Segment};
use crate::wire::memory::{MemoryAnswer, SearchAnswer};

pub(super) const REMEMBER: &str = "Keep a memory across sessions: a document (by default), message, \
    cognitive_process or task. It is durable when this returns.";

pub(super) const RECALL: &str = "Find memories by meaning and words; the newest without a query.";

pub(super) fn remember_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "kind": {"enum": Kind::WORDS, "default": "document"},
            "metadata": {
                "type": "object",
                "description": "Such as title, tags, importance (low, medium, high, critical), source; a message needs \
                    role, userId, chatId and thread, a cognitive_process processType, a task title, status and \
                    priority.",
            },
        },
        "required": ["content"],
    })
}

pub(super) fn recall_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "kind": {"enum": Kind::WORDS, "description": "Any by default."},
            "criteria": {
                "type": "object",
                "description": "Such as tags, minImportance, from, to; of the kind message also threadId.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 10},
        },
    })
}

/// Whoever keeps a memory over MCP, unless it says who it is.
const AGENT: &str = "agent:agent:mcp";

pub(super) async fn remember(engine: &Engine, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let (content, metadata) = decode_with(arguments, |node, at| {
        at.map(node, |fields| {
            let kind = fields.optional("kind").unwrap_or(Kind::Document);
            let content: Option<String> = fields.needed("content");
            let read = |node: Node, at: &mut At| Metadata::read(kind, with_defaults(kind, node), at);
            let metadata = match fields.part("metadata", |node, at| Some(read(node, at))) {
                Some(metadata) => metadata,
                None => fields.at_key("metadata", |at| read(Node::Map(Vec::new()), at)),
            };
            // What else there is to say of a memory is mostly meant for it.
            for key in fields.rest().keys() {
                fields.unknown(key, Some(format!("a memory's `{key}` belongs into `metadata`")));
            }
            Some((content?, metadata?))
        })?
    })?;
    let (memory, _) = engine.remember(&grant.tenant, content, &metadata, None).await.map_err(refused)?;
    Ok(ToolResult::structured(&json!({"id": memory.id, "kind": memory.kind.as_str()})))
}

/// Says who and where from, if nobody does.
fn with_defaults(kind: Kind, metadata: Node) -> Node {
    let Node::Map(mut entries) = metadata else { return metadata };
    let mut default = |key: &str, value: &str| {
        // Fields may be spelt either way.
        let is_said = |known: &str| known.replace('_', "").eq_ignore_ascii_case(key);
        if !entries.iter().any(|(known, _)| is_said(known)) {
            entries.push((key.to_owned(), Node::String(value.to_owned())));
        }
    };
    default("agentId", AGENT);
    if kind == Kind::Document {
        default("source", "agent");
    }
    Node::Map(entries)
}

pub(super) async fn recall(engine: &Engine, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let recall = decode_with(arguments, |node, at| {
        at.map(node, |fields| {
            let kind: Option<Kind> = fields.optional("kind");
            let mut options = Vec::new();
            for key in ["query", "limit"] {
                options.extend(fields.given::<Value>(key).map(|value| (key.to_owned(), value.into())));
            }
            let mut search = vec![("options".to_owned(), Node::Map(options))];
            search.extend(fields.given::<Value>("criteria").map(|value| ("criteria".to_owned(), value.into())));
            Some((kind, Node::Map(search)))
        })?
    });
    let (kind, search) = recall?;
    let recall = decode_with(search, |node, at| Recall::read(kind, node, at)).map_err(|mut faults| {
        // The arguments have no `options`.
        for fault in &mut faults {
            fault.path.retain(|segment| !matches!(segment, Segment::Key(key) if key == "options"));
        }
        faults
    })?;
    let page = engine.recall(&grant.tenant, &recall).await.map_err(refused)?;
    let memories = page.memories.into_iter().map(|found| MemoryAnswer::found(found, false)).collect();
    Ok(ToolResult::structured(&SearchAnswer { memories, total: page.total, next_cursor: None }))
}

fn refused(error: RecallError) -> OwnError {
    match error {
        RecallError::Faulty(faults) => OwnError::Arguments(faults),
        other => OwnError::Refused(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::read::{Limits, json as read};

    /// What models put beside the content is told its place.
    #[test]
    fn what_belongs_into_the_metadata_is_told_so() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let check = |arguments: &str, expected: &str| {
            let node = read(arguments.as_bytes(), &Limits::of_bytes(1 << 16)).unwrap();
            match runtime.block_on(remember(&Engine::new(), &Grant::anonymous(), node)) {
                Err(OwnError::Arguments(faults)) => {
                    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    assert!(said.iter().any(|said| said.contains(expected)), "{said:?}");
                }
                _ => panic!("taken: {arguments}"),
            }
        };
        check(r#"{"content":"x","tags":["y"]}"#, "a memory's `tags` belongs into `metadata`");
        check(r#"{"contnet":"x"}"#, "content");
    }
}
