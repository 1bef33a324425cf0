//! What a stream tells of tokens and cost: by the application's own events, or as the protocols themselves do.

use serde_json::{Value, json};

use crate::session::turns::Used;
use crate::stream::{Part, StepUsage};
use crate::usage::MAX_TOKENS;

/// US dollars that a turn may cost; more is a mistake of unit.
const MAX_COST: f64 = 1e6;

/// What a stream told so far.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Of the whole message, at its end.
    finish: Option<StepUsage>,
    /// Of its steps together.
    steps: StepUsage,
    /// Of the message's metadata, what was told last.
    metadata: StepUsage,
    cost_usd: Option<f64>,
}

impl Account {
    /// Takes note of what a part says of it.
    pub(super) fn take(&mut self, part: &Part) {
        match part {
            Part::Finish { usage: Some(usage), .. } if !usage.is_empty() => self.finish = Some(*usage),
            Part::FinishStep { usage: Some(usage), .. } => self.steps = self.steps.and(*usage),
            Part::Metadata(Value::Array(annotations)) => annotations.iter().for_each(|each| self.take_metadata(each)),
            Part::Metadata(metadata) => self.take_metadata(metadata),
            _ => {}
        }
    }

    /// Metadata is the application's own; where it tells of usage, it mostly does as the protocol's events do.
    fn take_metadata(&mut self, metadata: &Value) {
        let inner = ["usage", "totalUsage"].iter().find_map(|key| metadata.get(*key)).unwrap_or(metadata);
        if let Some(usage) = StepUsage::of(inner).filter(|usage| !usage.is_empty()) {
            self.metadata = usage;
        }
        self.cost_usd = cost(metadata).or_else(|| cost(inner)).or(self.cost_usd);
    }

    /// What the protocol told, as the event of an application's own account; nothing if it told nothing.
    pub(super) fn event(&self) -> Option<Value> {
        let told =
            [self.finish.unwrap_or_default(), self.metadata, self.steps].into_iter().find(|told| !told.is_empty());
        let StepUsage { prompt_tokens, completion_tokens, cached_tokens } = told?;
        let mut event = json!({"type": "token_usage"});
        let fields = [("tokensIn", prompt_tokens), ("tokensOut", completion_tokens), ("cachedTokens", cached_tokens)];
        for (name, tokens) in fields.into_iter().filter_map(|(name, tokens)| Some((name, tokens?))) {
            event[name] = tokens.into();
        }
        if let Some(cost_usd) = self.cost_usd {
            event["costUsd"] = cost_usd.into();
        }
        Some(event)
    }
}

fn cost(value: &Value) -> Option<f64> {
    value.get("costUsd")?.as_f64().filter(|cost| (0.0..=MAX_COST).contains(cost))
}

/// What the events of a stream add up to. Its token_usage events are the account; path_info is one only where there is
/// no other.
pub(super) fn used(events: &[Value]) -> Used {
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let accounts = Some(of("token_usage")).filter(|accounts| !accounts.is_empty()).unwrap_or_else(|| of("path_info"));
    accounts.into_iter().fold(Used::default(), |used, event| {
        let tokens = |key: &str| event[key].as_u64().unwrap_or_default().min(MAX_TOKENS);
        used.and(Used {
            turns: 1,
            tokens_in: tokens("tokensIn"),
            tokens_out: tokens("tokensOut"),
            cached_tokens: tokens("cachedTokens"),
            cost_usd: cost(event),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(parts: &[Part], expected: Option<&Value>) {
        let mut account = Account::default();
        for part in parts {
            account.take(part);
        }
        assert_eq!(account.event().as_ref(), expected, "{parts:?}");
    }

    fn usage(prompt: u64, completion: u64) -> Option<StepUsage> {
        let (prompt_tokens, completion_tokens) = (Some(prompt), Some(completion));
        Some(StepUsage { prompt_tokens, completion_tokens, cached_tokens: None })
    }

    #[test]
    fn the_end_of_the_message_counts_before_its_metadata_and_its_steps() {
        let step = |tokens| Part::FinishStep { reason: None, usage: usage(tokens, 1), is_continued: false };
        let finish = |usage| Part::Finish { reason: None, usage };
        let told = |tokens: u64, out: u64| Some(json!({"type": "token_usage", "tokensIn": tokens, "tokensOut": out}));
        check(&[step(3), step(4), finish(usage(9, 2))], told(9, 2).as_ref());
        check(&[step(3), step(4), finish(None)], told(7, 2).as_ref());
        check(&[step(3), finish(Some(StepUsage::default()))], told(3, 1).as_ref());
        let metadata = |value: Value| Part::Metadata(value);
        check(&[step(3), metadata(json!({"usage": {"inputTokens": 5, "outputTokens": 6}}))], told(5, 6).as_ref());
        let first = metadata(json!({"totalUsage": {"inputTokens": 1, "outputTokens": 1}}));
        let last = metadata(json!([{"usage": {"inputTokens": 5, "outputTokens": 6}, "costUsd": 0.25}]));
        let mut expected = told(5, 6);
        expected.as_mut().unwrap()["costUsd"] = json!(0.25);
        check(&[first, last], expected.as_ref());
        check(&[metadata(json!({"totalTokens": 7})), metadata(json!("x")), finish(None)], None);
    }

    #[test]
    fn a_cost_that_nobody_told_is_not_0() {
        let of = |events: Value| used(events.as_array().unwrap()).cost_usd;
        assert_eq!(of(json!([{"type": "token_usage", "tokensIn": 3}])), None);
        assert_eq!(of(json!([{"type": "token_usage", "costUsd": 0.0}])), Some(0.0));
        assert_eq!(of(json!([{"type": "token_usage", "costUsd": 0.5}, {"type": "token_usage"}])), Some(0.5));
        assert_eq!(of(json!([{"type": "token_usage", "costUsd": -1}])), None);
    }
}
