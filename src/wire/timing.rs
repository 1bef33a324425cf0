//! Durations, records and sessions on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::qualify::IntentContextBody;
use crate::catalog::document::{MAX_NAME, check_name};
use crate::engine::{Acquaintance, Asked, Engine, Estimate};
use crate::plugin_host::ComplexityLevel;
use crate::session::turns::Used;
use crate::strict::decode::MAX_WHOLE;
use crate::strict::pattern::{LABEL, MODE, NAME};
use crate::strict::values::{MAX_LABEL, label, moment_or_utc};
use crate::strict::{At, FaultCode, Fields, FromNode, Node};
use crate::timing::execution::MAX_DURATION_MS;
use crate::timing::key::check_mode;
use crate::timing::{Basis, Complexity, Confidence, Measures, Outcome, Plan, Timeout};

/// Most records of one batch.
pub(crate) const MAX_BATCH: usize = 1000;

/// Most steps of one plan.
pub(crate) const MAX_STEPS: usize = 100;

/// Largest measure; whatever is larger is a mistake.
const MAX_MEASURE: u64 = 1 << 40;

/// Body of `POST /v1/estimate`: one call, or the steps of a plan.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields, extend("not" = one_or_steps()))]
#[node(check = check_one_or_steps)]
pub struct EstimateRequest {
    /// The tool; not together with `steps`.
    #[schemars(default, length(min = 1, max = MAX_NAME), regex(pattern = NAME))]
    #[node(alias = "tool", alias = "name", check = check_name)]
    pub tool_name: Option<String>,
    /// Its mode, if it has modes.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = MODE))]
    #[node(alias = "mode", read = label, check = check_mode)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    #[node(read = measures)]
    pub complexity: MeasuresBody,
    /// When the caller gives up, in ms; the factory's limit by default.
    #[schemars(default, with = "Option<f64>", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub timeout_ms: Option<u64>,
    /// How long the call has run already, in ms.
    #[schemars(default, with = "Option<f64>", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub elapsed_ms: Option<u64>,
    /// A plan's calls, one after the other, at most 100.
    #[schemars(default, length(min = 1, max = MAX_STEPS))]
    pub steps: Option<Vec<PlanStep>>,
}

/// What the schema says of that: neither is left out, nor both given.
fn one_or_steps() -> Value {
    let (nothing, both) = (json!({"type": "null"}), ["tool_name", "steps"]);
    json!({"anyOf": [
        {"properties": {"tool_name": nothing, "steps": nothing}},
        {"required": both, "properties": {"tool_name": {"type": "string"}, "steps": {"type": "array", "items": {}}}},
    ]})
}

/// What is asked about is one call or a plan.
fn check_one_or_steps(request: &EstimateRequest, fields: &mut Fields<'_>) {
    match (&request.tool_name, &request.steps) {
        (Some(_), Some(_)) => fields.bad_value("steps", "either `tool_name` or `steps`, not both"),
        // What is there and wrong was said already.
        (None, None) if !fields.was_given("tool_name") && !fields.was_given("steps") => {
            fields.bad_value("tool_name", "either `tool_name` or `steps` is needed");
        }
        _ => {}
    }
}

/// A time in ms as clocks give it: fractions are rounded.
pub(super) fn milliseconds(node: Node, at: &mut At) -> Option<u64> {
    match &node {
        Node::Number(number) if number.is_f64() => match number.as_f64() {
            Some(ms) if (0.0..=MAX_WHOLE as f64).contains(&ms) => Some(ms.round() as u64),
            Some(ms) if ms > 0.0 => {
                at.bad_value(format!("a time is at most {MAX_WHOLE} ms"));
                None
            }
            _ => {
                at.wrong_type("a number of 0 or more", &node);
                None
            }
        },
        _ => u64::from_node(node, at),
    }
}

/// One call of a plan: the name of its tool, or more about it.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum PlanStep {
    /// The tool.
    Tool(#[schemars(length(min = 1, max = MAX_NAME), regex(pattern = NAME))] String),
    /// The tool, its mode and sizes.
    Call(Step),
}

