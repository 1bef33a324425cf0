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
        let said = Members::read(&json).map(|members| {
            let says_error = members.get("isError").is_some_and(|value| value.get() == "true");
            (says_error, rounds::asks(&members), server_task::may_be(&members))
        });
        // What is no object says nothing; it is refused where it is delivered.
        let (says_error, asks, is_task) = said.unwrap_or_default();
        Self { json, says_error, asks, is_task }
    }

    /// As the server gave it.
    pub(super) fn json(&self) -> &RawValue {
        &self.json
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
}
