//! What messages for a tool mean, as far as its use cases tell.

use std::sync::Arc;

use super::message::Message;
use crate::catalog::ToolMetadata;
use crate::text::embedding::{Pool, Quantized, Vector};

/// What the use cases of a tool mean, whatever other tools there are.
#[derive(Debug)]
pub(super) struct CaseMeanings {
    /// The sum of their meanings.
    pub(super) sum: Pool,
    /// What each is not for.
    pub(super) not_for: Box<[Quantized]>,
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
        for text in document.use_cases.iter().flat_map(|case| [&case.when_to_use, &case.example]) {
            let meaning = Message::meaning(text);
            has_any |= !meaning.is_zero();
            sum.add(&meaning, 0.5);
        }
        let not_for = document.use_cases.iter().filter(|case| !case.not_for.is_empty());
        let not_for = not_for.map(|case| Quantized::from(&Message::meaning(&case.not_for)));
        has_any.then(|| Self { sum, not_for: not_for.collect() })
    }
}

impl Scenes {
    pub(super) fn of(cases: Arc<CaseMeanings>, meaning: &Vector) -> Self {
        let mut centroid = cases.sum.clone();
        centroid.add(meaning, 1.0);
        Self { cases, centroid: Quantized::from(&centroid.vector()) }
    }
}
