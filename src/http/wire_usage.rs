//! What a turn cost, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::{At, Fields, FromNode, Node};
use crate::usage::{MAX_TOKENS, Price, Prices, Tokens};

/// Tokens from which on a conversation should be summarised, where nothing else is said.
pub(super) const THRESHOLD: u64 = 30_000;

/// Body of `POST /v1/usage`: what a turn used.
#[derive(Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct UsageRequest {
    /// token_usage (the default) or path_info.
    #[serde(rename = "type")]
    #[schemars(default)]
    pub kind: Option<String>,
    /// The path's name, such as PATH_1, which is the default.
    #[schemars(default)]
    pub path: Option<String>,
    /// All input, cached or not.
    #[schemars(default)]
    pub tokens_in: u64,
    /// Output.
    #[schemars(default)]
    pub tokens_out: u64,
    /// Input read from a cache, a part of `tokensIn`.
    #[schemars(default)]
    pub cached_tokens: u64,
    /// Input written to a cache, a part of `tokensIn`.
    #[schemars(default)]
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
    #[schemars(default)]
    pub cost_usd: Option<f64>,
    /// Tools executed.
    #[schemars(default)]
    pub tools_executed: Option<u64>,
    /// Steps allowed.
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
    pub timestamp: Option<String>,
    /// Why the turn went as it did.
    #[schemars(default)]
    pub reasoning: Option<String>,
    /// Only to be checked: it is made from the other fields.
    #[schemars(default)]
    pub message: Option<String>,
    /// Calls of the model among which the tokens are shared; 1 by default. Decides on the tier of prices.
    #[schemars(default)]
    pub calls: Option<u64>,
    /// A model whose prices the configuration has; not together with `prices`.
    #[schemars(default)]
    pub model: Option<String>,
    /// The prices.
    #[schemars(default, with = "Option<PricesBody>")]
    pub prices: Option<Prices>,
}

/// US dollars for a million tokens.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes `usage::Prices`")]
pub struct PricesBody {
    /// Plain input.
    input: f64,
    /// Output.
    output: f64,
    /// Input read from a cache; as plain input by default.
    #[schemars(default)]
    cache_read: Option<f64>,
    /// Input written to a cache; as plain input by default.
    #[schemars(default)]
    cache_write: Option<f64>,
    /// US dollars for a call.
    #[schemars(default)]
    per_call: Option<f64>,
    /// Prices of calls with a long input.
    #[schemars(default)]
    tiers: Vec<TierBody>,
}

/// Prices of calls with a long input.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes `usage::Tier`")]
pub struct TierBody {
    /// The tier begins above so many tokens of input in one call.
    above_tokens: u64,
    /// Plain input.
    input: f64,
    /// Output.
    output: f64,
    /// Input read from a cache; as plain input by default.
    #[schemars(default)]
    cache_read: Option<f64>,
    /// Input written to a cache; as plain input by default.
    #[schemars(default)]
    cache_write: Option<f64>,
}

/// The event that tells a client what a turn used.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageEvent {
    /// token_usage or path_info.
    #[serde(rename = "type")]
    pub kind: String,
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
    /// Tools executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_executed: Option<u64>,
    /// Steps allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// Were no more tools allowed?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tools_reached: Option<bool>,
    /// Did the turn run out of time?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// When, RFC 3339.
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
    pub(super) fn tokens(&self) -> Tokens {
        Tokens {
            input: self.tokens_in,
            output: self.tokens_out,
            cached: self.cached_tokens,
            cache_write: self.cache_write_tokens,
        }
    }
}

fn tokens(fields: &mut Fields<'_>, key: &'static str) -> u64 {
    let tokens: u64 = fields.or_default(key);
    if tokens > MAX_TOKENS {
        fields.bad_value(key, format!("at most {MAX_TOKENS}"));
    }
    tokens.min(MAX_TOKENS)
}

impl FromNode for UsageRequest {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let request = Self {
                kind: fields.optional("type"),
                path: fields.optional("path"),
                tokens_in: tokens(fields, "tokensIn"),
                tokens_out: tokens(fields, "tokensOut"),
                cached_tokens: tokens(fields, "cachedTokens"),
                cache_write_tokens: tokens(fields, "cacheWriteTokens"),
                total_tokens: fields.optional("totalTokens"),
                threshold: fields.optional("threshold"),
                threshold_reached: fields.optional("thresholdReached"),
                message_retention_count: fields.optional("messageRetentionCount"),
                cost_usd: fields.optional::<Price>("costUsd").map(|price| price.0),
                tools_executed: fields.optional("toolsExecuted"),
                max_steps: fields.optional("maxSteps"),
                max_tools_reached: fields.optional("maxToolsReached"),
                timed_out: fields.optional("timedOut"),
                timestamp: fields.optional("timestamp"),
                reasoning: fields.optional("reasoning"),
                message: fields.optional("message"),
                calls: fields.optional("calls"),
                model: fields.optional("model"),
                prices: fields.optional("prices"),
            };
            request.check(fields);
            request
        })
    }
}

impl UsageRequest {
    fn check(&self, fields: &mut Fields<'_>) {
        if let Some(kind) = self.kind.as_deref().filter(|kind| !["token_usage", "path_info"].contains(kind)) {
            fields.bad_value("type", format!("must be token_usage or path_info, not `{kind}`"));
        }
        let is_name = |path: &str| (1..=64).contains(&path.len()) && !path.contains(|char: char| char.is_control());
        if self.path.as_deref().is_some_and(|path| !is_name(path)) {
            fields.bad_value("path", "1 to 64 bytes, none of them a control character");
        }
        if self.cached_tokens > self.tokens_in {
            fields.bad_value("cachedTokens", "what is cached is a part of `tokensIn`");
        } else if let Err(error) = self.tokens().plain() {
            fields.bad_value("cacheWriteTokens", error.to_string());
        }
        let total = self.tokens().total();
        if self.total_tokens.is_some_and(|given| given != total) {
            fields.bad_value("totalTokens", format!("tokensIn + tokensOut − cachedTokens is {total}"));
        }
        let reached = total >= self.threshold.unwrap_or(THRESHOLD);
        if self.threshold_reached.is_some_and(|given| given != reached) {
            fields.bad_value("thresholdReached", format!("it is {reached}: the total is {total}"));
        }
        if self.calls.is_some_and(|calls| !(1..=MAX_TOKENS).contains(&calls)) {
            fields.bad_value("calls", format!("1 to {MAX_TOKENS}"));
        }
        if self.model.is_some() && self.prices.is_some() {
            fields.bad_value("model", "either `model` or `prices`, not both");
        }
        if let Some(timestamp) = &self.timestamp
            && humantime::parse_rfc3339(timestamp).is_err()
        {
            fields.bad_value("timestamp", "a time such as 2026-01-31T12:00:00.000Z");
        }
    }
}
