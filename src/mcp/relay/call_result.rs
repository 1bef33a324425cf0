//! What a server's call came to. A result may be megabytes long, so what its members say of it is read once.

use std::time::Duration;

use serde_json::value::RawValue;

use super::{rounds, server_task};
use crate::jsonrpc::Members;
use crate::upstream::CallReply;

/// The result of a call.
#[derive(Debug)]
pub(super) struct CallResult {
    json: Box<RawValue>,
    says_error: bool,
    asks: bool,
    is_task: bool,
    fault: Option<&'static str>,
}

/// A [`CallReply`] whose result was looked at.
#[derive(Debug)]
pub(super) struct CallAnswer {
    /// A result, or the server's error object.
    pub(super) outcome: Result<CallResult, Box<RawValue>>,
    pub(super) duration: Duration,
    pub(super) queued: Duration,
}

impl CallResult {
    pub(super) fn read(json: Box<RawValue>) -> Self {
        let Ok(members) = Members::read(&json) else {
            return Self { json, says_error: false, asks: false, is_task: false, fault: Some("it is no object") };
        };
        let says_error = members.get("isError").is_some_and(|value| value.get() == "true");
        let (asks, is_task) = (rounds::asks(&members), server_task::may_be(&members));
        let is_result = !asks && !is_task;
        let with_content = if is_result { with_content(&members) } else { None };
        let fault = if is_result && with_content.is_none() { fault_of(&members) } else { None };
        Self { json: with_content.unwrap_or(json), says_error, asks, is_task, fault }
    }

    /// As the server gave it.
    pub(super) fn json(&self) -> &RawValue {
        &self.json
    }

    /// Why it is no result, if so: a client's library would refuse it, and its model would read nothing.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// Did the tool fail?
    pub(super) fn says_error(&self) -> bool {
        self.says_error
    }

    /// Does the server want to know something first?
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// Does it look like a task instead of a result?
    pub(super) fn is_task(&self) -> bool {
        self.is_task
    }
}

/// The result with its structured content as a text, if it has no other content: some libraries leave that out, others
/// refuse a result without, and models read the content alone.
fn with_content(members: &Members<'_>) -> Option<Box<RawValue>> {
    let is_empty =
        |content: &RawValue| content.get().chars().filter(|character| !character.is_whitespace()).eq("[]".chars());
    let structured = members.get("structuredContent").filter(|_| members.get("content").is_none_or(is_empty))?;
    let content = serde_json::json!([{"type": "text", "text": structured.get()}]).to_string();
    members.set("content", &content).ok()
}

/// Why a result is none, as far as its beginning tells.
fn fault_of(members: &Members<'_>) -> Option<&'static str> {
    let content = members.get("content").map(RawValue::get);
    let first = content.and_then(|content| content.strip_prefix('[')).map(|items| items.trim_start().chars().next());
    match (content, first) {
        (_, Some(Some('{' | ']'))) => None,
        (None, _) => Some("its result has no `content`"),
        _ => Some("`content` of its result is no list of blocks"),
    }
}

impl From<CallReply> for CallAnswer {
    fn from(CallReply { outcome, duration, queued }: CallReply) -> Self {
        Self { outcome: outcome.map(CallResult::read), duration, queued }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_result_says_is_read() {
        let check = |json: &str, expected: [bool; 3]| {
            let result = CallResult::read(RawValue::from_string(json.to_owned()).unwrap());
            assert_eq!([result.says_error(), result.asks(), result.is_task()], expected, "{json}");
            assert_eq!(result.json().get(), json);
        };
        check(r#"{"content":[]}"#, [false, false, false]);
        check(r#"{"content":[],"isError":true}"#, [true, false, false]);
        check(r#"{"content":[],"isError":"true"}"#, [false, false, false]);
        check(r#"{"resultType":"input_required","inputRequests":{}}"#, [false, true, false]);
        check(r#"{"resultType":"complete","content":[]}"#, [false, false, false]);
        check(r#"{"resultType":"task","taskId":"a"}"#, [false, false, true]);
        check(r#"{"task":{"taskId":"b"}}"#, [false, false, true]);
        check(r#"{"content":[],"task":{"taskId":"b"}}"#, [false, false, false]);
        check("[]", [false, false, false]);
    }

    #[test]
    fn what_is_no_result_is_told() {
        let check = |json: &str, expected: Option<&str>| {
            let result = CallResult::read(RawValue::from_string(json.to_owned()).unwrap());
            assert_eq!(result.fault(), expected, "{json}");
        };
        check(r#"{"content": [ ]}"#, None);
        check(r#"{"structuredContent":{"a":1}}"#, None);
        let structured = RawValue::from_string(r#"{"structuredContent":{"a":1}}"#.to_owned()).unwrap();
        let empty = RawValue::from_string(r#"{"content":[ ],"structuredContent":{"a":1}}"#.to_owned()).unwrap();
        let filled = r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#;
        assert_eq!(CallResult::read(empty).json().get(), filled);
        let whole = r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}"#;
        assert_eq!(CallResult::read(structured).json().get(), whole);
        check(r#"{"content":[{"type":"text","text":"a"}]}"#, None);
        check(r#"{"resultType":"input_required","inputRequests":{}}"#, None);
        check(r#"{"task":{"taskId":"b"}}"#, None);
        check("{}", Some("its result has no `content`"));
        check(r#"{"content":"hello"}"#, Some("`content` of its result is no list of blocks"));
        check(r#"{"content":["hello"]}"#, Some("`content` of its result is no list of blocks"));
        check(r#"{"content":null}"#, Some("`content` of its result is no list of blocks"));
        check("7", Some("it is no object"));
    }
}
