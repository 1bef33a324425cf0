//! A daemon of the user's own, which the first client starts and all share.

use std::env;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::config::UserFiles;

/// For how long it serves when nobody is connected.
const UNTIL_IDLE: &str = "10m";

/// Starts a daemon with these files; of two that start at once, the lock of the state decides.
pub(super) fn start(files: &UserFiles) -> io::Result<Child> {
    let state = files.state();
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", "--user", "--until-idle", UNTIL_IDLE]);
    // A socket that is named for another daemon is not this one's.
    command.env_remove("ALMANAC_MCP_SOCKET").env_remove("ALMANAC_ADMIN_SOCKET").env_remove("ALMANAC_STATE_DIR");
    command.current_dir(state).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(log(files))?).spawn()
}

/// What the daemon that was started last says.
pub(super) fn log(files: &UserFiles) -> PathBuf {
    files.state().join("almanacd.log")
}
