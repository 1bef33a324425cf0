//! How tools are chosen for a message.

use crate::strict::FromNode;

/// The section `qualifier` of the configuration, but for the model that may be asked.
#[derive(Debug, Clone, PartialEq, FromNode)]
#[node(default)]
pub struct Settings {
    /// Learn from the tools that are called after messages. The messages are kept for that.
    pub learn: bool,
    /// Tools offered at most, where a request does not say.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_tools: usize,
    /// A message with this confidence replaces what the conversation was about, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub new_context: f64,
    /// What a conversation is about is kept for so many turns.
    pub max_turns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { learn: true, max_tools: 100, new_context: 0.5, max_turns: 5 }
    }
}