impl FromNode for PlanStep {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::String(tool) => {
                if let Err(fault) = check_name(&tool) {
                    at.bad_value(fault.to_string());
                }
                Some(Self::Tool(tool))
            }
            call => Step::from_node(call, at).map(Self::Call),
        }
    }
}

impl From<PlanStep> for Step {
    fn from(step: PlanStep) -> Self {
        match step {
            PlanStep::Tool(tool_name) => Self { tool_name, ..Self::default() },
            PlanStep::Call(step) => step,
        }
    }
}

/// A call of a plan, with what its duration depends on.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct Step {
    /// The tool's name, as its document gives it.
    #[schemars(length(min = 1, max = MAX_NAME), regex(pattern = NAME))]
    #[node(alias = "tool", alias = "name", check = check_name)]
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = MODE))]
    #[node(alias = "mode", read = label, check = check_mode)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    #[node(read = measures)]
    pub complexity: MeasuresBody,
}

/// What makes a call long; absent means none.
#[derive(Debug, Default, Clone, Copy, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct MeasuresBody {
    /// Characters of the input.
    #[schemars(default, range(max = MAX_MEASURE))]
    pub content_length: Option<u64>,
    /// Number of perspectives asked for.
    #[schemars(default, range(max = MAX_MEASURE))]
    pub num_perspectives: Option<u64>,
    /// Number of branches asked for.
    #[schemars(default, range(max = MAX_MEASURE))]
    pub num_branches: Option<u64>,
    /// Thinking budget, in tokens.
    #[schemars(default, range(max = MAX_MEASURE))]
    pub thinking_budget: Option<u64>,
    /// Tokens of context sent along.
    #[schemars(default, range(max = MAX_MEASURE))]
    pub context_tokens: Option<u64>,
}

/// The sizes of a call. A word instead of them is what callers mix up with the complexity of a result.
pub(crate) fn measures(node: Node, at: &mut At) -> Option<MeasuresBody> {
    if matches!(&node, Node::String(word) if ComplexityLevel::parse(word).is_some()) {
        let message = "expected sizes such as {\"content_length\": 1200}, found a word";
        let hint = "a word says how complex a result is, in `result_context.complexity` of /v1/metadata";
        at.fault(FaultCode::WrongType, message, Some(hint.to_owned()));
        return None;
    }
    MeasuresBody::from_node(node, at)
}

impl From<MeasuresBody> for Measures {
    fn from(body: MeasuresBody) -> Self {
        let MeasuresBody { content_length, num_perspectives, num_branches, thinking_budget, context_tokens } = body;
        Self { content_length, num_perspectives, num_branches, thinking_budget, context_tokens }
    }
}

impl From<MeasuresBody> for Complexity {
    fn from(body: MeasuresBody) -> Self {
        Self::from(&Measures::from(body))
    }
}

/// Answer of `POST /v1/estimate`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EstimateAnswer {
    /// What is said of the call, or of the plan.
    pub timing: Timing,
}

/// What is said of a call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// The duration that most calls come close to, in ms.
    pub estimated_duration_ms: u64,
    /// high, medium or low.
    #[schemars(extend("enum" = Confidence::WORDS))]
    pub confidence: String,
    /// Is the estimate beyond the caller's limit?
    pub will_timeout_on_factory: bool,
    /// The caller's limit, in ms.
    pub factory_timeout_ms: u64,
    /// Half of all calls take less, in ms.
    pub p50_ms: u64,
    /// Nine in ten take less, in ms.
    pub p90_ms: u64,
    /// 19 in 20 take less, in ms.
    pub p95_ms: u64,
    /// Nine in ten end between these, in ms.
    pub interval_ms: [u64; 2],
    /// The probability that the call takes longer than the limit, 0 to 1.
    pub timeout_probability: f64,
    /// unlikely, possible or likely.
    #[schemars(extend("enum" = Timeout::WORDS))]
    pub timeout: String,
    /// Calls of this tool and mode that were recorded, ever.
    pub samples: u64,
    /// Calls of this tool and mode that daemons of other hosts recorded, ever, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_samples: Option<u64>,
    /// What the estimate rests on: history, tool, fleet, hint or default.
    #[schemars(extend("enum" = Basis::WORDS))]
    pub basis: String,
    /// Was the tool, or every tool of the plan, ever heard of: documented, recorded, or among the defaults?
    pub known: bool,
    /// Names that may have been meant by one that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// What is left of a call that runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<RemainingTime>,
    /// Why what was recorded before the daemon's start is not in it, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
}

