//! Routes of durations: what a call will take, what it took.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;

use super::answer::{self, Answer};
use super::operation::{Operation, Parameter, path, query};
use super::problem::Problem;
use super::route::Later;
use super::service::{Call, Context};
use super::wire_qualify::IntentContextBody;
use super::wire_timing::{
    EstimateAnswer, EstimateRequest, ExecutionBody, KeyTiming, RecentAccuracy, RecordAnswer, RecordRequest, Remaining,
    SessionAnswer, Timestamp, Timing, TimingPage,
};
use crate::access::Grant;
use crate::engine::learner::{Learnt, accuracy_name};
use crate::engine::{Asked, Estimate, Generation};
use crate::store::{Execution, Outcome, StoreError};
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::telemetry::events::ExecutionRecorded;
use crate::timing::{Complexity, Key, Plan, Timeout};

/// A record may be this much ahead of our clock: clocks differ.
const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// Keys on a page.
const PAGE: usize = 100;

pub(super) fn estimate_operation() -> Operation {
    Operation::new("estimate", "How long a call, or a plan, will take, and whether it will time out.")
        .with_body::<EstimateRequest>()
        .answering::<EstimateAnswer>("What is said of it.")
}

pub(super) fn estimate(context: &Context, _: &Grant, body: Node) -> Result<Answer, Problem> {
    let request: EstimateRequest = decode(body).map_err(|faults| Problem::faulty(&faults))?;
    let (generation, learnt) = (context.engine.generation(), context.engine.learnt());
    let timing = match (request.tool_name, request.steps) {
        (Some(tool), _) => {
            let EstimateRequest { mode_name: mode, complexity, timeout_ms, elapsed_ms, .. } = request;
            let asked = Asked { tool, mode, complexity: complexity.into(), timeout_ms, elapsed_ms };
            say(&context.engine.estimate(&generation, &learnt, &asked))
        }
        (None, steps) => {
            let steps: Vec<Asked> = steps
                .into_iter()
                .flatten()
                .map(|step| Asked {
                    tool: step.tool_name,
                    mode: step.mode_name,
                    complexity: step.complexity.into(),
                    ..Asked::default()
                })
                .collect();
            let limit_ms = request.timeout_ms.unwrap_or(context.engine.factory_timeout_ms());
            let plan = context.engine.estimate_plan(&generation, &learnt, &steps);
            say_plan(&plan.ok_or_else(|| Problem::invalid("invalid-body", "a plan has at least one step"))?, limit_ms)
        }
    };
    Ok(answer::json(&EstimateAnswer { timing }))
}

pub(super) fn say(estimate: &Estimate) -> Timing {
    let Estimate { forecast, limit_ms, remaining } = estimate;
    let [_, p50_ms, p90_ms, p95_ms] = forecast.quantiles().whole_ms();
    let timeout_probability = estimate.timeout_probability();
    Timing {
        estimated_duration_ms: forecast.estimated_duration_ms(),
        confidence: forecast.confidence().as_str().to_owned(),
        will_timeout_on_factory: estimate.will_time_out(),
        factory_timeout_ms: *limit_ms,
        p50_ms,
        p90_ms,
        p95_ms,
        interval_ms: forecast.interval_ms(),
        timeout_probability,
        timeout: Timeout::of(timeout_probability).as_str().to_owned(),
        samples: forecast.samples(),
        basis: forecast.basis().as_str().to_owned(),
        remaining: remaining.as_ref().map(|remaining| {
            let [_, p50_ms, p90_ms, p95_ms] = remaining.quantiles_ms();
            Remaining { p50_ms, p90_ms, p95_ms }
        }),
    }
}

pub(super) fn say_plan(plan: &Plan, limit_ms: u64) -> Timing {
    let [p05_ms, p50_ms, p90_ms, p95_ms] = plan.quantiles_ms();
    let (estimated_duration_ms, timeout_probability) =
        (plan.estimated_duration_ms(), plan.timeout_probability(limit_ms));
    Timing {
        estimated_duration_ms,
        confidence: plan.confidence().as_str().to_owned(),
        will_timeout_on_factory: estimated_duration_ms > limit_ms,
        factory_timeout_ms: limit_ms,
        p50_ms,
        p90_ms,
        p95_ms,
        interval_ms: [p05_ms, p95_ms],
        timeout_probability,
        timeout: Timeout::of(timeout_probability).as_str().to_owned(),
        samples: plan.samples(),
        basis: plan.basis().as_str().to_owned(),
        remaining: None,
    }
}

pub(super) fn record_operation() -> Operation {
    Operation::new("recordExecutions", "Record calls that ended.")
        .with_body::<RecordRequest>()
        .answering_with::<RecordAnswer>(201, "They are durable.")
        .answering_with::<RecordAnswer>(200, "All of them were told before.")
}

