//! What can go wrong with a library that runs.

/// A fault of a library, or of the worker it lives in. Counted: too many put the library aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryFault {
    /// It did not answer in time.
    #[error("it did not answer within {0} ms")]
    Timeout(u128),
    /// It was not ready in time.
    #[error("it was not ready within {0} s")]
    SlowStart(u64),
    #[error("its worker died: {0}")]
    Crash(String),
    /// It wrote what no worker writes.
    #[error("it broke the protocol: {0}")]
    Protocol(String),
    /// It wrote more than any answer has.
    #[error("its answer is too long: {0}")]
    Oversized(String),
    /// Its instance is broken.
    #[error("it failed for good: {0}")]
    Broken(String),
    /// It refused to start.
    #[error("it cannot be used: {0}")]
    Refused(String),
    /// No worker can be started.
    #[error("its worker cannot be started: {0}")]
    Spawn(String),
}

impl LibraryFault {
    /// The label on metrics and in logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::SlowStart(_) => "slow_start",
            Self::Crash(_) => "crash",
            Self::Protocol(_) => "protocol",
            Self::Oversized(_) => "oversized",
            Self::Broken(_) => "broken",
            Self::Refused(_) => "refused",
            Self::Spawn(_) => "spawn",
        }
    }
}
