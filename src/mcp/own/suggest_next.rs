//! `suggest_next`: what should be called after this?

use std::sync::Arc;

use serde_json::{Value, json};

use super::{OwnError, ToolResult};
use crate::Engine;
use crate::access::Grant;
use crate::blocking;
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

pub(super) async fn call(engine: &Arc<Engine>, grant: &Grant, arguments: Node) -> Result<ToolResult, OwnError> {
    let request: MetadataRequest = decode(arguments)?;
    let mut ask = request.ask();
    engine.complete(&engine.learnt(), &grant.tenant, &mut ask, request.tool_history);
    let proposals = engine.propose(&ask).await;
    let (engine, tenant) = (Arc::clone(engine), Arc::clone(&grant.tenant));
    let suggested = blocking::run(move || {
        SuggestionsAnswer::from(engine.suggest(&engine.generation(), &engine.learnt(), &tenant, &ask, proposals))
    });
    let suggested = suggested.await.map_err(|error| OwnError::Refused(error.to_string()))?;
    Ok(ToolResult::structured(&suggested))
}
