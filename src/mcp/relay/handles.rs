//! Results that a client comes back for: of calls that outlived its patience, and the rest of texts that are too long.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::Mcp;
use super::super::error::RpcError;
use super::super::own::ToolResult;
use super::super::request::{McpCaller, McpRequest, MessageSink, RpcAnswer, complete};
use super::ongoing::{CallOwner, OngoingCall, Waiting};
use super::progress::shown;
use super::{Came, Waited, Waiter, client_of, relayed, with_metadata};
use crate::jsonrpc::object::{self, Change};
use crate::jsonrpc::{Members, Version};
use crate::text::head::head;

/// Text that is given at once, in bytes.
const TOO_LONG: usize = 80_000;

/// A client is sent away for at most so long.
const LONGEST: Duration = Duration::from_secs(300);

/// What a client asks of a result.
#[derive(Debug, Default)]
pub(in crate::mcp) struct Fetch {
    pub(in crate::mcp) handle: String,
    pub(in crate::mcp) wait: Option<Duration>,
    /// Bytes of its text that the client has.
    pub(in crate::mcp) offset: usize,
    /// Is the call given up?
    pub(in crate::mcp) cancels: bool,
}

impl Mcp {
    /// Answers whoever comes back with a handle.
    pub(in crate::mcp) async fn fetch(
        self: &Arc<Self>,
        request: &McpRequest,
        events: &MessageSink,
        fetch: Fetch,
    ) -> RpcAnswer {
        let caller = &request.caller;
        let owner = CallOwner::of(caller);
        let Some(call) = self.relay.calls.get(&fetch.handle, &owner) else {
            let text = "there is no call with this handle: results are kept for an hour, by the daemon that made the \
                        call, and not over its restart; the tool may have run, so see what it did before you call it \
                        anew";
            return complete(caller, ToolResult::error(text).into_json(caller.version));
        };
        if fetch.cancels && call.end().is_none() {
            call.cancel();
            self.metrics.relay.detached.with_label_values(&["cancelled"]).inc();
            let text = "the call is being cancelled; it may have run".to_owned();
            let result = ToolResult { text, structured: None, is_error: false };
            return complete(caller, result.into_json(caller.version));
        }
        let waiter = Waiter {
            request,
            events,
            since: Instant::now(),
            patience: self.patience(request),
            client: client_of(request),
            takes_handle: true,
            takes_tasks: false,
            takes_parts: true,
            most: fetch.wait,
            came: Came::Back,
            search: None,
        };
        let waiting = Waiting::begin(&call, &request.presence, true);
        let Waited::Ended(end) = self.wait_for(&waiter, &call, waiting).await else {
            return self.hand_out(&waiter, &call);
        };
        if fetch.offset > 0
            && let Ok(result) = &end.outcome
        {
            return Self::part_of(caller, result.json(), fetch.offset, &fetch.handle, "");
        }
        if !call.was_delivered() {
            self.metrics.relay.detached.with_label_values(&["delivered"]).inc();
            self.metrics.relay.saved.inc();
        }
        self.deliver(&waiter, &call, &end)
    }

    /// Tells a client how to come back for a result that it will not wait for.
    pub(super) fn hand_out(&self, waiter: &Waiter<'_>, call: &Arc<OngoingCall>) -> RpcAnswer {
        let caller = &waiter.request.caller;
        let handle = self.relay.calls.keep(call);
        let elapsed = call.running_for().as_millis() as u64;
        let [half, most] = call.left_ms();
        // Whoever comes back waits again, so that once is enough in nine of ten cases.
        let window = waiter.patience.handle_after();
        let later = Duration::from_millis(most).saturating_sub(window).min(LONGEST);
        let when = match later.as_millis() as u64 {
            0 => "now".to_owned(),
            ms => format!("in {}", shown(ms)),
        };
        let text = format!(
            "Still running after {}; about {} more. Call get_result with handle {handle} {when}: it waits for the \
             result.",
            shown(elapsed),
            shown(half),
        );
        let seconds = |ms: u64| (ms as f64 / 100.0).ceil() / 10.0;
        let structured = json!({
            "handle": handle, "running_seconds": seconds(elapsed), "seconds_left": [seconds(half), seconds(most)],
            "ask_in_seconds": seconds(later.as_millis() as u64),
        });
        let Value::Object(structured) = structured else { return Err(RpcError::internal("no object")) };
        // Clients refuse a result that is not of the schema, unless it is an error.
        let is_error = !waiter.takes_parts && call.tool.has_output_schema;
        let result = ToolResult { text, structured: Some(structured).filter(|_| waiter.takes_parts), is_error };
        let call_told = json!({"call": {"server": call.tool.server.name, "handle": handle}}).to_string();
        complete(caller, with_metadata(result.into_json(caller.version), &call_told))
    }

    /// A part of a result whose text is too long, from this byte of it on.
    pub(super) fn part_of(caller: &McpCaller, result: &RawValue, offset: usize, handle: &str, told: &str) -> RpcAnswer {
        if let Some(part) = part(result, offset, handle, caller.version) {
            return relayed(caller, &part, told);
        }
        let text = format!("the text of this result has fewer than {offset} bytes, or no character begins there");
        complete(caller, ToolResult::error(text).into_json(caller.version))
    }
}

