//! One tool's document: the self-describing tool metadata format, plus the two optional keys that Almanac adds.
//!
//! Keys that the format does not let a writer omit are required, though a list may be empty; the others are left out of
//! the rendered document when empty. Field order here is the order on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::strict::{FromNode, Word};

/// Longest tool name, in characters.
pub const MAX_NAME: usize = 128;

/// Everything a document says about a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct ToolMetadata {
    /// Unique name, 1 to 128 characters without control characters and `/`.
    #[node(check = check_name)]
    pub name: String,
    /// Name for people.
    pub title: String,
    /// What the tool does, to choose by.
    pub description: String,
    /// Open vocabulary: web, file, communication, data; may be empty.
    pub category: String,
    /// Semantic tags: search, http, `rest_api`.
    pub capabilities: Vec<String>,
    /// Additional search terms.
    pub keywords: Vec<String>,
    /// When to use the tool, and when not.
    pub use_cases: Vec<UseCase>,
    /// Tools that should not be used beside this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// Tools that serve some scenarios better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// Tools that work well with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complements: Vec<Complement>,
    /// Worked examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Guidelines, as one text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub best_practices: String,
    /// Errors often met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub common_errors: Vec<CommonError>,
    /// API keys, environment variables and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prerequisites: Vec<Prerequisite>,
    /// How often providers may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// Providers of a tool that has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Target backend, if specific.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub backend: String,
    /// JSON Schema of the tool's input (added by Almanac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Map<String, Value>>,
    /// What to expect before anything was recorded (added by Almanac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingHint>,
    /// What this document says instead of the MCP server whose tool it describes (added by Almanac).
    #[serde(default, rename = "override", skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Overridden>,
    /// The argument of an MCP tool that says in which mode it works (added by Almanac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_argument: Option<String>,
    /// Does a call of the MCP tool change nothing (added by Almanac)?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// What a document can say instead of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a part of a definition")]
pub enum Overridden {
    /// What the tool does.
    Description,
}

/// A scenario the tool is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct UseCase {
    /// Name of the scenario.
    pub title: String,
    /// The situation in which to use the tool.
    pub when_to_use: String,
    /// A message a user might write.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// When not to use it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_for: String,
}

/// How bad a conflict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a severity")]
pub enum ConflictSeverity {
    /// A matter of taste.
    Low,
    /// Usually wrong together; what an absent severity means.
    Medium,
    /// Never together.
    High,
}

/// A tool, or `mcp:server`, that should not be used beside this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct Conflict {
    /// `tool_name` or `mcp:server_name`.
    #[node(check = check_target)]
    pub tool: String,
    /// Why the two exclude each other.
    pub reason: String,
    /// When this tool is the right one.
    pub when_prefer_this: String,
    /// When the other is.
    pub when_prefer_other: String,
    /// Absent means medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<ConflictSeverity>,
}

impl Conflict {
    /// The severity that applies.
    pub fn severity(&self) -> ConflictSeverity {
        self.severity.unwrap_or(ConflictSeverity::Medium)
    }
}

/// A tool that serves a scenario better.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct Alternative {
    /// `tool_name` or `mcp:server_name`.
    #[node(check = check_target)]
    pub tool: String,
    /// The situation in which it applies.
    pub when: String,
    /// What the other choice gains.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub benefits: String,
}

/// A tool that works well with this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct Complement {
    /// `tool_name` or `mcp:server_name`.
    #[node(check = check_target)]
    pub tool: String,
    /// The situation in which it applies.
    pub scenario: String,
    /// How they are used together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// A worked example.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct Example {
    /// Name of the example.
    pub name: String,
    /// What it shows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The call's input.
    pub input: Map<String, Value>,
    /// The call's output, of any type.
    pub output: Value,
    /// Why the output is what it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
}

/// An error often met.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct CommonError {
    /// The error as it shows.
    pub error: String,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// What to do.
    pub solution: String,
}

