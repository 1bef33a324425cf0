//! The UI message stream of AI SDK 5 and later: server-sent events, each a typed JSON object.

use serde_json::Value;

use super::data_v1::field;
use super::part::{Part, StepUsage};
use super::part_error::PartError;

/// Assembles events from lines, as the HTML standard has it ("9.2.6 Interpreting an event stream").
#[derive(Debug, Default)]
pub(super) struct Events {
    data: Option<String>,
    begun: bool,
}

impl Events {
    /// Takes a line; the data of the event that it ends, if it ends one.
    ///
    /// # Errors
    /// For a field that events don't have. The standard ignores it, but a stream of another protocol consists of them.
    pub(super) fn take(&mut self, line: &str) -> Result<Option<String>, PartError> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let line = line.strip_prefix('\u{feff}').filter(|_| is_first).unwrap_or(line);
        if line.is_empty() {
            return Ok(self.data.take());
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name {
            "data" => self.add(value.strip_prefix(' ').unwrap_or(value)),
            "" | "event" | "id" | "retry" => {}
            _ => return Err(PartError::UnknownField(name.to_owned())),
        }
        Ok(None)
    }

    fn add(&mut self, line: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(line);
            }
            None => self.data = Some(line.to_owned()),
        }
    }

    /// Bytes held of an event that has not ended.
    pub(super) fn held(&self) -> usize {
        self.data.as_ref().map_or(0, String::len)
    }

    /// The event that no empty line ended.
    pub(super) fn rest(&mut self) -> Option<String> {
        self.data.take()
    }
}

/// Types of chunks that are kept as they came, with the strings each must have.
const KEPT: [(&str, &[&str]); 13] = [
    ("text-start", &["id"]),
    ("text-end", &["id"]),
    ("reasoning-start", &["id"]),
    ("reasoning-end", &["id"]),
    ("reasoning-file", &["url", "mediaType"]),
    ("source-url", &["sourceId", "url"]),
    ("source-document", &["sourceId", "mediaType", "title"]),
    ("file", &["url", "mediaType"]),
    ("custom", &["kind"]),
    ("tool-approval-request", &["approvalId", "toolCallId"]),
    ("tool-approval-response", &["approvalId"]),
    ("steering-message", &["id"]),
    ("reset-step", &[]),
];

