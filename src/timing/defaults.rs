//! What is said of a tool before its first call: a table of durations, and a factor for complex calls.
//!
//! The table names the shipped tools, and conditions of which the first that matches applies. Both are in
//! `config/timing-defaults.yaml`, so that `almanacd calibrate` can measure better ones.

mod yaml;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use super::complexity::Complexity;
use super::estimator::prior::{Prior, PriorSource};
use super::execution::MAX_DURATION_MS;
use crate::strict::{Diagnostic, FromNode, Limits, LoadError, Violation, Word, load};

/// The file as shipped.
const SHIPPED: &str = include_str!("../../config/timing-defaults.yaml");
/// Largest file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Largest factor for complex calls.
const LARGEST_FACTOR: f64 = 1000.0;

/// Durations and factors that stand in for history.
#[derive(Debug, Clone, PartialEq, FromNode)]
pub struct Defaults {
    #[serde(rename = "unknown_tool_ms")]
    unknown_tool: Milliseconds,
    #[node(default)]
    factors: Vec<Rule>,
    #[node(default)]
    tools: BTreeMap<String, Milliseconds>,
    /// What was measured here.
    #[node(default)]
    measured: BTreeMap<String, Milliseconds>,
}

impl Default for Defaults {
    fn default() -> Self {
        static SHIPPED_DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| {
            Defaults::parse(Path::new("timing-defaults.yaml"), SHIPPED.as_bytes())
                .expect("the shipped file is parsed by a test")
        });
        SHIPPED_DEFAULTS.clone()
    }
}

impl Defaults {
    /// Reads the file at `path`; the shipped one without a path.
    pub fn read(path: Option<&Path>) -> Result<Self, LoadError> {
        path.map_or_else(|| Ok(Self::default()), |path| load::load(path, &Limits::of_bytes(MAX_FILE_BYTES)))
    }

    /// Parses the content of `file`.
    pub fn parse(file: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        load::parse(file, content, &Limits::of_bytes(MAX_FILE_BYTES))
    }

    /// What is believed of a call before anything was recorded: what was measured here comes before the word of the
    /// tool's document, `hint_ms`, and that before the table, which was written elsewhere as well.
    pub fn prior(&self, tool: &str, hint_ms: Option<u64>, complexity: &Complexity) -> Prior {
        let (base, source) = match (self.measured.get(tool), hint_ms, self.tools.get(tool)) {
            (Some(measured), _, _) => (measured.0, PriorSource::Default),
            (None, Some(hint), _) => (hint, PriorSource::Hint),
            (None, None, Some(known)) => (known.0, PriorSource::Default),
            (None, None, None) => (self.unknown_tool.0, PriorSource::Unknown),
        };
        // Truncated: an estimate is in whole ms.
        Prior { ms: (base as f64 * self.factor(complexity)) as u64, source }
    }

    /// The factor for a call of this complexity: that of the first rule that matches, else 1.
    pub fn factor(&self, complexity: &Complexity) -> f64 {
        self.factors.iter().find(|rule| rule.matches(complexity)).map_or(1.0, |rule| rule.factor.0)
    }

    /// Does the table name the tool?
    pub fn names(&self, tool: &str) -> bool {
        self.measured.contains_key(tool) || self.tools.contains_key(tool)
    }

