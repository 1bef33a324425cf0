//! The metadata object: what is said of a call, and what may come next.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::engine::proposer::RuleAnswers;
use crate::http::answer;
use crate::http::handler::{Answering, Context, Request, blocking};
use crate::http::operation::Operation;
use crate::plugin_host::Ask;
use crate::wire::metadata::{CallMetadata, EnrichRequest, MetadataRequest};

pub(super) fn metadata_operation() -> Operation {
    Operation::new("getMetadata", "The metadata object for a call.")
        .with_body::<MetadataRequest>()
        .answering::<CallMetadata>("Timing, suggestions and context.")
}

pub(super) fn metadata(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let body: MetadataRequest = request.take_body()?;
        let (ask, proposals) = propose(&context, &request, &body).await;
        Ok(answer::json(&CallMetadata::of(&context.engine, body, &ask, proposals)))
    })
}

pub(super) fn enrich_operation() -> Operation {
    Operation::new("enrich", "A tool's response with the metadata object added.")
        .with_body::<EnrichRequest>()
        .answering::<Map<String, Value>>("The response, untouched but for `metadata`.")
}

pub(super) fn enrich(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let EnrichRequest { request: call, mut response } = request.take_body()?;
        let (ask, proposals) = propose(&context, &request, &call).await;
        blocking(move || {
            let metadata = CallMetadata::of(&context.engine, call, &ask, proposals);
            let metadata = serde_json::to_value(metadata).expect("wire types have string keys and finite numbers");
            response.insert("metadata".to_owned(), metadata);
            Ok(answer::json(&response))
        })
        .await
    })
}

async fn propose(context: &Context, request: &Request, body: &MetadataRequest) -> (Ask, RuleAnswers) {
    let mut ask = body.ask();
    let tenant = &request.grant.tenant;
    context.engine.complete(&context.engine.learnt(), tenant, &mut ask, body.tool_history.clone());
    let proposals = context.engine.propose(&ask).await;
    (ask, proposals)
}