impl EstimateAnswer {
    /// What is said of the call or the plan that is asked about; nothing of a plan without a step.
    pub fn of(engine: &Engine, request: EstimateRequest) -> Option<Self> {
        let (generation, learnt) = (engine.generation(), engine.learnt());
        let EstimateRequest { tool_name, mode_name: mode, complexity, timeout_ms, elapsed_ms, steps } = request;
        if let Some(tool) = tool_name {
            let asked = Asked { tool, mode, complexity: complexity.into(), timeout_ms, elapsed_ms };
            return Some(Self { timing: Timing::from(&engine.estimate(&generation, &learnt, &asked)) });
        }
        let steps: Vec<Asked> = steps.into_iter().flatten().map(Asked::from).collect();
        let plan = engine.estimate_plan(&generation, &learnt, &steps)?;
        let tools = steps.iter().map(|step| step.tool.as_str());
        let acquaintance = Acquaintance::of_all(tools.map(|tool| engine.acquaintance(&generation, &learnt, tool)));
        let limit_ms = timeout_ms.unwrap_or(engine.factory_timeout_ms());
        let degraded = engine.missing_history().map(|why| degraded(&why));
        Some(Self { timing: Timing { degraded, ..Timing::of_plan(&plan, limit_ms, &acquaintance) } })
    }
}

impl From<PlanStep> for Asked {
    fn from(step: PlanStep) -> Self {
        let Step { tool_name: tool, mode_name: mode, complexity } = step.into();
        Self { tool, mode, complexity: complexity.into(), ..Self::default() }
    }
}

impl From<&Estimate> for Timing {
    fn from(estimate: &Estimate) -> Self {
        let Estimate { forecast, limit_ms, remaining, acquaintance, missing_history } = estimate;
        let [_, p50_ms, p90_ms, p95_ms] = forecast.quantiles().whole_ms();
        let timeout_probability = estimate.timeout_probability();
        Self {
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
            fleet_samples: Some(forecast.fleet_samples()).filter(|&samples| samples > 0),
            basis: forecast.basis().as_str().to_owned(),
            known: acquaintance.is_known(),
            near: acquaintance.near().to_vec(),
            remaining: remaining.as_ref().map(|remaining| {
                let [_, p50_ms, p90_ms, p95_ms] = remaining.quantiles_ms();
                RemainingTime { p50_ms, p90_ms, p95_ms }
            }),
            degraded: missing_history.as_ref().map(|why| degraded(why)),
        }
    }
}

impl Timing {
    /// What is said of a plan whose caller gives up after `limit_ms`.
    pub fn of_plan(plan: &Plan, limit_ms: u64, acquaintance: &Acquaintance) -> Self {
        let [p05_ms, p50_ms, p90_ms, p95_ms] = plan.quantiles_ms();
        let (estimated_duration_ms, timeout_probability) =
            (plan.estimated_duration_ms(), plan.timeout_probability(limit_ms));
        Self {
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
            fleet_samples: Some(plan.fleet_samples()).filter(|&samples| samples > 0),
            basis: plan.basis().as_str().to_owned(),
            known: acquaintance.is_known(),
            near: acquaintance.near().to_vec(),
            remaining: None,
            degraded: None,
        }
    }
}

/// What is said of an estimate without what was recorded before.
pub(crate) fn degraded(why: &str) -> String {
    format!("what was recorded before the start is not known yet: {why}")
}

/// What is left of a running call, in ms.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemainingTime {
    /// Half of the calls that ran so long end sooner.
    pub p50_ms: u64,
    /// Nine in ten end sooner.
    pub p90_ms: u64,
    /// 19 in 20 end sooner.
    pub p95_ms: u64,
}

