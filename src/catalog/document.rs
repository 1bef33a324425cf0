//! One tool's document: the self-describing tool metadata format, plus the two optional keys that Almanac adds.
//!
//! Keys that the format does not let a writer omit are required, though a list may be empty; the others are left out of the
//! rendered document when empty. Field order here is the order on the wire.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::strict::{At, Fields, FromNode, Node};

/// Longest tool name, in characters.
pub const MAX_NAME: usize = 128;

/// Everything a document says about a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolMetadata {
    /// Unique name, 1 to 128 characters without control characters and `/`.
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
}

/// A scenario the tool is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConflictSeverity {
    /// A matter of taste.
    Low,
    /// Usually wrong together; what an absent severity means.
    Medium,
    /// Never together.
    High,
}

/// A tool, or `mcp:server`, that should not be used beside this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// `tool_name` or `mcp:server_name`.
    pub tool: String,
    /// Why they conflict.
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// `tool_name` or `mcp:server_name`.
    pub tool: String,
    /// The scenario.
    pub when: String,
    /// What is gained.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub benefits: String,
}

/// A tool that works well with this one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Complement {
    /// `tool_name` or `mcp:server_name`.
    pub tool: String,
    /// The scenario.
    pub scenario: String,
    /// How they are used together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// A worked example.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prerequisite {
    /// What is needed.
    pub name: String,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimit {
    /// Requests per month, by provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// What the numbers do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// What to expect before anything was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimingHint {
    /// A typical call, in milliseconds, 1 to 86,400,000 (a day).
    pub estimated_duration_ms: u64,
}

/// A name that is no tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// Empty.
    #[error("a tool's name must not be empty")]
    Empty,
    /// Longer than [`MAX_NAME`].
    #[error("a tool's name has at most {MAX_NAME} characters")]
    TooLong,
    /// A control character or `/`.
    #[error("a tool's name has no control characters and no `/`")]
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

impl fmt::Display for ConflictSeverity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

impl FromNode for ToolMetadata {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            name: name(fields),
            title: fields.required("title"),
            description: fields.required("description"),
            category: fields.required("category"),
            capabilities: fields.required("capabilities"),
            keywords: fields.required("keywords"),
            use_cases: fields.required("use_cases"),
            conflicts: fields.or_default("conflicts"),
            alternatives: fields.or_default("alternatives"),
            complements: fields.or_default("complements"),
            examples: fields.or_default("examples"),
            best_practices: fields.or_default("best_practices"),
            common_errors: fields.or_default("common_errors"),
            prerequisites: fields.or_default("prerequisites"),
            rate_limit: fields.optional("rate_limit"),
            providers: fields.or_default("providers"),
            backend: fields.or_default("backend"),
            input_schema: fields.optional("input_schema"),
            timing: fields.optional("timing"),
        })
    }
}

fn name(fields: &mut Fields<'_>) -> String {
    let name: Option<Name> = fields.required("name");
    name.map(|name| name.0).unwrap_or_default()
}

struct Name(String);

impl FromNode for Option<Name> {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let name = String::from_node(node, at)?;
        if let Err(fault) = check_name(&name) {
            at.bad_value(fault.to_string());
        }
        Some(Some(Name(name)))
    }
}

/// `tool_name` or `mcp:server_name`.
#[derive(Default)]
struct Target(String);

impl FromNode for Target {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let target = String::from_node(node, at)?;
        if let Err(fault) = check_name(target.strip_prefix("mcp:").unwrap_or(&target)) {
            at.bad_value(fault.to_string());
        }
        Some(Self(target))
    }
}

impl FromNode for UseCase {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            title: fields.required("title"),
            when_to_use: fields.required("when_to_use"),
            example: fields.or_default("example"),
            not_for: fields.or_default("not_for"),
        })
    }
}

impl FromNode for ConflictSeverity {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        match String::from_node(node, at)?.as_str() {
            "high" => Some(Self::High),
            "medium" => Some(Self::Medium),
            "low" => Some(Self::Low),
            other => {
                at.bad_value(format!("severity is high, medium or low, not `{other}`"));
                None
            }
        }
    }
}

impl FromNode for Conflict {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            tool: fields.required::<Target>("tool").0,
            reason: fields.required("reason"),
            when_prefer_this: fields.required("when_prefer_this"),
            when_prefer_other: fields.required("when_prefer_other"),
            severity: fields.optional("severity"),
        })
    }
}

impl FromNode for Alternative {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            tool: fields.required::<Target>("tool").0,
            when: fields.required("when"),
            benefits: fields.or_default("benefits"),
        })
    }
}

impl FromNode for Complement {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            tool: fields.required::<Target>("tool").0,
            scenario: fields.required("scenario"),
            example: fields.or_default("example"),
        })
    }
}

impl FromNode for Example {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            name: fields.required("name"),
            description: fields.or_default("description"),
            input: fields.required("input"),
            output: fields.required("output"),
            explanation: fields.or_default("explanation"),
        })
    }
}

impl FromNode for CommonError {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            error: fields.required("error"),
            cause: fields.or_default("cause"),
            solution: fields.required("solution"),
        })
    }
}

impl FromNode for Prerequisite {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            name: fields.required("name"),
            required_for: fields.or_default("required_for"),
            env_vars: fields.or_default("env_vars"),
            how_to_get: fields.required("how_to_get"),
            fallback: fields.or_default("fallback"),
        })
    }
}

impl FromNode for RateLimit {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { limits: fields.or_default("limits"), notes: fields.or_default("notes") })
    }
}

impl FromNode for TimingHint {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let estimated_duration_ms = fields.required("estimated_duration_ms");
            if !(1..=86_400_000).contains(&estimated_duration_ms) {
                fields.bad_value("estimated_duration_ms", "a duration is 1 ms to 86400000 ms, which is a day");
            }
            Self { estimated_duration_ms }
        })
    }
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
