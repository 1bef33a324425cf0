//! Which server's tool has each name, kept over a restart: so that of two tools of one name clients call the same one
//! as before, whichever server was configured, listed or started first this time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::strict::{file, replacement};

/// The file of the names, in the state directory.
const NAMES_FILE: &str = "mcp-names.json";

/// Largest file, in bytes: 20,000 tools whose own names are as long as a server may list them.
const MAX_FILE_BYTES: usize = 64 << 20;

/// Who has a name: a server, and what the tool is called there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NameOwner(pub(super) Box<str>, pub(super) Box<str>);

/// By the names that clients know tools by.
pub(super) type NameOwners = BTreeMap<Box<str>, NameOwner>;

/// Where the names are kept.
#[derive(Debug)]
pub(super) struct NameBook {
    file: PathBuf,
    /// As they were read or written last.
    kept: Mutex<NameOwners>,
}

impl NameBook {
    /// The names as they are kept in the state directory. Without a file that can be read it is as if every tool were
    /// new, which the log says.
    pub(super) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join(NAMES_FILE);
        let kept = match read(&path) {
            Ok(names) => names,
            Err(error) => {
                let file = path.display();
                tracing::warn!(%error, %file, "names of MCP tools that clash may go to another server than before");
                NameOwners::new()
            }
        };
        Self { file: path, kept: Mutex::new(kept) }
    }

    /// The names as they are kept.
    pub(super) fn names(&self) -> NameOwners {
        self.kept.lock().clone()
    }

    /// Keeps these instead, if they are others.
    pub(super) fn keep(&self, names: NameOwners) {
        let mut kept = self.kept.lock();
        if *kept == names {
            return;
        }
        let written = serde_json::to_vec(&names).map_err(io::Error::from);
        if let Err(error) = written.and_then(|content| replacement::replace(&self.file, &content, 0o600)) {
            let file = self.file.display();
            tracing::warn!(%error, %file, "names of MCP tools are not kept");
        }
        *kept = names;
    }
}

fn read(path: &Path) -> io::Result<NameOwners> {
    match file::read(path, MAX_FILE_BYTES) {
        Ok(content) => Ok(serde_json::from_slice(&content)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(NameOwners::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_come_back_and_a_broken_file_is_none() {
        let state = tempfile::tempdir().unwrap();
        assert!(NameBook::open(state.path()).names().is_empty());
        let names = NameOwners::from([("x_y".into(), NameOwner("x".into(), "y".into()))]);
        NameBook::open(state.path()).keep(names.clone());
        assert_eq!(NameBook::open(state.path()).names(), names);
        fs::write(state.path().join(NAMES_FILE), "[").unwrap();
        assert!(NameBook::open(state.path()).names().is_empty());
    }
}
