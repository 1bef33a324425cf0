//! What a turn of an agent cost: tokens and dollars.
//!
//! Providers price four kinds of tokens apart (plain input, input written to a cache, input read from one, output), some of them
//! a call as well, and some raise the price of calls with a long input. The tier is that of one call: the tokens of a turn with
//! several calls are those of all of them, and pricing their sum as one long call overstates the cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::strict::{At, Fields, FromNode, Node};

/// Prices by the model's name.
pub type PriceTable = BTreeMap<String, Prices>;

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// All input, cached or not.
    pub input: u64,
    /// Output.
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

impl Tokens {
    /// Tokens that were worked on: input and output without what came from a cache.
    pub fn total(&self) -> u64 {
        (self.input + self.output).saturating_sub(self.cached)
    }

    /// Input at the plain price.
    pub fn plain(&self) -> Result<u64, TooMuchCached> {
        let cached = self.cached + self.cache_write;
        self.input.checked_sub(cached).ok_or_else(|| TooMuchCached(cached - self.input))
    }
}

/// US dollars for a million tokens of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Plain input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    pub cache_read: f64,
    /// Input written to a cache.
    pub cache_write: f64,
}

/// A model's prices.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// Of tokens.
    pub rates: Rates,
    /// US dollars for a call.
    pub per_call: f64,
    /// Of tokens of calls with a longer input.
    pub tiers: Vec<Tier>,
}

/// Prices of calls with a long input.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tier {
    /// The tier begins above so many tokens of input in one call.
    pub above_tokens: u64,
    /// Its prices.
    pub rates: Rates,
}

impl Prices {
    /// US dollars, to a ten-billionth, for `tokens` in `calls` calls of like length (0 counts as 1).
    pub fn cost_usd(&self, tokens: &Tokens, calls: u64) -> Result<f64, TooMuchCached> {
        let calls = calls.max(1);
        let input_of_a_call = tokens.input.div_ceil(calls);
        let tier = self.tiers.iter().filter(|tier| input_of_a_call > tier.above_tokens);
        let rates = tier.max_by_key(|tier| tier.above_tokens).map_or(&self.rates, |tier| &tier.rates);
        let kinds = [
            (tokens.plain()?, rates.input),
            (tokens.cache_write, rates.cache_write),
            (tokens.cached, rates.cache_read),
            (tokens.output, rates.output),
        ];
        let millionths: f64 = kinds.iter().map(|&(tokens, rate)| tokens as f64 * rate).sum();
        let dollars = millionths / 1e6 + calls as f64 * self.per_call;
        Ok((dollars * 1e10).round() / 1e10)
    }
}

/// Dollars that a price may be at most; more is a mistake of unit.
const MAX_PRICE: f64 = 1e6;

/// Tokens that a count may be at most.
pub const MAX_TOKENS: u64 = 1 << 40;

impl FromNode for Prices {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let tiers: Vec<Tier> = fields.or_default("tiers");
            let starts: BTreeSet<u64> = tiers.iter().map(|tier| tier.above_tokens).collect();
            if starts.len() < tiers.len() {
                fields.bad_value("tiers", "two of them begin above the same number of tokens");
            }
            Self { rates: rates(fields), per_call: fields.optional::<Price>("perCall").unwrap_or_default().0, tiers }
        })
    }
}

impl FromNode for Tier {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { above_tokens: fields.required("aboveTokens"), rates: rates(fields) })
    }
}

/// What is cached costs what plain input does, where nothing else is said.
fn rates(fields: &mut Fields<'_>) -> Rates {
    let input = fields.required::<Price>("input").0;
    Rates {
        input,
        output: fields.required::<Price>("output").0,
        cache_read: fields.optional::<Price>("cacheRead").map_or(input, |price| price.0),
        cache_write: fields.optional::<Price>("cacheWrite").map_or(input, |price| price.0),
    }
}

/// US dollars.
#[derive(Debug, Clone, Copy, Default)]
pub struct Price(pub f64);

impl FromNode for Price {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let Node::Number(number) = &node else {
            at.wrong_type("a number of dollars", &node);
            return None;
        };
        let price = number.as_f64().filter(|price| (0.0..=MAX_PRICE).contains(price));
        if price.is_none() {
            at.bad_value(format!("a price is 0 to {MAX_PRICE} dollars"));
        }
        // -0 is a price of 0, and should read like one.
        price.map(|price| Self(price.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Tokens = Tokens { input: 471_169, output: 754, cached: 330_626, cache_write: 140_539 };

    fn prices() -> Prices {
        Prices {
            rates: Rates { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 },
            per_call: 0.0,
            tiers: vec![Tier {
                above_tokens: 200_000,
                rates: Rates { input: 6.0, output: 22.5, cache_read: 0.6, cache_write: 7.5 },
            }],
        }
    }

    fn check(tokens: Tokens, calls: u64, expected: Result<f64, TooMuchCached>) {
        assert_eq!(prices().cost_usd(&tokens, calls), expected, "{tokens:?} in {calls} calls");
    }

    #[test]
    fn a_turn_is_priced_by_the_length_of_one_call() {
        assert_eq!(TOKENS.total(), 141_297);
        check(TOKENS, 1, Ok(1.269_407_1));
        check(TOKENS, 4, Ok(0.637_531_05));
        check(Tokens { input: 200_000, ..Tokens::default() }, 1, Ok(0.6));
        check(Tokens { input: 200_001, ..Tokens::default() }, 1, Ok(1.200_006));
        check(Tokens { input: 1, cached: 3, ..Tokens::default() }, 1, Err(TooMuchCached(2)));
        check(Tokens::default(), 0, Ok(0.0));
    }

    #[test]
    fn a_call_may_have_a_price() {
        let prices = Prices { per_call: 0.01, ..Prices::default() };
        assert_eq!(prices.cost_usd(&Tokens { input: 9, ..Tokens::default() }, 3), Ok(0.03));
    }
}
