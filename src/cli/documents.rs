//! The documents that a command opens where no daemon answers.

use super::output::Output;
use crate::catalog::Severity;
use crate::catalog::load::{LoadOptions, Loaded, load};

/// Errors that are told one by one; of more only the number.
const MAX_TOLD: usize = 3;

/// Loads documents. What is wrong with them is told on standard error, so that nobody takes a directory that is not
/// there for a catalog without tools.
pub(super) fn open(options: LoadOptions, output: &mut Output) -> Loaded {
    let loaded = load(options);
    let errors: Vec<_> = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
    for found in errors.iter().take(MAX_TOLD) {
        let hint = found.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        output.note(&format!("note: {}: {}{hint}", found.file, found.message));
    }
    if let Some(more) = errors.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        output.note(&format!("note: and {more} more errors; `almanacd check` shows all of them"));
    }
    loaded
}
