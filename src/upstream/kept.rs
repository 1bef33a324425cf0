//! What is kept of a server over a restart: its lists, its pins, and how it is spoken to.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::listed::Listed;
use super::pins::Pin;

/// Largest file of lists, in bytes: 2,000 tools with schemas of 256 KiB are refused before.
const MAX_FILE_BYTES: usize = 256 << 20;

/// What is kept of one server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Of the settings that it was found to be of its era by.
    #[serde(default)]
    pub(super) settings: String,
    /// Is it of the era of `initialize`? Known while the settings are the same.
    #[serde(default)]
    pub(super) is_legacy: bool,
    /// Nothing if it was never listed.
    #[serde(default)]
    pub(super) listed: Option<Arc<Listed>>,
    #[serde(default)]
    pub(super) pins: BTreeMap<String, Pin>,
    /// Definitions that wait for an approval.
    #[serde(default)]
    pub(super) waiting: BTreeMap<String, Box<RawValue>>,
}

/// What is kept cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeptError {
    #[error("cannot use {}", .file.display())]
    Unusable { file: PathBuf, source: io::Error },
    #[error("{} is not what was written", .file.display())]
    Faulty { file: PathBuf, source: serde_json::Error },
}

/// The file of a server, whose name holds nothing that a path could be made of.
fn file(directory: &Path, server: &str) -> PathBuf {
    directory.join(format!("{server}.json"))
}

impl Kept {
    /// What was kept of the server; nothing kept if there is no file.
    pub(super) fn read(directory: &Path, server: &str) -> Result<Self, KeptError> {
        let file = file(directory, server);
        let content = match crate::strict::file::read(&file, MAX_FILE_BYTES) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(KeptError::Unusable { file, source }),
        };
        serde_json::from_slice(&content).map_err(|source| {
            // Kept for whoever wants to know which definitions were approved.
            let _ = fs::rename(&file, file.with_extension("json.bad"));
            KeptError::Faulty { file, source }
        })
    }

    /// Writes it whole or not at all.
    pub(super) fn write(&self, directory: &Path, server: &str) -> Result<(), KeptError> {
        let file = file(directory, server);
        let unusable = |source| KeptError::Unusable { file: file.clone(), source };
        if !directory.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        }
        let content = serde_json::to_vec(self).map_err(|error| unusable(error.into()))?;
        crate::strict::replacement::replace(&file, &content, 0o600).map_err(unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::listed::ListedTool;

    #[test]
    fn what_is_kept_comes_back_byte_for_byte() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("mcp");
        assert!(Kept::read(&place, "a").unwrap().listed.is_none());
        let json = r#"{"name":"t","n":123456789012345678901234567890,"z":1.50,"a":null}"#;
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let tool = ListedTool { name: "t".to_owned(), json: raw.clone(), is_blocked: true };
        let listed = Listed { tools: vec![tool], version: "2025-11-25".to_owned(), ..Listed::default() };
        let pins = BTreeMap::from([("t".to_owned(), Pin { sum: "0".to_owned(), json: raw.clone() })]);
        let kept = Kept { listed: Some(Arc::new(listed)), pins, ..Kept::default() };
        kept.write(&place, "a").unwrap();
        kept.write(&place, "a").unwrap();
        let read = Kept::read(&place, "a").unwrap();
        let listed = read.listed.unwrap();
        assert_eq!((listed.tools[0].json.get(), listed.tools[0].is_blocked), (json, true));
        assert_eq!(read.pins["t"].json.get(), json);
    }

    #[test]
    fn a_broken_file_is_put_aside() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a.json"), "{").unwrap();
        assert!(matches!(Kept::read(directory.path(), "a"), Err(KeptError::Faulty { .. })));
        assert!(Kept::read(directory.path(), "a").is_ok());
        assert!(directory.path().join("a.json.bad").exists());
    }
}
