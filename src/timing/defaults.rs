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
use crate::strict::decode::decode;
use crate::strict::read::yaml;
use crate::strict::{At, Diagnostic, FromNode, Limits, Node};

/// The file as shipped.
const SHIPPED: &str = include_str!("../../config/timing-defaults.yaml");
/// Largest file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Longest duration that can be a default, in ms: a day.
const LONGEST_MS: u64 = 86_400_000;
/// Largest factor for complex calls.
const LARGEST_FACTOR: f64 = 1000.0;

/// Durations and factors that stand in for history.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    unknown_tool: Milliseconds,
    factors: Vec<Rule>,
    tools: BTreeMap<String, Milliseconds>,
}

impl Default for Defaults {
    /// The shipped numbers.
    fn default() -> Self {
        static SHIPPED_DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| {
            Defaults::parse(Path::new("timing-defaults.yaml"), SHIPPED.as_bytes())
                .expect("the shipped file is parsed by a test")
        });
        SHIPPED_DEFAULTS.clone()
    }
}

impl Defaults {
    /// Parses the content of `file`.
    pub fn parse(file: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml(content, &Limits::of_bytes(MAX_FILE_BYTES))
            .map_err(|error| vec![Diagnostic::unreadable(file, content, &error)])?;
        decode(node).map_err(|faults| {
            let text = String::from_utf8_lossy(content);
            faults.iter().map(|fault| Diagnostic::fault(file, &text, fault)).collect()
        })
    }

    /// What is believed of a call before anything was recorded. `hint_ms` is the word of the tool's document, which
    /// comes before the table's.
    pub fn prior(&self, tool: &str, hint_ms: Option<u64>, complexity: &Complexity) -> Prior {
        let (base, source) = match (hint_ms, self.tools.get(tool)) {
            (Some(hint), _) => (hint, PriorSource::Hint),
            (None, Some(known)) => (known.0, PriorSource::Default),
            (None, None) => (self.unknown_tool.0, PriorSource::Unknown),
        };
        // Truncated: an estimate is in whole ms.
        Prior { ms: (base as f64 * self.factor(complexity)) as u64, source }
    }

    /// The factor for a call of this complexity: that of the first rule that matches, else 1.
    pub fn factor(&self, complexity: &Complexity) -> f64 {
        self.factors.iter().find(|rule| rule.matches(complexity)).map_or(1.0, |rule| rule.factor.0)
    }

    /// The tools that the table names, with their durations in ms, by name.
    pub fn tools(&self) -> impl Iterator<Item = (&str, u64)> {
        self.tools.iter().map(|(tool, duration)| (tool.as_str(), duration.0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
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
            Measure::ContentLength => Some(complexity.content_length as u64),
            Measure::ContextTokens => complexity.context_tokens.map(u64::from),
        };
        size.is_some_and(|size| size >= self.at_least)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Measure {
    #[default]
    NumPerspectives,
    NumBranches,
    ThinkingBudget,
    ContentLength,
    ContextTokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Factor(f64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Milliseconds(u64);

impl FromNode for Defaults {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            unknown_tool: fields.required("unknown_tool_ms"),
            factors: fields.or_default("factors"),
            tools: fields.or_default("tools"),
        })
    }
}

impl FromNode for Rule {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self {
            measure: fields.required("measure"),
            at_least: fields.required("at_least"),
            factor: fields.required("factor"),
        })
    }
}

impl FromNode for Measure {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let measure = match text.as_str() {
            "num_perspectives" => Self::NumPerspectives,
            "num_branches" => Self::NumBranches,
            "thinking_budget" => Self::ThinkingBudget,
            "content_length" => Self::ContentLength,
            "context_tokens" => Self::ContextTokens,
            other => {
                at.bad_value(format!(
                    "`{other}` is none of num_perspectives, num_branches, thinking_budget, content_length, context_tokens"
                ));
                return None;
            }
        };
        Some(measure)
    }
}

impl FromNode for Factor {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let Node::Number(number) = &node else {
            at.wrong_type("a number", &node);
            return None;
        };
        let factor = number.as_f64().filter(|factor| *factor > 0.0 && *factor <= LARGEST_FACTOR);
        if factor.is_none() {
            at.bad_value(format!("a factor is more than 0 and at most {LARGEST_FACTOR}"));
        }
        factor.map(Self)
    }
}

impl FromNode for Milliseconds {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let ms = u64::from_node(node, at)?;
        if !(1..=LONGEST_MS).contains(&ms) {
            at.bad_value(format!("a duration is 1 to {LONGEST_MS} ms, a day"));
            return None;
        }
        Some(Self(ms))
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
        check("reasoning_mcts", Complexity { content_length: 1 << 30, ..any }, 90_000);
        assert_eq!(Defaults::default().tools().count(), 35);
    }

    #[test]
    fn a_document_knows_better() {
        let prior = Defaults::default().prior("reasoning_tree", Some(500), &Complexity::default());
        assert_eq!(prior, Prior { ms: 500, source: PriorSource::Hint });
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
            &[(4, "bad-value"), (4, "bad-value"), (2, "unknown-key")],
        );
    }
}