/// Body of `POST /v1/executions`.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum RecordRequest {
    /// One call that ended.
    One(Box<ExecutionBody>),
    /// Up to 1,000, stored all or none.
    Batch(Vec<ExecutionBody>),
}

/// One call that ended.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct ExecutionBody {
    /// The tool's name, as its document gives it.
    #[schemars(length(min = 1, max = MAX_NAME), regex(pattern = NAME))]
    #[node(alias = "tool", alias = "name", check = check_name)]
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = MODE))]
    #[node(alias = "mode", read = label, check = check_mode)]
    pub mode_name: Option<String>,
    /// How long it took, or was waited for: 0 to 86,400,000 ms, a day. Fractions are rounded.
    #[schemars(with = "f64", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub duration_ms: u64,
    /// success (default), error, timeout or cancelled.
    #[schemars(default)]
    pub outcome: Option<Outcome>,
    /// What made it long.
    #[schemars(default)]
    #[node(read = measures)]
    pub complexity: MeasuresBody,
    /// The session it belongs to.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// When it ended: RFC 3339, UTC where it has no offset, or milliseconds since the epoch; now by default.
    #[schemars(default)]
    pub timestamp: Option<Timestamp>,
    /// A second record with this key is the same call told again.
    #[schemars(default, length(min = 1, max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = key)]
    pub idempotency_key: Option<String>,
}

/// The least number that is taken for milliseconds: 9 September 2001. No calls are older, and seconds are less.
const EARLIEST_MS: i64 = 1_000_000_000_000;

/// A moment: RFC 3339, or milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(untagged, extend("anyOf" = [
    {"type": "string", "format": "date-time"},
    {"type": "integer", "format": "int64", "minimum": EARLIEST_MS, "description": "Milliseconds since the epoch."},
]))]
pub enum Timestamp {
    /// Milliseconds since the epoch.
    Millis(i64),
}

/// Answer of `POST /v1/executions`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecordAnswer {
    /// How many records were new and are durable now.
    pub recorded: usize,
    /// What they are durable by less than they should be: on one machine alone, since the database cannot be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// `GET /v1/timing` and `GET /v1/timing/{tool}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimingPage {
    /// What was learnt, by tool and mode.
    pub items: Vec<KeyTiming>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What was learnt of a tool and mode.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct KeyTiming {
    /// The tool's name, as its document gives it.
    pub tool: String,
    /// Its mode; `#error` at its end means the calls that failed.
    pub mode: String,
    /// Calls that were recorded, ever.
    pub samples: u64,
    /// What an estimate would rest on.
    #[schemars(extend("enum" = Basis::WORDS))]
    pub basis: String,
    /// What an estimate would say, in ms.
    pub estimated_duration_ms: u64,
    /// high, medium or low.
    #[schemars(extend("enum" = Confidence::WORDS))]
    pub confidence: String,
    /// Half of all calls take less, in ms.
    pub p50_ms: u64,
    /// Nine in ten take less, in ms.
    pub p90_ms: u64,
    /// 19 in 20 take less, in ms.
    pub p95_ms: u64,
    /// Nine in ten end between these, in ms.
    pub interval_ms: [u64; 2],
    /// How forecasts came true of late; absent before the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recent_accuracy: Option<RecentAccuracy>,
}

/// How forecasts came true of late, older calls fading.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecentAccuracy {
    /// Share of calls within 20 % (or 50 ms) of the estimate, 0 to 1.
    pub within_20pct: f64,
    /// Share of calls inside `interval_ms`, 0 to 1; .9 is right.
    pub coverage90: f64,
}

/// `GET /v1/sessions/{id}`, spelled as the context that it holds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnswer {
    /// The session the calls belong to.
    pub session_id: String,
    /// Its calls, oldest first, repeats kept.
    pub tool_history: Vec<String>,
    /// Tools called since its last message, each once; absent if no message of it was qualified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_tools: Option<Vec<String>>,
    /// What it is about, if messages of it were qualified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_context: Option<IntentContextBody>,
    /// What it used, if streams of it or reports told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<SessionUsage>,
}

