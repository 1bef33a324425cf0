//! What a turn cost, on the wire.

use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timing::SessionUsage;
use crate::session::days::Day;
use crate::session::turns::Used;
use crate::strict::pattern::LABEL;
use crate::strict::values::{MAX_LABEL, label, moment};
use crate::strict::{Fields, FromNode, Violation, Word};
use crate::usage::{MAX_PRICE, MAX_TOKENS, Prices, TokenCounts};

/// Tokens from which on a conversation should be summarised, where nothing else is said.
pub(crate) const THRESHOLD: u64 = 30_000;

/// Body of `POST /v1/usage`: what a turn used.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
#[node(check = check)]
pub struct UsageRequest {
    /// token_usage (the default) or path_info.
    #[serde(rename = "type")]
    #[schemars(default)]
    pub kind: Option<UsageKind>,
    /// The conversation: what a token_usage tells is added to what it used, and its tools of this turn are counted.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// The path's name, such as PATH_1, which is the default.
    #[schemars(default, length(min = 1, max = MAX_PATH), regex(pattern = LABEL))]
    #[node(check = check_path)]
    pub path: Option<String>,
    /// All input, cached or not.
    #[schemars(default, range(max = MAX_TOKENS))]
    pub tokens_in: u64,
    /// Output.
    #[schemars(default, range(max = MAX_TOKENS))]
    pub tokens_out: u64,
    /// Input read from a cache, a part of `tokensIn`.
    #[schemars(default, range(max = MAX_TOKENS))]
    pub cached_tokens: u64,
    /// Input written to a cache, a part of `tokensIn`.
    #[schemars(default, range(max = MAX_TOKENS))]
    pub cache_write_tokens: u64,
    /// Only to be checked: tokensIn + tokensOut − cachedTokens.
    #[schemars(default)]
    pub total_tokens: Option<u64>,
    /// Tokens from which on a conversation should be summarised; 30000 by default.
    #[schemars(default)]
    pub threshold: Option<u64>,
    /// Only to be checked: `totalTokens` ≥ `threshold`.
    #[schemars(default)]
    pub threshold_reached: Option<bool>,
    /// User messages to keep when it is summarised.
    #[schemars(default)]
    pub message_retention_count: Option<u64>,
    /// What it cost, in US dollars; only to be checked where prices are known.
    #[schemars(default, range(min = 0.0, max = MAX_PRICE))]
    pub cost_usd: Option<f64>,
    /// Tools executed; with a session those called since its last message by default.
    #[schemars(default)]
    pub tools_executed: Option<u64>,
    /// Most steps that are allowed.
    #[schemars(default)]
    pub max_steps: Option<u64>,
    /// Were no more tools allowed?
    #[schemars(default)]
    pub max_tools_reached: Option<bool>,
    /// Did the turn run out of time?
    #[schemars(default)]
    pub timed_out: Option<bool>,
    /// When, RFC 3339; now by default.
    #[schemars(default)]
    #[node(check = check_timestamp)]
    pub timestamp: Option<String>,
    /// Why the turn went as it did.
    #[schemars(default)]
    pub reasoning: Option<String>,
    /// Only to be checked: it is made from the other fields.
    #[schemars(default)]
    pub message: Option<String>,
    /// Calls of the model among which the tokens are shared; 1 by default. Decides on the tier of prices.
    #[schemars(default, range(min = 1, max = MAX_TOKENS))]
    pub calls: Option<u64>,
    /// A model whose prices the configuration has; not together with `prices`.
    #[schemars(default)]
    pub model: Option<String>,
    /// The prices.
    #[schemars(default)]
    pub prices: Option<Prices>,
}

/// What an event of usage is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "the type")]
pub enum UsageKind {
    /// What a turn used.
    #[default]
    TokenUsage,
    /// How a path went.
    PathInfo,
}

