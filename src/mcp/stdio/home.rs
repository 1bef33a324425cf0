//! A daemon of the user's own, which the first client starts and all share.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::config::UserFiles;

/// For how long it serves when nobody is connected.
const UNTIL_IDLE: &str = "10m";

/// What a file of the log may have before the next start begins another, in bytes.
const MAX_LOG: u64 = 1 << 20;

/// Of what a daemon said, how much is looked at, in bytes.
const MAX_SAID: u64 = 64 << 10;

/// A daemon that was started.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) log: StartLog,
}

/// Starts a daemon with these files; of two that start at once, the lock of the state decides.
pub(super) fn start(files: &UserFiles) -> io::Result<Started> {
    let state = files.state();
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let log = StartLog::open(&state.join("almanacd.log"))?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", "--user", "--until-idle", UNTIL_IDLE]);
    // A socket that is named for another daemon is not this one's.
    command.env_remove("ALMANAC_MCP_SOCKET").env_remove("ALMANAC_ADMIN_SOCKET").env_remove("ALMANAC_STATE_DIR");
    // Its log is the file here, and no service manager waits for it.
    command.env_remove("JOURNAL_STREAM").env_remove("NOTIFY_SOCKET");
    command.current_dir(state).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(log.file.try_clone()?).spawn()?;
    Ok(Started { child, log })
}

/// Where daemons say what becomes of them, from one's start on. Each adds to what is there: of two that start at once,
/// both write.
pub(super) struct StartLog {
    file: File,
    begin: u64,
}

impl StartLog {
    fn open(path: &Path) -> io::Result<Self> {
        let open = || OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = open()?;
        if file.metadata()?.len() > MAX_LOG {
            // Whoever still writes to it does so under its new name.
            fs::rename(path, path.with_extension("log.old"))?;
            file = open()?;
        }
        let begin = file.metadata()?.len();
        Ok(Self { file, begin })
    }

    /// The end of what was said since.
    pub(super) fn said(&self) -> io::Result<String> {
        let end = self.file.metadata()?.len();
        let begin = self.begin.max(end.saturating_sub(MAX_SAID));
        let mut said = vec![0; end.saturating_sub(begin) as usize];
        self.file.read_exact_at(&mut said, begin)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_start_takes_nothing_from_the_log_of_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("almanacd.log");
        let check = |log: &StartLog, text: &str, said: &str, all: &str| {
            (&log.file).write_all(text.as_bytes()).unwrap();
            assert_eq!(log.said().unwrap(), said, "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), all, "{text}");
        };
        let first = StartLog::open(&path).unwrap();
        check(&first, "1 starts\n", "1 starts\n", "1 starts\n");
        let second = StartLog::open(&path).unwrap();
        check(&second, "2 is late\n", "2 is late\n", "1 starts\n2 is late\n");
        check(&first, "1 serves\n", "1 starts\n2 is late\n1 serves\n", "1 starts\n2 is late\n1 serves\n");
        first.file.set_len(MAX_LOG + 1).unwrap();
        let third = StartLog::open(&path).unwrap();
        check(&third, "3 starts\n", "3 starts\n", "3 starts\n");
        (&first.file).write_all(b"1 ends\n").unwrap();
        assert!(first.said().unwrap().ends_with("1 ends\n") && !third.said().unwrap().contains("1 ends"));
    }
}
