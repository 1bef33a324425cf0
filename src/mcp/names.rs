//! Which server's tool has each name, kept over a restart: so that of two tools of one name clients call the same one
//! as before, whichever server was configured, listed or started first this time.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

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
        let file = state_dir.join(NAMES_FILE);
        let kept = match read(&file) {
            Ok(names) => names,
            Err(error) => {
                let file = file.display();
                tracing::warn!(%error, %file, "names of MCP tools that clash may go to another server than before");
                NameOwners::new()
            }
        };
        Self { file, kept: Mutex::new(kept) }
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
        if let Err(error) = write(&self.file, &names) {
            let file = self.file.display();
            tracing::warn!(%error, %file, "names of MCP tools are not kept");
        }
        *kept = names;
    }
}

fn read(file: &Path) -> io::Result<NameOwners> {
    match crate::strict::file::read(file, MAX_FILE_BYTES) {
        Ok(content) => Ok(serde_json::from_slice(&content)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(NameOwners::new()),
        Err(error) => Err(error),
    }
}

/// The file appears whole or not at all.
fn write(file: &Path, names: &NameOwners) -> io::Result<()> {
    let fresh = file.with_extension("json.new");
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    written.write_all(&serde_json::to_vec(names)?)?;
    written.sync_data()?;
    fs::rename(&fresh, file)
}

#[cfg(test)]
mod tests {
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
