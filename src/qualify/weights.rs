//! What each observation about a tool and a message says for the tool: a logistic regression over nine cheap ones.
//!
//! None is negative: whatever fits better never lowers a tool. They were fitted by `almanacd eval qualify --fit` on two public
//! sets of messages with the tool that each needs (MetaTool, 199 tools, and BFCL, 1,096), each set counting as much; weights
//! fitted on one of them rank the other as well as its own do. Where a catalog's own history tells otherwise they move, see
//! [`Usage`](super::Usage).

/// Observations about a tool and a message.
pub const FEATURES: usize = 9;

/// BM25F over the tool's words, in standard deviations over all tools.
pub(super) const WORDS: usize = 0;
/// Likeness of the meanings, in standard deviations over all tools.
pub(super) const MEANING: usize = 1;
/// Likeness of the meanings as it is: the cosine.
pub(super) const LIKENESS: usize = 2;
/// Likeness to the meaning of the name, in the same standard deviations.
pub(super) const NAME_MEANING: usize = 3;
/// Share of the name that the message has, by rarity of its terms.
pub(super) const NAME_COVER: usize = 4;
/// Share of the message that the tool has, by rarity of its terms.
pub(super) const COVER: usize = 5;
/// By how much messages that the tool was chosen for are more like this one than its document is, in standard deviations.
pub(super) const USE_MEANING: usize = 6;
/// Share of the message that those messages have, by rarity of its terms among them.
pub(super) const USE_COVER: usize = 7;
/// How often it was chosen, as a logarithm of the ratio to the mean.
pub(super) const USE_PRIOR: usize = 8;

/// The observations about one tool.
pub(super) type Row = [f32; FEATURES];

/// What each observation counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights(pub(super) [f32; FEATURES]);

impl Weights {
    /// The fitted ones.
    pub const FITTED: Self = Self([0.36, 0.99, 0.50, 0.11, 0.69, 1.24, 1.11, 1.97, 0.45]);

    /// The weighted sum of what was observed.
    pub(super) fn score(&self, row: &Row) -> f32 {
        self.0.iter().zip(row).map(|(weight, value)| weight * value).sum()
    }

    /// What each counts, in the order of their numbers.
    pub fn as_array(&self) -> &[f32; FEATURES] {
        &self.0
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self::FITTED
    }
}

/// From a score to the probability that the tool is needed; monotone in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// What the logarithm of the odds against all other tools counts; above 0.
    pub odds: f32,
    /// What the score itself counts; 0 or more.
    pub score: f32,
    /// The constant.
    pub bias: f32,
}

impl Calibration {
    /// Fitted with the weights, on the three best tools of each message.
    pub const FITTED: Self = Self { odds: 0.70, score: 0.02, bias: -0.34 };

    /// The logarithm of the odds that a tool, or one of several, is needed: its share of the probability against all others,
    /// and its score.
    pub(super) fn log_odds(&self, share: f32, score: f32) -> f32 {
        self.odds * logit(share) + self.score * score + self.bias
    }
}

/// The logarithm of the odds of a probability, which is kept off 0 and 1.
pub(super) fn logit(probability: f32) -> f32 {
    let probability = probability.clamp(1e-6, 1.0 - 1e-6);
    (probability / (1.0 - probability)).ln()
}

/// The probability of which `log_odds` are the odds.
pub(super) fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}
