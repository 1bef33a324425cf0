//! Lines of the data stream of AI SDK 4: a code, a colon, JSON. What is refused is refused in that client's words.

use serde_json::Value;

use super::part::{Part, StepUsage};
use super::part_error::PartError;

pub(super) fn read(line: &str, mut sink: impl FnMut(Part)) -> Result<(), PartError> {
    let Some((prefix, text)) = line.split_once(':') else {
        return Err(PartError::NoSeparator);
    };
    let code = code_of(prefix).ok_or_else(|| PartError::UnknownCode(prefix.to_owned()))?;
    let value: Value = serde_json::from_str(text)?;
    match code {
        '0' => sink(Part::Text(string("text", value)?)),
        '2' => list("data", value)?.into_iter().for_each(|value| sink(Part::Data { name: None, id: None, value })),
        '3' => sink(Part::Error(string("error", value)?)),
        '8' => sink(Part::Metadata(Value::Array(list("message_annotations", value)?))),
        '9' => {
            let refuse = || expects("tool_call", r#"an object with a "toolCallId", "toolName", and "args" property"#);
            let (call, tool) = (field(&value, "toolCallId"), field(&value, "toolName"));
            let (Some(call), Some(tool)) = (call, tool) else { return Err(refuse()) };
            let input = value.get("args").filter(|args| args.is_object() || args.is_array() || args.is_null());
            sink(Part::ToolCall { call: call.clone(), tool, input: input.cloned().ok_or_else(refuse)? });
            if let Some(result) = value.get("result") {
                sink(Part::ToolResult { call, output: result.clone(), preliminary: false });
            }
        }
        'a' => {
            let refuse = || expects("tool_result", r#"an object with a "toolCallId" and a "result" property"#);
            let (call, output) = (field(&value, "toolCallId"), value.get("result").cloned());
            let (Some(call), Some(output)) = (call, output) else { return Err(refuse()) };
            sink(Part::ToolResult { call, output, preliminary: false });
        }
        'b' => {
            let (call, tool) = (field(&value, "toolCallId"), field(&value, "toolName"));
            let (Some(call), Some(tool)) = (call, tool) else {
                let expected = r#"an object with a "toolCallId" and "toolName" property"#;
                return Err(expects("tool_call_streaming_start", expected));
            };
            sink(Part::ToolInputStart { call, tool });
        }
        'c' => {
            let (call, delta) = (field(&value, "toolCallId"), field(&value, "argsTextDelta"));
            let (Some(call), Some(delta)) = (call, delta) else {
                let expected = r#"an object with a "toolCallId" and "argsTextDelta" property"#;
                return Err(expects("tool_call_delta", expected));
            };
            sink(Part::ToolInputDelta { call, delta });
        }
        'd' | 'e' => {
            let name = if code == 'd' { "finish_message" } else { "finish_step" };
            let reason = field(&value, "finishReason")
                .ok_or_else(|| expects(name, r#"an object with a "finishReason" property"#))?;
            let (reason, usage) = (Some(reason), value.get("usage").and_then(StepUsage::of));
            sink(match code {
                'd' => Part::Finish { reason, usage },
                _ => Part::FinishStep { reason, usage, is_continued: value["isContinued"].as_bool().unwrap_or(false) },
            });
        }
        'f' => {
            let id = field(&value, "messageId").or_else(|| field(&value, "id"));
            // The client's own words, although it looks for `messageId`.
            let id = id.ok_or_else(|| expects("start_step", r#"an object with an "id" property"#))?;
            sink(Part::StartStep { message_id: Some(id) });
        }
        'g' => sink(Part::Reasoning(string("reasoning", value)?)),
        'h' => sink(other("source", value, Value::is_object, "a Source object")?),
        'i' => sink(other(
            "redacted_reasoning",
            value,
            |value| value["data"].is_string(),
            r#"an object with a "data" property"#,
        )?),
        'j' => sink(other(
            "reasoning_signature",
            value,
            |value| value["signature"].is_string(),
            r#"an object with a "signature" property"#,
        )?),
        _ => sink(other(
            "file",
            value,
            |value| value["data"].is_string() && value["mimeType"].is_string(),
            r#"an object with a "data" and "mimeType" property"#,
        )?),
    }
    Ok(())
}

/// The code of a prefix: one character, after a lane's letter where two models answer side by side.
fn code_of(prefix: &str) -> Option<char> {
    let mut chars = prefix.chars();
    let ((code, None, _) | ('a' | 'b', Some(code), None)) = (chars.next()?, chars.next(), chars.next()) else {
        return None;
    };
    "02389abcdefghijk".contains(code).then_some(code)
}

fn expects(part: &'static str, expected: &'static str) -> PartError {
    PartError::Unexpected { part, expected }
}

fn string(name: &'static str, value: Value) -> Result<String, PartError> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(expects(name, "a string value")),
    }
}

fn list(name: &'static str, value: Value) -> Result<Vec<Value>, PartError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(expects(name, "an array value")),
    }
}

fn other(
    name: &'static str,
    value: Value,
    holds: impl Fn(&Value) -> bool,
    expected: &'static str,
) -> Result<Part, PartError> {
    if holds(&value) { Ok(Part::Other { kind: name.to_owned(), value }) } else { Err(expects(name, expected)) }
}

pub(super) fn field(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(line: &str) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        read(line, |part| parts.push(part)).map(|()| parts).map_err(|error| error.to_string())
    }

    #[test]
    fn every_code_is_read() {
        let check = |line: &str, expected: Part| assert_eq!(parts(line), Ok(vec![expected]), "{line}");
        let (call, tool) = (|| "c".to_owned(), || "t".to_owned());
        check(r#"0:"[1]""#, Part::Text("[1]".into()));
        check(r#"2:[{"a":1}]"#, Part::Data { name: None, id: None, value: json!({"a": 1}) });
        check(r#"3:"broken""#, Part::Error("broken".into()));
        check("8:[1,2]", Part::Metadata(json!([1, 2])));
        check(
            r#"9:{"toolCallId":"c","toolName":"t","args":{"x":1},"vendor":0}"#,
            Part::ToolCall { call: call(), tool: tool(), input: json!({"x": 1}) },
        );
        let result = Part::ToolResult { call: call(), output: json!(null), preliminary: false };
        check(r#"a:{"toolCallId":"c","result":null}"#, result);
        check(r#"b:{"toolCallId":"c","toolName":"t"}"#, Part::ToolInputStart { call: call(), tool: tool() });
        check(r#"c:{"toolCallId":"c","argsTextDelta":"{"}"#, Part::ToolInputDelta { call: call(), delta: "{".into() });
        let usage = Some(StepUsage { prompt_tokens: Some(3), ..StepUsage::default() });
        check(
            r#"d:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":null}}"#,
            Part::Finish { reason: Some("stop".into()), usage },
        );
        check(
            r#"e:{"finishReason":"continue_prompt","usage":null,"isContinued":true}"#,
            Part::FinishStep { reason: Some("continue_prompt".into()), usage: None, is_continued: true },
        );
        check(r#"f:{"messageId":"m"}"#, Part::StartStep { message_id: Some("m".into()) });
        check(r#"f:{"id":"m"}"#, Part::StartStep { message_id: Some("m".into()) });
        check(r#"g:"hm""#, Part::Reasoning("hm".into()));
        check(r#"a0:"lane""#, Part::Text("lane".into()));
        for (line, kind) in [
            (r#"h:{"url":"u"}"#, "source"),
            (r#"i:{"data":"d"}"#, "redacted_reasoning"),
            (r#"j:{"signature":"s"}"#, "reasoning_signature"),
            (r#"k:{"data":"d","mimeType":"m"}"#, "file"),
        ] {
            let value = serde_json::from_str(&line[2..]).unwrap();
            check(line, Part::Other { kind: kind.into(), value });
        }
        assert_eq!(parts("2:[1,2,3]").unwrap().len(), 3, "every element");
        assert_eq!(parts(r#"9:{"toolCallId":"c","toolName":"t","args":{},"result":1}"#).unwrap().len(), 2);
    }

    #[test]
    fn what_is_refused_is_refused_in_the_clients_words() {
        let check = |line: &str, expected: &str| assert_eq!(parts(line), Err(expected.to_owned()), "{line}");
        check("text", "Failed to parse stream string. No separator found.");
        check(r#"1:"a""#, "Failed to parse stream string. Invalid code 1.");
        check(r#":"a""#, "Failed to parse stream string. Invalid code .");
        check("0:1", r#""text" parts expect a string value."#);
        check("2:{}", r#""data" parts expect an array value."#);
        check(
            r#"9:{"toolCallId":"c","toolName":"t"}"#,
            r#""tool_call" parts expect an object with a "toolCallId", "toolName", and "args" property."#,
        );
        check("a:null", r#""tool_result" parts expect an object with a "toolCallId" and a "result" property."#);
        check("d:{}", r#""finish_message" parts expect an object with a "finishReason" property."#);
        check("f:{}", r#""start_step" parts expect an object with an "id" property."#);
        assert!(parts("0:\"").unwrap_err().starts_with("invalid JSON: "));
    }
}
