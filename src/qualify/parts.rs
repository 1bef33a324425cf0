//! What a tool's score is made of, for whoever asks why it stands where it does.

use super::weights::{
    CLAUSE_COVER, CLAUSE_MEANING, CLAUSE_NAME, CLAUSE_WORDS, COVER, FEATURES, FeatureRow, LITERAL, MEANING, NAME_COVER,
    NAME_MEANING, SIMILARITY, USE_COVER, USE_MEANING, USE_PRIOR, USE_RATIO, WORDS,
};

/// Parts of a score, which is their sum; each is a logarithm of odds, unbounded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ScoreParts {
    /// Words that the message shares with the document.
    pub words: f32,
    /// How much of the tool's name the message says, and how literally.
    pub name: f32,
    /// How alike the message and the document are in meaning.
    pub meaning: f32,
    /// What choices taught.
    pub usage: f32,
    /// What the conversation and its categories add, and what is taken away where a document says that it is not for
    /// this, or a message only asks and the tool changes something.
    pub context: f32,
}

/// What each observation is a part of.
const OF_WORDS: [usize; 4] = [WORDS, COVER, CLAUSE_WORDS, CLAUSE_COVER];
const OF_NAME: [usize; 2] = [NAME_COVER, LITERAL];
const OF_MEANING: [usize; 5] = [MEANING, SIMILARITY, NAME_MEANING, CLAUSE_MEANING, CLAUSE_NAME];
const OF_USAGE: [usize; 4] = [USE_MEANING, USE_COVER, USE_RATIO, USE_PRIOR];

const _: () = assert!(
    OF_WORDS.len() + OF_NAME.len() + OF_MEANING.len() + OF_USAGE.len() == FEATURES,
    "each observation is a part of something"
);

impl ScoreParts {
    /// The parts of `score`, of which the observations make all but what the context did.
    pub(super) fn of(weights: &FeatureRow, row: &FeatureRow, score: f32) -> Self {
        let sum = |features: &[usize]| features.iter().map(|&feature| weights[feature] * row[feature]).sum::<f32>();
        let (words, name, meaning, usage) = (sum(&OF_WORDS), sum(&OF_NAME), sum(&OF_MEANING), sum(&OF_USAGE));
        Self { words, name, meaning, usage, context: score - (words + name + meaning + usage) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qualify::weights::{Weights, score};

    #[test]
    fn the_parts_are_the_score() {
        let weights = Weights::FITTED.of_length(0.3);
        let row: FeatureRow = std::array::from_fn(|feature| feature as f32 / 7.0 - 0.4);
        let all = score(&weights, &row) + 2.0;
        let ScoreParts { words, name, meaning, usage, context } = ScoreParts::of(&weights, &row, all);
        assert!((words + name + meaning + usage + context - all).abs() < 1e-4);
        assert!((context - 2.0).abs() < 1e-4, "{context}");
    }
}
