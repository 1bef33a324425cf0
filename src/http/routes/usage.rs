//! The route of what a turn cost.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::access::Scope;
use crate::http::answer::{self, Answer};
use crate::http::framing;
use crate::http::handler::{Context, Request};
use crate::http::operation::Operation;
use crate::http::problem::Problem;
use crate::session::turns::Used;
use crate::text::near;
use crate::usage::{PriceTable, Prices};
use crate::wire::problem::Code;
use crate::wire::usage::{DayOfUsage, THRESHOLD, UsageEvent, UsageKind, UsageOfSession, UsageReport, UsageRequest};

/// Sessions that a report lists at most.
const MAX_SESSIONS: usize = 1000;

pub(super) fn operation() -> Operation {
    Operation::new(
        "reportUsage",
        "What a turn used and cost, as the event that a client shows. With the scope `record` it counts.",
    )
    .taking(&framing::PARAMETERS)
    .with_body::<UsageRequest>()
    .answering::<UsageEvent>("The event.")
    .answering_text(200, "The same as a chat stream.", "text/plain")
    .answering_text(200, "The same as a chat stream.", "text/event-stream")
}

pub(super) fn usage(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let protocol = framing::wanted(request)?;
    let mut body: UsageRequest = request.take_body()?;
    let (grant, session) = (&request.grant, body.session_id.take());
    if let Some(turn) = session.as_ref().and_then(|session| context.engine.turn(grant, session)) {
        body.tools_executed = body.tools_executed.or(Some(turn.called.len() as u64));
    }
    let event = event(body, &context.control.prices(), SystemTime::now())?;
    // Without a session it is worked out for whoever asks; to count it takes more than that.
    if event.kind == UsageKind::TokenUsage && session.is_some() && !grant.leaves_traces() {
        return Err(Problem::missing_scope(Scope::Record));
    }
    if event.kind == UsageKind::TokenUsage && grant.leaves_traces() {
        context.engine.spent(&grant.tenant, used(&event), event.threshold_reached.into());
        if let Some(session) = session {
            context.engine.hear(grant, &session, None, used(&event));
        }
    }
    Ok(match protocol {
        None => answer::json(&event),
        Some(protocol) => framing::stream(protocol, [json!(event)]),
    })
}

pub(super) fn list_operation() -> Operation {
    Operation::new("getUsage", "What the tenant's turns used and cost, by day and by session.")
        .answering::<UsageReport>("Days since the start, and sessions.")
}

pub(super) fn list(context: &Context, request: &mut Request) -> Result<Answer, Problem> {
    let (days, sessions) = context.engine.used(&request.grant.tenant, MAX_SESSIONS);
    let since = SystemTime::now() - Duration::from_secs_f64(context.control.status().uptime_seconds.max(0.0));
    Ok(answer::json(&UsageReport {
        since: humantime::format_rfc3339_millis(since).to_string(),
        threshold: THRESHOLD,
        days: days.into_iter().map(DayOfUsage::from).collect(),
        sessions: sessions.into_iter().map(|(id, used)| UsageOfSession::new(id, used)).collect(),
    }))
}

/// What the event adds to its session's account. A path_info tells of the same tokens once more.
fn used(event: &UsageEvent) -> Used {
    Used {
        turns: 1,
        tokens_in: event.tokens_in,
        tokens_out: event.tokens_out,
        cached_tokens: event.cached_tokens,
        cost_usd: event.cost_usd,
    }
}

fn event(request: UsageRequest, table: &PriceTable, now: SystemTime) -> Result<UsageEvent, Problem> {
    let tokens = request.tokens();
    let cost_usd = match prices(&request, table)? {
        Some(prices) => {
            let cost = prices.cost_usd(&tokens, request.calls.unwrap_or(1));
            Some(cost.map_err(|error| Problem::invalid(Code::InvalidBody, error.to_string()))?)
        }
        None => request.cost_usd,
    };
    // A tenth of a cent apart is another price, not another way to round.
    if let (Some(given), Some(cost)) = (request.cost_usd, cost_usd)
        && (given - cost).abs() > 1e-3
    {
        let detail = format!("`costUsd` is {given}, but the prices make it {cost}; leave one of them out");
        return Err(Problem::invalid(Code::CostDisagrees, detail));
    }
    let path = request.path.unwrap_or_else(|| "PATH_1".to_owned());
    let total_tokens = tokens.total();
    let threshold = request.threshold.unwrap_or(THRESHOLD);
    let cost = cost_usd.map_or_else(String::new, |cost| format!(", Cost: ${cost}"));
    let message = format!(
        "[{path}_TOKENS] Actual usage - Input: {}, Output: {}, Cached: {}, Total: {total_tokens}{cost}",
        tokens.input, tokens.output, tokens.cached,
    );
    if request.message.is_some_and(|given| given != message) {
        let detail = format!("`message` says something else than the fields, which say: {message}");
        return Err(Problem::invalid(Code::MessageDisagrees, detail));
    }
    Ok(UsageEvent {
        kind: request.kind.unwrap_or_default(),
        message,
        path,
        tokens_in: tokens.input,
        tokens_out: tokens.output,
        cached_tokens: tokens.cached,
        cache_write_tokens: tokens.cache_write,
        total_tokens,
        threshold,
        threshold_reached: total_tokens >= threshold,
        message_retention_count: request.message_retention_count,
        cost_usd,
        tools_executed: request.tools_executed,
        max_steps: request.max_steps,
        max_tools_reached: request.max_tools_reached,
        timed_out: request.timed_out,
        timestamp: request.timestamp.unwrap_or_else(|| humantime::format_rfc3339_millis(now).to_string()),
        reasoning: request.reasoning,
    })
}

