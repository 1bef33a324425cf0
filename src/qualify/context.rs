//! What a conversation is about, over its turns: "buy that" means what the message before meant.
//!
//! The rules, in full:
//!
//! - A context of at most [`Rules::max_turns`] turns is kept by a message that says nothing itself ("yes, do it", "show
//!   me more"), by one that only names other networks or assets ("and for SOL?"), and by any that is not confident by
//!   itself. Networks that it names replace those of the context, and so do their categories; the others stay. What a
//!   message brings itself is offered and not stored, nor, below [`OWN_INTENT`], what it may be after. The confidence
//!   is the larger of its own and the context's less [`DECAY`], and is the next turn's; the answer says that the
//!   fallback was applied.
//! - A message that is confident by itself (at least [`Rules::new_context`]) replaces the context. One that points at
//!   what was said ("who holds it?") keeps its networks; one that says the same again keeps its categories.
//! - Otherwise the message stands alone, whatever it supports.
//!
//! A context that the caller sends back wins over the session's. It may be old, or of another catalog: what no longer
//! exists is dropped from it, and said.

use serde::{Deserialize, Serialize};

use crate::strict::values::check_label;

/// What a turn without a confident message takes from the confidence.
pub const DECAY: f32 = 0.1;

/// Categories, and networks, that a context can hold; more cannot come from an answer.
pub const MAX_NAMES: usize = 64;

/// A message that does not lean on a context which it keeps is after something of its own from this confidence on.
pub const OWN_INTENT: f32 = 0.4;

/// Longest phrase for an intent, in characters.
pub const MAX_INTENT: usize = 1000;

/// What a conversation is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IntentContext {
    /// Networks that were named.
    pub networks: Vec<String>,
    /// Categories that are offered.
    pub categories: Vec<String>,
    /// What the user is after, as a phrase.
    pub active_intent: Option<String>,
    /// Turns since a confident message.
    pub turns_since_update: u64,
    /// The confidence of the turn before, 0 to 1.
    pub last_confidence: f32,
}

/// When contexts are replaced and kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// A message with this confidence replaces the context, 0 to 1.
    pub new_context: f32,
    /// A context of at most so many turns is kept.
    pub max_turns: u64,
    /// A message that needs no tool with this probability is said to need none, 0 to 1.
    pub no_tool_threshold: f32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { new_context: 0.5, max_turns: 5, no_tool_threshold: 0.75 }
    }
}

/// What a message says by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Own {
    /// Networks that it names.
    pub networks: Vec<String>,
    /// Categories that it qualifies, those always offered first.
    pub categories: Vec<String>,
    /// What the user is after.
    pub intent: Option<String>,
    /// The best category's probability, 0 to 1.
    pub confidence: f32,
    /// Is it said by the message before, rather than by this one?
    pub says_nothing_new: bool,
    /// Is it what was said before, once more?
    pub is_again: bool,
}

/// The context after a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextTurn {
    /// The context for the next turn.
    pub context: IntentContext,
    /// Was an older context kept?
    pub sticky: bool,
}

impl Rules {
    /// Is a context of that age kept?
    pub fn keeps(&self, before: &IntentContext) -> bool {
        // The caller may say anything of its context; what it says it is old by decides.
        let is_of_something = !before.categories.is_empty() || before.active_intent.is_some();
        before.turns_since_update <= self.max_turns && is_of_something
    }

    /// The context after a message, by the rules above. The networks of `before` are those that the message leaves.
    pub fn turn(&self, own: Own, before: Option<&IntentContext>) -> ContextTurn {
        let kept = before.filter(|before| self.keeps(before));
        let Some(before) = kept.filter(|_| own.says_nothing_new || own.confidence < self.new_context) else {
            return Self::replace(own, kept);
        };
        let is_own_intent_kept = own.confidence >= OWN_INTENT;
        let own_confidence = if own.says_nothing_new { 0.0 } else { own.confidence };
        let context = IntentContext {
            networks: before.networks.clone(),
            categories: before.categories.clone(),
            active_intent: own.intent.filter(|_| is_own_intent_kept).or_else(|| before.active_intent.clone()),
            turns_since_update: before.turns_since_update + 1,
            last_confidence: own_confidence.max(before.last_confidence - DECAY).max(0.0),
        }
        .bounded();
        ContextTurn { context, sticky: true }
    }

    fn replace(own: Own, before: Option<&IntentContext>) -> ContextTurn {
        let mut categories = own.categories;
        for category in before.filter(|_| own.is_again).iter().flat_map(|before| &before.categories) {
            if !categories.contains(category) {
                categories.push(category.clone());
            }
        }
        let context = IntentContext {
            networks: own.networks,
            categories,
            active_intent: own.intent,
            turns_since_update: 0,
            last_confidence: own.confidence,
        }
        .bounded();
        ContextTurn { context, sticky: false }
    }
}

impl IntentContext {
    /// Without what the catalog does not have; returns what was dropped.
    pub fn restrict(&mut self, is_category: impl Fn(&str) -> bool, is_network: impl Fn(&str) -> bool) -> Vec<String> {
        let mut dropped = Vec::new();
        let mut keep = |names: &mut Vec<String>, is_known: &dyn Fn(&str) -> bool| {
            let mut kept: Vec<String> = Vec::new();
            for name in names.drain(..).take(MAX_NAMES) {
                if !is_known(&name) {
                    dropped.push(name);
                } else if !kept.contains(&name) {
                    kept.push(name);
                }
            }
            *names = kept;
        };
        keep(&mut self.categories, &is_category);
        keep(&mut self.networks, &is_network);
        dropped
    }

