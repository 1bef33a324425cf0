//! The correction of a forecast by what calls like this one did to forecasts like it.
//!
//! The problem: the experts weigh what a key's calls were, and not what followed what. After a call of twice the usual
//! duration the next is rarely usual, a host that was late with another tool will be late with this one, and how a
//! forecast errs depends on how its mixture looks. The approach: small trees, fitted once on public histories and the
//! same for all, foretell from the forecast's own shape and its last errors ([`features`]) which of its levels the
//! true quantiles lie at. The distribution is recalibrated through these, so that all figures still come from one
//! distribution, what it holds impossible stays so, and what the experts learn from a call does not depend on the
//! correction.
//! The trees are a table, `correction/trees.txt`: `make correction` fits it anew, and says what it does to hosts and
//! histories that it was not fitted on.
//!
//! Rejected, having been measured on those: moving quantiles in ln(ms) (gains a third less, and breaks what is steady);
//! trees of all levels at once (CatBoost's: likewise); the time since the key's last call (.3 % more, for a clock in
//! everything that is pure here).

pub(crate) mod features;
mod trees;

use std::sync::LazyLock;

use super::grid::Distribution;
use features::Features;
use trees::Trees;

static SHIPPED: LazyLock<Result<Correction, CorrectionError>> =
    LazyLock::new(|| Correction::parse(include_str!("correction/trees.txt")));
/// Levels are at least so far from each other and from 0 and 1.
const LEAST: f64 = 1e-4;
/// From this level on, a quantile is moved down by [`BELIEVED_DOWN`] of what the trees say: a limit that is called safe
/// and is not costs more than one that is not called so.
const TAIL: f64 = 0.9;
const BELIEVED_DOWN: f64 = 0.4;

/// A table of trees that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the correction is neither a level between the last and 1, nor a tree of one")]
pub(crate) struct CorrectionError {
    line: usize,
}

/// Which levels of a forecast true quantiles lie at.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Correction(Vec<Level>);

/// One of the quantiles.
#[derive(Debug, Clone, PartialEq)]
struct Level {
    /// 0 to 1.
    level: f64,
    trees: Trees,
}

impl Correction {
    /// That of the product.
    pub(crate) fn shipped() -> Option<&'static Self> {
        SHIPPED.as_ref().ok()
    }

    /// Reads a table: lines `level` with a probability, each followed by its trees. A tree is its forks and leaves, a
    /// fork before its sides: `3<.5` is "feature 3 is at most .5", whose yes comes first, `=.1` a leaf.
    fn parse(text: &str) -> Result<Self, CorrectionError> {
        let mut levels: Vec<Level> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let read = match content.strip_prefix("level ") {
                Some(level) => {
                    let last = levels.last().map_or(0.0, |level| level.level);
                    let level = level.parse().ok().filter(|&level| level > last && level < 1.0);
                    level.map(|level| levels.push(Level { level, trees: Trees::default() }))
                }
                None => levels.last_mut().and_then(|level| level.trees.add(content)),
            };
            read.ok_or(CorrectionError { line })?;
        }
        Ok(Self(levels))
    }

    /// The distribution as it should have been.
    pub(crate) fn correct(&self, distribution: &Distribution, features: &Features) -> Distribution {
        let mut last = 0.0;
        let levels = self.0.iter().zip((1..=self.0.len()).rev()).map(|(level, left)| {
            let moved = sigmoid(logit(level.level) + level.moved(features));
            last = moved.max(last + LEAST).min(1.0 - LEAST * left as f64);
            [last, level.level]
        });
        distribution.recalibrated(levels)
    }
}

impl Level {
    /// How far the forecast's level is from it, in log odds.
    fn moved(&self, features: &Features) -> f64 {
        let moved = f64::from(self.trees.sum(features));
        if self.level >= TAIL && moved < 0.0 { BELIEVED_DOWN * moved } else { moved }
    }
}

/// The log odds of a probability.
fn logit(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

/// The probability of log odds.
fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::super::grid::{BINS, WIDTH};
    use super::features::FEATURES;
    use super::*;

    fn features(error: f32) -> Features {
        let mut features = [0.0; FEATURES];
        features[16] = error;
        Features::from(features)
    }

    fn even() -> Distribution {
        Distribution::new(std::array::from_fn(|bin| f32::from(u8::from(bin < 200))))
    }

    #[test]
    fn the_shipped_table_can_be_read() {
        let levels: Vec<f64> = SHIPPED.as_ref().unwrap().0.iter().map(|level| level.level).collect();
        assert_eq!(levels, [0.05, 0.25, 0.5, 0.75, 0.9, 0.95]);
        assert_eq!(Features::NAMES[16], "error");
    }

    #[test]
    fn faults_are_told_by_line() {
        for (text, line) in
            [("=1", 1), ("level .5\n=1\nlevel .5", 3), ("level .5\n\n", 2), ("level 1", 1), ("level x", 1)]
        {
            assert_eq!(Correction::parse(text), Err(CorrectionError { line }), "{text:?}");
        }
    }

    #[test]
    fn quantiles_are_where_the_trees_put_them() {
        // After a late call, what was P73 is the middle.
        let correction = Correction::parse("level .5\n16<.5 =0 =1\nlevel .9\n=0").unwrap();
        let check = |error: f32, middle: f64| {
            let corrected = correction.correct(&even(), &features(error));
            for (level, expected) in [(0.0, 0.0), (0.5, middle), (0.9, 0.9), (0.9999, 0.9999)] {
                let place = corrected.quantile(level) / (200.0 * WIDTH);
                assert!((place - expected).abs() < 1e-3, "P{level}: {place} instead of {expected}");
            }
        };
        check(0.0, 0.5);
        check(1.0, sigmoid(1.0));
    }

    #[test]
    fn levels_that_cross_stay_in_order() {
        let correction = Correction::parse("level .1\n=99\nlevel .5\n=-99\nlevel .9\n=99").unwrap();
        let corrected = correction.correct(&even(), &features(0.0));
        let places = [0.0, 0.1, 0.5, 0.9, 1.0].map(|level| corrected.quantile(level));
        assert!(places.is_sorted() && places[4] <= BINS as f64 * WIDTH, "{places:?}");
    }
}
