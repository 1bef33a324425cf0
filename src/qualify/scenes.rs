//! What messages for a tool mean, as far as its use cases tell.

use std::sync::Arc;

use super::message::Message;
use crate::catalog::ToolMetadata;
use crate::text::embedding::{Packed, Pool, Quantized, Vector};

/// What the use cases of a tool mean, whatever other tools there are.
#[derive(Debug)]
pub(super) struct CaseMeanings {
    /// The sum of their meanings.
    pub(super) sum: Pool,
    /// What each is not for.
    pub(super) not_for: Box<[Quantized]>,
    /// The messages that the document gives as examples.
    pub(super) examples: Box<[Packed]>,
}

/// The use cases of a tool.
#[derive(Debug, Clone)]
pub(super) struct Scenes {
    pub(super) cases: Arc<CaseMeanings>,
    /// Where they and the tool's own meaning lie together.
    pub(super) centroid: Quantized,
}

impl CaseMeanings {
    pub(super) fn of(document: &ToolMetadata) -> Option<Self> {
        let mut sum = Pool::default();
        let mut has_any = false;
        let mut add = |text: &str| {
            let meaning = Message::meaning(text);
            has_any |= !meaning.is_zero();
            sum.add(&meaning, 0.5);
            meaning
        };
        let examples = document.use_cases.iter().filter_map(|case| {
            add(&case.when_to_use);
            let example = add(&case.example);
            (!example.is_zero()).then(|| Packed::from(&Quantized::from(&example)))
        });
        let examples = examples.collect();
        let not_for = document.use_cases.iter().filter(|case| !case.not_for.is_empty());
        let not_for = not_for.map(|case| Quantized::from(&Message::meaning(&case.not_for)));
        has_any.then(|| Self { sum, not_for: not_for.collect(), examples })
    }
}

impl Scenes {
    pub(super) fn of(cases: Arc<CaseMeanings>, meaning: &Vector) -> Self {
        let mut centroid = cases.sum.clone();
        centroid.add(meaning, 1.0);
        Self { cases, centroid: Quantized::from(&centroid.vector()) }
    }
}
