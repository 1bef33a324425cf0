//! A library's file: whether it may be run, and its content as a sealed copy in memory.
//!
//! Whoever can write to the file, or to a directory above it, decides what runs. So the way to the file is walked on
//! open descriptors from the root down, each step judged before the next is taken: nobody who is not trusted can have
//! put anything else there between the look and the read. The copy is what is hashed, mapped and run; a file that is
//! overwritten in place changes nothing that runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, SealFlags, Stat, fcntl_add_seals, fstat, memfd_create, openat};

use super::elf_note::{ElfNoteError, Identity, identify};
use crate::process::trust::Trusted;
use crate::sum::Sum;

/// Largest library, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A library's content, ready to be run.
#[derive(Debug, Clone)]
pub struct Library {
    /// Where it was read from.
    pub path: PathBuf,
    pub hash: Sum,
    /// How long it is, in bytes.
    pub length: u64,
    /// What it says it is.
    pub identity: Identity,
    image: Arc<OwnedFd>,
}

/// A library that may not be run, or cannot.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be read.
    #[error("{place} cannot be opened: {source}")]
    Unreadable {
        /// The file, or a directory above it.
        place: String,
        source: io::Error,
    },
    /// Not what could be a library.
    #[error("{0} is no regular file")]
    Irregular(String),
    /// Somebody else could change it.
    #[error(
        "{place} {why}, who could put anything there; let root or the daemon's user own it, and nobody else write to \
         it (chmod go-w)"
    )]
    Untrusted {
        /// The file, or a directory above it.
        place: String,
        /// Who else has a hand in it.
        why: String,
    },
    /// Not on the list of what may be run.
    #[error("its SHA-256 sum {0} is not in `plugins.allow`")]
    NotAllowed(Sum),
    /// Larger than any library should be.
    #[error("it has {0} bytes, and {MAX_BYTES} is the limit")]
    Large(u64),
    /// It is being written.
    #[error("it changed while it was read")]
    Changing,
    /// No library by its content.
    #[error(transparent)]
    Note(#[from] ElfNoteError),
    /// No copy can be made.
    #[error("it cannot be copied into memory: {0}")]
    Copy(io::Error),
}

impl Library {
    /// Reads the library at `path`, if it is trusted and, unless `allow` is empty, on that list.
    pub fn open(path: &Path, allow: &[Sum]) -> Result<Self, LibraryError> {
        Self::read(path, &walk(path, &Trusted::by_this_process())?, allow)
    }

    /// The same, but only asks whether it is trusted if its content `is_known`.
    pub(super) fn open_unless(is_known: bool, path: &Path, allow: &[Sum]) -> Result<Option<Self>, LibraryError> {
        let file = walk(path, &Trusted::by_this_process())?;
        if is_known { Ok(None) } else { Self::read(path, &file, allow).map(Some) }
    }

    /// Reads the library at `path`, whoever can write there: for one that somebody names to be tried in a sandbox.
    pub fn open_anyway(path: &Path) -> Result<Self, LibraryError> {
        // Without waiting, in case it is a pipe.
        let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
        let unreadable = |error: rustix::io::Errno| LibraryError::Unreadable {
            place: path.display().to_string(),
            source: error.into(),
        };
        let file = File::from(opened.map_err(unreadable)?);
        regular(&stat(&file, path)?, path)?;
        Self::read(path, &file, &[])
    }

    fn read(path: &Path, file: &File, allow: &[Sum]) -> Result<Self, LibraryError> {
        let before = stat(file, path)?;
        let length = before.st_size as u64;
        if length > MAX_BYTES {
            return Err(LibraryError::Large(length));
        }
        let mut content = Vec::with_capacity(length as usize + 1);
        let unreadable = |source| LibraryError::Unreadable { place: path.display().to_string(), source };
        file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
        let after = stat(file, path)?;
        let stamp = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        if stamp(&before) != stamp(&after) || content.len() as u64 != length {
            return Err(LibraryError::Changing);
        }
        let hash = Sum::of(&content);
        if !allow.is_empty() && !allow.contains(&hash) {
            return Err(LibraryError::NotAllowed(hash));
        }
        let identity = identify(&content)?;
        let image = Arc::new(seal(&content).map_err(LibraryError::Copy)?);
        Ok(Self { path: path.to_owned(), hash, length, identity, image })
    }

    pub fn image(&self) -> BorrowedFd<'_> {
        self.image.as_fd()
    }
}

