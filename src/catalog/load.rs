//! Documents to values: what to read, how one file is read, and what came out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Diagnostic;
use super::document::ToolMetadata;
use super::shelf::Shelf;
use super::snapshot::Catalog;
use crate::config::{self, Config};
use crate::strict::Node;
use crate::strict::decode::decode;
use crate::strict::read::{self, Limits};

/// How documents are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Directories, searched with their sub-directories; of two documents with one name the earlier directory's serves.
    pub roots: Vec<PathBuf>,
    /// Largest document, in bytes.
    pub max_document_bytes: usize,
}

impl Options {
    /// Reads one directory with default limits.
    pub fn directory(root: impl Into<PathBuf>) -> Self {
        Self { roots: vec![root.into()], max_document_bytes: config::Catalog::default().max_document_bytes }
    }
}

impl From<&Config> for Options {
    fn from(config: &Config) -> Self {
        Self { roots: config.tool_metadata.clone(), max_document_bytes: config.catalog.max_document_bytes }
    }
}

impl Options {
    /// File events carry absolute paths.
    pub(super) fn make_absolute(&mut self) {
        for root in &mut self.roots {
            if let Ok(absolute) = std::path::absolute(&*root) {
                *root = absolute;
            }
        }
        let mut seen = BTreeSet::new();
        self.roots.retain(|root| seen.insert(root.clone()));
    }
}

/// A catalog and how it came out.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// What to serve.
    pub catalog: Arc<Catalog>,
    /// Everything that is wrong, by file.
    pub diagnostics: Arc<[Diagnostic]>,
    /// Tools served in their last good version because their file is faulty now, by name.
    pub stale: Arc<[Arc<str>]>,
    /// Documents by state.
    pub documents: Documents,
}

impl Loaded {
    /// Adds what was found wrong beside the documents.
    pub fn add(&mut self, found: Vec<Diagnostic>) {
        if !found.is_empty() {
            self.diagnostics = self.diagnostics.iter().cloned().chain(found).collect();
        }
    }
}

/// Counts of documents by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Documents {
    /// Served as they stand.
    pub good: usize,
    /// Faulty, served in their last good version.
    pub stale: usize,
    /// Faulty and never good, or shadowed by another with the same name.
    pub bad: usize,
}

/// Loads directories once.
pub fn load(options: Options) -> Loaded {
    let mut shelf = Shelf::new(options);
    shelf.read_once().clone()
}

/// Reads the content of one document.
pub fn parse(path: &Path, content: &[u8], limit: usize) -> Result<ToolMetadata, Vec<Diagnostic>> {
    let node = read::yaml(content, &Limits::of_bytes(limit)).map_err(|error| {
        let diagnostic = Diagnostic::unreadable(path, content, &error);
        vec![match error.kind {
            read::UnreadableKind::TooLarge => diagnostic.with_hint("raise catalog.max_document_bytes, or shorten it"),
            _ => diagnostic,
        }]
    })?;
    if node == Node::Null {
        return Err(vec![Diagnostic::error(path, "empty-document", "the document is empty")]);
    }
    decode(node).map_err(|faults| {
        let text = String::from_utf8_lossy(content);
        faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect()
    })
}
