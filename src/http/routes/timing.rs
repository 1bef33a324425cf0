//! Routes of durations: what a call will take, what it took.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;

use super::memory::idempotency_key;
use crate::access::Grant;
use crate::engine::Generation;
use crate::engine::learner::{Learnt, accuracy_name};
use crate::http::answer::{self, Answer};
use crate::http::handler::{Answering, Context, Request};
use crate::http::operation::{Operation, Parameter, path, query, query_number};
use crate::http::problem::Problem;
use crate::store::StoreError;
use crate::timing::{CallKey, Complexity, Execution, Key, Measures};
use crate::wire::problem::Code;
use crate::wire::qualify::IntentContextBody;
use crate::wire::timing::{
    EstimateAnswer, EstimateRequest, ExecutionBody, KeyTiming, RecentAccuracy, RecordAnswer, RecordRequest,
    SessionAnswer, Timestamp, TimingPage,
};

/// A record may be this much ahead of our clock, which may be wrong; a time that is in another unit is further ahead.
const FAR_AHEAD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Keys on a page.
const PAGE: usize = 100;

pub(super) fn estimate_operation() -> Operation {
    Operation::new("estimate", "How long a call, or a plan, will take, and whether it will time out.")
        .with_body::<EstimateRequest>()
        .answering::<EstimateAnswer>("What is said of it.")
}

pub(super) fn estimate(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let body: EstimateRequest = request.take_body()?;
    let answer = EstimateAnswer::of(&context.engine, body);
    Ok(answer::json(&answer.ok_or_else(|| Problem::invalid(Code::InvalidBody, "a plan has at least one step"))?))
}

pub(super) fn record_operation() -> Operation {
    Operation::new(
        "recordExecutions",
        "Record calls that ended. With an `Idempotency-Key`, telling the same again changes nothing.",
    )
    .with_body::<RecordRequest>()
    .answering_with::<RecordAnswer>(201, "They are durable.")
    .answering_with::<RecordAnswer>(200, "All of them were told before.")
}

pub(super) fn record(context: Arc<Context>, mut request: Request) -> Answering {
    Box::pin(async move {
        let key = idempotency_key(request.headers())?;
        let body: RecordRequest = request.take_body()?;
        let (bodies, is_batch) = match body {
            RecordRequest::One(one) => (vec![*one], false),
            RecordRequest::Batch(batch) => (batch, true),
        };
        let keys = call_keys(&bodies, key.as_deref(), is_batch);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let latest = (now + FAR_AHEAD).as_millis() as i64;
        let execution = |(body, idempotency_key)| Execution {
            idempotency_key,
            ..execution(body, &request.grant, now.as_millis() as i64)
        };
        let batch: Vec<Execution> = bodies.into_iter().zip(keys).map(execution).collect();
        if let Some(index) = batch.iter().position(|execution| execution.at_ms > latest) {
            let detail = format!("record {index}: the timestamp is more than a year in the future; is it in ms?");
            return Err(Problem::invalid(Code::FutureTimestamp, detail));
        }
        let done = context.engine.record(batch).await.map_err(|error| store_problem(&error))?;
        let (recorded, degraded) = (done.calls.len(), done.degraded.iter().map(ToString::to_string).collect());
        let mut answer = answer::json(&RecordAnswer { recorded, degraded });
        if recorded > 0 {
            *answer.status_mut() = StatusCode::CREATED;
        }
        Ok(answer)
    })
}

/// Why calls are not recorded.
pub(super) fn store_problem(error: &StoreError) -> Problem {
    match error {
        StoreError::KeyReused(_) => Problem::invalid(Code::IdempotencyKeyReused, error.to_string()),
        StoreError::Unstorable(_) => Problem::invalid(Code::UnstorableText, error.to_string()),
        StoreError::Busy(_) => Problem::too_many(Code::StoreBusy, error.to_string()),
        StoreError::Unavailable(_) | StoreError::Closed | StoreError::TooLong(_) | StoreError::Damaged(_) => {
            Problem::unavailable(Code::StoreUnavailable, error.to_string())
        }
    }
}

fn execution(body: ExecutionBody, grant: &Grant, now_ms: i64) -> Execution {
    Execution {
        tenant: grant.tenant.to_string(),
        tool: body.tool_name,
        mode: body.mode_name,
        duration_ms: Some(body.duration_ms),
        outcome: body.outcome.unwrap_or_default(),
        measures: body.complexity.into(),
        session: body.session_id,
        at_ms: body.timestamp.map_or(now_ms, |Timestamp::Millis(millis)| millis),
        idempotency_key: None,
    }
}

/// The keys of calls, with what is told under them: a call's own, or else its place under the request's `key`, which
/// stands for the whole batch.
fn call_keys(bodies: &[ExecutionBody], key: Option<&str>, is_batch: bool) -> Vec<Option<CallKey>> {
    let request = key.map(|key| CallKey::of(key, &bodies.iter().map(told).collect::<String>()));
    let key_of = |(place, body): (usize, &ExecutionBody)| match (&body.idempotency_key, &request) {
        (Some(own), _) => Some(CallKey::of(own, &told(body))),
        (None, Some(request)) if is_batch => Some(request.at(place)),
        (None, request) => request.clone(),
    };
    bodies.iter().enumerate().map(key_of).collect()
}

