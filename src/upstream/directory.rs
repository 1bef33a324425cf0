//! The directory of further servers: each file has its own, and a faulty one keeps those that it had.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::settings::{ServerSettings, check_name};
use crate::process::trust::Trusted;
use crate::strict::read::Limits;
use crate::strict::{Diagnostic, FileStamp, FromNode, LastGood, Violation, file};
use crate::watch::{Directories, Interest};

/// Largest file, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Files that are read.
const MAX_FILES: usize = 256;

/// What a file says.
#[derive(Debug, Default, FromNode)]
#[node(default)]
struct ServersFile {
    #[node(check = check_names)]
    servers: BTreeMap<String, ServerSettings>,
}

fn check_names(servers: &BTreeMap<String, ServerSettings>) -> Result<(), Violation> {
    servers.keys().try_for_each(|name| check_name(name))
}

/// The directory as it was read last.
#[derive(Debug, Default)]
pub(super) struct Directory {
    files: BTreeMap<PathBuf, LastGood<ServersFile>>,
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
    servers: BTreeMap<String, ServerSettings>,
    findings: Vec<Diagnostic>,
}

/// Is it named like a file of servers?
pub(super) fn is_wanted(path: &Path) -> bool {
    file::is_structured(path)
}

/// What is to be watched.
pub(super) fn interest(directory: &Path) -> Directories {
    let Ok(directory) = std::path::absolute(directory) else { return Directories::new() };
    let mut watched = Directories::new();
    if let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) {
        watched.insert(parent.to_owned(), Interest::Names([OsString::from(name)].into()));
    }
    if directory.is_dir() {
        watched.insert(directory, Interest::All);
    }
    watched
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = entries.filter(|path| is_wanted(path)).collect();
    files.sort();
    files.truncate(MAX_FILES);
    files
}

fn stamps(directory: &Path) -> Vec<(PathBuf, Option<FileStamp>)> {
    files(directory).into_iter().map(|file| (file.clone(), FileStamp::of(&file))).collect()
}

impl Directory {
    /// Did files change since they were read?
    pub(super) fn is_stale(&self, directory: &Path) -> bool {
        self.stamps != stamps(directory)
    }

    /// Reads all files. Of two servers of one name the first file's counts.
    pub(super) fn read(&mut self, directory: &Path) {
        let before = std::mem::take(&mut self.findings);
        self.stamps = stamps(directory);
        let found: Vec<PathBuf> = self.stamps.iter().map(|(file, _)| file.clone()).collect();
        self.files.retain(|file, _| found.contains(file));
        self.servers.clear();
        for path in found {
            if let Some(doubt) = writable(&path) {
                self.files.remove(&path);
                self.findings.push(doubt);
                continue;
            }
            let limits = Limits::of_bytes(MAX_FILE_BYTES);
            let file = self.files.entry(path.clone()).or_insert_with(|| LastGood::new(path.clone(), limits));
            file.read();
            self.findings.extend(file.faults().iter().cloned());
            for (name, server) in file.good().iter().flat_map(|good| &good.servers) {
                if self.servers.contains_key(name) {
                    let message = format!("the server `{name}` is in an earlier file, too, which counts");
                    self.findings.push(Diagnostic::warning(&path, "duplicate-server", message));
                } else {
                    self.servers.insert(name.clone(), server.clone());
                }
            }
        }
        if self.findings != before {
            for finding in &self.findings {
                tracing::warn!(place = finding.place(), code = finding.code, "MCP servers: {}", finding.message);
            }
        }
    }

    /// The servers of all files, by name.
    pub(super) fn servers(&self) -> &BTreeMap<String, ServerSettings> {
        &self.servers
    }

    /// What is wrong with the files.
    pub(super) fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }
}

/// A command in a file that others can write would be theirs.
fn writable(file: &Path) -> Option<Diagnostic> {
    let doubt = match Trusted::by_this_process().doubt_path(file) {
        Ok(doubt) => doubt?,
        Err(error) => format!("{} cannot be looked at: {error}", file.display()),
    };
    let hint = "only root and the user of the daemon may be able to change it and the directories above it";
    Some(Diagnostic::error(file, "writable-by-others", format!("is not used: {doubt}")).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_read_each_for_itself() {
        // Not below /tmp itself, whose sticky bit is enough; but what is in it is this user's.
        let place = tempfile::tempdir().unwrap();
        let mut directory = Directory::default();
        let mut check = |name: &str, text: &str, servers: &str, codes: &str| {
            fs::write(place.path().join(name), text).unwrap();
            assert!(directory.is_stale(place.path()), "{name}");
            directory.read(place.path());
            let names: Vec<&str> = directory.servers().keys().map(String::as_str).collect();
            let found: Vec<&str> = directory.findings().iter().map(|finding| finding.code.as_str()).collect();
            assert_eq!((names.join(" ").as_str(), found.join(" ").as_str()), (servers, codes), "{name}: {text}");
        };
        check("b.yaml", "servers: {b: {command: x}}", "b", "");
        check("a.yaml", "servers: {a: {command: x}, b: {socket: /s}}", "a b", "duplicate-server");
        check("b.yaml", "servers: {c: {command: x}}", "a b c", "");
        check("b.yaml", "servers: {c: {comand: x}}", "a b c", "bad-value unknown-key");
        check("c.txt.yaml", "", "a b c", "bad-value unknown-key");
        fs::set_permissions(place.path().join("a.yaml"), fs::Permissions::from_mode(0o666)).unwrap();
        directory.read(place.path());
        assert_eq!(directory.servers().keys().map(String::as_str).collect::<Vec<_>>(), ["c"]);
        assert_eq!(directory.findings()[0].code, "writable-by-others");
    }
}
