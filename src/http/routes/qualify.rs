//! `POST /v1/qualify`: which tools fit this message? As JSON, or as the events of a chat stream.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::access::Grant;
use crate::engine::{Named, SelectError, Selection};
use crate::http::handler::{Answering, Context, Request, blocking};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::http::{answer, framing};
use crate::qualify::IntentContext;
use crate::store::{NotesPending, StoreError};
use crate::wire::problem::Code;
use crate::wire::qualify::{IntentContextBody, MissAnswer, MissEvent, MissRequest, QualifyAnswer, QualifyRequest};

/// Of a session that a token may not change.
const NOT_NOTED: &str = "the session does not go on with this message: that takes a token with the scope record; \
                         without it send `intentContext` back instead";

pub(super) fn qualify_operation() -> Operation {
    Operation::new("qualify", "Which tools fit this message, and why.")
        .taking(&framing::PARAMETERS)
        .with_body::<QualifyRequest>()
        .answering::<QualifyAnswer>("What fits.")
        .answering_text(200, "The same as a chat stream.", "text/plain")
        .answering_text(200, "The same as a chat stream.", "text/event-stream")
}

pub(super) fn qualify(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let protocol = framing::wanted(&request)?;
        let body: QualifyRequest = request.take_body()?;
        let (scores, explain) = (body.scores, body.explain);
        let is_noted = body.session_id.is_none() || request.grant.leaves_traces();
        let found = context.engine.select(selection(body, &request)).await.map_err(refused)?;
        let timestamp = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let degraded = (!is_noted).then(|| NOT_NOTED.to_owned());
        let answer = QualifyAnswer { degraded, ..QualifyAnswer::new(found, scores, explain, timestamp) };
        Ok(match protocol {
            None => answer::json(&answer),
            Some(protocol) => framing::stream(protocol, events(&answer)),
        })
    })
}

fn selection(body: QualifyRequest, request: &Request) -> Selection {
    Selection {
        grant: request.grant.clone(),
        session: body.session_id,
        message: body.message,
        context: body.intent_context.map(IntentContext::from),
        networks: body.networks,
        selected_categories: body.selected_tool_categories,
        exact_tools: body.exact_tool_names,
        ignore_other_tools: body.ignore_other_tools,
        excluded_tools: body.excluded_tools,
        max_tools: body.max_tools,
        min_confidence: body.min_confidence.unwrap_or_default() as f32,
    }
}

fn refused(error: SelectError) -> Problem {
    let error = match error {
        SelectError::Unknown(error) => error,
        SelectError::NoThread(error) => return error.into(),
    };
    let code = match error.what {
        Named::Tool => Code::UnknownTool,
        Named::Category => Code::UnknownCategory,
        Named::Network => Code::UnknownNetwork,
    };
    Problem::invalid(code, error.to_string()).with_near(error.near)
}

/// The events of a turn, in their order.
fn events(answer: &QualifyAnswer) -> [Value; 3] {
    let QualifyAnswer { networks, categories, confidence, reasoning, intent_context, timestamp, .. } = answer;
    let mut thought = json!({
        "type": "reasoning", "thinking": reasoning, "networks": networks, "categories": categories,
        "confidence": confidence, "timestamp": timestamp,
    });
    if let (Some(intent), Some(thought)) = (&answer.active_intent, thought.as_object_mut()) {
        thought.insert("activeIntent".to_owned(), intent.as_str().into());
    }
    let mut context = json!({
        "type": "intent_context", "intentContext": intent_context, "categories": categories, "confidence": confidence,
        "reasoning": reasoning, "stickyFallbackApplied": answer.sticky_fallback_applied, "timestamp": timestamp,
    });
    if let (Some(degraded), Some(context)) = (&answer.degraded, context.as_object_mut()) {
        context.insert("degraded".to_owned(), degraded.as_str().into());
    }
    let tools = json!({
        "type": "dev_tools_info", "qualifiedCategories": categories, "availableTools": answer.available_tools,
        "toolCount": answer.tool_count, "timestamp": timestamp, "reasoning": reasoning,
    });
    [thought, context, tools]
}

pub(super) fn miss_operation() -> Operation {
    Operation::new("reportMiss", "A tool was needed and not offered: its category is added, and the choice is learnt.")
        .taking(&framing::PARAMETERS)
        .with_body::<MissRequest>()
        .answering::<MissAnswer>("What a client shows.")
        .answering_text(200, "The events as a chat stream.", "text/plain")
        .answering_text(200, "The events as a chat stream.", "text/event-stream")
}

pub(super) fn miss(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let protocol = framing::wanted(&request)?;
        let body: MissRequest = request.take_body()?;
        let (answer, noted) = blocking(move || report_miss(&context, &request.grant, body)).await?;
        let durable = match noted {
            Ok(noted) => noted.durable().await,
            Err(error) => Err(error),
        };
        let degraded = durable.err().map(|error| format!("it may be forgotten when the daemon ends: {error}"));
        Ok(match protocol {
            None => answer::json(&MissAnswer { degraded, ..answer }),
            Some(protocol) => framing::stream(protocol, miss_events(&answer, degraded)),
        })
    })
}

/// The events of a miss. A stream has no other place to say that it may be forgotten than the last of them.
fn miss_events(answer: &MissAnswer, degraded: Option<String>) -> Vec<Value> {
    let mut events: Vec<Value> = answer.events.iter().map(|event| json!(event)).collect();
    if let (Some(degraded), Some(Value::Object(last))) = (degraded, events.last_mut()) {
        last.insert("degraded".to_owned(), degraded.into());
    }
    events
}

fn report_miss(
    context: &Context,
    grant: &Grant,
    request: MissRequest,
) -> Result<(MissAnswer, Result<NotesPending, StoreError>), Problem> {
    let MissRequest { tool_name, session_id, message } = request;
    let generation = context.engine.generation();
    if generation.tool(&tool_name).is_none() {
        let detail = format!("there is no tool `{tool_name}` in the catalog");
        return Err(Problem::invalid(Code::UnknownTool, detail).with_near(generation.near_names(&tool_name)));
    }
    let message = message.as_deref().filter(|message| !message.is_empty());
    let (missed, noted) = context.engine.miss(&generation, grant, session_id.as_deref(), message, &tool_name);
    let timestamp = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let category = missed.category.as_deref().unwrap_or("no category");
    let event = |kind: &str, message: String| MissEvent {
        kind: kind.to_owned(),
        tool_name: tool_name.clone(),
        category_id: None,
        added_category: None,
        retry_count: None,
        message,
        timestamp: timestamp.clone(),
    };
    let missing = MissEvent {
        category_id: missed.category.clone(),
        ..event("missing_tool", format!("{tool_name} was needed and not offered; it belongs to {category}"))
    };
    let retry = MissEvent {
        added_category: missed.category.clone(),
        retry_count: Some(missed.retries),
        ..event("auto_retry", format!("retry with {category} added"))
    };
    let intent_context = missed.context.as_ref().map(IntentContextBody::from);
    Ok((MissAnswer { events: vec![missing, retry], intent_context, degraded: None }, noted))
}
