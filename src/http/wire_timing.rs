//! Durations, records and sessions on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_qualify::IntentContextBody;
use crate::catalog::document::check_name;
use crate::session::turns::Used;
use crate::store::{MAX_DURATION_MS, Measures, Outcome};
use crate::strict::{At, Fields, FromNode, Node};
use crate::timing::Complexity;
use crate::timing::key::is_mode;

/// Most records of one batch.
pub(super) const MAX_BATCH: usize = 1000;

/// Most steps of one plan.
pub(super) const MAX_STEPS: usize = 100;

/// Longest name of a mode or session, and longest idempotency key, in characters.
const MAX_TEXT: usize = 256;

/// Body of `POST /v1/estimate`: one call, or the steps of a plan.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EstimateRequest {
    /// The tool; not together with `steps`.
    #[schemars(default)]
    pub tool_name: Option<String>,
    /// Its mode, if it has modes.
    #[schemars(default)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    pub complexity: MeasuresBody,
    /// When the caller gives up, in ms; the factory's limit by default.
    #[schemars(default)]
    pub timeout_ms: Option<u64>,
    /// How long the call has run already, in ms.
    #[schemars(default)]
    pub elapsed_ms: Option<u64>,
    /// A plan's calls, one after the other, at most 100.
    #[schemars(default)]
    pub steps: Option<Vec<Step>>,
}

/// One call of a plan.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Step {
    /// The tool.
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default)]
    pub mode_name: Option<String>,
    /// How much it has to do.
    #[schemars(default)]
    pub complexity: MeasuresBody,
}

/// What makes a call long; absent means none.
#[derive(Debug, Default, Clone, Copy, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MeasuresBody {
    /// Characters of the input.
    #[schemars(default)]
    pub content_length: Option<u64>,
    /// Perspectives asked for.
    #[schemars(default)]
    pub num_perspectives: Option<u64>,
    /// Branches asked for.
    #[schemars(default)]
    pub num_branches: Option<u64>,
    /// Thinking budget, in tokens.
    #[schemars(default)]
    pub thinking_budget: Option<u64>,
    /// Tokens of context.
    #[schemars(default)]
    pub context_tokens: Option<u64>,
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
    pub timeout: String,
    /// Calls of this tool and mode that were recorded, ever.
    pub samples: u64,
    /// What the estimate rests on: history, tool, fleet, hint or default.
    pub basis: String,
    /// What is left of a call that runs already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Remaining>,
}

/// What is left of a running call, in ms.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Remaining {
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
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExecutionBody {
    /// The tool.
    pub tool_name: String,
    /// Its mode, if it has modes.
    #[schemars(default)]
    pub mode_name: Option<String>,
    /// How long it took, or was waited for: 0 to 86,400,000 ms, a day.
    pub duration_ms: u64,
    /// success (default), error, timeout or cancelled.
    #[schemars(default)]
    pub outcome: Option<String>,
    /// What made it long.
    #[schemars(default)]
    pub complexity: MeasuresBody,
    /// The session it belongs to.
    #[schemars(default)]
    pub session_id: Option<String>,
    /// When it ended: RFC 3339, or milliseconds since the epoch; now by default.
    #[schemars(default)]
    pub timestamp: Option<Timestamp>,
    /// A second record with this key is the same call told again.
    #[schemars(default)]
    pub idempotency_key: Option<String>,
}

/// A moment: RFC 3339, or milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(untagged, extend("anyOf" = [
    {"type": "string", "format": "date-time"},
    {"type": "integer", "format": "int64", "description": "Milliseconds since the epoch."},
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
    /// The tool.
    pub tool: String,
    /// Its mode; `#error` at its end means the calls that failed.
    pub mode: String,
    /// Calls that were recorded, ever.
    pub samples: u64,
    /// What an estimate would rest on.
    pub basis: String,
    /// What an estimate would say, in ms.
    pub estimated_duration_ms: u64,
    /// high, medium or low.
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

/// `GET /v1/sessions/{id}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionAnswer {
    /// The session.
    pub session_id: String,
    /// Its calls, oldest first, repeats kept.
    pub tool_history: Vec<String>,
    /// What it is about, if messages of it were qualified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_context: Option<IntentContextBody>,
    /// What it used, if streams of it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<SessionUsage>,
}

/// What a session used so far, as its streams told it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionUsage {
    /// Turns that told it.
    pub turns: u64,
    /// All input tokens, cached or not.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Input tokens read from a cache.
    pub cached_tokens: u64,
    /// US dollars, of those turns that told it.
    pub cost_usd: f64,
}

impl From<Used> for SessionUsage {
    fn from(used: Used) -> Self {
        let Used { turns, tokens_in, tokens_out, cached_tokens, cost_usd } = used;
        Self { turns, tokens_in, tokens_out, cached_tokens, cost_usd }
    }
}

