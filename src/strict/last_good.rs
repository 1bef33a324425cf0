//! A file whose last good version holds while it is faulty.

use std::path::{Path, PathBuf};

use super::read::Limits;
use super::{Diagnostic, FromNode, file, load};

/// What one file said when it was last readable, and what is wrong with it now.
#[derive(Debug, Clone)]
pub struct LastGood<T> {
    path: PathBuf,
    limits: Limits,
    /// The value and the text that it was read from.
    good: Option<(T, String)>,
    faults: Vec<Diagnostic>,
}

impl<T: FromNode> LastGood<T> {
    /// The file at `path`, which is not read yet.
    pub fn new(path: PathBuf, limits: Limits) -> Self {
        Self { path, limits, good: None, faults: Vec::new() }
    }

    /// Reads the file. One that is not there has no good version any more, and no fault.
    pub fn read(&mut self) {
        self.faults.clear();
        let content = match file::read(&self.path, self.limits.bytes) {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.good = None;
                return;
            }
            Err(error) => {
                let message = format!("cannot be read: {error}");
                self.faults.push(Diagnostic::error(&self.path, "unreadable", message));
                return;
            }
        };
        match load::parse(&self.path, &content, &self.limits) {
            Ok(good) => self.good = Some((good, load::text_of(&self.path, &content))),
            Err(faults) if self.leads_elsewhere() => self.faults = Diagnostic::concealed(&self.path, &faults),
            Err(faults) => self.faults = faults,
        }
    }

    fn leads_elsewhere(&self) -> bool {
        self.path.is_symlink() && self.path.parent().is_none_or(|parent| file::leads_outside(&self.path, parent))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last good version, if there is one.
    pub fn good(&self) -> Option<&T> {
        self.good.as_ref().map(|(good, _)| good)
    }

    /// The text of the last good version.
    pub fn text(&self) -> &str {
        self.good.as_ref().map_or("", |(_, text)| text)
    }

    /// What is wrong with the file now.
    pub fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_faulty_file_keeps_its_last_good_version() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("a.yaml");
        let mut kept: LastGood<Vec<String>> = LastGood::new(path.clone(), Limits::of_bytes(64));
        let mut check = |text: Option<&str>, good: Option<&[&str]>, faults: usize| {
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => drop(fs::remove_file(&path)),
            }
            kept.read();
            let held = kept.good().map(|good| good.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((held.as_deref(), kept.faults().len()), (good, faults), "{text:?}");
        };
        check(None, None, 0);
        check(Some("["), None, 1);
        check(Some("[a]"), Some(&["a"]), 0);
        check(Some("[1, 2]"), Some(&["a"]), 2);
        check(Some(&"# ".repeat(64)), Some(&["a"]), 1);
        check(Some("[b]"), Some(&["b"]), 0);
        check(None, None, 0);
    }
}
