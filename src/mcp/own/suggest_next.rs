//! `suggest_next`: what should be called after this?

use serde_json::{Value, json};

use super::{OwnError, ToolResult};
use crate::Engine;
use crate::access::Grant;
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::wire::metadata::{MetadataRequest, SuggestionsAnswer};

pub(super) const DESCRIPTION: &str =
    "Which tools to call next after a tool, and which presets (sequences of tools) fit, each with its duration.";

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "description": "The tool that was called last."},
            "tool_history": {"type": "array", "items": {"type": "string"}, "description": "Before it, oldest first."},
            "goal": {"type": "string", "description": "What it is all for."},
            "result_context": {
                "type": "object",
                "properties": {
                    "num_outputs": {"type": "integer"},
                    "has_branches": {"type": "boolean"},
                    "session_id": {"type": "string"},
                },
            },
        },
        "required": ["tool_name"],
    })
}

pub(super) async fn call(engine: &Engine, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let request: MetadataRequest = decode(arguments)?;
    let mut ask = request.ask();
    engine.complete(&engine.learnt(), &grant.tenant, &mut ask, request.tool_history);
    let proposals = engine.propose(&ask).await;
    let suggested = engine.suggest(&engine.generation(), &engine.learnt(), &grant.tenant, &ask, proposals);
    Ok(ToolResult::structured(&SuggestionsAnswer::from(suggested)))
}
