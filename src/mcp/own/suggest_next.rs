//! `suggest_next`: what should be called after this?

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::{OwnError, ToolResult};
use crate::Engine;
use crate::access::Grant;
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::wire::metadata::{ComplexityLevel, MetadataRequest, SuggestionsAnswer};

pub(super) const DESCRIPTION: &str =
    "Which tools to call next after a tool, and which presets (sequences of tools) fit, each with its duration.";

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "description": "The tool that was called last."},
            "mode_name": {"type": "string", "description": "Its mode, if it has several."},
            "tool_history": {"type": "array", "items": {"type": "string"}, "description": "Before it, oldest first."},
            "goal": {"type": "string", "description": "What it is all for."},
            "result_context": {
                "type": "object",
                "properties": {
                    "num_outputs": {"type": "integer"},
                    "has_branches": {"type": "boolean"},
                    "complexity": {"enum": ComplexityLevel::WORDS, "description": "Of the result."},
                    "session_id": {"type": "string"},
                },
            },
        },
        "required": ["tool_name"],
    })
}

/// What may come next.
#[derive(Debug, Serialize)]
struct NextAnswer {
    #[serde(flatten)]
    suggestions: SuggestionsAnswer,
    /// The tool that was called, if nobody knows it, with near names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unknown: BTreeMap<String, Vec<String>>,
}

pub(super) async fn call(engine: &Engine, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let request: MetadataRequest = decode(arguments)?;
    let mut ask = request.ask();
    engine.complete(&engine.learnt(), grant, &mut ask, request.tool_history);
    let proposals = engine.propose(&ask).await;
    let (generation, learnt) = (engine.generation(), engine.learnt());
    let suggested = engine.suggest(&generation, &learnt, grant, &ask, proposals);
    let mut unknown = BTreeMap::new();
    let acquaintance = engine.acquaintance(&generation, &learnt, &request.tool_name);
    if !acquaintance.is_known() {
        unknown.insert(request.tool_name, acquaintance.near().to_vec());
    }
    Ok(ToolResult::structured(&NextAnswer { suggestions: suggested.into(), unknown }))
}
