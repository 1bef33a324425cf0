//! Which libraries there are: the files and directories that the configuration names, in its order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::settings;
use crate::watch::{Directories, Interest};

/// Libraries that are looked at; a directory with more is a mistake.
const MAX_LIBRARIES: usize = 64;

/// Links behind a link that are followed; who makes more has made a ring.
const MAX_LINKS: usize = 8;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Discovered {
    /// Libraries, in the order of their precedence, each once.
    pub(super) libraries: Vec<PathBuf>,
    pub(super) directories: Directories,
    /// Those that are too many.
    beyond: Vec<PathBuf>,
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
    if let Some(first) = found.beyond.first() {
        let count = found.beyond.len();
        let many = if count == 1 {
            "1 library is not run, ".to_owned()
        } else {
            format!("{count} libraries are not run, the first of them ")
        };
        let limit = format!("{MAX_LIBRARIES} are the most");
        found.troubles.push(format!("{many}{}: {limit}", first.display()));
    }
    found
}

fn add(library: PathBuf, found: &mut Discovered) {
    if found.libraries.contains(&library) || found.beyond.contains(&library) {
        return;
    }
    if found.libraries.len() == MAX_LIBRARIES {
        found.beyond.push(library);
        return;
    }
    // A link stays as it is when what it leads to is replaced.
    match library.canonicalize() {
        Ok(target) => watch_name(&target, &mut found.directories),
        Err(_) => watch_links(&library, &mut found.directories),
    }
    found.libraries.push(library);
}

/// Watches for what a link is to lead to that leads nowhere, step by step.
fn watch_links(link: &Path, directories: &mut Directories) {
    let mut at = link.to_owned();
    for _ in 0..MAX_LINKS {
        let (Some(parent), Ok(target)) = (at.parent(), at.read_link()) else { return };
        at = parent.join(target);
        watch_name(&at, directories);
    }
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

    #[test]
    fn what_a_link_leads_to_is_watched_also_while_it_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["d", "between", "out"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("../between/x.so", root.join("d/x.so")).unwrap();
        std::os::unix::fs::symlink(root.join("out/x.so"), root.join("between/x.so")).unwrap();
        std::os::unix::fs::symlink("ring.so", root.join("d/ring.so")).unwrap();
        let watches = |expected: &[&str]| {
            let found = discover(&[root.join("d")]);
            for path in expected {
                let known =
                    found.directories.iter().find(|(known, _)| known.canonicalize().unwrap() == root.join(path));
                let names = BTreeSet::from(["x.so".into()]);
                assert_eq!(known.map(|(_, interest)| interest), Some(&Interest::Names(names)), "{path}");
            }
        };
        watches(&["between", "out"]);
        fs::write(root.join("out/x.so"), "").unwrap();
        watches(&["out"]);
    }

    #[test]
    fn too_many_are_one_trouble() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..MAX_LIBRARIES + 3 {
            fs::write(directory.path().join(format!("{number:03}.so")), "").unwrap();
        }
        let found = discover(&[directory.path().to_owned(), directory.path().join("066.so")]);
        let [trouble] = &found.troubles[..] else { panic!("{:?}", found.troubles) };
        assert!(
            trouble.starts_with("3 libraries are not run, the first of them ") && trouble.contains("064.so"),
            "{trouble}"
        );
        assert_eq!(found.libraries.len(), MAX_LIBRARIES);
    }
}
