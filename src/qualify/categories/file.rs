//! The file of categories, read anew with each reload of the catalog.
//!
//! A file that became faulty keeps its last good version, as tool documents do. Without one the built-in categories
//! stand in.

use std::path::PathBuf;

use super::{Categories, MAX_FILE_BYTES};
use crate::strict::{Diagnostic, LastGood, Limits};

/// The file of categories, if one is configured.
#[derive(Debug)]
pub struct CategoryFile(Option<LastGood<Categories>>);

impl CategoryFile {
    /// The categories of `file`; the built-in ones while it is not there. Nothing is read yet.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self(file.map(|file| LastGood::new(file, Limits::of_bytes(MAX_FILE_BYTES))))
    }

    pub fn read(&mut self) {
        if let Some(file) = &mut self.0 {
            file.read();
        }
    }

    /// The last good version, and what is wrong with the file now.
    pub fn current(&self) -> (Categories, Vec<Diagnostic>) {
        let Some(file) = &self.0 else { return (Categories::shipped(), Vec::new()) };
        (file.good().cloned().unwrap_or_else(Categories::shipped), file.faults().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_faulty_file_keeps_its_last_good_version() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("categories.yaml");
        let mut categories_file = CategoryFile::new(Some(file.clone()));
        let mut check = |text: Option<&str>, categories: usize, faults: usize| {
            match text {
                Some(text) => fs::write(&file, text).unwrap(),
                None => drop(fs::remove_file(&file)),
            }
            categories_file.read();
            let (offered, found) = categories_file.current();
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
