//! What was measured, and which defaults follow from it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::strict::Word;
use crate::timing::{Complexity, Observation, Outcome};

/// How much a call has to do, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Word)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Simple,
    Moderate,
    Complex,
}

impl Level {
    /// The sizes that a call of this level is asked to have.
    pub(super) fn sizes(self) -> Complexity {
        let (content_length, perspectives, branches, budget) = match self {
            Self::Simple => (500, 0, 0, 0),
            Self::Moderate => (3000, 3, 3, 4096),
            Self::Complex => (12_000, 4, 4, 8192),
        };
        Complexity {
            content_length: Some(content_length),
            num_perspectives: Some(perspectives),
            num_branches: Some(branches),
            thinking_budget: Some(budget),
            context_tokens: None,
        }
    }
}

/// Calls by tool and level.
#[derive(Debug, Default)]
pub(super) struct Measured(BTreeMap<String, BTreeMap<Level, Vec<Observation>>>);

/// What came out for one tool.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ToolFigures {
    pub(super) tool: String,
    /// The measured default; none if too few simple calls succeeded.
    pub(super) default_ms: Option<u64>,
    pub(super) levels: Vec<LevelFigures>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct LevelFigures {
    pub(super) complexity: Level,
    pub(super) calls: usize,
    pub(super) errors: usize,
    pub(super) timeouts: usize,
    pub(super) median_ms: Option<u64>,
}

impl Measured {
    pub(super) fn add(&mut self, tool: &str, level: Level, observation: Observation) {
        self.0.entry(tool.to_owned()).or_default().entry(level).or_default().push(observation);
    }

    /// By name of the tool.
    pub(super) fn figures(&self) -> Vec<ToolFigures> {
        let of_tool = |(tool, levels): (&String, &BTreeMap<Level, Vec<Observation>>)| ToolFigures {
            tool: tool.clone(),
            default_ms: levels.get(&Level::Simple).and_then(|calls| median(calls)).map(|ms| ms.max(1)),
            levels: levels.iter().map(|(level, calls)| LevelFigures::of(*level, calls)).collect(),
        };
        self.0.iter().map(of_tool).collect()
    }
}

impl LevelFigures {
    fn of(complexity: Level, calls: &[Observation]) -> Self {
        let count = |outcome| calls.iter().filter(|call| call.outcome == outcome).count();
        Self {
            complexity,
            calls: calls.len(),
            errors: count(Outcome::Error),
            timeouts: count(Outcome::Timeout),
            median_ms: median(calls),
        }
    }
}

/// The median of the calls that did not fail, in ms. One that timed out would have taken longer than it was given, so
/// it stands above all others; if that makes the median unknown, there is none.
fn median(calls: &[Observation]) -> Option<u64> {
    let mut durations: Vec<f64> = calls
        .iter()
        .filter_map(|call| match call.outcome {
            Outcome::Success => Some(call.duration_ms as f64),
            Outcome::Timeout => Some(f64::INFINITY),
            Outcome::Error | Outcome::Cancelled => None,
        })
        .collect();
    durations.sort_unstable_by(f64::total_cmp);
    let upper = *durations.get(durations.len() / 2)?;
    let lower = durations[(durations.len() - 1) / 2];
    let middle = f64::midpoint(lower, upper);
    middle.is_finite().then_some(middle.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(calls: &[(u64, Outcome)], expected: Option<u64>) {
        let calls: Vec<_> = calls.iter().map(|&(duration_ms, outcome)| Observation { duration_ms, outcome }).collect();
        assert_eq!(median(&calls), expected, "median of {calls:?}");
    }

    #[test]
    fn failures_do_not_count_and_timeouts_are_long() {
        use Outcome::{Cancelled, Error, Success, Timeout};
        check(&[], None);
        check(&[(7, Success)], Some(7));
        check(&[(30, Success), (10, Success)], Some(20));
        check(&[(30, Success), (1, Error), (10, Success), (2, Cancelled), (20, Success)], Some(20));
        check(&[(30, Success), (10, Success), (5, Timeout)], Some(30));
        check(&[(30, Success), (5, Timeout)], None);
        check(&[(5, Error)], None);
    }

    #[test]
    fn simple_calls_make_the_default() {
        let mut measured = Measured::default();
        let call = |duration_ms| Observation { duration_ms, outcome: Outcome::Success };
        measured.add("b", Level::Complex, call(90));
        measured.add("a", Level::Simple, call(0));
        measured.add("a", Level::Moderate, call(50));
        let defaults: Vec<_> =
            measured.figures().into_iter().map(|figures| (figures.tool, figures.default_ms)).collect();
        assert_eq!(defaults, [("a".to_owned(), Some(1)), ("b".to_owned(), None)]);
    }
}
