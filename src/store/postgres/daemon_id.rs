//! Which daemon a state directory is of.

use std::path::Path;
use std::{fs, io};

use super::group::Incarnation;
use super::spool::SpoolError;
use crate::strict::replacement;

/// Where a directory keeps which daemon it is.
const NAME: &str = "daemon.id";

/// Was a state directory that of a daemon that shares a database?
pub fn is_in(directory: &Path) -> bool {
    directory.join(NAME).exists()
}

/// Which daemon a state directory is of: 128 random bits, made once.
pub(super) fn daemon_of(directory: &Path) -> Result<Incarnation, SpoolError> {
    let path = directory.join(NAME);
    let failed = |source| SpoolError::Io { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) => {
            if let Some(known) = Incarnation::from_hex(text.trim()) {
                return Ok(known);
            }
            tracing::warn!(path = %path.display(), "it does not say which daemon this is, and is made anew");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let daemon = Incarnation::random()?;
    // As a whole or not at all: half a name would be another daemon's.
    replacement::replace(&path, format!("{}\n", daemon.to_hex()).as_bytes(), 0o666).map_err(failed)?;
    Ok(daemon)
}
