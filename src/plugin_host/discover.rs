//! Which libraries there are: the files and directories that the configuration names, in its order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::settings;
use crate::watch::{Directories, Interest};

/// Libraries that are looked at; a directory with more is a mistake.
const MAX_LIBRARIES: usize = 64;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Discovered {
    /// Libraries, in the order of their precedence, each once.
    pub(super) libraries: Vec<PathBuf>,
    pub(super) directories: Directories,
    /// What cannot be looked at, and why.
    pub(super) troubles: Vec<String>,
}

/// Is it named like a library?
pub(super) fn is_library(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "so")
}

/// Looks at `paths`. One that is not there is told, and watched for.
pub(super) fn discover(paths: &[PathBuf]) -> Discovered {
    let mut found = Discovered::default();
    for path in paths {
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.clone());
        watch_name(path, &mut found.directories);
        match fs::read_dir(path) {
            Ok(entries) => {
                found.directories.insert(path.clone(), Interest::All);
                let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
                // Ordered, whatever the file system says.
                for library in entries.filter(|path| is_library(path)).collect::<BTreeSet<_>>() {
                    add(library, &mut found);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => add(path.clone(), &mut found),
            // Nobody asked for it in particular.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path == Path::new(settings::INSTALLED) => {}
            Err(error) => found.troubles.push(format!("{} cannot be looked at: {error}", path.display())),
        }
    }
    found
}

fn add(library: PathBuf, found: &mut Discovered) {
    if found.libraries.contains(&library) {
        return;
    }
    if found.libraries.len() == MAX_LIBRARIES {
        found.troubles.push(format!("{} is one too many: {MAX_LIBRARIES} libraries at most", library.display()));
        return;
    }
    // A link stays as it is when what it leads to is replaced.
    if let Ok(target) = library.canonicalize() {
        watch_name(&target, &mut found.directories);
    }
    found.libraries.push(library);
}

/// Watches the directory that a named path lies in, for that name.
fn watch_name(path: &Path, directories: &mut Directories) {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
    if !parent.is_dir() {
        return;
    }
    let interest = directories.entry(parent.to_owned()).or_insert_with(|| Interest::Names(BTreeSet::new()));
    if let Interest::Names(names) = interest {
        names.insert(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_are_found_in_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("d")).unwrap();
        for name in ["z.so", "d/b.so", "d/a.so", "d/.hidden.so", "d/c.so.tmp", "d/readme"] {
            fs::write(path(name), "").unwrap();
        }
        let check = |paths: &[&str], expected: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(|name| path(name)).collect();
            let found = discover(&paths);
            assert_eq!(found.libraries, expected.iter().map(|name| path(name)).collect::<Vec<_>>(), "{paths:?}");
            found
        };
        check(&["z.so", "d"], &["z.so", "d/a.so", "d/b.so"]);
        check(&["d/b.so", "d"], &["d/b.so", "d/a.so"]);
        let found = check(&["none.so", "z.so"], &["z.so"]);
        assert!(found.troubles.len() == 1 && found.troubles[0].contains("none.so"), "{:?}", found.troubles);
        assert_eq!(discover(&[settings::INSTALLED.into()]).troubles, Vec::<String>::new());
        let names = ["none.so", "z.so"].map(std::ffi::OsString::from).into();
        assert_eq!(found.directories, Directories::from([(directory.path().to_owned(), Interest::Names(names))]));
    }
}
