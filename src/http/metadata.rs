//! The metadata object: what is said of a call, and what may come next.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer;
use super::operation::Operation;
use super::problem::Problem;
use super::route::Later;
use super::service::{Context, work};
use super::timing::say;
use super::wire_metadata::{CallContext, EnrichRequest, Metadata, MetadataRequest};
use crate::access::Grant;
use crate::engine::Asked;
use crate::engine::proposer::{Ask, Proposals};
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::telemetry::events::ToolsSuggested;

pub(super) fn metadata_operation() -> Operation {
    Operation::new("getMetadata", "The metadata object for a call.")
        .with_body::<MetadataRequest>()
        .answering::<Metadata>("Timing, suggestions and context.")
}

pub(super) fn metadata(context: Arc<Context>, grant: Grant, body: Node) -> Later {
    Box::pin(async move {
        let request: MetadataRequest = decode(body).map_err(|faults| Problem::faulty(&faults))?;
        let ask = context.engine.with_goal(request.ask(&grant.tenant));
        let proposals = context.engine.propose(&ask).await;
        work(move || Ok(answer::json(&describe(&context, request, &ask, proposals)))).await
    })
}

pub(super) fn enrich_operation() -> Operation {
    Operation::new("enrich", "A tool's response with the metadata object added.")
        .with_body::<EnrichRequest>()
        .answering::<Map<String, Value>>("The response, untouched but for `metadata`.")
}

pub(super) fn enrich(context: Arc<Context>, grant: Grant, body: Node) -> Later {
    Box::pin(async move {
        let EnrichRequest { request, mut response } = decode(body).map_err(|faults| Problem::faulty(&faults))?;
        let ask = context.engine.with_goal(request.ask(&grant.tenant));
        let proposals = context.engine.propose(&ask).await;
        work(move || {
            let metadata = describe(&context, request, &ask, proposals);
            let metadata = serde_json::to_value(metadata).expect("wire types have string keys and finite numbers");
            response.insert("metadata".to_owned(), metadata);
            Ok(answer::json(&response))
        })
        .await
    })
}

fn describe(context: &Context, request: MetadataRequest, ask: &Ask, proposals: Proposals) -> Metadata {
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let suggestions = context.engine.suggest(&generation, &learnt, ask, proposals);
    let sources: Vec<&str> = suggestions.next_tools.iter().map(|next| next.source.as_str()).collect();
    ToolsSuggested { sources: &sources, degraded: suggestions.degraded.len() }.emit(&context.metrics);
    let MetadataRequest {
        tool_name,
        mode_name,
        complexity,
        thinking_budget,
        session_state,
        timeout_ms,
        elapsed_ms,
        ..
    } = request;
    let mode_used = mode_name.clone().unwrap_or_else(|| "none".to_owned());
    let asked = Asked { tool: tool_name, mode: mode_name, complexity: complexity.into(), timeout_ms, elapsed_ms };
    Metadata {
        timing: say(&context.engine.estimate(&generation, &learnt, &asked)),
        suggestions: suggestions.into(),
        context: CallContext { mode_used, thinking_budget, session_state },
    }
}
