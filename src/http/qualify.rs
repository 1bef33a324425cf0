//! `POST /v1/qualify`: which tools fit this message? As JSON, or as the events of a chat stream.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::operation::{Operation, Parameter, query};
use super::problem::Problem;
use super::query::Query;
use super::route::Later;
use super::service::{Context, work};
use super::wire_qualify::{
    IntentContextBody, MissAnswer, MissEvent, MissRequest, QualifyAnswer, QualifyRequest, round,
};
use crate::access::Grant;
use crate::catalog::ToolMetadata;
use crate::engine::Generation;
use crate::llm::{self, Candidate, Llm};
use crate::qualify::{Categories, IntentContext, Qualification, Question, Rules};
use crate::store::{NotesPending, StoreError};
use crate::stream::{Protocol, render};
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::telemetry::events::{Qualified, ToolMissed};
use crate::text::near;

pub(super) fn qualify_operation() -> Operation {
    const PARAMETERS: [Parameter; 1] = [query(
        "stream",
        "string",
        "data-v1 or ui-v1: answer as the events of that chat stream; also by `Accept: text/event-stream`.",
    )];
    Operation::new("qualify", "Which tools fit this message, and why.")
        .taking(&PARAMETERS)
        .with_body::<QualifyRequest>()
        .answering::<QualifyAnswer>("What fits.")
        .answering_text(200, "The same as a chat stream.", "text/plain")
        .answering_text(200, "The same as a chat stream.", "text/event-stream")
}

pub(super) fn qualify(context: Arc<Context>, grant: Grant, parts: Parts, body: Node) -> Later {
    Box::pin(async move {
        let protocol = protocol(&parts)?;
        let request: QualifyRequest = decode(body).map_err(|faults| Problem::faulty(&faults))?;
        let (message, scores, start) = (request.message.clone(), request.scores, Instant::now());
        let local = Arc::clone(&context);
        let mut found = work(move || select(&local, &grant, request)).await?;
        if let Some(llm) = &context.llm {
            ask(llm, &message, &mut found).await;
        }
        Qualified { took: start.elapsed(), tools: found.available.len(), found: &found }.emit(&context.metrics);
        let timestamp = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let answer = say(found, scores, timestamp);
        Ok(match protocol {
            None => answer::json(&answer),
            Some(protocol) => stream(protocol, &events(&answer)),
        })
    })
}

fn select(context: &Context, grant: &Grant, request: QualifyRequest) -> Result<Qualification, Problem> {
    let generation = context.engine.generation();
    check_names(&generation, &request)?;
    let settings = context.engine.qualifier_settings();
    let sent: Option<IntentContext> = request.intent_context.map(IntentContext::from);
    let question = Question {
        message: &request.message,
        context: sent.as_ref(),
        networks: &request.networks,
        selected_categories: &request.selected_tool_categories,
        exact_tools: &request.exact_tool_names,
        ignore_other_tools: request.ignore_other_tools,
        excluded_tools: &request.excluded_tools,
        max_tools: request.max_tools.unwrap_or(settings.max_tools),
        min_confidence: request.min_confidence.unwrap_or_default() as f32,
        rules: Rules { new_context: settings.new_context as f32, max_turns: settings.max_turns },
    };
    Ok(context.engine.qualify(&generation, &grant.tenant, request.session_id.as_deref(), &question))
}

/// Asks the model for its order and its words. Without an answer of it the local one stands; it can name nothing that is not
/// offered already.
async fn ask(llm: &Llm, message: &str, found: &mut Qualification) {
    if found.available.is_empty() || found.no_tool_needed {
        return;
    }
    let shown: Vec<ToolMetadata> =
        found.available.iter().take(llm.max_candidates()).map(|tool| tool.entry.document()).collect();
    let candidates = shown.iter().map(|document| Candidate {
        name: &document.name,
        category: &document.category,
        description: &document.description,
    });
    // Why there is none is logged and counted where it is found.
    let Ok(opinion) = llm.ask(&llm::Question { message, candidates: candidates.collect() }).await else { return };
    found.prefer(&opinion.ranked);
    if let Some(reasoning) = opinion.reasoning {
        found.reasoning = reasoning;
    }
}

/// A name in a request that the catalog does not have is a mistake to be told, not an empty answer.
fn check_names(generation: &Generation, request: &QualifyRequest) -> Result<(), Problem> {
    for name in &request.exact_tool_names {
        if generation.tool(name).is_none() {
            let detail = format!("there is no tool `{name}` in the catalog");
            return Err(Problem::invalid("unknown-tool", detail).with_near(generation.near_names(name)));
        }
    }
    let Categories { categories, networks } = &**generation.categories();
    let has_category = |name: &str| categories.iter().any(|known| known.name == name) || generation.has_category(name);
    if let Some(name) = request.selected_tool_categories.iter().find(|name| !has_category(name)) {
        let near = near::nearest_few(name, categories.iter().map(|known| known.name.as_str()), 3);
        let near = near.into_iter().map(str::to_owned).collect();
        return Err(Problem::invalid("unknown-category", format!("there is no category `{name}`")).with_near(near));
    }
    if let Some(name) = request.networks.iter().find(|name| !networks.iter().any(|known| known.name == **name)) {
        let near = near::nearest_few(name, networks.iter().map(|known| known.name.as_str()), 3);
        let near = near.into_iter().map(str::to_owned).collect();
        return Err(Problem::invalid("unknown-network", format!("there is no network `{name}`")).with_near(near));
    }
    Ok(())
}

