//! What a stream says, whichever protocol said it.

use serde_json::Value;

/// One thing that a stream says.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A message begins.
    Start {
        /// Its id.
        message_id: Option<String>,
    },
    /// A step of the message begins.
    StartStep {
        /// The message's id.
        message_id: Option<String>,
    },
    /// More text.
    Text(String),
    /// More reasoning of the model.
    Reasoning(String),
    /// A value of the application's own.
    Data {
        /// Its kind, where the protocol names it.
        name: Option<String>,
        /// A later value of the same kind and id replaces it.
        id: Option<String>,
        /// The value.
        value: Value,
    },
    /// Values that belong to the whole message.
    Metadata(Value),
    /// The stream failed.
    Error(String),
    /// A tool call's input begins to arrive.
    ToolInputStart {
        /// The call.
        call: String,
        /// Its tool.
        tool: String,
    },
    /// More of a tool call's input.
    ToolInputDelta {
        /// The call.
        call: String,
        /// More of its JSON text.
        delta: String,
    },
    /// A tool is called.
    ToolCall {
        /// The call.
        call: String,
        /// Its tool.
        tool: String,
        /// What it is called with.
        input: Value,
    },
    /// A tool cannot be called: its input is faulty.
    ToolInputError {
        /// The call.
        call: String,
        /// What is wrong.
        error: String,
    },
    /// A tool answered.
    ToolResult {
        /// The call.
        call: String,
        /// The answer.
        output: Value,
        /// Is it a progress report, which another follows?
        preliminary: bool,
    },
    /// A tool failed.
    ToolError {
        /// The call.
        call: String,
        /// Why.
        error: String,
    },
    /// The user is asked whether the call is allowed.
    ToolApprovalRequest {
        /// The call.
        call: String,
    },
    /// The user did not allow the call.
    ToolDenied {
        /// The call.
        call: String,
    },
    /// A step ended.
    FinishStep {
        /// Why.
        reason: Option<String>,
        /// What it cost.
        usage: Option<StepUsage>,
        /// Does the next step go on with the same text?
        is_continued: bool,
    },
    /// The message ended.
    Finish {
        /// Why.
        reason: Option<String>,
        /// What it cost.
        usage: Option<StepUsage>,
    },
    /// The message was given up.
    Abort {
        /// Why.
        reason: Option<String>,
    },
    /// Anything else that the protocol knows, as it came: sources, files, signatures, bounds of texts.
    Other {
        /// Its name.
        kind: String,
        /// Its value.
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