/// What a body says, apart from its key, as one line of JSON: the same of two bodies that say the same.
fn told(body: &ExecutionBody) -> String {
    let ExecutionBody { tool_name, mode_name, duration_ms, outcome, complexity, session_id, timestamp, .. } = body;
    let stamp = timestamp.map(|Timestamp::Millis(millis)| millis);
    let measures = Measures::from(*complexity);
    let said = (tool_name, mode_name, duration_ms, outcome.unwrap_or_default(), measures, session_id, stamp);
    // Plain data, all of which JSON can hold.
    serde_json::to_string(&said).unwrap_or_default() + "\n"
}

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query_number("limit", (1, 1000), "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listTiming", "What was learnt of all tools.").taking(&PARAMETERS).answering::<TimingPage>("A page.")
}

pub(super) fn list(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let limit = query.number("limit", PAGE, 1, 1000)?;
    let start = query.page_start()?;
    Ok(answer::json(&page(context, &request.generation, |_| true, start, limit)))
}

pub(super) fn tool_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] =
        [path("name", "The tool's name, percent-encoded."), query("mode", "string", "One mode only.")];
    Operation::new("getTiming", "What was learnt of a tool, by mode.")
        .taking(&PARAMETERS)
        .answering::<TimingPage>("All modes.")
}

pub(super) fn tool(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let query = &request.query;
    let (name, mode) = (request.parameter()?, query.get("mode"));
    let wanted = |key: &Key<'_>| key.tool == name && mode.is_none_or(|mode| key.shown_mode() == mode);
    let page = page(context, &request.generation, wanted, 0, usize::MAX);
    if let (true, Some(mode)) = (page.items.is_empty(), mode) {
        let all = self::page(context, &request.generation, |key| key.tool == name, 0, usize::MAX);
        let known = |mode: &str| if mode.is_empty() { "no mode".to_owned() } else { format!("`{mode}`") };
        let modes: Vec<String> = all.items.iter().map(|item| known(&item.mode)).collect();
        if !modes.is_empty() {
            let detail =
                format!("nothing was recorded of `{name}` in the mode `{mode}`; it was in {}", modes.join(", "));
            return Err(Problem::not_found(Code::NoHistory, detail));
        }
    }
    if page.items.is_empty() {
        let acquaintance = context.engine.acquaintance(&request.generation, &context.engine.learnt(), name);
        let hint = match acquaintance.near() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(" or ")),
        };
        return Err(Problem::not_found(Code::NoHistory, format!("nothing was recorded of `{name}` yet{hint}")));
    }
    Ok(answer::json(&page))
}

fn page(
    context: &Context,
    generation: &Generation,
    wanted: impl Fn(&Key<'_>) -> bool,
    start: usize,
    limit: usize,
) -> TimingPage {
    let learnt = context.engine.learnt();
    let mut keys: Vec<(Key<'_>, u64)> = learnt.model.keys().filter(|(key, _)| wanted(key)).collect();
    keys.sort_unstable();
    let total = keys.len();
    let end = start.saturating_add(limit).min(total);
    let items = keys.into_iter().skip(start).take(limit);
    let items = items.map(|(key, samples)| key_timing(context, generation, &learnt, key, samples)).collect();
    TimingPage { items, total, next_cursor: (end < total).then(|| end.to_string()) }
}

fn key_timing(context: &Context, generation: &Generation, learnt: &Learnt, key: Key<'_>, samples: u64) -> KeyTiming {
    let forecast = context.engine.forecast_key(generation, learnt, key, &Complexity::default());
    let [_, p50_ms, p90_ms, p95_ms] = forecast.quantiles().whole_ms();
    let accuracy = learnt.accuracy.get(&accuracy_name(key));
    KeyTiming {
        tool: key.tool.to_owned(),
        mode: key.shown_mode(),
        samples,
        basis: forecast.basis().as_str().to_owned(),
        estimated_duration_ms: forecast.estimated_duration_ms(),
        confidence: forecast.confidence().as_str().to_owned(),
        p50_ms,
        p90_ms,
        p95_ms,
        interval_ms: forecast.interval_ms(),
        recent_accuracy: accuracy.and_then(|accuracy| {
            Some(RecentAccuracy { within_20pct: accuracy.within_20pct()?, coverage90: accuracy.coverage()? })
        }),
    }
}

pub(super) fn session_operation() -> Operation {
    Operation::new("getSession", "What a session did lately.")
        .taking(const { &[path("name", "The session, percent-encoded.")] })
        .answering::<SessionAnswer>("Its calls, and what it is about; the intent in it with the scope `memory` only.")
}

pub(super) fn session(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let id = request.parameter()?;
    let learnt = context.engine.learnt();
    let history = learnt.sessions.history(&request.grant.tenant, id);
    let turn = context.engine.turn(&request.grant, id);
    if history.is_none() && turn.is_none() {
        return Err(Problem::not_found(Code::UnknownSession, format!("nothing is known of the session `{id}`")));
    }
    let tool_history = history.into_iter().flat_map(|tools| tools.iter()).map(ToString::to_string).collect();
    let turn_tools = turn.as_ref().filter(|turn| turn.number > 0 || turn.has_message()).map(|turn| turn.called.clone());
    let usage = turn.as_ref().filter(|turn| turn.used.turns > 0).map(|turn| turn.used.into());
    let intent_context = turn.map(|turn| IntentContextBody::from(&turn.context));
    Ok(answer::json(&SessionAnswer { session_id: id.to_owned(), tool_history, turn_tools, intent_context, usage }))
}
