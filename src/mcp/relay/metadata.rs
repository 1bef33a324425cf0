//! What is told beside a call's result: how long it took and was to take, and what may come next.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ongoing::{CallEnd, OngoingCall};
use crate::Engine;
use crate::access::Grant;
use crate::wire::metadata::{CallMetadata, MetadataRequest, ResultContext};
use crate::wire::timing::MeasuresBody;

/// The key of `_meta` that it is told under.
pub(in crate::mcp) const KEY: &str = "dev.almanac/metadata";

/// It is told in at most so many bytes.
const MOST: usize = 4096;

/// What is known of a call before it is made.
#[derive(Debug, Clone)]
pub(super) struct CallFacts {
    pub(super) grant: Grant,
    pub(super) tool: Arc<str>,
    pub(super) mode: Option<String>,
    pub(super) session: Option<String>,
    /// Of its arguments, in bytes.
    pub(super) size: u64,
    pub(super) patience: Duration,
}

/// What is told of a call, as far as it is known before its end.
pub(super) async fn expect(engine: &Engine, facts: CallFacts) -> Option<Map<String, Value>> {
    let CallFacts { grant, tool, mode, session, size, patience } = facts;
    let request = MetadataRequest {
        tool_name: tool.to_string(),
        mode_name: mode,
        complexity: MeasuresBody { content_length: Some(size), ..MeasuresBody::default() },
        result_context: ResultContext { num_outputs: 1, session_id: session, ..ResultContext::default() },
        timeout_ms: Some(patience.as_millis() as u64),
        ..MetadataRequest::default()
    };
    let mut ask = request.ask();
    engine.complete(&engine.learnt(), &grant, &mut ask, None);
    let proposals = engine.propose(&ask).await;
    match serde_json::to_value(CallMetadata::of(engine, &grant, request, &ask, proposals)) {
        Ok(Value::Object(told)) => Some(told),
        _ => None,
    }
}

/// All that is told once the call has ended, as JSON. Tools that cannot be found where it is told are not suggested; of
/// the others `found_as` says what they are called there.
pub(super) fn told(
    call: &OngoingCall,
    end: &CallEnd,
    (is_joined, is_unrecorded): (bool, bool),
    found_as: impl Fn(&str) -> Option<Arc<str>>,
) -> String {
    let mut told = end.metadata.clone().unwrap_or_default();
    let renamed = |name: &mut Value| {
        let found = name.as_str().and_then(&found_as);
        found.map(|found| *name = (*found).into()).is_some()
    };
    let suggested = told.get_mut("suggestions");
    if let Some(Value::Array(tools)) = suggested.and_then(|suggested| suggested.get_mut("next_tools")) {
        tools.retain_mut(|tool| renamed(&mut tool["tool"]));
    }
    let suggested = told.get_mut("suggestions");
    if let Some(Value::Array(presets)) = suggested.and_then(|suggested| suggested.get_mut("relevant_presets")) {
        // One with a step that cannot be called is of no use.
        presets.retain_mut(|preset| match &mut preset["remaining_steps"] {
            Value::Array(steps) => steps.iter_mut().all(&renamed),
            _ => true,
        });
    }
    let timing = told.entry("timing").or_insert_with(|| json!({}));
    timing["duration_ms"] = (end.duration.as_millis() as u64).into();
    let mut about = json!({"server": call.tool.server.name, "queued_ms": end.queued.as_millis() as u64});
    if is_joined {
        about["joined"] = true.into();
    }
    if is_unrecorded {
        about["recorded"] = false.into();
    }
    if let Some(handle) = call.handle() {
        about["handle"] = handle.into();
    }
    told.insert("call".to_owned(), about);
    fitted(told)
}

/// Without what matters least, if it is too long.
fn fitted(mut told: Map<String, Value>) -> String {
    let text = |told: &Map<String, Value>| serde_json::to_string(told).unwrap_or_default();
    let mut said = text(&told);
    if said.len() > MOST
        && let Some(presets) = told.get_mut("suggestions").and_then(|suggested| suggested.get_mut("relevant_presets"))
    {
        *presets = json!([]);
        said = text(&told);
    }
    for member in ["suggestions", "context", "timing"] {
        if said.len() > MOST {
            told.remove(member);
            said = text(&told);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_loses_what_matters_least() {
        let check = |presets: usize, tools: usize, expected: [bool; 2]| {
            let suggested = json!({"relevant_presets": ["x".repeat(presets)], "next_tools": ["y".repeat(tools)]});
            let told = json!({"timing": {"p50_ms": 1}, "suggestions": suggested, "call": {"server": "a"}});
            let Value::Object(told) = told else { panic!() };
            let said = fitted(told);
            assert!(said.len() <= MOST);
            assert_eq!([said.contains("xx"), said.contains("yy")], expected);
            assert!(said.contains("p50_ms") && said.contains("server"));
        };
        check(100, 100, [true, true]);
        check(5000, 100, [false, true]);
        check(100, 5000, [false, false]);
    }
}
