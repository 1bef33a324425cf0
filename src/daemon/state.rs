//! The state directory: made if it is not there, and this daemon's alone.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made or written to.
    #[error("cannot use the state directory {directory}; name another with --state-dir")]
    Unusable {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another daemon has it.
    #[error("the state directory {directory} is in use by another almanacd{holder}; name another with --state-dir")]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// ` (pid N)` if known.
        holder: String,
    },
}

/// Keeps the directory for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

/// Locks the directory. One that may not be written is not locked: nothing can be stored in it, which the store says, and the
/// daemon answers all the same.
pub(crate) fn lock(directory: &Path) -> Result<Option<Lock>, StateError> {
    match try_lock(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(StateError::Unusable { directory, source }) if is_forbidden(&source) => {
            let directory = directory.display();
            tracing::error!(%directory, error = %source, "the state directory cannot be written; nothing can be recorded");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn try_lock(directory: &Path) -> Result<Lock, StateError> {
    let unusable = |source| StateError::Unusable { directory: directory.to_owned(), source };
    if !directory.is_dir() {
        DirBuilder::new().recursive(true).mode(0o750).create(directory).map_err(unusable)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .open(directory.join("lock"))
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Who it is helps, but it is in use all the same.
            let _ = file.read_to_string(&mut pid);
            let holder = pid.trim().parse::<u32>().map_or_else(|_| String::new(), |pid| format!(" (pid {pid})"));
            return Err(StateError::InUse { directory: directory.to_owned(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(unusable)?;
    Ok(Lock(file))
}

/// Makes the directory that a socket is to stand in.
pub(super) fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_names_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/state");
        let lock_held = lock(&path).unwrap();
        assert!(lock_held.is_some());
        let error = lock(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("(pid {})", std::process::id())), "{error}");
        drop(lock_held);
        lock(&path).unwrap();
    }

    #[test]
    fn a_file_is_no_state_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(matches!(lock(&path), Err(StateError::Unusable { .. })));
    }
}