/// Opens the file at `path` by way of every directory above it.
fn walk(path: &Path, trusted: &Trusted) -> Result<File, LibraryError> {
    let unreadable = |place: &Path, source| LibraryError::Unreadable { place: place.display().to_string(), source };
    // Links are resolved first; whoever could turn one elsewhere would have to pass the walk with where it leads.
    let path = path.canonicalize().map_err(|source| unreadable(path, source))?;
    let mut place = PathBuf::from("/");
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |from: BorrowedFd<'_>, name: &OsStr, place: &Path, flags: OFlags| {
        openat(from, name, flags, Mode::empty()).map_err(|error| unreadable(place, error.into()))
    };
    let mut at = open(CWD, OsStr::new("/"), &place, directory)?;
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let (name, above) = names.split_last().ok_or_else(|| LibraryError::Irregular(path.display().to_string()))?;
    for (number, name) in above.iter().enumerate() {
        trust(&stat(&at, &place)?, &place, true, trusted)?;
        place.push(name);
        at = open(at.as_fd(), name, &place, directory)?;
        if number + 1 == above.len() {
            trust(&stat(&at, &place)?, &place, false, trusted)?;
        }
    }
    place.push(name);
    // Without waiting, in case it is a pipe.
    let file = open(at.as_fd(), name, &place, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)?;
    let found = stat(&file, &place)?;
    regular(&found, &place)?;
    trust(&found, &place, false, trusted)?;
    Ok(File::from(file))
}

fn stat(file: impl AsFd, place: &Path) -> Result<Stat, LibraryError> {
    fstat(file).map_err(|error| LibraryError::Unreadable { place: place.display().to_string(), source: error.into() })
}

fn regular(stat: &Stat, place: &Path) -> Result<(), LibraryError> {
    let is_regular = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile;
    is_regular.then_some(()).ok_or_else(|| LibraryError::Irregular(place.display().to_string()))
}

fn trust(stat: &Stat, place: &Path, sticky_will_do: bool, trusted: &Trusted) -> Result<(), LibraryError> {
    let untrusted = |why| LibraryError::Untrusted { place: place.display().to_string(), why };
    trusted.doubt(stat, sticky_will_do).map_or(Ok(()), |why| Err(untrusted(why)))
}

/// A copy in memory that nobody can change any more.
fn seal(content: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels since 6.3 want to be told; older ones do not know the flag.
    let image =
        memfd_create("almanac-plugin", flags | MemfdFlags::EXEC).or_else(|_| memfd_create("almanac-plugin", flags))?;
    let mut file = File::from(image);
    file.write_all(content)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_what_nobody_else_can_change_is_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("below")).unwrap();
        let file = root.join("below/x.so");
        fs::write(&file, "content").unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let opened = |file: &Path, trusted: &Trusted| Library::read(file, &walk(file, trusted)?, &[]);
        let check = |file: &Path, expected: &str| {
            let error = opened(file, &Trusted::with_private_groups(false)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            // What a group of one's own may write is as good as one's own.
            let error = opened(file, &Trusted::with_private_groups(true)).unwrap_err().to_string();
            let expected = if expected.ends_with("by group") { "no ELF header" } else { expected };
            assert!(error.contains(expected), "{error}");
        };
        for path in [root.clone(), root.join("below")] {
            mode(&path, 0o755);
        }
        mode(&file, 0o644);
        check(&file, "no ELF header");
        symlink(&file, directory.path().join("link")).unwrap();
        check(&directory.path().join("link"), "no ELF header");
        mode(&file, 0o664);
        check(&file, "x.so can be written by group");
        mode(&file, 0o646);
        check(&file, "x.so can be written by everybody");
        mode(&file, 0o644);
        mode(&root.join("below"), 0o1777);
        check(&file, "below can be written by everybody");
        mode(&root.join("below"), 0o755);
        mode(&root, 0o775);
        check(&directory.path().join("link"), "root can be written by group");
        mode(&root, 0o1777);
        check(&file, "no ELF header");
        mode(&root, 0o755);
        check(&root.join("below"), "no regular file");
        check(&root.join("none.so"), "cannot be opened");
        let other = Sum([7; 32]);
        assert!(matches!(Library::open(&file, &[other]), Err(LibraryError::NotAllowed(_))));
    }

    #[test]
    fn a_sealed_copy_stays_as_it_is() {
        let image = seal(b"content").unwrap();
        let mut file = File::from(image);
        assert!(file.write_all(b"x").is_err());
        let mut content = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
    }
}
