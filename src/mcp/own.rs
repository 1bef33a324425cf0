//! Almanac's own tools: its questions, as an agent asks them.
//!
//! Their definitions stand in every conversation, so they are short: what a client does not need to fill in the
//! arguments is left out, and no result is described beforehand.

mod find_tools;
mod memory;
mod predict_duration;
mod suggest_next;

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::Mcp;
use super::address::Address;
use crate::access::{Grant, Scope};
use crate::jsonrpc::Version;
use crate::strict::read::{self, Limits};
use crate::strict::{Fault, Node, Word};

/// One of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnTool {
    /// Which tools fit, and what is each?
    FindTools,
    /// How long will a call take?
    PredictDuration,
    /// What comes next?
    SuggestNext,
    /// Keeps a memory.
    Remember,
    /// Finds memories.
    Recall,
}

/// What a caller can see.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    pub(super) door: Arc<Mcp>,
    /// The view that it asks.
    pub(super) address: Address,
}

/// Arguments of one of these tools, in bytes and values: a memory is the largest that is sent.
const ARGUMENTS: Limits = Limits { bytes: 4 << 20, depth: 64, nodes: 200_000 };

impl OwnTool {
    /// What a token needs for it.
    pub(super) fn scope(self) -> Scope {
        match self {
            Self::FindTools | Self::PredictDuration | Self::SuggestNext => Scope::Read,
            Self::Remember | Self::Recall => Scope::Memory,
        }
    }

    /// The tool as it is listed where these servers' tools are found.
    pub(super) fn definition_for(self, servers: &[String]) -> Value {
        let (description, schema) = match self {
            Self::FindTools => (find_tools::description(servers), find_tools::schema()),
            Self::PredictDuration => (predict_duration::DESCRIPTION.to_owned(), predict_duration::schema()),
            Self::SuggestNext => (suggest_next::DESCRIPTION.to_owned(), suggest_next::schema()),
            Self::Remember => (memory::REMEMBER.to_owned(), memory::remember_schema()),
            Self::Recall => (memory::RECALL.to_owned(), memory::recall_schema()),
        };
        let annotations = match self {
            Self::Remember => json!({"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false}),
            _ => json!({"readOnlyHint": true, "openWorldHint": false}),
        };
        json!({
            "name": self.as_str(), "description": description, "inputSchema": schema, "annotations": annotations,
        })
    }

    /// Asks. Whoever calls has seen to it that `grant` allows it.
    pub(super) async fn call(self, reach: &Reach, grant: &Grant, arguments: Option<&RawValue>) -> ToolResult {
        let engine = &reach.door.engine;
        let arguments =
            match arguments.map_or(Ok(Node::Map(Vec::new())), |raw| read::json(raw.get().as_bytes(), &ARGUMENTS)) {
                Ok(arguments) => arguments,
                Err(error) => return ToolResult::error(format!("the arguments cannot be read: {error}")),
            };
        let outcome = match self {
            Self::FindTools => find_tools::call(reach, grant, arguments).await,
            Self::PredictDuration => predict_duration::call(engine, arguments),
            Self::SuggestNext => suggest_next::call(engine, grant, arguments).await,
            Self::Remember => memory::remember(engine, grant, arguments).await,
            Self::Recall => memory::recall(engine, grant, arguments).await,
        };
        outcome.unwrap_or_else(|error| ToolResult::error(error.to_string()))
    }
}

/// A call that could not be done, in words for a model.
#[derive(Debug, thiserror::Error)]
enum OwnError {
    /// Arguments that do not do.
    #[error("the arguments do not fit:{}", .0.iter().map(line).collect::<String>())]
    Arguments(Vec<Fault>),
    /// What the engine refused.
    #[error("{0}")]
    Refused(String),
}

fn line(fault: &Fault) -> String {
    let place = Some(fault.pointer()).filter(|place| !place.is_empty()).unwrap_or_else(|| "/".to_owned());
    let hint = fault.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("\n{place}: {}{hint}", fault.message)
}

impl From<Vec<Fault>> for OwnError {
    fn from(faults: Vec<Fault>) -> Self {
        Self::Arguments(faults)
    }
}

/// What a tool gave: a text, and for what we answer ourselves the same as an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolResult {
    /// For the model.
    pub(super) text: String,
    /// The same, for programs.
    pub(super) structured: Option<Map<String, Value>>,
    /// Did it fail?
    pub(super) is_error: bool,
}

impl ToolResult {
    /// An object, whose JSON is the text.
    pub(super) fn structured(value: &impl serde::Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(Value::Object(structured)) => Self {
                text: Value::Object(structured.clone()).to_string(),
                structured: Some(structured),
                is_error: false,
            },
            Ok(other) => Self { text: other.to_string(), structured: None, is_error: false },
            Err(error) => Self::error(format!("the answer cannot be written: {error}")),
        }
    }

    /// A failure that a model can read.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None, is_error: true }
    }

    /// The `result` of a call.
    pub(super) fn into_json(self, version: Version) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("content".to_owned(), json!([{"type": "text", "text": self.text}]));
        if let Some(structured) = self.structured.filter(|_| version >= Version::V2025_06_18) {
            result.insert("structuredContent".to_owned(), Value::Object(structured));
        }
        if self.is_error {
            result.insert("isError".to_owned(), true.into());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all that stands in every conversation may weigh, in bytes: 1,500 tokens of 4.
    const BUDGET: usize = 6000;

    #[test]
    fn the_list_is_small() {
        let tools: Vec<Value> = OwnTool::ALL.into_iter().map(|tool| tool.definition_for(&[])).collect();
        let bytes = serde_json::to_vec(&json!({"tools": tools})).unwrap().len();
        assert!(bytes <= BUDGET, "{bytes} bytes");
    }

    #[test]
    fn schemas_are_schemas_and_take_their_own_examples() {
        for tool in OwnTool::ALL {
            let definition = tool.definition_for(&[]);
            let schema = &definition["inputSchema"];
            jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("{}: {error}", tool.as_str()));
            assert_eq!(schema["type"], "object", "{}", tool.as_str());
        }
    }
}
