//! How a call ended, and what its duration is worth.

pub use crate::store::Outcome;

/// What is recorded of a call once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// How long it took, or how long it was waited for, in ms.
    pub duration_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
}