    /// The tools that the table names or that were measured, with their durations in ms.
    pub fn tools(&self) -> impl Iterator<Item = (&str, u64)> {
        let others = self.tools.iter().filter(|(tool, _)| !self.measured.contains_key(*tool));
        self.measured.iter().chain(others).map(|(tool, duration)| (tool.as_str(), duration.0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, FromNode)]
struct Rule {
    measure: Measure,
    at_least: u64,
    factor: Factor,
}

impl Rule {
    fn matches(self, complexity: &Complexity) -> bool {
        let size = match self.measure {
            Measure::NumPerspectives => complexity.num_perspectives.map(u64::from),
            Measure::NumBranches => complexity.num_branches.map(u64::from),
            Measure::ThinkingBudget => complexity.thinking_budget.map(u64::from),
            Measure::ContentLength => complexity.content_length,
            Measure::ContextTokens => complexity.context_tokens.map(u64::from),
        };
        size.is_some_and(|size| size >= self.at_least)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a measure")]
enum Measure {
    NumPerspectives,
    NumBranches,
    ThinkingBudget,
    ContentLength,
    ContextTokens,
}

#[derive(Debug, Clone, Copy, PartialEq, FromNode)]
#[node(try_from = "f64")]
struct Factor(f64);

impl TryFrom<f64> for Factor {
    type Error = Violation;

    fn try_from(factor: f64) -> Result<Self, Violation> {
        if factor > 0.0 && factor <= LARGEST_FACTOR {
            return Ok(Self(factor));
        }
        Err(format!("a factor is more than 0 and at most {LARGEST_FACTOR}").into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromNode)]
#[node(try_from = "u64")]
struct Milliseconds(u64);

impl TryFrom<u64> for Milliseconds {
    type Error = Violation;

    fn try_from(ms: u64) -> Result<Self, Violation> {
        if (1..=MAX_DURATION_MS).contains(&ms) {
            return Ok(Self(ms));
        }
        Err(format!("a duration is 1 to {MAX_DURATION_MS} ms, a day").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tool: &str, complexity: Complexity, expected: u64) {
        let prior = Defaults::default().prior(tool, None, &complexity);
        assert_eq!(prior.ms, expected, "default of {tool} for {complexity:?}");
    }

    #[test]
    fn the_numbers_are_those_of_document_003() {
        let any = Complexity::default();
        let perspectives = |n| Complexity { num_perspectives: Some(n), ..any };
        let branches = |n| Complexity { num_branches: Some(n), ..any };
        let budget = |n| Complexity { thinking_budget: Some(n), ..any };
        check("reasoning_checkpoint", any, 100);
        check("reasoning_linear", any, 12_000);
        check("reasoning_timeline", any, 55_000);
        check("reasoning_crew_invoke", any, 90_000);
        check("nobody_knows", any, 15_000);
        check("reasoning_divergent", perspectives(4), 67_500);
        check("reasoning_divergent", perspectives(3), 45_000);
        check("reasoning_tree", branches(4), 25_200);
        check("reasoning_mcts", budget(8192), 117_000);
        check("reasoning_mcts", budget(8191), 90_000);
        check("reasoning_mcts", Complexity { thinking_budget: Some(9000), ..perspectives(9) }, 135_000);
        check("reasoning_mcts", Complexity { content_length: Some(1 << 30), ..any }, 90_000);
        assert_eq!(Defaults::default().tools().count(), 35);
    }

    #[test]
    fn a_document_knows_better() {
        let prior = Defaults::default().prior("reasoning_tree", Some(500), &Complexity::default());
        assert_eq!(prior, Prior { ms: 500, source: PriorSource::Hint });
        let measured = Defaults::default().with_durations([("reasoning_tree".to_owned(), 70)]);
        let prior = measured.prior("reasoning_tree", Some(500), &Complexity::default());
        assert_eq!(prior, Prior { ms: 70, source: PriorSource::Default }, "what was measured here knows best");
    }

    fn refuse(text: &str, expected: &[(usize, &str)]) {
        let faults = Defaults::parse(Path::new("x.yaml"), text.as_bytes()).unwrap_err();
        let got: Vec<(usize, &str)> = faults.iter().map(|fault| (fault.line, fault.code.as_str())).collect();
        assert_eq!(got, expected, "parsing {text}");
    }

    #[test]
    fn every_fault_is_found_at_its_line() {
        refuse("tools: {}", &[(1, "missing-key")]);
        refuse(
            "unknown_tool_ms: 0\ntools:\n  a: -1\n  b: 90000000",
            &[(1, "bad-value"), (3, "wrong-type"), (4, "bad-value")],
        );
        refuse(
            "unknown_tool_ms: 1\nfactor: []\nfactors:\n- {measure: size, at_least: 1, factor: 0}",
            &[(2, "unknown-key"), (4, "bad-value"), (4, "bad-value")],
        );
    }
}
