//! The review of a plan on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use super::timing::{MAX_STEPS, PlanStep, Timing, milliseconds};
use crate::strict::FromNode;
use crate::strict::pattern::LABEL;
use crate::strict::values::{MAX_LABEL, label};
use crate::timing::execution::MAX_DURATION_MS;

/// Body of `POST /v1/plans/check`.
#[derive(Debug, Default, JsonSchema, FromNode)]
#[schemars(deny_unknown_fields)]
pub struct PlanRequest {
    /// The calls in their order, at most 100.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    pub steps: Vec<PlanStep>,
    /// What the plan is for; what the session is about by default.
    #[schemars(default)]
    pub goal: Option<String>,
    /// The session it belongs to, whose calls count as made before.
    #[schemars(default, length(max = MAX_LABEL), regex(pattern = LABEL))]
    #[node(read = label)]
    pub session_id: Option<String>,
    /// When the caller of the whole plan gives up, in ms; the factory's limit by default.
    #[schemars(default, with = "Option<f64>", range(min = 0, max = MAX_DURATION_MS))]
    #[node(read = milliseconds)]
    pub timeout_ms: Option<u64>,
}

/// Answer of `POST /v1/plans/check`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanAnswer {
    /// Is nothing unknown, missing or in conflict?
    pub ok: bool,
    /// What is wrong with the order or the tools.
    pub faults: Vec<PlanFault>,
    /// Tools that may serve better than a step's.
    pub instead: Vec<PlanInstead>,
    /// The same plan with one step replaced, where that is expected to be faster; fastest first, and last what is
    /// documented to cost more.
    pub faster: Vec<FasterPlan>,
    /// The same plan with one step replaced, where that is documented to cost less; fastest first.
    pub cheaper: Vec<CheaperPlan>,
    /// What the whole plan will take.
    pub timing: Timing,
}

/// What is wrong with a step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanFault {
    /// unknown-tool, conflict or missing-predecessor.
    pub code: &'static str,
    /// The step, 0-based.
    pub step: usize,
    /// Its tool.
    pub tool: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Names that may have been meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
}

/// A tool that may serve better.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanInstead {
    /// The step, 0-based.
    pub step: usize,
    /// Its tool.
    pub tool: String,
    /// The tool that may serve better.
    pub instead: String,
    /// The question to ask oneself.
    pub question: String,
    /// When it serves better.
    pub when: String,
    /// What the other choice gains.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub benefits: String,
    /// What the step's own document says it is not for, if the goal reads like that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_for: Option<String>,
}

/// A plan that is expected to be faster.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FasterPlan {
    /// Its steps.
    pub steps: Vec<String>,
    /// When the other tool serves as well.
    pub when: String,
    /// How long it will take, in ms.
    pub estimated_duration_ms: u64,
    /// How much less that is, in ms.
    pub saves_ms: u64,
    /// What it costs more, by the documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dearer: Option<String>,
}

/// A plan that is documented to cost less.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheaperPlan {
    /// Its steps.
    pub steps: Vec<String>,
    /// When the other tool serves as well.
    pub when: String,
    /// What it costs less: a key, or a limit of requests.
    pub why: String,
    /// How long it will take, in ms.
    pub estimated_duration_ms: u64,
}
