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
    /// Tokens of the prompt, cached or not.
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer.
    pub completion_tokens: Option<u64>,
    /// Tokens of the prompt that were read from a cache.
    pub cached_tokens: Option<u64>,
}

impl StepUsage {
    /// What a `usage` says: `promptTokens` as AI SDK 4 has it, `inputTokens` as later ones, either in snake case as
    /// some servers do. Nothing if it is no object.
    pub fn of(usage: &Value) -> Option<Self> {
        let usage = usage.as_object()?;
        let tokens = |names: &[&str]| names.iter().find_map(|name| usage.get(*name)).and_then(Value::as_u64);
        let details = ["inputTokenDetails", "input_token_details"].iter().find_map(|name| usage.get(*name));
        let in_details = || details.and_then(|details| details["cacheReadTokens"].as_u64());
        Some(Self {
            prompt_tokens: tokens(&["promptTokens", "inputTokens", "prompt_tokens", "input_tokens"]),
            completion_tokens: tokens(&["completionTokens", "outputTokens", "completion_tokens", "output_tokens"]),
            cached_tokens: tokens(&["cachedInputTokens", "cachedTokens", "cached_input_tokens"]).or_else(in_details),
        })
    }

    /// Does it say nothing?
    pub fn is_empty(&self) -> bool {
        self.prompt_tokens.is_none() && self.completion_tokens.is_none()
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| {
            (a.is_some() || b.is_some()).then(|| a.unwrap_or_default().saturating_add(b.unwrap_or_default()))
        };
        Self {
            prompt_tokens: sum(self.prompt_tokens, other.prompt_tokens),
            completion_tokens: sum(self.completion_tokens, other.completion_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_read_in_every_spelling() {
        let check = |usage: Value, expected: [Option<u64>; 3]| {
            let read = StepUsage::of(&usage).unwrap();
            assert_eq!([read.prompt_tokens, read.completion_tokens, read.cached_tokens], expected, "{usage}");
        };
        check(json!({"promptTokens": 3, "completionTokens": 4}), [Some(3), Some(4), None]);
        check(json!({"prompt_tokens": 3, "completion_tokens": null}), [Some(3), None, None]);
        check(json!({"inputTokens": 3, "outputTokens": 4, "cachedInputTokens": 2}), [Some(3), Some(4), Some(2)]);
        check(json!({"inputTokens": 3, "inputTokenDetails": {"cacheReadTokens": 1}}), [Some(3), None, Some(1)]);
        assert!(StepUsage::of(&json!({"totalTokens": 7})).unwrap().is_empty());
        assert_eq!(StepUsage::of(&json!(null)), None);
        let step = |tokens| StepUsage { prompt_tokens: Some(tokens), ..StepUsage::default() };
        assert_eq!(step(3).and(step(4)), step(7));
    }
}
