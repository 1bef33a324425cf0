//! The directories of documents as they are on disk: which files there are, and their content under a limit.
//!
//! Names that start with a dot are passed over: they are editors' temporary files and the versions behind a Kubernetes
//! ConfigMap, whose visible files are links into them. Links are followed, each directory once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Diagnostic;
use crate::strict::{FileStamp, file};
use crate::watch::{Directories, Interest};

/// Directories below a root; a tree as deep as this is a mistake.
const MAX_DEPTH: usize = 16;

/// Links followed one after the other.
const MAX_LINKS: usize = 8;

/// Directories of one root, so that a link to the whole disk is a mistake and no denial of service.
const MAX_DIRECTORIES: usize = 10_000;

/// What a listing found.
#[derive(Debug, Default)]
pub struct Listing {
    /// Documents in the order in which they take precedence: by root, then by path.
    pub documents: BTreeMap<Place, FileStamp>,
    /// Every directory whose change can change the listing, and which of its names matter.
    pub directories: Directories,
    /// Directories that could not be read; what was known below them still holds.
    pub blind: Vec<PathBuf>,
    /// Directories that a limit cut off; what was known below them still holds.
    pub cut: Vec<PathBuf>,
    /// Findings about directories and about names that are no regular files.
    pub diagnostics: Vec<Diagnostic>,
}

impl Listing {
    /// Leaves the documents of the root `examples`, the last one, if another has any.
    pub fn leave_examples(&mut self, examples: usize) {
        if self.documents.keys().any(|place| place.root < examples) {
            self.documents.retain(|place, _| place.root < examples);
        }
    }
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
    file::is_structured(path)
}

/// Lists all documents below `roots`. A root may be a single file.
pub fn list(roots: &[PathBuf]) -> Listing {
    let mut listing = Listing::default();
    for (root, path) in roots.iter().enumerate() {
        watch_for_replacement(path, &mut listing.directories, MAX_LINKS);
        let mut walk = Walk { root, listing: &mut listing, seen: BTreeSet::new(), links: VecDeque::new() };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => walk.all(path, &metadata),
            Ok(metadata) => walk.file(path.clone(), &metadata),
            Err(error) => walk.unlistable(path, &error),
        }
    }
    listing
}

/// A name can be removed and made again, or be a link, or stand below one, that is pointed elsewhere: each such change
/// shows in the directory that holds the name. Of a missing one the nearest ancestor that exists is watched.
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
    /// Links to directories, with their depth. They are followed last, so that a large tree behind one takes no place
    /// from what is really there.
    links: VecDeque<(PathBuf, Metadata, usize)>,
}

impl Walk<'_> {
    fn all(&mut self, path: &Path, metadata: &Metadata) {
        self.directory(path, metadata, 0);
        while let Some((path, metadata, depth)) = self.links.pop_front() {
            self.directory(&path, &metadata, depth);
        }
    }

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
            self.listing.cut.push(path.to_owned());
            return;
        }
        if self.seen.len() > MAX_DIRECTORIES {
            if self.seen.len() == MAX_DIRECTORIES + 1 {
                let message =
                    format!("more than {MAX_DIRECTORIES} directories; of the rest the last version is served");
                self.listing.diagnostics.push(Diagnostic::error(path, "too-many-directories", message));
            }
            self.listing.cut.push(path.to_owned());
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
            Ok(metadata) if metadata.is_dir() && path.is_symlink() => self.links.push_back((path, metadata, depth + 1)),
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
        self.listing.documents.insert(Place { root: self.root, path: path.into() }, FileStamp::of_metadata(metadata));
    }

    fn unlistable(&mut self, path: &Path, error: &io::Error) {
        let diagnostic = Diagnostic::error(path, "unreadable", format!("cannot be listed: {error}"));
        let hint = match error.kind() {
            io::ErrorKind::NotFound if path.extension().is_some() => "name a document, or a directory of them",
            io::ErrorKind::NotFound => "create the directory, or name another with --tool-metadata",
            _ => "let the daemon's user read it",
        };
        self.listing.diagnostics.push(diagnostic.with_hint(hint));
        self.listing.blind.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stand_in_where_there_are_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let (own, examples) = (directory.path().join("own"), directory.path().join("examples"));
        let found = || {
            let mut listing = list(&[own.clone(), examples.clone()]);
            listing.leave_examples(1);
            let name = |place: &Place| place.path.file_stem().unwrap().to_string_lossy().into_owned();
            listing.documents.keys().map(name).collect::<Vec<_>>()
        };
        for path in [&own, &examples] {
            fs::create_dir(path).unwrap();
        }
        fs::write(examples.join("example.yaml"), "").unwrap();
        assert_eq!(found(), ["example"]);
        fs::write(own.join("mine.yaml"), "").unwrap();
        assert_eq!(found(), ["mine"]);
        fs::remove_file(own.join("mine.yaml")).unwrap();
        assert_eq!(found(), ["example"]);
    }
}
