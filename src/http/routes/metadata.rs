//! The metadata object: what is said of a call, and what may come next.

use std::sync::Arc;

use hyper::StatusCode;
use serde_json::{Map, Value};

use crate::engine::proposer::RuleAnswers;
use crate::http::answer;
use crate::http::handler::{Answering, Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::plugin_host::Ask;
use crate::wire::enrich::{EnrichRequest, WrittenEnrichRequest};
use crate::wire::metadata::{CallMetadata, MetadataRequest};

pub(super) fn metadata_operation() -> Operation {
    Operation::new("getMetadata", "The metadata object for a call.")
        .with_body::<MetadataRequest>()
        .answering::<CallMetadata>("Timing, suggestions and context.")
}

pub(super) fn metadata(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let body: MetadataRequest = request.take_body()?;
        let (ask, proposals) = propose(&context, &request, &body).await;
        Ok(answer::json(&CallMetadata::of(&context.engine, &request.grant, body, &ask, proposals)))
    })
}

pub(super) fn enrich_operation() -> Operation {
    Operation::new("enrich", "A tool's response with the metadata object added.")
        .with_body::<EnrichRequest>()
        .answering::<Map<String, Value>>("The response, untouched but for `metadata`.")
}

pub(super) fn enrich(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let WrittenEnrichRequest { request: call, response } = read_enrich(&mut request)?;
        let (ask, proposals) = propose(&context, &request, &call).await;
        let metadata = CallMetadata::of(&context.engine, &request.grant, call, &ask, proposals);
        let mut enriched = Vec::new();
        response.write_with(&metadata, &mut enriched).expect("a vector grows");
        Ok(answer::bytes(StatusCode::OK, answer::JSON, enriched))
    })
}

fn read_enrich(request: &mut Request) -> Result<WrittenEnrichRequest, Problem> {
    if let Some(written) = WrittenEnrichRequest::read(request.body.text(), &request.body.limits()) {
        return Ok(written);
    }
    let EnrichRequest { request, response } = request.take_body()?;
    Ok(WrittenEnrichRequest { request, response: response.into() })
}

async fn propose(context: &Context, request: &Request, body: &MetadataRequest) -> (Ask, RuleAnswers) {
    let mut ask = body.ask();
    context.engine.complete(&context.engine.learnt(), &request.grant, &mut ask, body.tool_history.clone());
    let proposals = context.engine.propose(&ask).await;
    (ask, proposals)
}
