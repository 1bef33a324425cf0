//! Writing the files that a command is told to: whole or not at all, or through to what is no plain file.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::CliError;
use crate::strict::replacement::Replacement;

/// Puts `content` in place of whatever is at `path`, in one step. What is no plain file, such as a terminal or a pipe,
/// is written to as it is.
pub(super) fn replace(path: &Path, content: &str) -> Result<(), CliError> {
    let written = OutputFile::begin(path, None).and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.finish()
    });
    written.map_err(|source| CliError::Write { file: path.display().to_string(), source })
}

/// A file that takes the place of another when it is finished, and leaves nothing otherwise.
pub(super) struct OutputFile {
    out: BufWriter<Place>,
    /// Where it belongs.
    path: PathBuf,
}

/// Where it is written to.
enum Place {
    /// Beside where it belongs.
    Beside(Replacement),
    /// Where it belongs, as no other file can take its place.
    There(File),
}

impl OutputFile {
    /// With these permissions from the first byte; without them, as the file has that is there. Where no other file can
    /// be made beside it, it is written to as it is.
    pub(super) fn begin(path: &Path, mode: Option<u32>) -> io::Result<Self> {
        let path = behind_links(path);
        let before = fs::metadata(&path).ok();
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            return Self::in_place(path, mode);
        }
        if path.file_name().is_none() {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        let beside = match Replacement::begin(&path, mode.unwrap_or(0o666)) {
            Ok(beside) => beside,
            Err(_) if before.is_some() => return Self::in_place(path, mode),
            Err(error) => return Err(error),
        };
        if let Some(before) = &before {
            // Only root can give it to whose it was.
            let _ = fchown(beside.file(), Some(before.uid()), Some(before.gid()));
        }
        if let Some(permissions) = mode.map(Permissions::from_mode).or(before.map(|before| before.permissions())) {
            beside.file().set_permissions(permissions)?;
        }
        Ok(Self { out: BufWriter::new(Place::Beside(beside)), path })
    }

    fn in_place(path: PathBuf, mode: Option<u32>) -> io::Result<Self> {
        let out = OpenOptions::new().write(true).truncate(true).open(&path)?;
        if let Some(mode) = mode.filter(|_| out.metadata().is_ok_and(|metadata| metadata.is_file())) {
            out.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(Self { out: BufWriter::new(Place::There(out)), path })
    }

    /// It is whole, and takes its place.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Place::Beside(beside) = self.out.get_mut() else { return Ok(()) };
        match (beside.finish(), beside.temporary()) {
            // A file that is mounted by itself can be written, and not replaced.
            (Err(error), Some(temporary)) if error.kind() == io::ErrorKind::ResourceBusy => {
                fs::copy(temporary, &self.path).map(drop)
            }
            (finished, _) => finished,
        }
    }
}

/// The file that a link leads to, also one that is not there yet.
fn behind_links(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    match (fs::read_link(path), path.parent()) {
        (Ok(target), Some(parent)) => parent.join(target),
        _ => path.to_owned(),
    }
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside(beside) => beside.write(bytes),
            Self::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside(beside) => beside.flush(),
            Self::There(file) => file.flush(),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
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
        let mut unfinished = OutputFile::begin(&file, Some(0o600)).unwrap();
        unfinished.write_all(b"four").unwrap();
        drop(unfinished);
        assert_eq!(fs::read_to_string(&file).unwrap(), "three");
        let ahead = directory.path().join("ahead");
        std::os::unix::fs::symlink("later", &ahead).unwrap();
        replace(&ahead, "x").unwrap();
        assert!(ahead.is_symlink() && fs::read_to_string(directory.path().join("later")).unwrap() == "x");
        fs::remove_file(directory.path().join("later")).unwrap();
        fs::remove_file(ahead).unwrap();
        OutputFile::begin(&file, Some(0o600)).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }
}
