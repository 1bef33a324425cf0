//! What rule libraries are asked, and what they propose: plain owned data, apart from every room and every door.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::strict::Word;

/// What has just happened, for rule libraries to propose what is called next. A worker reads it without copying the
/// texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask<S = String> {
    /// The tool that was called.
    pub tool: S,
    /// The mode it ran in.
    pub mode: Option<S>,
    /// How complex its result was, if somebody said.
    pub complexity: Option<ComplexityLevel>,
    /// How many results it gave; 0 if nobody said.
    pub num_outputs: u64,
    /// Has the result open branches?
    pub has_branches: bool,
    /// The session it belongs to.
    pub session_id: Option<S>,
    /// What the agent is after, in words.
    pub goal: Option<S>,
    /// Tools called recently, the oldest first, repeats kept.
    pub history: Vec<S>,
    /// Further facts about the result.
    pub context: Vec<(S, S)>,
}

/// How complex a result was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "complexity")]
pub enum ComplexityLevel {
    /// Simple.
    Simple,
    /// Moderate.
    Moderate,
    /// Complex.
    Complex,
}

/// A tool to call next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// Its name, not looked up in any catalog; 1 to 128 bytes.
    pub tool: String,
    /// Why, in the library's words; at most 1,024 bytes.
    pub reason: String,
    /// How strongly, 0 to 1.
    pub score: f64,
}

/// What all libraries together propose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposals {
    /// Each library's proposals, best first, under its id; libraries in the order of their precedence.
    pub lists: Vec<(String, Vec<Proposal>)>,
    /// Libraries that did not answer, and why.
    pub degraded: Vec<(String, String)>,
}

/// A tool as rule libraries see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    /// Its category; may be empty.
    pub category: String,
    pub capabilities: Vec<String>,
    pub keywords: Vec<String>,
}

/// All tools of one generation of the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub generation: u64,
    /// Its tools, by name.
    pub tools: Vec<Tool>,
}
