//! `predict_duration`: how long will a call, or a plan, take?

use serde_json::{Value, json};

use super::{OwnError, ToolResult};
use crate::Engine;
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::wire::timing::{EstimateAnswer, EstimateRequest};

pub(super) const DESCRIPTION: &str = "How long a call of a tool, or a plan of calls, will take, as learnt from the \
    calls before, and whether it will exceed a limit.";

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool_name": {"type": "string"},
            "mode_name": {"type": "string"},
            "complexity": {
                "type": "object",
                "properties": {"content_length": {"type": "integer", "description": "Characters of the input."}},
            },
            "timeout_ms": {"type": "integer", "description": "When the caller gives up."},
            "elapsed_ms": {"type": "integer", "description": "How long the call has run already."},
            "steps": {
                "type": "array",
                "description": "A plan's calls, instead of one tool.",
                "items": {"type": "object", "properties": {"tool_name": {"type": "string"}}, "required": ["tool_name"]},
            },
        },
    })
}

pub(super) fn call(engine: &Engine, arguments: Node) -> Result<ToolResult, OwnError> {
    let request: EstimateRequest = decode(arguments)?;
    let answer = EstimateAnswer::of(engine, request);
    Ok(ToolResult::structured(&answer.ok_or_else(|| OwnError::Refused("a plan has at least one step".into()))?))
}
