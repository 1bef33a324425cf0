//! A file that may be removed or replaced while it is open: what is written to it then is in no file that anybody
//! finds.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which file a path named when it was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    file: (u64, u64),
}

impl FileIdentity {
    /// The file that `path` names now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: identity(&fs::metadata(path)?) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Does the path name the same file still? What cannot be looked at is left to whoever writes it.
    pub(super) fn is_unchanged(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(metadata) => identity(&metadata) == self.file,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// The file system and the file's number in it.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_removed_or_replaced_is_told() {
        let directory = tempfile::TempDir::new().unwrap();
        let [path, other] = ["a", "b"].map(|name| directory.path().join(name));
        fs::write(&path, "").unwrap();
        let identity = FileIdentity::of(&path).unwrap();
        assert!(identity.is_unchanged());
        fs::rename(&path, &other).unwrap();
        assert!(!identity.is_unchanged());
        fs::write(&path, "").unwrap();
        assert!(!identity.is_unchanged());
        fs::rename(&other, &path).unwrap();
        assert!(identity.is_unchanged());
    }
}
