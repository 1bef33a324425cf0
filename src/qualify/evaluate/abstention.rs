//! How well messages that need no tool are told from those that need one, by what is served.

use serde::Serialize;

use super::Case;
use crate::qualify::no_tool::fit::{ALONE, area};
use crate::qualify::{Question, Rules, Selector, Usage};

/// How well messages that need none were told apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbstentionFigures {
    /// Messages that need no tool.
    pub alone: usize,
    /// The probability that such a message is given a higher `noToolProbability` than one that needs a tool, 0 to 1.
    pub auroc: f64,
    /// Share of them that is said to need none, 0 to 1.
    pub caught: f64,
    /// Share of the messages that need a tool of which the same is said, 0 to 1.
    pub false_alarms: f64,
    /// Expected calibration error of the probability in ten bins, as if one message in five needed none, 0 to 1.
    pub ece: f64,
}

/// Judges it on `cases`, where there are some of either side.
pub fn evaluate_abstention(selector: &Selector, cases: &[Case], rules: Rules) -> Option<AbstentionFigures> {
    let nothing = Usage::new();
    let mut sides: [Vec<f32>; 2] = [Vec::new(), Vec::new()];
    let mut said = [0_usize; 2];
    for case in cases {
        let question = Question { message: &case.query, max_tools: 1, rules, ..Question::default() };
        let found = selector.qualify(&question, &nothing);
        let side = usize::from(case.gold.is_empty());
        sides[side].push(found.no_tool_probability);
        said[side] += usize::from(found.no_tool_needed);
    }
    let [needing, alone] = &sides;
    if needing.is_empty() || alone.is_empty() {
        return None;
    }
    Some(AbstentionFigures {
        alone: alone.len(),
        auroc: area(alone, needing),
        caught: said[1] as f64 / alone.len() as f64,
        false_alarms: said[0] as f64 / needing.len() as f64,
        ece: calibration_error(needing, alone),
    })
}

fn calibration_error(needing: &[f32], alone: &[f32]) -> f64 {
    let mut bins = [0.0_f64; super::BINS];
    let share = f64::from(ALONE);
    for (side, is_alone, share) in [(needing, 0.0, 1.0 - share), (alone, 1.0, share)] {
        for probability in side.iter().map(|probability| f64::from(*probability)) {
            let bin = ((probability * super::BINS as f64) as usize).min(super::BINS - 1);
            bins[bin] += share * (probability - is_alone) / side.len() as f64;
        }
    }
    bins.iter().map(|bin| bin.abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_what_probabilities_are_off_by() {
        let check = |needing: &[f32], alone: &[f32], expected: f64| {
            assert!((calibration_error(needing, alone) - expected).abs() < 1e-6, "{needing:?} {alone:?}");
        };
        check(&[0.0], &[1.0], 0.0);
        check(&[0.2], &[0.2], 0.0);
        check(&[1.0], &[1.0], 0.8);
        check(&[0.3, 0.3], &[0.3], 0.1);
    }
}
