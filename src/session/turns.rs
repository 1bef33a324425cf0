//! What each session is about: the context of its intent, and its last message with the tools that were called for it.
//!
//! An immutable map, bounded in sessions; the one that was quiet longest goes first.

use std::sync::Arc;

use imbl::{HashMap, OrdMap};
use serde::{Deserialize, Serialize};

use super::{MAX_SESSIONS, Name, RemoveMin as _};
use crate::qualify::IntentContext;
use crate::text::head::head;

/// Bytes of a message that are kept: what it wants stands at its beginning.
pub const MAX_MESSAGE_BYTES: usize = 2048;

/// Tools that one message can teach.
const MAX_TAUGHT: usize = 16;

/// The turns of all tenants' sessions.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    by_name: HashMap<Name, (u64, Arc<Turn>)>,
    by_age: OrdMap<u64, Name>,
    count: u64,
}

/// The last turn of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the conversation is about.
    pub context: IntentContext,
    /// The message, cut to [`MAX_MESSAGE_BYTES`].
    pub message: String,
    /// Tools that were called for it.
    pub taught: Vec<String>,
    /// Tools that were missed.
    pub misses: u64,
    /// What the session used so far.
    #[serde(default)]
    pub used: Used,
}

/// What a session's turns used, as its streams told it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
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

impl Used {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cost_usd: self.cost_usd + other.cost_usd,
        }
    }
}

impl Turns {
    /// Replaces the turn of a session.
    pub fn set(&mut self, tenant: &str, session: &str, turn: Turn) {
        let name: Name = Arc::new((tenant.to_owned(), session.to_owned()));
        if let Some((age, _)) = self.by_name.get(&name) {
            self.by_age.remove(age);
        }
        self.count += 1;
        self.by_age.insert(self.count, Arc::clone(&name));
        self.by_name.insert(name, (self.count, Arc::new(turn)));
        while self.by_name.len() > MAX_SESSIONS {
            let Some((_, oldest)) = self.by_age.remove_min() else { break };
            self.by_name.remove(&oldest);
        }
    }

    /// Forgets a session.
    pub fn forget(&mut self, tenant: &str, session: &str) {
        if let Some((age, _)) = self.by_name.remove(&(tenant.to_owned(), session.to_owned())) {
            self.by_age.remove(&age);
        }
    }

    /// The last turn of a session, if the tenant has it.
    pub fn get(&self, tenant: &str, session: &str) -> Option<&Arc<Turn>> {
        self.by_name.get(&(tenant.to_owned(), session.to_owned())).map(|(_, turn)| turn)
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl Turn {
    /// The turn of a message.
    pub fn new(message: &str, context: IntentContext) -> Self {
        Self { context, message: head(message, MAX_MESSAGE_BYTES).to_owned(), ..Self::default() }
    }

    /// Takes note that a tool was called for the message. Says whether that is news, and to be learnt.
    pub fn teach(&mut self, tool: &str) -> bool {
        let is_news = !self.message.is_empty()
            && self.taught.len() < MAX_TAUGHT
            && !self.taught.iter().any(|taught| taught == tool);
        if is_news {
            self.taught.push(tool.to_owned());
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_taught_once_a_message() {
        let mut turn = Turn::new(&"ü".repeat(MAX_MESSAGE_BYTES), IntentContext::default());
        assert_eq!(turn.message.len(), MAX_MESSAGE_BYTES);
        assert!(turn.teach("a") && turn.teach("b") && !turn.teach("a"));
        assert!(!Turn::default().teach("a"), "there is no message");
    }

    #[test]
    fn sessions_are_bounded_and_tenants_apart() {
        let mut turns = Turns::default();
        turns.set("t", "first", Turn::new("m", IntentContext::default()));
        assert!(turns.get("u", "first").is_none());
        for session in 0..MAX_SESSIONS {
            turns.set("t", &session.to_string(), Turn::default());
        }
        assert_eq!(turns.len(), MAX_SESSIONS);
        assert!(turns.get("t", "first").is_none());
        assert!(turns.get("t", "0").is_some());
        turns.forget("u", "0");
        turns.forget("t", "1");
        assert_eq!((turns.len(), turns.by_age.len()), (MAX_SESSIONS - 1, MAX_SESSIONS - 1));
        assert!(turns.get("t", "0").is_some() && turns.get("t", "1").is_none());
    }
}
