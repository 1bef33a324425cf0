//! What a message was found to need.

use std::sync::Arc;

use super::context::IntentContext;
use super::ranking::Ranked;

/// Tools that are hinted at.
pub(super) const HINTS: usize = 5;

#[derive(Debug, Clone)]
pub struct Qualification {
    pub networks: Vec<String>,
    /// Categories that are offered, those always offered first.
    pub categories: Vec<String>,
    /// The best category's probability, 0 to 1, or what the context has left of its own.
    pub confidence: f32,
    /// Why, in plain words.
    pub reasoning: String,
    /// The best tools, best first.
    pub tool_hints: Vec<Arc<str>>,
    /// What the user is after.
    pub active_intent: Option<String>,
    /// The tools that are offered, best first.
    pub available: Vec<Ranked>,
    /// Tools in the catalog.
    pub tools_total: usize,
    /// Can a model answer by itself?
    pub no_tool_needed: bool,
    /// The probability of that, 0 to 1.
    pub no_tool_probability: f32,
    /// The context for the next turn.
    pub context: IntentContext,
    /// Was an older context kept?
    pub sticky: bool,
    /// What the message is to those that were said before.
    pub says: Says,
    /// Tools that the message may well need and that the limit cut, best first, at most five.
    pub cut: Vec<Arc<str>>,
}

/// What a message is to those that the conversation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// The conversation is about it from now on.
    New,
    /// It is about both.
    More,
    /// It is no part of that.
    Nothing,
    /// The conversation is about nothing from now on.
    NoMore,
}

impl Qualification {
    /// Puts these tools first, in their order; names of others are passed over.
    pub fn prefer(&mut self, names: &[String]) {
        let place = |tool: &Ranked| names.iter().position(|name| **name == **tool.entry.name()).unwrap_or(names.len());
        // The sort keeps the order of those that are not named.
        self.available.sort_by_key(place);
        self.tool_hints = self.available.iter().take(HINTS).map(|tool| Arc::clone(tool.entry.name())).collect();
    }
}