/// What a session used so far, as its streams and `POST /v1/usage` told it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// Turns that told it.
    pub turns: u64,
    /// All input tokens, cached or not.
    pub tokens_in: u64,
    /// Tokens that the model wrote.
    pub tokens_out: u64,
    /// Input tokens read from a cache.
    pub cached_tokens: u64,
    /// US dollars, of those turns that told it; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl From<Used> for SessionUsage {
    fn from(used: Used) -> Self {
        let Used { turns, tokens_in, tokens_out, cached_tokens, cost_usd } = used;
        Self { turns, tokens_in, tokens_out, cached_tokens, cost_usd }
    }
}

impl FromNode for RecordRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match node {
            Node::List(items) if items.len() > MAX_BATCH => {
                at.bad_value(format!("a batch has at most {MAX_BATCH} records, not {}", items.len()));
                None
            }
            list @ Node::List(_) => Vec::from_node(list, at).map(Self::Batch),
            one => ExecutionBody::from_node(one, at).map(|one| Self::One(Box::new(one))),
        }
    }
}

/// As [`label`]; an empty one would be no key without a word.
fn key(node: Node, at: &mut At) -> Option<String> {
    if matches!(&node, Node::String(text) if text.is_empty()) {
        at.bad_value("a key is not empty; leave it away where there is none");
    }
    label(node, at)
}

impl FromNode for Timestamp {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        if let Node::Number(number) = &node
            && let Some(small) = number.as_i64().filter(|number| (0..EARLIEST_MS).contains(number))
        {
            at.bad_value(format!(
                "{small} ms are in the year 2001 at most; is it in s? Give ms, or a time as RFC 3339"
            ));
            return None;
        }
        let millis = match &node {
            Node::Number(number) => number.as_i64().filter(|millis| *millis >= 0),
            Node::String(text) => moment_or_utc(text)
                .map(|moment| (moment.unix_timestamp_nanos() / 1_000_000) as i64)
                .filter(|millis| *millis >= 0),
            _ => None,
        };
        match &node {
            _ if millis.is_some() => {}
            Node::String(_) => at.bad_value("is no time from 1970 on, such as 2026-01-31T12:00:00Z"),
            _ => at.wrong_type("a time such as 2026-01-31T12:00:00Z, or milliseconds since the epoch", &node),
        }
        millis.map(Self::Millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::decode;

    #[test]
    fn a_timestamp_is_what_it_says() {
        let check = |text: &str, expected: Option<i64>| {
            let read = decode::<Timestamp>(Node::String(text.to_owned())).ok();
            assert_eq!(read.map(|Timestamp::Millis(millis)| millis), expected, "{text}");
        };
        check("2026-01-31T12:00:00Z", Some(1_769_860_800_000));
        check("2026-01-31T12:00:00.5Z", Some(1_769_860_800_500));
        check("2026-01-31T14:00:00+02:00", Some(1_769_860_800_000));
        check("2026-01-31T14:00:00.5+02:00", Some(1_769_860_800_500));
        check("2026-01-31T06:30:00.123456-05:30", Some(1_769_860_800_123));
        check("2026-01-31T12:00:00", Some(1_769_860_800_000));
        let number =
            |number: i64| decode::<Timestamp>(Node::Number(number.into())).map_err(|faults| faults[0].to_string());
        assert_eq!(number(EARLIEST_MS), Ok(Timestamp::Millis(EARLIEST_MS)));
        assert!(number(1_600_000_000).unwrap_err().contains("is it in s? Give ms"));
        check("1998-01-31T12:00:00Z", Some(886_248_000_000));
        for bad in ["1969-12-31T23:59:59Z", "2026-01-31", "noon", "2026-02-30T12:00:00Z", ""] {
            check(bad, None);
            let faults = decode::<Timestamp>(Node::String(bad.to_owned())).unwrap_err();
            assert!(faults[0].message.contains("no time from 1970 on"), "{bad}: {faults:?}");
        }
    }
}
