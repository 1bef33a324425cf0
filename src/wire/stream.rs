//! What was read from a chat stream, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answer of `POST /v1/streams`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamAnswer {
    /// Calls whose durations were recorded.
    pub recorded: usize,
    /// Calls that ended, in the order in which they did.
    pub calls: Vec<StreamedCall>,
    /// Calls without a result when the stream ended, which are not recorded.
    pub unfinished: Vec<UnfinishedCall>,
    /// The last intent that the stream told, if it told one of at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_context: Option<Value>,
    /// What the stream told of tokens and cost, in order: at most 100 values, each of at most 16 KiB.
    pub usage: Vec<Value>,
    /// Lines that could not be read, at most 100.
    pub faults: Vec<StreamFault>,
}

/// A call that ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamedCall {
    /// Its id in the stream.
    pub tool_call_id: String,
    /// The tool's name, as its document gives it.
    pub tool_name: String,
    /// success, error, or cancelled when the stream was given up before it ended.
    #[schemars(extend("enum" = ["success", "error", "cancelled"]))]
    pub outcome: String,
    /// In ms; absent when the result arrived together with the call, or the user had to allow the call, so that the
    /// duration is not known: such a call stands in its session's history, and teaches no duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// A call without a result.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnfinishedCall {
    /// Its id in the stream.
    pub tool_call_id: String,
    /// The tool's name, as its document gives it.
    pub tool_name: String,
}

/// A line that could not be read.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamFault {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}
