//! The directories of documents as they are on disk: which files there are, and their content under a limit.
//!
//! Names that start with a dot are passed over: they are editors' temporary files and the versions behind a Kubernetes
//! ConfigMap, whose visible files are links into them. Links are followed, each directory once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Diagnostic;
use crate::watch::{Directories, Interest};

/// Directories below a root; a tree as deep as this is a mistake.
const MAX_DEPTH: usize = 16;

/// Links followed one after the other.
const MAX_LINKS: usize = 8;

/// Directories of one root, so that a link to the whole disk is a mistake and no denial of service.
const MAX_DIRECTORIES: usize = 10_000;

/// A file's identity and times. A file whose stamp did not change was not changed, unless it was changed within the clock's
/// grain of being read: see [`Stamp::is_settled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Was the file last touched at least two seconds before `now` (seconds since the epoch)? Only then can an equal stamp
    /// later be trusted to mean equal content: file systems keep times in ticks of up to two seconds.
    pub fn is_settled(&self, now: i64) -> bool {
        self.changed.0 + 2 < now && self.modified.0 + 2 < now
    }
}

/// What a listing found.
#[derive(Debug, Default)]
pub struct Listing {
    /// Documents in the order in which they take precedence: by root, then by path.
    pub documents: BTreeMap<Place, Stamp>,
    /// Every directory whose change can change the listing, and which of its names matter.
    pub directories: Directories,
    /// Directories that could not be read; what was known below them still holds.
    pub blind: Vec<PathBuf>,
    /// Findings about directories and about names that are no regular files.
    pub diagnostics: Vec<Diagnostic>,
}

/// Where a document stands: the number of its root, and its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index into the roots.
    pub root: usize,
    /// The root's path joined with the path below it.
    pub path: Arc<Path>,
}

/// Is it named like a document?
pub fn is_document(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// Lists all documents below `roots`. A root may be a single file.
pub fn list(roots: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for (root, path) in roots.iter().enumerate() {
        watch_for_replacement(path, &mut listing.directories, MAX_LINKS);
        let mut walk = Walk { root, listing: &mut listing, seen: BTreeSet::new() };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => walk.directory(path, &metadata, 0),
            Ok(metadata) => walk.file(path.clone(), &metadata),
            Err(error) => walk.unlistable(path, &error),
        }
    }
    listing
}

/// The stamp of one file, if it is a regular one.
pub fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().filter(Metadata::is_file).map(|metadata| Stamp::of(&metadata))
}

/// Reads at most `limit` + 1 bytes of a regular file, so that a longer one can be told. Never blocks: a path that became a
/// pipe since it was listed is an error.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let file =
        OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut content = Vec::with_capacity(limit.min(metadata.len() as usize) + 1);
    file.take(limit as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// A name can be removed and made again, or be a link, or stand below one, that is pointed elsewhere: each such change shows
/// in the directory that holds the name. Of a missing one the nearest ancestor that exists is watched.
fn watch_for_replacement(path: &Path, directories: &mut Directories, links: usize) {
    let mut name = path;
    while let Some(parent) = name.parent().filter(|parent| !parent.is_dir()) {
        name = parent;
    }
    watch_name(name, directories);
    for link in name.ancestors() {
        let Ok(target) = fs::read_link(link) else { continue };
        watch_name(link, directories);
        if let (Some(parent), 1..) = (link.parent(), links) {
            watch_for_replacement(&parent.join(target), directories, links - 1);
        }
    }
}

fn watch_name(path: &Path, directories: &mut Directories) {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
    let interest = directories.entry(parent.to_owned()).or_insert_with(|| Interest::Names(BTreeSet::new()));
    if let Interest::Names(names) = interest {
        names.insert(name.to_owned());
    }
}

struct Walk<'l> {
    root: usize,
    listing: &'l mut Listing,
    /// Directories walked, by device and inode, so that links cannot lead in circles.
    seen: BTreeSet<(u64, u64)>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path, metadata: &Metadata, depth: usize) {
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        if path.is_symlink() {
            watch_for_replacement(path, &mut self.listing.directories, MAX_LINKS);
        }
        if depth > MAX_DEPTH {
            let message = format!("directories nested deeper than {MAX_DEPTH} levels are not read");
            self.listing.diagnostics.push(Diagnostic::error(path, "too-deep", message));
            return;
        }
        if self.seen.len() > MAX_DIRECTORIES {
            if self.seen.len() == MAX_DIRECTORIES + 1 {
                let message = format!("more than {MAX_DIRECTORIES} directories; the rest is not read");
                self.listing.diagnostics.push(Diagnostic::error(path, "too-many-directories", message));
            }
            return;
        }
        self.listing.directories.insert(path.to_owned(), Interest::All);
        let names = fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<BTreeSet<_>>>()
        });
        match names {
            Ok(names) => {
                for name in names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b".")) {
                    self.name(path.join(name), depth);
                }
            }
            Err(error) => self.unlistable(path, &error),
        }
    }

    fn name(&mut self, path: PathBuf, depth: usize) {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.directory(&path, &metadata, depth + 1),
            // Listed a moment ago, gone now: the same as never listed, but for a link to nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {}
            Err(error) => {
                watch_for_replacement(&path, &mut self.listing.directories, MAX_LINKS);
                self.unreadable(path, &format!("cannot be read: {error}"));
            }
            Ok(_) if !is_document(&path) => {}
            Ok(metadata) => self.file(path, &metadata),
        }
    }

    /// What was known of this place still holds.
    fn unreadable(&mut self, path: PathBuf, message: &str) {
        self.listing.diagnostics.push(Diagnostic::error(&path, "unreadable", message));
        self.listing.blind.push(path);
    }

    fn file(&mut self, path: PathBuf, metadata: &Metadata) {
        if !metadata.is_file() {
            let message = "is a pipe, socket or device, not a file";
            self.listing.diagnostics.push(Diagnostic::error(&path, "not-a-file", message));
            self.listing.blind.push(path);
            return;
        }
        if path.is_symlink()
            && let Some(directory) = path.canonicalize().ok().as_deref().and_then(Path::parent)
        {
            self.listing.directories.insert(directory.to_owned(), Interest::All);
            watch_for_replacement(&path, &mut self.listing.directories, MAX_LINKS);
        }
        self.listing.documents.insert(Place { root: self.root, path: path.into() }, Stamp::of(metadata));
    }

    fn unlistable(&mut self, path: &Path, error: &io::Error) {
        let diagnostic = Diagnostic::error(path, "unreadable", format!("cannot be listed: {error}"));
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "create the directory, or name another with --tool-metadata",
            _ => "let the daemon's user read it",
        };
        self.listing.diagnostics.push(diagnostic.with_hint(hint));
        self.listing.blind.push(path.to_owned());
    }
}