    /// Is it the same as `other`, but for what the wire rounds?
    pub fn says_the_same(&self, other: &Self) -> bool {
        let of = |context: &Self| (context.networks.clone(), context.categories.clone(), context.active_intent.clone());
        of(self) == of(other) && self.turns_since_update == other.turns_since_update
    }

    /// The same with a category added that was missing.
    #[must_use]
    pub fn with_category(mut self, category: &str) -> Self {
        if !self.categories.iter().any(|known| known == category) {
            self.categories.truncate(MAX_NAMES - 1);
            self.categories.push(category.to_owned());
        }
        self
    }

    /// The same within the bounds that hold for one that is sent back.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for names in [&mut self.categories, &mut self.networks] {
            names.retain(|name| check_label(name).is_ok());
            names.truncate(MAX_NAMES);
        }
        if let Some(intent) = &mut self.active_intent
            && let Some((end, _)) = intent.char_indices().nth(MAX_INTENT)
        {
            intent.truncate(end);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn own(networks: &str, categories: &str, confidence: f32) -> Own {
        let intent = Some("new".into());
        Own { networks: names(networks), categories: names(categories), intent, confidence, ..Own::default() }
    }

    fn context(turns: u64, confidence: f32) -> IntentContext {
        IntentContext {
            networks: names("solana"),
            categories: names("required solana"),
            active_intent: Some("old".into()),
            turns_since_update: turns,
            last_confidence: confidence,
        }
    }

    /// Networks, categories, intent, turns, confidence, sticky.
    type Expected<'e> = (&'e str, &'e str, &'e str, u64, f32, bool);

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(own: Own, before: Option<IntentContext>, expected: Expected<'_>) {
        let said = format!("{own:?} after {before:?}");
        let ContextTurn { context, sticky } = Rules::default().turn(own, before.as_ref());
        let (networks, categories, intent, turns, confidence, kept) = expected;
        assert_eq!(context.networks, names(networks), "{said}");
        assert_eq!(context.categories, names(categories), "{said}");
        assert_eq!(context.active_intent.as_deref(), Some(intent), "{said}");
        assert_eq!(context.turns_since_update, turns, "{said}");
        assert!((context.last_confidence - confidence).abs() < 1e-6, "{said}: {}", context.last_confidence);
        assert_eq!(sticky, kept, "{said}");
    }

    #[test]
    fn contexts_are_kept_and_replaced_by_the_rules() {
        let weak = || own("", "required", 0.2);
        let silent = |own: Own| Own { says_nothing_new: true, intent: None, ..own };
        let again = |own: Own| Own { is_again: true, ..own };
        check(weak(), None, ("", "required", "new", 0, 0.2, false));
        let base = || own("base", "required base", 0.9);
        check(base(), Some(context(0, 0.95)), ("base", "required base", "new", 0, 0.9, false));
        let swell = || own("", "required swell", 0.5);
        check(swell(), Some(context(0, 0.95)), ("", "required swell", "new", 0, 0.5, false));
        check(again(swell()), Some(context(0, 0.95)), ("", "required swell solana", "new", 0, 0.5, false));
        check(again(swell()), Some(context(9, 0.95)), ("", "required swell", "new", 0, 0.5, false));
        check(weak(), Some(context(0, 0.95)), ("solana", "required solana", "old", 1, 0.85, true));
        check(weak(), Some(context(1, 0.85)), ("solana", "required solana", "old", 2, 0.75, true));
        check(silent(base()), Some(context(0, 0.95)), ("solana", "required solana", "old", 1, 0.85, true));
        check(own("", "required web", 0.4), Some(context(1, 0.3)), ("solana", "required solana", "new", 2, 0.4, true));
        check(weak(), Some(context(4, 0.05)), ("solana", "required solana", "old", 5, 0.2, true));
        check(weak(), Some(context(5, 0.95)), ("solana", "required solana", "old", 6, 0.85, true));
        check(weak(), Some(context(6, 0.95)), ("", "required", "new", 0, 0.2, false));
        check(weak(), Some(context(u64::MAX, 0.95)), ("", "required", "new", 0, 0.2, false));
    }

    #[test]
    fn what_no_longer_exists_is_dropped() {
        let mut context =
            IntentContext { categories: names("a b a c"), networks: names("x y"), ..IntentContext::default() };
        let dropped = context.restrict(|name| name != "b", |name| name == "x");
        assert_eq!((context.categories.as_slice(), context.networks.as_slice()), (&names("a c")[..], &names("x")[..]));
        assert_eq!(dropped, ["b", "y"]);
        assert_eq!(context.clone().with_category("c"), context);
        let many: Vec<String> = (0..MAX_NAMES + 9).map(|number| number.to_string()).collect();
        let large = IntentContext {
            networks: many.clone(),
            categories: many,
            active_intent: Some("ü".repeat(MAX_INTENT + 1)),
            ..IntentContext::default()
        };
        let bounded = large.bounded().with_category("new");
        assert_eq!((bounded.networks.len(), bounded.categories.len()), (MAX_NAMES, MAX_NAMES));
        assert_eq!(bounded.categories.last().map(String::as_str), Some("new"));
        assert_eq!(bounded.active_intent.map(|intent| intent.chars().count()), Some(MAX_INTENT));
        assert_eq!(context.with_category("d").categories, names("a c d"));
    }
}
