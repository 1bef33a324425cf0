//! What a stream says, whichever protocol said it.

use serde_json::Value;

/// One thing that a stream says.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Start {
        message_id: Option<String>,
    },
    /// A step of the message begins.
    StartStep {
        message_id: Option<String>,
    },
    Text(String),
    /// More reasoning of the model.
    Reasoning(String),
    /// A value of the application's own.
    Data {
        /// Its kind, where the protocol names it.
        name: Option<String>,
        /// A later value of the same kind and id replaces it.
        id: Option<String>,
        value: Value,
    },
    /// Values that belong to the whole message.
    Metadata(Value),
    Error(String),
    /// A tool call's input begins to arrive.
    ToolInputStart {
        call: String,
        tool: String,
    },
    /// More of a tool call's input.
    ToolInputDelta {
        call: String,
        /// More of its JSON text.
        delta: String,
    },
    /// A tool is called.
    ToolCall {
        call: String,
        tool: String,
        /// What it is called with.
        input: Value,
    },
    /// A tool cannot be called: its input is faulty.
    ToolInputError {
        call: String,
        error: String,
    },
    ToolResult {
        call: String,
        output: Value,
        /// Is it a progress report, which another follows?
        preliminary: bool,
    },
    ToolError {
        call: String,
        error: String,
    },
    /// The user is asked whether the call is allowed.
    ToolApprovalRequest {
        call: String,
    },
    /// The user did not allow the call.
    ToolDenied {
        call: String,
    },
    FinishStep {
        reason: Option<String>,
        usage: Option<StepUsage>,
        /// Does the next step go on with the same text?
        is_continued: bool,
    },
    Finish {
        reason: Option<String>,
        usage: Option<StepUsage>,
    },
    /// The message was given up.
    Abort {
        reason: Option<String>,
    },
    /// Anything else that the protocol knows, as it came: sources, files, signatures, bounds of texts.
    Other {
        kind: String,
        value: Value,
    },
}

/// Tokens of a step or message, where they were said as numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    pub completion_tokens: Option<u64>,
}
