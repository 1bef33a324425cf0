//! How grave a log message is, as the protocol says it (RFC 5424).

use crate::strict::Word;

/// A level, the least grave first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Word)]
#[serde(rename_all = "lowercase")]
#[word(noun = "a level")]
pub(super) enum LogLevel {
    /// For whoever looks for a fault.
    Debug,
    /// As it should be.
    Info,
    /// As it should be, and worth to be known.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must do something now.
    Alert,
    /// Nothing works.
    Emergency,
}