/// Is the text of a result too long to be given at once?
pub(super) fn is_too_long(result: &RawValue) -> bool {
    result.get().len() > TOO_LONG && blocks(result).iter().map(|(_, text)| text.len()).sum::<usize>() > TOO_LONG
}

/// The blocks of a result, each with the text that it is.
fn blocks(result: &RawValue) -> Vec<(Box<RawValue>, String)> {
    let content = Members::read(result).ok().and_then(|members| members.get("content"));
    let content: Vec<Box<RawValue>> =
        content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default();
    let text_of = |block: &RawValue| {
        let members = Members::read(block).ok()?;
        (members.text("type")? == "text").then(|| members.text("text").map(String::from))?
    };
    content
        .into_iter()
        .map(|block| {
            let text = text_of(&block).unwrap_or_default();
            (block, text)
        })
        .collect()
}

/// The result with as much of its text as is given at once. What is no text comes with the first part; structured
/// content repeats the text, so it goes.
fn part(result: &RawValue, offset: usize, handle: &str, version: Version) -> Option<Box<RawValue>> {
    let mut content: Vec<Box<RawValue>> = Vec::new();
    let text_block = |text: &str| to_raw_value(&json!({"type": "text", "text": text})).ok();
    let (mut at, mut left) = (0, TOO_LONG);
    let all = blocks(result);
    let total: usize = all.iter().map(|(_, text)| text.len()).sum();
    if offset >= total {
        return None;
    }
    for (block, text) in all {
        let begin = offset.saturating_sub(at).min(text.len());
        at += text.len();
        if text.is_empty() {
            if offset == 0 {
                content.push(block);
            }
            continue;
        }
        let rest = text.get(begin..)?;
        let shown = head(rest, left);
        left -= shown.len();
        if shown.len() < rest.len() {
            // What follows in other blocks waits as well.
            left = 0;
        }
        if shown.len() == text.len() {
            content.push(block);
        } else if !shown.is_empty() {
            content.push(text_block(shown)?);
        }
    }
    let end = offset + content_bytes(&content);
    if end < total {
        let hint = format!(
            "[bytes {offset} to {end} of {total}; for the rest call get_result with handle {handle} and offset {end}]"
        );
        content.push(text_block(&hint)?);
    }
    let content = serde_json::to_string(&content).ok()?;
    let change = |name: &str, _: &RawValue| match name {
        "content" => Change::Set(content.clone()),
        "structuredContent" if version >= Version::V2025_06_18 => Change::Remove,
        _ => Change::Keep,
    };
    object::rewrite(result, change, &[]).ok()
}

fn content_bytes(content: &[Box<RawValue>]) -> usize {
    let text = |block: &RawValue| Members::read(block).ok().and_then(|members| Some(members.text("text")?.len()));
    content.iter().filter_map(|block| text(block)).sum()
}

/// What is told of a handle to whoever lists tools: the object of the arguments.
pub(in crate::mcp) fn schema() -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    let properties = json!({
        "handle": {"type": "string"},
        "wait_seconds": {"type": "number", "minimum": 0},
        "offset": {"type": "integer", "minimum": 0, "description": "Bytes of a long text that you have."},
        "cancel": {"type": "boolean", "description": "Give the call up."},
    });
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), json!(["handle"]));
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn result(texts: &[String]) -> Box<RawValue> {
        let mut content: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        content.insert(0, json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
        to_raw_value(&json!({"content": content, "structuredContent": {"a": 1}, "x": 1})).unwrap()
    }

    fn texts(part: &RawValue) -> Vec<String> {
        blocks(part).into_iter().map(|(_, text)| text).filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn the_first_part_says_where_the_rest_is() {
        let whole = result(&["a".repeat(TOO_LONG - 1), "äö".to_owned(), "end".to_owned()]);
        assert!(is_too_long(&whole));
        let first = part(&whole, 0, "c_1", Version::V2026_07_28).unwrap();
        let said = texts(&first);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].contains("handle c_1 and offset 79999]"), "{}", said[1]);
        assert!(first.get().contains("image/png") && !first.get().contains("structuredContent"));
        let rest = part(&whole, TOO_LONG - 1, "c_1", Version::V2026_07_28).unwrap();
        assert_eq!(texts(&rest), ["äö", "end"]);
        assert!(!rest.get().contains("image/png"));
        assert!(part(&whole, TOO_LONG, "c_1", Version::V2026_07_28).is_none(), "in the middle of a character");
        assert!(part(&whole, TOO_LONG + 6, "c_1", Version::V2026_07_28).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn all_parts_are_the_whole(lengths in prop::collection::vec(1_usize..90_000, 1..4), letter in "[aé✓]") {
            let pieces: Vec<String> = lengths.iter().map(|length| letter.repeat(length / letter.len() + 1)).collect();
            let whole = result(&pieces);
            let (mut offset, mut read) = (0, String::new());
            while let Some(next) = part(&whole, offset, "c_1", Version::V2026_07_28) {
                let mut said = texts(&next);
                if said.last().is_some_and(|last| last.starts_with("[bytes")) {
                    said.pop();
                }
                let piece = said.concat();
                prop_assert!(!piece.is_empty() && piece.len() <= TOO_LONG);
                offset += piece.len();
                read.push_str(&piece);
            }
            prop_assert_eq!(read, pieces.concat());
        }
    }
}
