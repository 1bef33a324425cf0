//! What stands on the wire and is no document: requests and answers of the catalog and of administration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Diagnostic;
use crate::catalog::document::{CommonError, ConflictSeverity};
use crate::catalog::reload::ReloadOutcome;
use crate::strict::FromNode;

/// Most tools of one check.
const MAX_CHECKED: usize = 1000;

/// A page of `GET /v1/tools`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolPage {
    /// The tools, by name, or by rank if `q` was given.
    pub items: Vec<ToolSummary>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A tool in short.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolSummary {
    /// The tool's name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// Its category; may be empty.
    pub category: String,
    /// Its semantic tags.
    pub capabilities: Vec<String>,
    /// Further search terms.
    pub keywords: Vec<String>,
    /// How well it fits `q`, above 0; comparable within one answer only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// Its errors that `error` goes with, each with its cause and what to do; absent if `error` was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub common_errors: Vec<CommonError>,
}

/// `GET /v1/tools/{name}/relations`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolRelations {
    /// The tool that was asked about.
    pub tool: String,
    /// Tools that should not be used beside it.
    pub conflicts: Vec<ConflictRelation>,
    /// Tools that serve some scenarios better.
    pub alternatives: Vec<AlternativeRelation>,
    /// Tools that work well with it.
    pub complements: Vec<ComplementRelation>,
}

/// The other end of a relation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RelationEnd {
    /// The other tool, or `mcp:server`.
    pub tool: String,
    /// Whose document says so: `outgoing` this tool's, `incoming` the other's.
    pub direction: &'static str,
    /// The tools that `tool` stands for.
    pub resolved: Vec<String>,
    /// Does it stand for none?
    pub dangling: bool,
}

/// A conflict, seen from the tool that was asked about.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConflictRelation {
    /// The tool on the other side.
    #[serde(flatten)]
    pub end: RelationEnd,
    /// high, medium or low.
    #[schemars(extend("enum" = ConflictSeverity::WORDS))]
    pub severity: String,
    /// Why the two exclude each other.
    pub reason: String,
    /// When the tool that was asked about is the right one.
    pub when_prefer_this: String,
    /// When the other is.
    pub when_prefer_other: String,
}

/// An alternative.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AlternativeRelation {
    /// The tool on the other side.
    #[serde(flatten)]
    pub end: RelationEnd,
    /// The situation in which it applies.
    pub when: String,
    /// What the other choice gains.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub benefits: String,
}

/// A complement.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComplementRelation {
    /// The tool on the other side.
    #[serde(flatten)]
    pub end: RelationEnd,
    /// The situation in which it applies.
    pub scenario: String,
    /// How they are used together.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// Body of `POST /v1/tools/check`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct CheckRequest {
    /// Names of tools to load together, at most 1,000; `mcp:server` means all tools of that server.
    #[schemars(length(max = MAX_CHECKED))]
    pub tools: Vec<String>,
    /// Names of the environment variables that the caller has.
    #[schemars(default, with = "Option<Vec<String>>")]
    pub env_vars: Vec<String>,
    /// The provider, or mode, that the tools will be called with, where they have several.
    #[schemars(default)]
    pub provider: Option<String>,
}

/// Answer of `POST /v1/tools/check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckAnswer {
    /// Is nothing unknown or in conflict, and nothing missing but what is optional?
    pub ok: bool,
    /// Names that the catalog does not have.
    pub unknown: Vec<UnknownTool>,
    /// Conflicts inside the set, worst first.
    pub conflicts: Vec<CheckedConflict>,
    /// Prerequisites of which environment variables are missing.
    pub missing_prerequisites: Vec<MissingPrerequisite>,
    /// Tools that serve some scenarios better than one of the set.
    pub alternatives: Vec<BetterTool>,
}

/// A name that the catalog does not have.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UnknownTool {
    /// The name.
    pub tool: String,
    /// Names that may have been meant.
    pub near: Vec<String>,
}

/// Two tools of the set that should not be used together.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckedConflict {
    /// The two.
    pub tools: [String; 2],
    /// high, medium or low.
    #[schemars(extend("enum" = ConflictSeverity::WORDS))]
    pub severity: String,
    /// Why the two exclude each other.
    pub reason: String,
    /// Which of the two to prefer when.
    pub prefer: [Preference; 2],
}

/// When to prefer a tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Preference {
    /// The tool's name, as its document gives it.
    pub tool: String,
    /// The situation.
    pub when: String,
}

