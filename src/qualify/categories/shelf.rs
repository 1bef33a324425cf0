//! The file of categories, read anew with each reload of the catalog.
//!
//! A file that became faulty keeps its last good version, as tool documents do. Without one the built-in categories stand in.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Categories, MAX_FILE_BYTES};
use crate::strict::Diagnostic;

/// What the file held when it was last read.
#[derive(Debug)]
pub struct CategoryShelf {
    file: Option<PathBuf>,
    good: Categories,
    faults: Vec<Diagnostic>,
}

impl CategoryShelf {
    /// A shelf for the categories of `file`; for the built-in ones while it is not there. Nothing is read yet.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, good: Categories::shipped(), faults: Vec::new() }
    }

    /// Reads the file.
    pub fn read(&mut self) {
        self.faults.clear();
        let Some(file) = &self.file else { return };
        let read = match read(file) {
            Ok(content) => Categories::parse(file, &content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Categories::shipped()),
            Err(error) => Err(vec![Diagnostic::error(file, "unreadable", format!("cannot be read: {error}"))]),
        };
        match read {
            Ok(good) => self.good = good,
            Err(faults) => self.faults = faults,
        }
    }

    /// The last good version, and what is wrong with the file now.
    pub fn offer(&self) -> (Categories, Vec<Diagnostic>) {
        (self.good.clone(), self.faults.clone())
    }
}

/// At most one byte more than the limit, so that a longer file can be told.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let open = File::open(file)?;
    // What is no plain file, such as a pipe, could keep a reader waiting.
    if !open.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    open.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_faulty_file_keeps_its_last_good_version() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("categories.yaml");
        let mut shelf = CategoryShelf::new(Some(file.clone()));
        let mut check = |text: Option<&str>, categories: usize, faults: usize| {
            match text {
                Some(text) => fs::write(&file, text).unwrap(),
                None => drop(fs::remove_file(&file)),
            }
            shelf.read();
            let (offered, found) = shelf.offer();
            assert_eq!((offered.categories.len(), found.len()), (categories, faults), "{text:?}: {found:#?}");
        };
        let shipped = Categories::shipped().categories.len();
        check(None, shipped, 0);
        check(Some("categories: [{name: a, description: d}]"), 1, 0);
        check(Some("categories: [{name: a, descripton: d}]"), 1, 2);
        check(Some(""), 0, 0);
        check(None, shipped, 0);
    }
}