/// The event that tells a client what a turn used.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageEvent {
    /// token_usage or path_info.
    #[serde(rename = "type")]
    pub kind: UsageKind,
    /// The account in words.
    pub message: String,
    /// The path's name.
    pub path: String,
    /// All input.
    pub tokens_in: u64,
    /// Output.
    pub tokens_out: u64,
    /// Input read from a cache.
    pub cached_tokens: u64,
    /// Input written to a cache; left out at 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// tokensIn + tokensOut − cachedTokens.
    pub total_tokens: u64,
    /// Tokens from which on a conversation should be summarised.
    pub threshold: u64,
    /// `totalTokens` ≥ `threshold`.
    pub threshold_reached: bool,
    /// User messages to keep when it is summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_retention_count: Option<u64>,
    /// US dollars; left out where no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Number of tools executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_executed: Option<u64>,
    /// Most steps that are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Were no more tools allowed?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tools_reached: Option<bool>,
    /// Did the turn run out of time?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// The moment, by RFC 3339, in UTC.
    pub timestamp: String,
    /// Why the turn went as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl UsageRequest {
    pub(crate) fn tokens(&self) -> TokenCounts {
        TokenCounts {
            input: self.tokens_in,
            output: self.tokens_out,
            cached: self.cached_tokens,
            cache_write: self.cache_write_tokens,
        }
    }
}

/// Bytes of a path's name.
const MAX_PATH: usize = 64;

fn check_path(path: &str) -> Result<(), &'static str> {
    let is_name = (1..=MAX_PATH).contains(&path.len()) && !path.contains(char::is_control);
    if is_name { Ok(()) } else { Err("a path has 1 to 64 bytes, none of them a control character") }
}

fn check_timestamp(text: &str) -> Result<(), Violation> {
    let parsed = moment(text).map(drop);
    parsed.ok_or_else(|| format!("must be a time such as 2026-01-31T12:00:00.000Z, not `{text}`").into())
}

/// What is sent only to be checked is what it should be.
fn check(request: &UsageRequest, fields: &mut Fields<'_>) {
    let tokens = request.tokens();
    if tokens.cached > tokens.input {
        fields.bad_value("cachedTokens", "what is cached is a part of `tokensIn`");
    } else if let Err(error) = tokens.plain() {
        fields.bad_value("cacheWriteTokens", error.to_string());
    }
    let total = tokens.total();
    if request.total_tokens.is_some_and(|given| given != total) {
        fields.bad_value("totalTokens", format!("tokensIn + tokensOut − cachedTokens is {total}"));
    }
    let reached = total >= request.threshold.unwrap_or(THRESHOLD);
    if request.threshold_reached.is_some_and(|given| given != reached) {
        fields.bad_value("thresholdReached", format!("it is {reached}: the total is {total}"));
    }
    if request.model.is_some() && request.prices.is_some() {
        fields.bad_value("model", "either `model` or `prices`, not both");
    }
}
/// Answer of `GET /v1/usage`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// When the daemon started, RFC 3339; what days used before is not kept.
    pub since: String,
    /// Tokens of a turn from which on it reaches its threshold, unless its report says otherwise.
    pub threshold: u64,
    /// Days on which something was used, oldest first, at most 31.
    pub days: Vec<DayOfUsage>,
    /// Sessions that used something, those that were heard of last first, at most 1000. These outlast a restart.
    pub sessions: Vec<UsageOfSession>,
}

/// What a day's turns used.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DayOfUsage {
    /// The day, such as 2026-01-31, by UTC.
    pub day: String,
    /// Turns of it that reached their threshold.
    pub over_threshold: u64,
    /// What they used.
    pub used: SessionUsage,
}

impl From<Day> for DayOfUsage {
    fn from(day: Day) -> Self {
        let began = UNIX_EPOCH + Duration::from_secs(day.number * 86_400);
        let text = humantime::format_rfc3339_seconds(began).to_string();
        let date = text.split('T').next().unwrap_or_default().to_owned();
        Self { day: date, over_threshold: day.over, used: day.used.into() }
    }
}

/// What a session used.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageOfSession {
    /// The session.
    pub session_id: String,
    /// What it used.
    pub used: SessionUsage,
}

impl UsageOfSession {
    pub fn new(session_id: String, used: Used) -> Self {
        Self { session_id, used: used.into() }
    }
}
