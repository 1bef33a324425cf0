//! Writing a file whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::CliError;

/// Puts `content` in place of whatever is at `path`, in one step. What is no plain file, such as a terminal or a pipe,
/// is written to as it is.
pub(super) fn replace(path: &Path, content: &str) -> Result<(), CliError> {
    try_replace(path, content).map_err(|source| CliError::Write { file: path.display().to_string(), source })
}

fn try_replace(path: &Path, content: &str) -> io::Result<()> {
    // A link stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, content);
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        if let Some(before) = before {
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&temporary, &path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let directory = tempfile::TempDir::new().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("b"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for content in ["one", "two"] {
            replace(&file, content).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
        }
        replace(&link, "three").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "three");
        assert!(link.is_symlink());
        assert!(replace(directory.path(), "x").is_err());
        assert!(replace(&directory.path().join("none/a"), "x").is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }
}
