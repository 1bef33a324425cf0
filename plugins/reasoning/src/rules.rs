//! The rules, in the order in which they are suggested.

use std::borrow::Cow;

use almanac_plugin::{Complexity, Request};

/// One rule.
pub(crate) struct Suggest {
    /// The tool that was called.
    pub(crate) after: &'static str,
    /// When the rule holds.
    when: When,
    /// The tool to call next.
    pub(crate) next: &'static str,
    /// Why; `{}` stands for the number of outputs.
    why: &'static str,
}

/// When a rule holds.
enum When {
    Always,
    OutputsAtLeast(u64),
    HasBranches,
    HasSession,
    Complex,
    NotComplex,
    NotSimple,
}

impl When {
    fn holds(&self, request: &Request<'_>) -> bool {
        let complexity = request.complexity();
        match self {
            Self::Always => true,
            Self::OutputsAtLeast(least) => request.num_outputs() >= *least,
            Self::HasBranches => request.has_branches(),
            Self::HasSession => request.session_id().is_some(),
            Self::Complex => complexity == Some(Complexity::Complex),
            Self::NotComplex => complexity != Some(Complexity::Complex),
            // Nobody said that it is simple, so it may not be.
            Self::NotSimple => complexity != Some(Complexity::Simple),
        }
    }
}

impl Suggest {
    /// Why, for this call.
    pub(crate) fn reason(&self, request: &Request<'_>) -> Cow<'static, str> {
        match self.why.split_once("{}") {
            Some((before, behind)) => format!("{before}{}{behind}", request.num_outputs()).into(),
            None => self.why.into(),
        }
    }
}

/// The rules that hold after a call, best first.
pub(crate) fn that_hold<'r>(request: &'r Request<'_>) -> impl Iterator<Item = &'static Suggest> + use<'r> {
    RULES.iter().filter(move |rule| rule.after == request.tool() && rule.when.holds(request))
}

const fn rule(after: &'static str, when: When, next: &'static str, why: &'static str) -> Suggest {
    Suggest { after, when, next, why }
}

use When::{Always, Complex, HasBranches, HasSession, NotComplex, NotSimple, OutputsAtLeast};

const AUTO: &str = "reasoning_auto";
const CHECKPOINT: &str = "reasoning_checkpoint";
const CONFIDENCE_ROUTE: &str = "reasoning_confidence_route";
const COUNTERFACTUAL: &str = "reasoning_counterfactual";
const DECISION: &str = "reasoning_decision";
const DETECT: &str = "reasoning_detect";
const DIVERGENT: &str = "reasoning_divergent";
const EVIDENCE: &str = "reasoning_evidence";
const GRAPH: &str = "reasoning_graph";
const LINEAR: &str = "reasoning_linear";
const MCTS: &str = "reasoning_mcts";
const META: &str = "reasoning_meta";
const PRESET: &str = "reasoning_preset";
const REFLECTION: &str = "reasoning_reflection";
const TIMELINE: &str = "reasoning_timeline";
const TREE: &str = "reasoning_tree";

/// Ordered: of one tool's rules, the first is suggested first.
#[rustfmt::skip]
pub(crate) static RULES: [Suggest; 30] = [
    rule(DIVERGENT, Always, CHECKPOINT, "Save this multi-perspective analysis before continuing"),
    rule(DIVERGENT, OutputsAtLeast(3), DECISION, "Synthesize {} perspectives into decision options"),
    rule(DIVERGENT, Complex, REFLECTION, "Evaluate and refine this analysis"),

    rule(TREE, HasBranches, DECISION, "Weigh the open branches against each other and pick one"),
    rule(TREE, Always, CHECKPOINT, "Keep the tree as it is, so that a branch can be resumed later"),

    rule(LINEAR, NotSimple, DIVERGENT, "One line of thought may be too few here: look at it from other sides"),
    rule(LINEAR, Always, EVIDENCE, "Test the conclusion against evidence before relying on it"),

    rule(DECISION, Always, CHECKPOINT, "Record the decision and what it rests on"),
    rule(DECISION, Always, REFLECTION, "Look for flaws in the decision before acting on it"),

    rule(GRAPH, OutputsAtLeast(6), DECISION, "Narrow {} nodes down to the options worth ranking"),
    rule(GRAPH, Always, CHECKPOINT, "Save the graph before it is extended or pruned"),

    rule(REFLECTION, Always, CHECKPOINT, "Save the refined version before moving on"),

    rule(MCTS, Always, DECISION, "Choose among the paths that the search found most promising"),
    rule(MCTS, HasSession, CHECKPOINT, "Keep the search of this session, which was expensive"),

    rule(EVIDENCE, Always, DECISION, "Decide on the strength of the evidence that was weighed"),
    rule(EVIDENCE, Always, REFLECTION, "Ask which evidence is missing or was given too much weight"),

    rule(AUTO, Always, CHECKPOINT, "Save the result together with the mode that was chosen"),
    rule(AUTO, Always, REFLECTION, "Check whether the chosen mode did justice to the problem"),

    rule(META, Always, AUTO, "Run the problem in the mode that suits it best"),

    rule(CONFIDENCE_ROUTE, Always, CHECKPOINT, "Save the routed result before building on it"),
    rule(CONFIDENCE_ROUTE, NotSimple, REFLECTION, "The problem is not a simple one: question the result of the route"),

    rule(DETECT, OutputsAtLeast(1), REFLECTION, "Rework the argument where biases or fallacies were found ({})"),
    rule(DETECT, Always, LINEAR, "Go through the argument once more, step by step"),

    rule(TIMELINE, Always, DECISION, "Decide between the courses of events that were laid out"),
    rule(TIMELINE, Always, CHECKPOINT, "Save the timeline before exploring another branch of it"),

    rule(COUNTERFACTUAL, Always, DECISION, "Use what the what-if case showed to choose what to do"),
    rule(COUNTERFACTUAL, Always, EVIDENCE, "Look for evidence that the assumed causes hold"),

    rule(CHECKPOINT, Always, LINEAR, "Go on thinking from the saved state"),

    rule(PRESET, Complex, REFLECTION, "Review the outcome of the workflow, as it was a complex one"),
    rule(PRESET, NotComplex, CHECKPOINT, "Save the outcome of the workflow"),
];