fn prices<'p>(request: &'p UsageRequest, table: &'p PriceTable) -> Result<Option<&'p Prices>, Problem> {
    let Some(model) = &request.model else { return Ok(request.prices.as_ref()) };
    table.get(model).map(Some).ok_or_else(|| {
        let near = near::nearest(model, table.keys().map(String::as_str)).map(str::to_owned);
        let detail = format!(
            "no prices of the model `{model}`; add them to `usage.prices` in the configuration, or send `prices`"
        );
        Problem::invalid(Code::UnknownModel, detail).with_near(near.into_iter().collect())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::strict::Fault;
    use crate::strict::read::{Limits, json as read};

    fn answer(body: &Value) -> Result<Value, String> {
        let node = read(body.to_string().as_bytes(), &Limits::of_bytes(10_000)).unwrap();
        let request: UsageRequest = crate::strict::decode::decode(node)
            .map_err(|faults| faults.iter().map(Fault::pointer).collect::<Vec<_>>().join(" "))?;
        let now = humantime::parse_rfc3339("2025-12-13T08:36:00.039Z").unwrap();
        let table = PriceTable::from([("m".to_owned(), Prices { per_call: 0.5, ..Prices::default() })]);
        let event = event(request, &table, now).map_err(|problem| problem.code().as_str().to_owned())?;
        Ok(serde_json::to_value(event).unwrap())
    }

    fn published() -> Value {
        json!({
            "type": "token_usage", "path": "PATH_1", "tokensIn": 471_169, "tokensOut": 754, "cachedTokens": 330_626,
            "cacheWriteTokens": 140_539, "messageRetentionCount": 1, "toolsExecuted": 3, "maxSteps": 7,
            "maxToolsReached": false, "timedOut": false,
            "prices": {"input": 6, "cacheWrite": 7.5, "cacheRead": 0.6, "output": 22.5},
        })
    }

    #[test]
    fn the_published_example_comes_out() {
        let event = answer(&published()).unwrap();
        let expected = json!({
            "type": "token_usage",
            "message": "[PATH_1_TOKENS] Actual usage - Input: 471169, Output: 754, Cached: 330626, Total: 141297, \
                        Cost: $1.2694071",
            "path": "PATH_1", "tokensIn": 471_169, "tokensOut": 754, "cachedTokens": 330_626,
            "cacheWriteTokens": 140_539, "totalTokens": 141_297, "threshold": 30_000, "thresholdReached": true,
            "messageRetentionCount": 1, "costUsd": 1.269_407_1, "toolsExecuted": 3, "maxSteps": 7,
            "maxToolsReached": false, "timedOut": false, "timestamp": "2025-12-13T08:36:00.039Z",
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn what_disagrees_is_refused() {
        let check = |change: Value, expected: &str| {
            let mut body = published();
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(answer(&body), Err(expected.to_owned()), "{change}");
        };
        check(json!({"totalTokens": 1}), "/totalTokens");
        check(json!({"thresholdReached": false, "type": "x"}), "/type /thresholdReached");
        check(json!({"cachedTokens": 471_170}), "/cachedTokens");
        check(json!({"cacheWriteTokens": 140_544}), "/cacheWriteTokens");
        check(json!({"costUsd": 1.2}), "cost-disagrees");
        check(json!({"message": "x"}), "message-disagrees");
        check(json!({"model": "m"}), "/model");
        check(json!({"timestamp": "yesterday", "tokenIn": 1}), "/timestamp /tokenIn");
        check(json!({"tokensIn": i64::MAX, "calls": i64::MAX}), "/tokensIn /calls");
        check(json!({"calls": 0, "tokensOut": -1}), "/tokensOut /calls");
        let tier = json!({"aboveTokens": 5, "input": 1, "output": 1});
        check(json!({"prices": {"input": 1, "output": 1, "tiers": [tier, tier]}}), "/prices/tiers");
    }

    #[test]
    fn nothing_costs_less_than_nothing() {
        for free in [json!({"costUsd": -0.0}), json!({"prices": {"input": -0.0, "output": -0.0, "perCall": -0.0}})] {
            let event = answer(&free).unwrap();
            assert!(event["message"].as_str().unwrap().ends_with("Cost: $0"), "{event}");
            assert!(event["costUsd"].as_f64().unwrap().is_sign_positive());
        }
    }

    #[test]
    fn prices_may_come_from_the_configuration_or_be_unknown() {
        assert_eq!(answer(&json!({"model": "m", "calls": 2})).unwrap()["costUsd"], 1.0);
        assert_eq!(answer(&json!({"model": "n"})), Err("unknown-model".to_owned()));
        let event = answer(&json!({"tokensIn": 5})).unwrap();
        assert_eq!(event["message"], "[PATH_1_TOKENS] Actual usage - Input: 5, Output: 0, Cached: 0, Total: 5");
        assert!(event.get("costUsd").is_none());
    }
}
