//! How tools are chosen for a message.

use super::Rules;
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
    /// From this probability on a message is said to need no tool, 0 to 1; a higher one holds back more.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub no_tool_threshold: f64,
}

impl Settings {
    /// What of it decides over contexts and answers.
    pub fn rules(&self) -> Rules {
        Rules {
            new_context: self.new_context as f32,
            max_turns: self.max_turns,
            no_tool_threshold: self.no_tool_threshold as f32,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { learn: true, max_tools: 100, new_context: 0.5, max_turns: 5, no_tool_threshold: 0.75 }
    }
}
