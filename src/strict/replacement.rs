//! Putting a file in the place of another, whole or not at all, also when the power goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// A file that takes the place of another when it is finished, and leaves nothing otherwise. A link is replaced, not
/// followed.
#[derive(Debug)]
pub struct Replacement {
    file: File,
    /// Where it stands until then; nothing once it is in its place.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Replacement {
    /// Begins a file beside `path`, with the permissions of `mode` from the first byte, less what the umask takes.
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let temporary = directory_of(path).join(format!(".almanac-{}.tmp", hex::encode(random)));
        // Whatever stands there is somebody else's.
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        Ok(Self { file, temporary: Some(temporary), path: path.to_owned() })
    }

    /// The file as it is written, for its owner and permissions.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it stands until it is finished.
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// It is whole, and takes its place. After an error it stands where it stood, until it is dropped; but for a disk
    /// that fails to flush the directory, when it has its place and may lose it with the power.
    pub fn finish(&mut self) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return Ok(()) };
        self.file.sync_all()?;
        // Opened before: once the file is in its place, nothing is to fail that need not.
        let directory = match File::open(directory_of(&self.path)) {
            Err(error) if !is_unable(error.kind()) => return Err(error),
            opened => opened,
        };
        fs::rename(temporary, &self.path)?;
        self.temporary = None;
        match directory.and_then(|directory| directory.sync_all()) {
            // Not every file system can flush a directory, nor may everybody read one that he can write.
            Err(error) if is_unable(error.kind()) => Ok(()),
            flushed => flushed,
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // What is left behind is no file that anybody reads; the error that led here is what counts.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Puts `content` in the place of `path`: all of it, or nothing.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut fresh = Replacement::begin(path, mode)?;
    fresh.write_all(content)?;
    fresh.finish()
}

/// Opens `path` to read and write it, or makes it; says whether it was made. What is made belongs to whom the directory
/// does: what root makes for a daemon is to be the daemon's.
///
/// # Errors
/// Also if root would follow a link, or write to a file with another name, in a directory of somebody else's: whoever
/// can put it there chooses what is written to.
pub fn open_or_make(path: &Path, mode: u32) -> io::Result<(File, bool)> {
    let directory = File::open(directory_of(path))?;
    let owner = directory.metadata()?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mode = Mode::from_raw_mode(mode);
    let open = |more: OFlags| openat(&directory, name, OFlags::RDWR | OFlags::CLOEXEC | more, mode).map(File::from);
    match open(OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => {
            // Only root may, and needs to.
            let _ = fchown(&file, Some(owner.uid()), Some(owner.gid()));
            if open(OFlags::empty()).is_err() {
                // A root that is held to permissions could not come back to it.
                let _ = fchown(&file, Some(geteuid().as_raw()), None);
            }
            Ok((file, true))
        }
        Err(Errno::EXIST) if geteuid().is_root() && owner.uid() != 0 => {
            let file = open(OFlags::NOFOLLOW)?;
            let found = file.metadata()?;
            if !found.is_file() || found.nlink() > 1 {
                return Err(io::Error::other("it is no file of its own, in a directory of another user"));
            }
            Ok((file, false))
        }
        Err(Errno::EXIST) => Ok((open(OFlags::empty())?, false)),
        Err(error) => Err(error.into()),
    }
}

/// Flushes the directory that `path` is in, so that the name is there after the loss of power.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// The directory that `path` is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn is_unable(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::thread;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_made_belongs_to_whom_the_directory_does() {
        let directory = tempfile::TempDir::new().unwrap();
        let is_root = chown(directory.path(), Some(4242), Some(4243)).is_ok();
        let path = directory.path().join("file");
        assert!(open_or_make(&path, 0o600).unwrap().1);
        let made = fs::metadata(&path).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o600);
        if is_root {
            assert_eq!((made.uid(), made.gid()), (4242, 4243));
            chown(&path, Some(7), None).unwrap();
        }
        assert!(!open_or_make(&path, 0o600).unwrap().1);
        assert!(!is_root || fs::metadata(&path).unwrap().uid() == 7, "one that is there keeps its owner");
        assert!(open_or_make(&directory.path().join("none/file"), 0o600).is_err());
        let [target, link, other] = ["target", "link", "other"].map(|name| directory.path().join(name));
        fs::write(&target, "kept").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(open_or_make(&link, 0o600).is_err(), is_root, "root follows no link of another user's");
        fs::hard_link(&target, &other).unwrap();
        assert_eq!(open_or_make(&other, 0o600).is_err(), is_root);
    }

    #[test]
    fn a_file_is_replaced_or_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for content in ["one", "two"] {
            replace(&path, content.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        }
        let mut unfinished = Replacement::begin(&path, 0o600).unwrap();
        unfinished.write_all(b"three").unwrap();
        assert_eq!(fs::metadata(unfinished.temporary().unwrap()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(names(directory.path()).len(), 2);
        drop(unfinished);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn nothing_is_left_of_what_cannot_take_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("d");
        fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, b"x", 0o600).is_err());
        assert_eq!(names(directory.path()), ["d"]);
        assert!(replace(&directory.path().join("none/a"), b"x", 0o600).is_err());
    }

    #[test]
    fn who_write_at_once_do_not_meet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        replace(&path, b"", 0o600).unwrap();
        thread::scope(|scope| {
            for letter in [b'a', b'b'] {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| replace(path, &[letter; 9000], 0o600).unwrap()));
            }
            for _ in 0..200 {
                let content = fs::read(&path).unwrap();
                let is_whole = content.is_empty() || content.len() == 9000;
                assert!(is_whole && content.iter().all(|byte| *byte == content[0]));
            }
        });
        assert_eq!(names(directory.path()), ["a"]);
    }
}
