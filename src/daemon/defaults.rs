//! The file of durations that stand in for history: beside the configuration, else built in.

use std::fs;
use std::io;

use crate::config::Config;
use crate::strict::Diagnostic;
use crate::timing::Defaults;

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DefaultsError {
    /// Not readable.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Not what it should be.
    #[error("{file} is faulty: {}", describe(.diagnostics))]
    Faulty {
        /// The file.
        file: String,
        /// All faults.
        diagnostics: Vec<Diagnostic>,
    },
}

fn describe(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|fault| format!("{}: {}", fault.place(), fault.message)).collect::<Vec<_>>().join("; ")
}

/// The defaults that the configuration's directory has, or the built-in ones.
pub(super) fn read(config: &Config) -> Result<Defaults, DefaultsError> {
    let Some(path) = config.timing_defaults.clone() else { return Ok(Defaults::default()) };
    let file = path.display().to_string();
    let content = fs::read(&path).map_err(|source| DefaultsError::Unreadable { file: file.clone(), source })?;
    Defaults::parse(&path, &content).map_err(|diagnostics| DefaultsError::Faulty { file, diagnostics })
}
