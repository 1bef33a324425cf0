//! File events as hints that the tree changed, never as a description of how.
//!
//! Directories are watched, not files, since editors replace files. Watches are armed anew after every scan, because a
//! directory that was removed and made again keeps its name and loses its watch. Where inotify is not to be had
//! (limits, some file systems) the reload's poll remains, and [`Watch::status`] says why.

pub mod debounce;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

pub use debounce::{Debounce, Hint};

/// Directories to watch, and what in them matters.
pub type Directories = BTreeMap<PathBuf, Interest>;

/// Which names of a directory matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// All of them: it holds what is read, or what links to that lead to.
    All,
    /// Only these: it holds a root, or a link on the way to one.
    Names(BTreeSet<OsString>),
}

/// The directories of both, with the interest of both.
pub fn union(directories: &Directories, others: &Directories) -> Directories {
    let mut union = directories.clone();
    for (path, interest) in others {
        match (union.get_mut(path), interest) {
            (Some(Interest::Names(known)), Interest::Names(names)) => known.extend(names.iter().cloned()),
            (Some(Interest::All), _) => {}
            (_, interest) => {
                union.insert(path.clone(), interest.clone());
            }
        }
    }
    union
}

/// A set of watched directories.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    directories: Arc<Mutex<Directories>>,
    /// Which files are read one by one, when they are saved whole.
    is_wanted: fn(&Path) -> bool,
    /// Where hints go; nowhere if the watch is off.
    sink: Option<Arc<Sink>>,
    failure: Option<String>,
}

type Sink = dyn Fn(Hint) + Send + Sync;

impl Watch {
    /// Watches nothing yet; hints go to `sink`, from a thread of the watcher's. Of files that are `wanted` a save is
    /// told from other changes.
    pub fn new(wanted: fn(&Path) -> bool, sink: impl Fn(Hint) + Send + Sync + 'static) -> Self {
        let sink: Option<Arc<Sink>> = Some(Arc::new(sink));
        Self { watcher: None, directories: Arc::default(), is_wanted: wanted, sink, failure: None }
    }

    /// Watches nothing, ever: the poll is all there is.
    pub fn off(reason: &str) -> Self {
        let failure = Some(reason.to_owned());
        Self { watcher: None, directories: Arc::default(), is_wanted: |_| false, sink: None, failure }
    }

    /// Watches exactly `directories` from now on.
    pub fn arm(&mut self, directories: &Directories) {
        let before = {
            let mut current = self.directories.lock();
            std::mem::replace(&mut *current, directories.clone())
        };
        let Some(sink) = &self.sink else { return };
        self.failure = None;
        let watcher = match &mut self.watcher {
            Some(watcher) => watcher,
            // Tried again at each scan: a limit that was reached may be so no longer.
            None => match watcher(Arc::clone(&self.directories), self.is_wanted, Arc::clone(sink)) {
                Ok(watcher) => self.watcher.insert(watcher),
                Err(error) => {
                    self.failure = Some(explain(&error));
                    return;
                }
            },
        };
        for gone in before.keys().filter(|path| !directories.contains_key(*path)) {
            // It fails if the directory itself is gone, and its watch with it.
            let _ = watcher.unwatch(gone);
        }
        for path in directories.keys() {
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // Gone since it was listed; whoever removed it caused an event above it.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => self.failure = Some(format!("{}: {}", path.display(), explain(&error))),
            }
        }
    }

    /// Why some directory is not watched, if so.
    pub fn status(&self) -> Result<(), &str> {
        self.failure.as_deref().map_or(Ok(()), Err)
    }
}

fn watcher(
    directories: Arc<Mutex<Directories>>,
    is_wanted: fn(&Path) -> bool,
    sink: Arc<Sink>,
) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error, such as a queue that overflowed, means that anything may have changed.
        let Ok(event) = event else { return sink(Hint::Moved) };
        let directories = directories.lock();
        if let Some(hint) = hint(&event, &directories, is_wanted) {
            drop(directories);
            sink(hint);
        }
    })
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("failure", &self.failure).finish_non_exhaustive()
    }
}

fn explain(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the limit of inotify watches is reached; raise fs.inotify.max_user_watches".to_owned()
        }
        notify::ErrorKind::Io(error) if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            "the limit of inotify instances is reached; raise fs.inotify.max_user_instances".to_owned()
        }
        _ => error.to_string(),
    }
}

/// What an event means, if anything.
fn hint(event: &Event, directories: &Directories, is_wanted: fn(&Path) -> bool) -> Option<Hint> {
    if event.need_rescan() {
        return Some(Hint::Moved);
    }
    let saved = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => true,
        // Our own reads; and the pair of a rename whose halves were announced already.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return None,
        _ => false,
    };
    let path = event.paths.iter().find(|path| matters(path, directories))?;
    Some(if saved && is_wanted(path) { Hint::Saved(path.clone()) } else { Hint::Moved })
}

fn matters(path: &Path, directories: &Directories) -> bool {
    if directories.contains_key(path) {
        return true;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
    match directories.get(parent) {
        Some(Interest::All) => !is_temporary(name),
        Some(Interest::Names(names)) => names.contains(name),
        None => false,
    }
}

/// Is it a name that editors give to files of theirs? `..data` is none: Kubernetes swaps it to publish a new version.
fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && !name.starts_with(b"..")
        || name.ends_with(b"~")
        || name.starts_with(b"#")
        || name == b"4913"
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, DataChange, Flag, RemoveKind};

    use super::*;

    fn is_yaml(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    }

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(kind: EventKind, path: &str, expected: Option<Hint>) {
        let directories = Directories::from([
            (PathBuf::from("/t"), Interest::All),
            (PathBuf::from("/"), Interest::Names(BTreeSet::from(["t".into()]))),
        ]);
        let event = Event::new(kind).add_path(PathBuf::from(path));
        assert_eq!(hint(&event, &directories, is_yaml), expected, "{kind:?} of {path}");
    }

    #[test]
    fn events_are_told_apart() {
        let saved = |path: &str| Some(Hint::Saved(PathBuf::from(path)));
        let renamed_to = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        check(renamed_to, "/t/a.yaml", saved("/t/a.yaml"));
        check(closed, "/t/a.yml", saved("/t/a.yml"));
        check(renamed_to, "/t/..data", Some(Hint::Moved));
        check(renamed_to, "/t/dir", Some(Hint::Moved));
        check(data, "/t/a.yaml", Some(Hint::Moved));
        check(data, "/t/.a.yaml.swp", None);
        check(data, "/t/a.yaml~", None);
        check(data, "/other/a.yaml", None);
        check(EventKind::Access(AccessKind::Open(AccessMode::Any)), "/t/a.yaml", None);
        check(EventKind::Access(AccessKind::Close(AccessMode::Read)), "/t/a.yaml", None);
        check(EventKind::Modify(ModifyKind::Name(RenameMode::Both)), "/t/a.yaml", None);
        check(EventKind::Create(CreateKind::Folder), "/t", Some(Hint::Moved));
        check(EventKind::Create(CreateKind::Folder), "/u", None);
        check(EventKind::Remove(RemoveKind::Folder), "/t", Some(Hint::Moved));
        let overflow = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(hint(&overflow, &Directories::new(), is_yaml), Some(Hint::Moved));
    }
}
