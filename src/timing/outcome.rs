//! How a call ended, and what its duration is worth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimator::grid::ln_ms;
use super::{Durations, Fading};
use crate::strict::Word;

/// How a call ended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Word,
)]
#[serde(rename_all = "lowercase")]
#[word(noun = "an outcome")]
pub enum Outcome {
    /// It answered.
    #[default]
    Success,
    /// It failed.
    Error,
    /// The caller gave up on it.
    Timeout,
    /// The caller changed its mind.
    Cancelled,
}

impl Outcome {
    /// Is the duration only a lower bound of what the call would have taken?
    pub fn is_censored(self) -> bool {
        matches!(self, Self::Timeout | Self::Cancelled)
    }
}

/// What is recorded of a call once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// How long it took, or how long it was waited for, in ms.
    pub duration_ms: u64,
    pub outcome: Outcome,
}

impl Observation {
    /// Counts the call among `durations`.
    pub(super) fn count_in(self, durations: &mut Durations, fading: Fading) {
        let ln = ln_ms(self.duration_ms);
        if self.outcome.is_censored() { durations.add_given_up(ln, fading) } else { durations.add(ln, fading) }
    }
}
