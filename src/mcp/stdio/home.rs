//! A daemon of the user's own, which the first client starts and all share.
//!
//! Nothing is read from the working directory: a client starts its commands in whatever repository it looks at.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::config;

/// For how long it serves when nobody is connected.
const UNTIL_IDLE: &str = "10m";

/// Where the user's daemon has its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    state: PathBuf,
    configuration: Option<PathBuf>,
    documents: Vec<PathBuf>,
}

impl Home {
    /// Those of the user who runs this; nothing for somebody without a home.
    pub(super) fn of_user() -> Option<Self> {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let xdg = |variable: &str, otherwise: &str| {
            let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            Some(named.or_else(|| Some(home.as_ref()?.join(otherwise)))?.join("almanac"))
        };
        let installed = Path::new(config::INSTALLED_CONFIGURATION);
        Some(Self::new(xdg("XDG_STATE_HOME", ".local/state")?, &xdg("XDG_CONFIG_HOME", ".config")?, installed))
    }

    fn new(state: PathBuf, own: &Path, installed: &Path) -> Self {
        let places = [own, installed];
        let configuration = places.map(|place| place.join("almanac.yaml")).into_iter().find(|file| file.is_file());
        let shared = Path::new(config::INSTALLED_DOCUMENTS);
        let documents = places.map(|place| place.join("tool_metadata")).into_iter();
        let documents = documents.chain([shared.to_owned()]).filter(|directory| directory.is_dir()).collect();
        Self { state, configuration, documents }
    }

    /// The socket of MCP clients.
    pub(super) fn socket(&self) -> PathBuf {
        self.state.join("mcp.sock")
    }

    /// Starts a daemon there; of two that start at once, the lock of the state decides.
    pub(super) fn start(&self) -> io::Result<Child> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.state)?;
        // What is made may be named by the environment, too: without a document it has no tools, which is no fault.
        let own = self.state.join("tool_metadata");
        if self.documents.is_empty() {
            fs::create_dir_all(&own)?;
        }
        let mut command = Command::new(env::current_exe()?);
        command.args(["serve", "--until-idle", UNTIL_IDLE, "--state-dir"]).arg(&self.state);
        if let (Some(file), None) = (&self.configuration, env::var_os("ALMANAC_CONFIG")) {
            command.arg("--config").arg(file);
        }
        if env::var_os("ALMANAC_TOOL_METADATA").is_none() {
            let documents = if self.documents.is_empty() { std::slice::from_ref(&own) } else { &self.documents[..] };
            for directory in documents {
                command.arg("--tool-metadata").arg(directory);
            }
        }
        // A socket that is named for another daemon is not this one's.
        command.env_remove("ALMANAC_MCP_SOCKET").env_remove("ALMANAC_ADMIN_SOCKET").env_remove("ALMANAC_STATE_DIR");
        command.current_dir(&self.state).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(self.log())?).spawn()
    }

    /// What the daemon that was started last says.
    pub(super) fn log(&self) -> PathBuf {
        self.state.join("almanacd.log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_comes_before_what_is_installed() {
        let root = tempfile::tempdir().unwrap();
        let (own, installed) = (root.path().join("own"), root.path().join("etc"));
        fs::create_dir_all(installed.join("tool_metadata")).unwrap();
        fs::write(installed.join("almanac.yaml"), "").unwrap();
        let home = || Home::new(root.path().join("state"), &own, &installed);
        assert_eq!(home().configuration, Some(installed.join("almanac.yaml")));
        assert_eq!(home().documents[0], installed.join("tool_metadata"));
        fs::create_dir_all(own.join("tool_metadata")).unwrap();
        fs::write(own.join("almanac.yaml"), "").unwrap();
        assert_eq!(home().configuration, Some(own.join("almanac.yaml")));
        assert_eq!(home().documents[..2], [own.join("tool_metadata"), installed.join("tool_metadata")]);
        assert_eq!(home().socket(), root.path().join("state/mcp.sock"));
    }
}