/// A prerequisite of which environment variables are missing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MissingPrerequisite {
    /// The tool that needs it.
    pub tool: String,
    /// What is needed.
    pub name: String,
    /// The variables that are missing.
    pub env_vars: Vec<String>,
    /// Providers or modes that need it; empty means all.
    pub required_for: Vec<String>,
    /// Where to get it.
    pub how_to_get: String,
    /// What works without it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fallback: String,
    /// Does the tool work without: by another provider, in another mode, or with less?
    pub optional: bool,
}

/// A tool that serves some scenario better.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BetterTool {
    /// The tool of the set.
    pub tool: String,
    /// The better one.
    pub alternative: String,
    /// In which scenario.
    pub when: String,
    /// What the other choice gains.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub benefits: String,
}

/// `GET /v1/catalog`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CatalogReport {
    /// Rises with every change of content.
    pub generation: u64,
    /// Hash of the content.
    pub hash: String,
    /// How many tools are served.
    pub loaded: usize,
    /// Tools served in their last good version.
    pub stale: Vec<String>,
    /// Is a later catalog held back because it has errors? Absent if not; `catalog.strict_reload` has it so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// A page of what is wrong, by file; of one document 20 faults, and how many more there are.
    pub diagnostics: Vec<Diagnostic>,
    /// Diagnostics on all pages.
    pub total: usize,
    /// Where the next page starts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `GET /live`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Live {
    /// Always true: the answer itself says it.
    pub live: bool,
}

/// `GET /ready`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Are questions answered?
    pub ready: bool,
    /// What is missing: catalog, listeners, plugins, running; or history, what was recorded before the start, without
    /// which questions are answered.
    pub missing: Vec<String>,
}

/// Answer of `POST /-/reload`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReloadAnswer {
    /// changed, unchanged or rejected.
    #[schemars(extend("enum" = ReloadOutcome::WORDS))]
    pub outcome: String,
    /// The generation that is served now.
    pub generation: u64,
    /// How many tools are served.
    pub tools: usize,
    /// Errors among all diagnostics.
    pub errors: usize,
    /// What is wrong: at most 100 diagnostics, errors first. All are listed by `GET /v1/catalog`.
    pub diagnostics: Vec<Diagnostic>,
    /// How many diagnostics there are.
    #[serde(default)]
    pub total: usize,
    /// Rule libraries that answer.
    pub plugins_ready: usize,
    /// Rule libraries whose file is not what serves.
    pub plugins_failed: Vec<FailedPlugin>,
    /// Keys of the configuration that changed and take effect at the next start only.
    #[serde(default)]
    pub waiting: Vec<String>,
}

/// A rule library that failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct FailedPlugin {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// Answer of `POST /-/reload?wait=false`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReloadStarted {
    /// Always true: the answer itself says it.
    pub started: bool,
}

/// `GET /-/status`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatusAnswer {
    /// The daemon's version.
    pub version: String,
    /// One line for people.
    pub status: String,
    /// Are questions answered?
    pub ready: bool,
    /// What is missing.
    pub missing: Vec<String>,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// The generation that is served.
    pub generation: u64,
    /// When it was published, RFC 3339.
    pub loaded_at: String,
    /// Tools in it.
    pub tools: usize,
    /// Tools served in their last good version.
    pub stale: usize,
    /// Rule libraries that answer.
    pub plugins_ready: usize,
    /// Rule libraries that failed too often, and are put aside for a while.
    pub plugins_quarantined: usize,
    /// Rule libraries that are not run: not trusted, not allowed, or none.
    #[serde(default)]
    pub plugins_refused: usize,
    /// Errors in documents.
    pub errors: usize,
    /// Warnings in documents.
    pub warnings: usize,
    /// What goes wrong now, a line each: what cannot be stored, a configuration that was not taken, tokens.
    #[serde(default)]
    pub troubles: Vec<String>,
    /// The database that several daemons share, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseState>,
}

/// How it stands with the database that several daemons share.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DatabaseState {
    /// Does it take what is sent?
    pub reachable: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Records that only this machine has.
    pub waiting: usize,
    /// Bytes of them.
    pub spooled_bytes: u64,
    /// Seconds that the oldest of them has waited.
    pub oldest_seconds: f64,
    /// Records that were acknowledged and then refused by it, since the start.
    pub put_aside: u64,
    /// Records and other transactions of other daemons that this one does not know yet.
    pub behind: u64,
    /// Seconds since it knew all of them.
    pub followed_seconds: f64,
}

/// Body of `PUT /-/log-level`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct LogLevelRequest {
    /// A level, or directives such as `info,almanac::http=debug`.
    pub level: String,
}

/// Answer of `PUT /-/log-level`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LogLevelAnswer {
    /// The level that is set.
    pub level: String,
    /// What of it does not do what it seems to say, such as a part of the program that is not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
