//! Where a user's own daemon has its files (XDG base directories).
//!
//! Nothing is read from the working directory, which may be a stranger's repository.

use std::env;
use std::path::{Path, PathBuf};

use super::{DaemonOverrides, INSTALLED_CONFIGURATION, INSTALLED_DOCUMENTS, Overrides, may_be_there};

/// There is no home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no home directory for the user's files: set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME")]
pub struct HomelessError;

/// Where the user's daemon has its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFiles {
    state: PathBuf,
    configuration: Option<PathBuf>,
    documents: Vec<PathBuf>,
}

impl UserFiles {
    /// Those of the user who runs this; nothing for somebody without a home.
    pub fn find() -> Option<Self> {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let xdg = |variable: &str, otherwise: &str| {
            let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            Some(named.or_else(|| Some(home.as_ref()?.join(otherwise)))?.join("almanac"))
        };
        let installed = Path::new(INSTALLED_CONFIGURATION);
        Some(Self::new(xdg("XDG_STATE_HOME", ".local/state")?, &xdg("XDG_CONFIG_HOME", ".config")?, installed))
    }

    fn new(state: PathBuf, own: &Path, installed: &Path) -> Self {
        let places = [own, installed];
        let [of_user, of_machine] = places.map(|place| place.join("almanac.yaml"));
        // The machine's may be there for others only.
        let of_machine = Some(of_machine).filter(|file| file.is_file());
        let configuration = if may_be_there(&of_user) { Some(of_user) } else { of_machine };
        let documents = places.map(|place| place.join("tool_metadata")).into_iter();
        let documents = documents.chain([INSTALLED_DOCUMENTS.into()]).collect();
        Self { state, configuration, documents }
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The socket of MCP clients.
    pub fn socket(&self) -> PathBuf {
        self.state.join("mcp.sock")
    }

    /// The administrator's socket.
    pub fn admin_socket(&self) -> PathBuf {
        self.state.join("admin.sock")
    }

    /// Where tool documents are if nobody says: the user's before the machine's.
    pub fn documents(&self) -> &[PathBuf] {
        &self.documents
    }

    /// Puts these files where nobody named others.
    pub fn fill(&self, overrides: &mut Overrides, daemon: &mut DaemonOverrides) {
        overrides.config = overrides.config.take().or_else(|| self.configuration.clone());
        daemon.state_dir.get_or_insert_with(|| self.state.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_user_has_comes_before_what_is_installed() {
        let root = tempfile::tempdir().unwrap();
        let (own, installed) = (root.path().join("own"), root.path().join("etc"));
        fs::create_dir_all(&installed).unwrap();
        let files = || UserFiles::new(root.path().join("state"), &own, &installed);
        assert_eq!(files().configuration, None);
        fs::write(installed.join("almanac.yaml"), "").unwrap();
        assert_eq!(files().configuration, Some(installed.join("almanac.yaml")));
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("almanac.yaml"), "").unwrap();
        assert_eq!(files().configuration, Some(own.join("almanac.yaml")));
        let places = [own.join("tool_metadata"), installed.join("tool_metadata"), INSTALLED_DOCUMENTS.into()];
        assert_eq!(files().documents(), places);
        assert_eq!(files().socket(), root.path().join("state/mcp.sock"));
    }

    #[test]
    fn what_is_named_stands() {
        let files = UserFiles::new("/s".into(), Path::new("/none"), Path::new("/none"));
        let (mut overrides, mut daemon) = (Overrides::default(), DaemonOverrides::default());
        files.fill(&mut overrides, &mut daemon);
        assert_eq!((overrides.config.clone(), daemon.state_dir.clone()), (None, Some("/s".into())));
        let mut daemon = DaemonOverrides { state_dir: Some("/other".into()), ..DaemonOverrides::default() };
        overrides.config = Some("/c.yaml".into());
        files.fill(&mut overrides, &mut daemon);
        assert_eq!((overrides.config, daemon.state_dir), (Some("/c.yaml".into()), Some("/other".into())));
    }
}