fn protocol(parts: &Parts) -> Result<Option<Protocol>, Problem> {
    let query = Query::parse(parts.uri.query(), &["stream"])?;
    if let Some(name) = query.get("stream") {
        let unknown =
            || Problem::bad_request("unknown-protocol", format!("`stream` is data-v1 or ui-v1, not `{name}`"));
        return Protocol::parse(name).map(Some).ok_or_else(unknown);
    }
    let accepts = parts.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let wants_events =
        accepts.flat_map(|value| value.split(',')).any(|range| range.trim().starts_with("text/event-stream"));
    Ok(wants_events.then_some(Protocol::UiV1))
}

/// The answer as it goes over the wire.
pub(crate) fn say(found: Qualification, scores: bool, timestamp: String) -> QualifyAnswer {
    QualifyAnswer {
        intent_context: IntentContextBody::from(&found.context),
        networks: found.networks,
        categories: found.categories,
        confidence: round(found.confidence),
        reasoning: found.reasoning,
        tool_hints: found.tool_hints.iter().map(ToString::to_string).collect(),
        active_intent: found.active_intent,
        scores: scores.then(|| found.available.iter().map(|tool| round(tool.confidence)).collect()),
        tool_count: found.available.len(),
        available_tools: found.available.iter().map(|tool| tool.entry.name().to_string()).collect(),
        tools_total: found.tools_total,
        no_tool_needed: found.no_tool_needed,
        sticky_fallback_applied: found.sticky,
        timestamp,
    }
}

/// The events of a turn, in their order, each with its name in the UI message stream.
fn events(answer: &QualifyAnswer) -> [(&'static str, Value); 3] {
    let QualifyAnswer { networks, categories, confidence, reasoning, intent_context, timestamp, .. } = answer;
    let mut thought = json!({
        "type": "reasoning", "thinking": reasoning, "networks": networks, "categories": categories,
        "confidence": confidence, "timestamp": timestamp,
    });
    if let (Some(intent), Some(thought)) = (&answer.active_intent, thought.as_object_mut()) {
        thought.insert("activeIntent".to_owned(), intent.as_str().into());
    }
    let context = json!({
        "type": "intent_context", "intentContext": intent_context, "categories": categories, "confidence": confidence,
        "reasoning": reasoning, "stickyFallbackApplied": answer.sticky_fallback_applied, "timestamp": timestamp,
    });
    let tools = json!({
        "type": "dev_tools_info", "qualifiedCategories": categories, "availableTools": answer.available_tools,
        "toolCount": answer.tool_count, "timestamp": timestamp, "reasoning": reasoning,
    });
    [("reasoning", thought), ("intent-context", context), ("dev-tools-info", tools)]
}

fn stream(protocol: Protocol, events: &[(&'static str, Value)]) -> Answer {
    let body = render::data(protocol, events.iter().map(|(name, value)| (*name, value.clone())));
    let content_type = HeaderValue::from_static(protocol.content_type());
    let mut answer = answer::bytes(StatusCode::OK, content_type.clone(), Bytes::from(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(HeaderName::from_static(protocol.header()), HeaderValue::from_static("v1"));
    answer
}

pub(super) fn miss_operation() -> Operation {
    Operation::new("reportMiss", "A tool was needed and not offered: its category is added, and the choice is learnt.")
        .with_body::<MissRequest>()
        .answering::<MissAnswer>("What a client shows.")
}

pub(super) fn miss(context: Arc<Context>, grant: Grant, body: Node) -> Later {
    Box::pin(async move {
        let request: MissRequest = decode(body).map_err(|faults| Problem::faulty(&faults))?;
        let (answer, noted) = work(move || report_miss(&context, &grant, request)).await?;
        let durable = match noted {
            Ok(noted) => noted.durable().await,
            Err(error) => Err(error),
        };
        let degraded = durable.err().map(|error| format!("it may be forgotten when the daemon ends: {error}"));
        Ok(answer::json(&MissAnswer { degraded, ..answer }))
    })
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
        return Err(Problem::invalid("unknown-tool", detail).with_near(generation.near_names(&tool_name)));
    }
    let message = message.as_deref().filter(|message| !message.is_empty());
    let (missed, noted) = context.engine.miss(&generation, &grant.tenant, session_id.as_deref(), message, &tool_name);
    ToolMissed { tool: &tool_name, missed: &missed }.emit(&context.metrics);
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
