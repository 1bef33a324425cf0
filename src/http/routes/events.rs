//! `GET /v1/events`: what just happened, as it happens.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;

use crate::http::answer;
use crate::http::handler::{Answering, Context, Request};
use crate::http::operation::{Operation, Parameter, query, query_number};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::telemetry::EventType;
use crate::telemetry::feed::KEPT;
use crate::wire::problem::Code;

/// Between two comments of a stream, by which both sides see that the other is there.
const BEAT: Duration = Duration::from_secs(15);

pub(super) fn operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query("types", "string", "Events of these types only, separated by commas. Default: all."),
        query_number("last", (0, 2000), "First so many of those that are kept, 0 to 2000. Default: 0."),
    ];
    Operation::new("listenToEvents", "What happens, from now on: an event stream that does not end by itself.")
        .taking(&PARAMETERS)
        .answering_text(200, "Events, each a JSON object with its type and moment.", "text/event-stream")
}

pub(super) fn listen(context: Arc<Context>, request: Request) -> Answering {
    let asked = asked(&request.query);
    Box::pin(async move {
        let (types, last) = asked?;
        let tenant = Arc::clone(&request.grant.tenant);
        let Some((number, pieces)) = context.metrics.feed.listen(tenant, types, last) else {
            return Err(Problem::unavailable(Code::Stopping, "the daemon stops"));
        };
        tokio::spawn(async move {
            let mut beats = tokio::time::interval(BEAT);
            // The first is at once.
            beats.tick().await;
            loop {
                beats.tick().await;
                if !context.metrics.feed.beat(number) {
                    return;
                }
            }
        });
        Ok(answer::stream(HeaderValue::from_static("text/event-stream"), pieces))
    })
}

/// Of what, and how many of late.
fn asked(query: &Query) -> Result<(Vec<EventType>, usize), Problem> {
    let words = query.get("types").unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let types = words.map(|word| {
        EventType::parse(word).ok_or_else(|| {
            let known = EventType::WORDS.join(", ");
            Problem::invalid(Code::InvalidParameter, format!("`types` has {known}; not `{word}`"))
        })
    });
    Ok((types.collect::<Result<_, _>>()?, query.number("last", 0, 0, 2 * KEPT)?))
}