/// Reads the data of one event.
pub(super) fn read(data: &str, mut sink: impl FnMut(Part)) -> Result<(), PartError> {
    if data == "[DONE]" {
        return Ok(());
    }
    let value: Value = serde_json::from_str(data)?;
    let Some(kind) = field(&value, "type") else {
        return Err(PartError::NoType);
    };
    let string =
        |key: &str| field(&value, key).ok_or_else(|| PartError::NoString { chunk: kind.clone(), key: key.to_owned() });
    let any = |key: &str| value.get(key).cloned().unwrap_or(Value::Null);
    let either = |one: &str, two: &str| value.get(one).or_else(|| value.get(two)).cloned().unwrap_or(Value::Null);
    let usage = || ["usage", "totalUsage"].iter().find_map(|key| value.get(*key)).and_then(StepUsage::of);
    // The first and the last event of a message may bring some of what belongs to all of it.
    if let ("start" | "finish", Some(metadata)) = (kind.as_str(), value.get("messageMetadata")) {
        sink(Part::Metadata(metadata.clone()));
    }
    sink(match kind.as_str() {
        "start" => Part::Start { message_id: field(&value, "messageId") },
        "start-step" => Part::StartStep { message_id: None },
        "finish-step" => Part::FinishStep { reason: None, usage: usage(), is_continued: false },
        "finish" => Part::Finish { reason: field(&value, "finishReason"), usage: usage() },
        "abort" => Part::Abort { reason: field(&value, "reason") },
        "error" => Part::Error(string("errorText")?),
        "message-metadata" => Part::Metadata(any("messageMetadata")),
        "text-delta" => Part::Text(string("delta")?),
        "reasoning-delta" => Part::Reasoning(string("delta")?),
        "tool-input-start" => Part::ToolInputStart { call: string("toolCallId")?, tool: string("toolName")? },
        "tool-input-delta" => Part::ToolInputDelta { call: string("toolCallId")?, delta: string("inputTextDelta")? },
        "tool-input-available" => {
            Part::ToolCall { call: string("toolCallId")?, tool: string("toolName")?, input: any("input") }
        }
        "tool-call" => {
            Part::ToolCall { call: string("toolCallId")?, tool: string("toolName")?, input: either("input", "args") }
        }
        "tool-input-error" => Part::ToolInputError { call: string("toolCallId")?, error: string("errorText")? },
        "tool-output-available" => Part::ToolResult {
            call: string("toolCallId")?,
            output: any("output"),
            preliminary: value["preliminary"].as_bool().unwrap_or(false),
        },
        "tool-result" => {
            let output = either("output", "result");
            Part::ToolResult { call: string("toolCallId")?, output, preliminary: false }
        }
        "tool-output-error" => Part::ToolError { call: string("toolCallId")?, error: string("errorText")? },
        "tool-output-denied" => Part::ToolDenied { call: string("toolCallId")? },
        "tool-approval-request" if value["isAutomatic"] != true => {
            string("approvalId")?;
            Part::ToolApprovalRequest { call: string("toolCallId")? }
        }
        "data-custom" if value["data"].is_array() => {
            for value in any("data").as_array().into_iter().flatten().cloned() {
                sink(Part::Data { name: None, id: None, value });
            }
            return Ok(());
        }
        name if name.starts_with("data-") => Part::Data {
            name: name.strip_prefix("data-").map(str::to_owned),
            id: field(&value, "id"),
            value: any("data"),
        },
        known => {
            let Some((_, keys)) = KEPT.iter().find(|(name, _)| *name == known) else {
                return Err(PartError::UnknownChunk(known.to_owned()));
            };
            for key in *keys {
                string(key)?;
            }
            Part::Other { kind: kind.clone(), value: value.clone() }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(data: &Value) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        read(&data.to_string(), |part| parts.push(part)).map(|()| parts).map_err(|error| error.to_string())
    }

    #[test]
    fn every_type_is_read() {
        let check = |data: Value, expected: Part| assert_eq!(parts(&data), Ok(vec![expected]), "{data}");
        let (call, tool) = (|| "c".to_owned(), || "t".to_owned());
        check(json!({"type": "start", "messageId": "m"}), Part::Start { message_id: Some("m".into()) });
        let usage = Some(StepUsage { prompt_tokens: Some(3), ..StepUsage::default() });
        let finish = json!({"type": "finish", "messageMetadata": {"a": 1}, "totalUsage": {"inputTokens": 3}});
        let parts_of_it = [Part::Metadata(json!({"a": 1})), Part::Finish { reason: None, usage }];
        assert_eq!(parts(&finish), Ok(parts_of_it.to_vec()));
        check(json!({"type": "start-step"}), Part::StartStep { message_id: None });
        check(json!({"type": "text-delta", "id": "1", "delta": "[1]"}), Part::Text("[1]".into()));
        check(json!({"type": "text-delta", "delta": "x"}), Part::Text("x".into()));
        check(json!({"type": "error", "errorText": "no"}), Part::Error("no".into()));
        let called = || Part::ToolCall { call: call(), tool: tool(), input: json!({"x": 1}) };
        let arguments = json!({"x": 1});
        check(
            json!({"type": "tool-input-available", "toolCallId": "c", "toolName": "t", "input": arguments}),
            called(),
        );
        check(json!({"type": "tool-call", "toolCallId": "c", "toolName": "t", "args": arguments}), called());
        let answered = |preliminary| Part::ToolResult { call: call(), output: json!(7), preliminary };
        check(json!({"type": "tool-output-available", "toolCallId": "c", "output": 7}), answered(false));
        check(
            json!({"type": "tool-output-available", "toolCallId": "c", "output": 7, "preliminary": true}),
            answered(true),
        );
        check(json!({"type": "tool-result", "toolCallId": "c", "result": 7}), answered(false));
        check(
            json!({"type": "tool-output-error", "toolCallId": "c", "errorText": "e"}),
            Part::ToolError { call: call(), error: "e".into() },
        );
        check(json!({"type": "tool-output-denied", "toolCallId": "c"}), Part::ToolDenied { call: call() });
        check(
            json!({"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}),
            Part::ToolApprovalRequest { call: call() },
        );
        check(
            json!({"type": "data-intent-context", "id": "1", "data": {"a": 1}}),
            Part::Data { name: Some("intent-context".into()), id: Some("1".into()), value: json!({"a": 1}) },
        );
        check(
            json!({"type": "finish", "finishReason": "stop"}),
            Part::Finish { reason: Some("stop".into()), usage: None },
        );
        check(json!({"type": "abort", "reason": "r"}), Part::Abort { reason: Some("r".into()) });
        let automatic =
            json!({"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c", "isAutomatic": true});
        check(automatic.clone(), Part::Other { kind: "tool-approval-request".into(), value: automatic });
        let source = json!({"type": "source-url", "sourceId": "s", "url": "u"});
        check(source.clone(), Part::Other { kind: "source-url".into(), value: source });
        assert_eq!(parts(&json!({"type": "data-custom", "data": [1, 2]})).unwrap().len(), 2);
        assert!(read("[DONE]", |_| unreachable!()).is_ok());
    }

    #[test]
    fn what_is_refused_says_why() {
        let check = |data: Value, expected: &str| assert_eq!(parts(&data), Err(expected.to_owned()), "{data}");
        check(json!({"type": "nope"}), r#"unknown type of chunk "nope""#);
        check(json!([1]), r#"a chunk is an object with a string "type""#);
        check(json!({"type": "text-start"}), r#""text-start" chunks need a string "id""#);
        check(
            json!({"type": "tool-output-available", "toolCallId": 1}),
            r#""tool-output-available" chunks need a string "toolCallId""#,
        );
    }

    #[test]
    fn events_are_assembled_as_the_standard_says() {
        let mut events = Events::default();
        let lines = ["\u{feff}: comment", "event: x", "data: a", "data:b", "", "id: 1", "", "data", "", "data:  c"];
        let ended: Vec<String> = lines.iter().filter_map(|line| events.take(line).unwrap()).collect();
        assert_eq!(ended, ["a\nb", ""]);
        assert_eq!(events.rest().as_deref(), Some(" c"));
        let refused = r#"unknown field "0"; those of an event are data, event, id and retry"#;
        assert_eq!(events.take(r#"0:"text""#).unwrap_err().to_string(), refused);
    }
}