pub(super) fn record(context: Arc<Context>, grant: Grant, body: Node) -> Later {
    Box::pin(async move {
        let request: RecordRequest = decode(body).map_err(|faults| Problem::faulty(&faults))?;
        let bodies = match request {
            RecordRequest::One(one) => vec![*one],
            RecordRequest::Batch(batch) => batch,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let latest = (now + CLOCK_SKEW).as_millis() as i64;
        let batch: Vec<Execution> =
            bodies.into_iter().map(|body| execution(body, &grant, now.as_millis() as i64)).collect();
        if let Some(index) = batch.iter().position(|execution| execution.at_ms > latest) {
            let detail = format!("record {index}: the timestamp is more than an hour in the future");
            return Err(Problem::invalid("future-timestamp", detail));
        }
        let recorded = keep(&context, batch).await?;
        let mut answer = answer::json(&RecordAnswer { recorded });
        if recorded > 0 {
            *answer.status_mut() = StatusCode::CREATED;
        }
        Ok(answer)
    })
}

/// Records a batch; how many of it were new.
pub(super) async fn keep(context: &Context, batch: Vec<Execution>) -> Result<usize, Problem> {
    let new = context.engine.record(batch).await.map_err(|error| match &error {
        StoreError::Busy(_) => Problem::too_many("store-busy", error.to_string()),
        StoreError::Unavailable(_) | StoreError::Closed => Problem::unavailable("store-unavailable", error.to_string()),
    })?;
    for (execution, verdict) in &new {
        let verdict = verdict.map(|verdict| (verdict.ratio, verdict.is_covered));
        ExecutionRecorded { execution, verdict }.emit(&context.metrics);
    }
    Ok(new.len())
}

fn execution(body: ExecutionBody, grant: &Grant, now_ms: i64) -> Execution {
    Execution {
        tenant: grant.tenant.to_string(),
        tool: body.tool_name,
        mode: body.mode_name,
        duration_ms: Some(body.duration_ms),
        outcome: body.outcome.as_deref().and_then(Outcome::parse).unwrap_or_default(),
        measures: body.complexity.into(),
        session: body.session_id,
        at_ms: body.timestamp.map_or(now_ms, |Timestamp::Millis(millis)| millis),
        idempotency_key: body.idempotency_key,
    }
}

pub(super) fn list_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] = [
        query("limit", "integer", "At most so many, 1 to 1000; 100 by default."),
        query("cursor", "string", "`next_cursor` of the page before."),
    ];
    Operation::new("listTiming", "What was learnt of all tools.").taking(&PARAMETERS).answering::<TimingPage>("A page.")
}

pub(super) fn list(context: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query(&["limit", "cursor"])?;
    let limit = query.number("limit", PAGE, 1, 1000)?;
    let start = query.number("cursor", 0, 0, usize::MAX)?;
    Ok(answer::json(&page(context, &call.generation, |_| true, start, limit)))
}

pub(super) fn tool_operation() -> Operation {
    const PARAMETERS: [Parameter; 2] =
        [path("name", "The tool's name, percent-encoded."), query("mode", "string", "One mode only.")];
    Operation::new("getTiming", "What was learnt of a tool, by mode.")
        .taking(&PARAMETERS)
        .answering::<TimingPage>("All modes.")
}

pub(super) fn tool(context: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    let query = call.query(&["mode"])?;
    let (name, mode) = (call.parameter()?, query.get("mode"));
    let wanted = |key: &Key<'_>| key.tool == name && mode.is_none_or(|mode| key.shown_mode() == mode);
    let page = page(context, &call.generation, wanted, 0, usize::MAX);
    if page.items.is_empty() {
        return Err(Problem::not_found("no-history", format!("nothing was recorded of `{name}` yet")));
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
        .answering::<SessionAnswer>("Its calls.")
}

pub(super) fn session(context: &Context, call: &Call<'_>) -> Result<Answer, Problem> {
    call.query(&[])?;
    let id = call.parameter()?;
    let learnt = context.engine.learnt();
    let history = learnt.sessions.history(&call.grant.tenant, id);
    let turn = context.engine.turn(&call.grant.tenant, id);
    if history.is_none() && turn.is_none() {
        return Err(Problem::not_found("unknown-session", format!("nothing is known of the session `{id}`")));
    }
    let tool_history = history.into_iter().flat_map(|tools| tools.iter()).map(ToString::to_string).collect();
    let usage = turn.as_ref().filter(|turn| turn.used.turns > 0).map(|turn| turn.used.into());
    let intent_context = turn.map(|turn| IntentContextBody::from(&turn.context));
    Ok(answer::json(&SessionAnswer { session_id: id.to_owned(), tool_history, intent_context, usage }))
}
