//! What is wrong with the configured model, without asking it.

use std::error::Error;
use std::path::Path;

use super::{Settings, connect};
use crate::strict::Diagnostic;

/// The authorities that cannot be trusted, of the configuration in `file`. The key is the daemon's environment's, which
/// is another one here.
pub fn check(settings: &Settings, file: &Path) -> Option<Diagnostic> {
    let error = connect::client(settings).err()?;
    let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    Some(Diagnostic::error(file, "no-trust", format!("qualifier.llm: {error}{why}")))
}
