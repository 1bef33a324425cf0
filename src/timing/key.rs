//! The name of what is learnt separately: a tool in one of its modes.
//!
//! A call that failed says nothing about how long a call that works will take, but a good deal about how long failing
//! takes. So it belongs to a mode of its own, the caller's mode followed by `#error`, and callers may not use that sign
//! themselves.

use super::Outcome;
use crate::strict::Violation;

/// What follows a mode to name its failures.
const ERROR: &str = "#error";

/// A tool in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key<'a> {
    pub tool: &'a str,
    /// The caller's mode, without any sign of failure; empty for none.
    pub mode: &'a str,
    /// Is this about calls that failed?
    pub failed: bool,
}

impl<'a> Key<'a> {
    /// The key of calls to come, which are taken to succeed.
    pub fn new(tool: &'a str, mode: &'a str) -> Self {
        Self { tool, mode, failed: false }
    }

    /// The key that a call which ended in `outcome` belongs to.
    #[must_use]
    pub fn ended_in(self, outcome: Outcome) -> Self {
        Self { failed: outcome == Outcome::Error, ..self }
    }

    /// The key that `tool` and `mode` mean where modes are shown or stored: `mode#error` is about failures.
    pub fn shown_as(tool: &'a str, mode: &'a str) -> Self {
        let bare = mode.strip_suffix(ERROR);
        Self { tool, mode: bare.unwrap_or(mode), failed: bare.is_some() }
    }

    /// The mode as it is shown and stored.
    pub fn shown_mode(&self) -> String {
        let suffix = if self.failed { ERROR } else { "" };
        format!("{}{suffix}", self.mode)
    }
}

/// Holds a mode to what a caller may use.
pub fn check_mode(mode: &str) -> Result<(), Violation> {
    if mode.contains('#') {
        return Err(format!("a mode has no `#`, as `{mode}` has: what follows one names calls that failed").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(outcome: Outcome, expected: &str) {
        let key = Key::new("a", "fast").ended_in(outcome);
        assert_eq!(key.shown_mode(), expected, "mode of a call that ended in {outcome:?}");
        assert_eq!(Key::shown_as("a", expected), key);
        assert_eq!(check_mode(expected).is_ok(), outcome != Outcome::Error);
    }

    #[test]
    fn failures_have_a_mode_of_their_own() {
        check(Outcome::Success, "fast");
        check(Outcome::Error, "fast#error");
        check(Outcome::Timeout, "fast");
        check(Outcome::Cancelled, "fast");
    }
}
