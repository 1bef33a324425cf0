//! What a turn of an agent cost: tokens and dollars.
//!
//! Providers price four kinds of tokens apart (plain input, input written to a cache, input read from one, output),
//! some of them a call as well, and some raise the price of calls with a long input. The tier is that of one call: the
//! tokens of a turn with several calls are those of all of them, and pricing their sum as one long call overstates the
//! cost.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;

use crate::strict::{FromNode, Violation};

/// The section `usage` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, FromNode)]
#[node(default)]
pub struct Settings {
    pub prices: PriceTable,
}

/// Prices by the model's name.
pub type PriceTable = BTreeMap<String, Prices>;

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// All input, cached or not.
    pub input: u64,
    pub output: u64,
    /// Input read from a cache.
    pub cached: u64,
    /// Input written to a cache.
    pub cache_write: u64,
}

/// More was cached than there was input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cached and cache-write tokens are parts of the input, which has {0} fewer")]
pub struct TooMuchCached(u64);

impl TokenCounts {
    /// Tokens that were worked on: input and output without what came from a cache.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_sub(self.cached)
    }

    /// Input at the plain price.
    pub fn plain(&self) -> Result<u64, TooMuchCached> {
        let cached = self.cached.saturating_add(self.cache_write);
        self.input.checked_sub(cached).ok_or_else(|| TooMuchCached(cached - self.input))
    }
}

/// Dollars that a price may be at most; more is a mistake of unit.
pub const MAX_PRICE: f64 = 1e6;

/// Tokens that a count may be at most.
pub const MAX_TOKENS: u64 = 1 << 40;

/// US dollars for a million tokens of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, FromNode)]
#[schemars(rename_all = "camelCase")]
pub struct Rates {
    /// Plain input.
    #[schemars(range(min = 0.0, max = MAX_PRICE))]
    pub input: f64,
    /// Output.
    #[schemars(range(min = 0.0, max = MAX_PRICE))]
    pub output: f64,
    /// Input read from a cache; as plain input by default.
    #[schemars(default, range(min = 0.0, max = MAX_PRICE))]
    pub cache_read: Option<f64>,
    /// Input written to a cache; as plain input by default.
    #[schemars(default, range(min = 0.0, max = MAX_PRICE))]
    pub cache_write: Option<f64>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, FromNode)]
#[schemars(rename = "PricesBody", deny_unknown_fields, rename_all = "camelCase")]
pub struct Prices {
    /// Of tokens.
    #[schemars(flatten)]
    pub rates: Rates,
    /// US dollars for a call.
    #[schemars(default, range(min = 0.0, max = MAX_PRICE))]
    pub per_call: f64,
    /// Prices of calls with a long input.
    #[schemars(default)]
    #[node(check = check_tiers)]
    pub tiers: Vec<Tier>,
}

/// Prices of calls with a long input.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, FromNode)]
#[schemars(rename = "TierBody", deny_unknown_fields, rename_all = "camelCase")]
pub struct Tier {
    /// The tier begins above so many tokens of input in one call.
    pub above_tokens: u64,
    /// Its prices.
    #[schemars(flatten)]
    pub rates: Rates,
}

impl Prices {
    /// US dollars, to a ten-billionth, for `tokens` in `calls` calls of like length (0 counts as 1).
    pub fn cost_usd(&self, tokens: &TokenCounts, calls: u64) -> Result<f64, TooMuchCached> {
        let calls = calls.max(1);
        let input_of_a_call = tokens.input.div_ceil(calls);
        let tier = self.tiers.iter().filter(|tier| input_of_a_call > tier.above_tokens);
        let rates = tier.max_by_key(|tier| tier.above_tokens).map_or(&self.rates, |tier| &tier.rates);
        let kinds = [
            (tokens.plain()?, rates.input),
            (tokens.cache_write, rates.cache_write.unwrap_or(rates.input)),
            (tokens.cached, rates.cache_read.unwrap_or(rates.input)),
            (tokens.output, rates.output),
        ];
        let millionths: f64 = kinds.iter().map(|&(tokens, rate)| tokens as f64 * rate).sum();
        let dollars = millionths / 1e6 + calls as f64 * self.per_call;
        Ok((dollars * 1e10).round() / 1e10)
    }
}

/// A longer input has one price.
fn check_tiers(tiers: &[Tier]) -> Result<(), Violation> {
    let mut starts = BTreeSet::new();
    let twice = tiers.iter().find(|tier| !starts.insert(tier.above_tokens));
    twice.map_or(Ok(()), |tier| {
        Err(format!("must begin at different numbers, not twice above {} tokens", tier.above_tokens).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: TokenCounts = TokenCounts { input: 471_169, output: 754, cached: 330_626, cache_write: 140_539 };

    fn prices() -> Prices {
        Prices {
            rates: Rates { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75) },
            per_call: 0.0,
            tiers: vec![Tier {
                above_tokens: 200_000,
                rates: Rates { input: 6.0, output: 22.5, cache_read: Some(0.6), cache_write: Some(7.5) },
            }],
        }
    }

    fn check(tokens: TokenCounts, calls: u64, expected: Result<f64, TooMuchCached>) {
        assert_eq!(prices().cost_usd(&tokens, calls), expected, "{tokens:?} in {calls} calls");
    }

    #[test]
    fn a_turn_is_priced_by_the_length_of_one_call() {
        assert_eq!(TOKENS.total(), 141_297);
        check(TOKENS, 1, Ok(1.269_407_1));
        check(TOKENS, 4, Ok(0.637_531_05));
        check(TokenCounts { input: 200_000, ..TokenCounts::default() }, 1, Ok(0.6));
        check(TokenCounts { input: 200_001, ..TokenCounts::default() }, 1, Ok(1.200_006));
        check(TokenCounts { input: 1, cached: 3, ..TokenCounts::default() }, 1, Err(TooMuchCached(2)));
        check(TokenCounts::default(), 0, Ok(0.0));
    }

    #[test]
    fn a_call_may_have_a_price() {
        let prices = Prices { per_call: 0.01, ..Prices::default() };
        assert_eq!(prices.cost_usd(&TokenCounts { input: 9, ..TokenCounts::default() }, 3), Ok(0.03));
    }
}
