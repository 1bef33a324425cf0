//! What each observation about a tool and a message says for the tool: a logistic regression over cheap ones.
//!
//! None is negative: whatever fits better never lowers a tool. There are two sets of weights, for short messages and
//! for long ones, since words that are shared with a long text mean little; a message lies between the two by its
//! length. They were fitted by `almanacd eval qualify --fit`; weights fitted on some catalogs rank others as well as
//! their own do.

/// Observations about a tool and a message.
pub const FEATURES: usize = 15;

/// BM25F over the tool's words, in standard deviations over all tools.
pub(super) const WORDS: usize = 0;
/// Similarity of the meanings, in standard deviations over all tools.
pub(super) const MEANING: usize = 1;
/// Similarity of the meanings as it is: the cosine.
pub(super) const SIMILARITY: usize = 2;
/// Similarity to the meaning of the name, in the same standard deviations.
pub(super) const NAME_MEANING: usize = 3;
/// Share of the name that the message has, by idf of its terms.
pub(super) const NAME_COVER: usize = 4;
/// Share of the message that the tool has, by idf of its terms.
pub(super) const COVER: usize = 5;
/// As [`WORDS`], of the clause that fits best.
pub(super) const CLAUSE_WORDS: usize = 6;
/// As [`MEANING`], of the clause that fits best.
pub(super) const CLAUSE_MEANING: usize = 7;
/// As [`NAME_MEANING`], of the clause that fits best.
pub(super) const CLAUSE_NAME: usize = 8;
/// As [`COVER`], of the clause that fits best.
pub(super) const CLAUSE_COVER: usize = 9;
/// How literally the message says the name, 0 to 1.
pub(super) const LITERAL: usize = 10;
/// By how much messages that the tool was chosen for are more like this one than its document is, in standard
/// deviations.
pub(super) const USE_MEANING: usize = 11;
/// Share of the message that those messages have, by idf of its terms among them.
pub(super) const USE_COVER: usize = 12;
/// How much likelier the message's terms are among those messages than among all (naive Bayes), as a logarithm.
pub(super) const USE_RATIO: usize = 13;
/// How often it was chosen, as a logarithm of the ratio to the mean.
pub(super) const USE_PRIOR: usize = 14;

/// The observations about one tool.
pub(super) type FeatureRow = [f32; FEATURES];

/// What each observation counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// In messages of a sentence or two.
    pub(super) short: FeatureRow,
    /// In messages of hundreds of words.
    pub(super) long: FeatureRow,
}

impl Weights {
    /// The fitted ones; of use, as they did best on streams of 200 to 4,000 choices.
    pub const FITTED: Self = Self {
        short: [0.31, 0.34, 0.49, 0.08, 0.64, 1.09, 0.0, 0.55, 0.0, 0.91, 6.0, 0.9, 1.0, 0.15, 0.3],
        long: [0.30, 0.0, 0.0, 0.0, 0.19, 0.06, 0.22, 0.94, 0.13, 0.62, 6.0, 0.9, 1.0, 0.15, 0.3],
    };

    /// For messages of that length, 0 to 1.
    pub(super) fn of_length(&self, length: f32) -> FeatureRow {
        std::array::from_fn(|feature| (1.0 - length) * self.short[feature] + length * self.long[feature])
    }
}

/// The weighted sum of what was observed.
pub(super) fn score(weights: &FeatureRow, row: &FeatureRow) -> f32 {
    weights.iter().zip(row).map(|(weight, value)| weight * value).sum()
}

/// What speaks for a tool, beside the others of its catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Its share of the probability against all others, 0 to 1.
    pub(super) share: f32,
    /// The share of the best tool's name that the message has, by idf of its terms: where people call things by their
    /// names, the best is the right one more often.
    pub(super) named: f32,
    /// The message's length, 0 to 1.
    pub(super) length: f32,
}

/// Numbers that the odds are made of.
pub(super) const STANDINGS: usize = 5;

impl Standing {
    /// As numbers of a regression.
    pub(super) fn as_array(self) -> [f32; STANDINGS] {
        let Self { share, named, length } = self;
        [logit(share), named, length * logit(share), length, 1.0]
    }
}

/// From a score to the probability that the tool is needed; monotone in the score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration(pub(super) [f32; STANDINGS]);

impl Calibration {
    /// Fitted on the best three tools of each message of nine public catalogs, of which each counts as much. How far
    /// the best is ahead, how well it fits by itself and how many tools there are tell nothing of another catalog.
    pub const FITTED: Self = Self([0.700, 1.047, -0.408, 1.468, -0.337]);

    /// The logarithm of the odds that a tool, or one of several, is needed.
    pub(super) fn log_odds(&self, standing: Standing) -> f32 {
        self.0.iter().zip(standing.as_array()).map(|(weight, value)| weight * value).sum()
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