/// A tool's name.
pub(super) fn tool_name(fields: &mut Fields<'_>) -> String {
    let Some(name) = fields.needed::<String>("tool_name") else { return String::new() };
    check_tool(fields, &name);
    name
}

fn check_tool(fields: &mut Fields<'_>, name: &str) {
    if let Err(fault) = check_name(name) {
        fields.bad_value("tool_name", fault.to_string());
    }
}

pub(super) fn mode_name(fields: &mut Fields<'_>) -> Option<String> {
    let mode = text(fields, "mode_name")?;
    if !is_mode(&mode) {
        fields.bad_value("mode_name", "a mode has no `#`: what follows one names calls that failed");
    }
    Some(mode)
}

/// A short text without control characters; an empty one counts as absent.
pub(super) fn text(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let text: String = fields.optional(key).filter(|text: &String| !text.is_empty())?;
    if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
        fields.bad_value(key, format!("at most {MAX_TEXT} characters, none of them a control character"));
    }
    Some(text)
}

pub(super) fn duration(fields: &mut Fields<'_>, key: &'static str) -> Option<u64> {
    let duration = fields.optional(key)?;
    check_duration(fields, key, duration);
    Some(duration)
}

fn check_duration(fields: &mut Fields<'_>, key: &'static str, duration: u64) {
    if duration > MAX_DURATION_MS {
        fields.bad_value(key, format!("a duration is at most {MAX_DURATION_MS} ms, which is a day"));
    }
}

pub(super) fn word(fields: &mut Fields<'_>, key: &'static str, words: &[&str]) -> Option<String> {
    let word: String = fields.optional(key)?;
    if !words.contains(&word.as_str()) {
        fields.bad_value(key, format!("must be one of {}, not `{word}`", words.join(", ")));
    }
    Some(word)
}

impl FromNode for MeasuresBody {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            content_length: measure(fields, "content_length"),
            num_perspectives: measure(fields, "num_perspectives"),
            num_branches: measure(fields, "num_branches"),
            thinking_budget: measure(fields, "thinking_budget"),
            context_tokens: measure(fields, "context_tokens"),
        })
    }
}

/// Largest measure; whatever is larger is a mistake.
const MAX_MEASURE: u64 = 1 << 40;

fn measure(fields: &mut Fields<'_>, key: &'static str) -> Option<u64> {
    let measure = fields.optional(key)?;
    if measure > MAX_MEASURE {
        fields.bad_value(key, format!("at most {MAX_MEASURE}"));
    }
    Some(measure)
}

impl FromNode for Step {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            tool_name: tool_name(fields),
            mode_name: mode_name(fields),
            complexity: fields.or_default("complexity"),
        })
    }
}

impl FromNode for EstimateRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let steps: Option<Vec<Step>> = fields.optional("steps");
            let request = Self {
                tool_name: fields.optional("tool_name"),
                mode_name: mode_name(fields),
                complexity: fields.or_default("complexity"),
                timeout_ms: duration(fields, "timeout_ms"),
                elapsed_ms: duration(fields, "elapsed_ms"),
                steps,
            };
            match (&request.tool_name, &request.steps) {
                (Some(name), None) => check_tool(fields, name),
                (None, Some(steps)) if (1..=MAX_STEPS).contains(&steps.len()) => {}
                (None, Some(_)) => fields.bad_value("steps", format!("a plan has 1 to {MAX_STEPS} steps")),
                (Some(_), Some(_)) => fields.bad_value("steps", "either `tool_name` or `steps`, not both"),
                (None, None) => fields.bad_value("tool_name", "either `tool_name` or `steps` is needed"),
            }
            request
        })
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

impl FromNode for ExecutionBody {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let duration_ms = fields.required("duration_ms");
            check_duration(fields, "duration_ms", duration_ms);
            let outcomes = Outcome::ALL.map(Outcome::as_str);
            Self {
                tool_name: tool_name(fields),
                mode_name: mode_name(fields),
                duration_ms,
                outcome: word(fields, "outcome", &outcomes),
                complexity: fields.or_default("complexity"),
                session_id: text(fields, "session_id"),
                timestamp: fields.optional("timestamp"),
                idempotency_key: text(fields, "idempotency_key"),
            }
        })
    }
}

impl FromNode for Timestamp {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let millis = match &node {
            Node::Number(number) => number.as_i64().filter(|millis| *millis >= 0),
            Node::String(text) => humantime::parse_rfc3339_weak(text)
                .ok()
                .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
                .map(|since| since.as_millis() as i64),
            _ => None,
        };
        if millis.is_none() {
            at.wrong_type("a time such as 2026-01-31T12:00:00Z, or milliseconds since the epoch", &node);
        }
        millis.map(Self::Millis)
    }
}