/// Something the caller needs first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct Prerequisite {
    /// What is needed.
    pub name: String,
    /// The tool that gives it, to be called before (added by Almanac).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// Providers or modes that need it; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_for: Vec<String>,
    /// Environment variables that hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<String>,
    /// Where to get it.
    pub how_to_get: String,
    /// What works without it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fallback: String,
}

/// How often providers may be called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct RateLimit {
    /// Requests per month, by provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// What the numbers do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// What to expect before anything was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromNode)]
pub struct TimingHint {
    /// A typical call, in milliseconds, 1 to 86,400,000 (a day).
    #[schemars(range(min = 1, max = 86_400_000))]
    pub estimated_duration_ms: u64,
}

/// A name that is no tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name has at most {MAX_NAME} characters")]
    TooLong,
    /// A control character or `/`.
    #[error("a name has no control characters and no `/`")]
    Character,
}

/// Holds a name to the grammar of tool names.
pub fn check_name(name: &str) -> Result<(), NameFault> {
    if name.is_empty() {
        Err(NameFault::Empty)
    } else if name.chars().any(|char| char.is_control() || char == '/') {
        Err(NameFault::Character)
    } else if name.chars().count() > MAX_NAME {
        Err(NameFault::TooLong)
    } else {
        Ok(())
    }
}

/// Holds what a relation names, `tool_name` or `mcp:server_name`, to the same grammar.
fn check_target(target: &str) -> Result<(), NameFault> {
    check_name(target.strip_prefix("mcp:").unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::decode::decode;
    use crate::strict::read::{Limits, yaml};

    const FULL: &str = include_str!("../../tests/golden/every_field.yaml");
    const WIRE: &str = include_str!("../../tests/golden/every_field.json");

    fn document(text: &str) -> Result<ToolMetadata, Vec<String>> {
        let node = yaml(text.as_bytes(), &Limits::of_bytes(1 << 18)).unwrap();
        decode(node).map_err(|faults| {
            faults.iter().map(|fault| format!("{} {}", fault.pointer(), fault.code.as_str())).collect()
        })
    }

    #[test]
    fn every_field_reaches_the_wire_under_its_key() {
        let document = document(FULL).unwrap();
        assert_eq!(serde_json::to_string_pretty(&document).unwrap(), WIRE.trim_end());
        assert_eq!(serde_json::from_str::<ToolMetadata>(WIRE).unwrap(), document);
    }

    #[test]
    fn an_empty_optional_field_is_left_out_and_a_required_list_is_not() {
        let text = "{name: x, title: '', description: '', category: '', capabilities: [], keywords: [], use_cases: []}";
        assert_eq!(
            serde_json::to_string(&document(text).unwrap()).unwrap(),
            r#"{"name":"x","title":"","description":"","category":"","capabilities":[],"keywords":[],"use_cases":[]}"#,
        );
    }

    #[test]
    fn faults_are_all_reported() {
        let text = "{name: a/b, title: 1, description: d, category: c, capabilities: x, keywords: [], use_cases: [{}],\
                    conflicts: [{tool: t, reason: r, when_prefer_this: a, when_prefer_other: b, severity: High}],\
                    timing: {estimated_duration_ms: 0}, rate_limit: {limits: {x: many}}, Backend: b}";
        let expected = [
            "/name bad-value",
            "/title wrong-type",
            "/capabilities wrong-type",
            "/use_cases/0 missing-key",
            "/use_cases/0 missing-key",
            "/conflicts/0/severity bad-value",
            "/rate_limit/limits/x wrong-type",
            "/timing/estimated_duration_ms bad-value",
            "/Backend unknown-key",
        ];
        assert_eq!(document(text).unwrap_err(), expected);
    }

    #[test]
    fn names_are_held_to_their_grammar() {
        let check = |name: &str, expected| assert_eq!(check_name(name), expected, "{name:?}");
        check("web_search", Ok(()));
        check("..", Ok(()));
        check(&"ä".repeat(128), Ok(()));
        check(&"ä".repeat(129), Err(NameFault::TooLong));
        check("", Err(NameFault::Empty));
        check("a/b", Err(NameFault::Character));
        check("a\0b", Err(NameFault::Character));
    }
}
