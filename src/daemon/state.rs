//! The state directory: made if it is not there, and this daemon's alone.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::strict::replacement;

/// The state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made or written to.
    #[error("cannot use the state directory {directory}; name another with --state-dir")]
    Unusable { directory: PathBuf, source: io::Error },
    /// Another daemon has it.
    #[error("the state directory {directory} is in use by another almanacd{holder}; name another with --state-dir")]
    InUse {
        directory: PathBuf,
        /// ` (pid N)` if known.
        holder: String,
    },
}

/// Keeps the directory for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock(File);

/// Locks the directory. One that may not be written is not locked: nothing can be stored in it, which the store says,
/// and the daemon answers all the same.
pub(crate) fn lock(directory: &Path) -> Result<Option<Lock>, StateError> {
    match try_lock(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(StateError::Unusable { directory, source }) if is_forbidden(&source) => {
            let directory = directory.display();
            tracing::error!(%directory, error = %source, "the state directory cannot be written; nothing can be \
                recorded");
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
    let (mut file, _) = replacement::open_or_make(&directory.join("lock"), 0o640).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Who it is helps, but it is in use all the same.
            let _ = file.read_to_string(&mut pid);
            let holder = pid
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .parse::<u32>()
                .map_or_else(|_| String::new(), |pid| format!(" (pid {pid})"));
            return Err(StateError::InUse { directory: directory.to_owned(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(unusable(source)),
    }
    write(&mut file, "").map_err(unusable)?;
    Ok(Lock(file))
}

fn write(file: &mut File, more: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}\n{more}", std::process::id())
}

/// Says in the lock's file that its holder gives way.
const GIVES_WAY: &str = "until idle";

/// How long a daemon that gives way may take for it: its drain, and a little.
const GIVING_WAY: Duration = Duration::from_secs(30);

/// Between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(20);

impl Lock {
    /// Whoever wants the directory may ask for it from now on: this daemon was only started for as long as it is used.
    pub(super) fn give_way(&mut self) {
        if let Err(error) = write(&mut self.0, GIVES_WAY) {
            tracing::warn!(%error, "a daemon that is started later cannot take over");
        }
    }
}

/// Locks the directory for a daemon. One that gives way is asked to end, and waited for.
#[expect(clippy::disallowed_methods, reason = "a lock that is given up announces itself in no way")]
pub(super) fn take(directory: &Path, gives_way: bool) -> Result<Option<Lock>, StateError> {
    let until = Instant::now() + GIVING_WAY;
    let mut is_asked = false;
    loop {
        match lock(directory) {
            Err(StateError::InUse { .. }) if !gives_way && Instant::now() < until => {
                let Some(holder) = giving_way(directory) else { return lock(directory) };
                if !is_asked {
                    tracing::info!(
                        pid = holder.as_raw_nonzero(),
                        "taking over from a daemon that serves until it is idle"
                    );
                    // One that has ended by now is as good.
                    let _ = kill_process(holder, Signal::TERM);
                }
                is_asked = true;
                thread::sleep(LOOK);
            }
            other => return other,
        }
    }
}

/// Who holds the directory, if it gives way.
fn giving_way(directory: &Path) -> Option<Pid> {
    let said = fs::read_to_string(directory.join("lock")).ok()?;
    let (pid, more) = said.split_once('\n')?;
    if more.trim() == GIVES_WAY { Pid::from_raw(pid.trim().parse().ok()?) } else { None }
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
