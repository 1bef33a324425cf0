//! Documents to values: what to read, how one file is read, and what came out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::document::ToolMetadata;
use super::scanner::Scanner;
use super::settings::Settings;
use super::snapshot::Catalog;
use super::{Diagnostic, Entry, findings, foreign};
use crate::strict::read::yaml;
use crate::strict::{Limits, Node, load};

/// How documents are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Directories, searched with their sub-directories; of two documents with one name the earlier directory's
    /// serves.
    pub roots: Vec<PathBuf>,
    /// Largest document, in bytes.
    pub max_document_bytes: usize,
    /// Are the directories places to look in, of which one may not be there yet?
    pub is_search_path: bool,
    /// On a search path, do the documents of its last directory count beside those of the others? Else they stand in
    /// where the others have none.
    pub are_examples_beside: bool,
}

impl LoadOptions {
    /// Reads one directory with default limits.
    pub fn directory(root: impl Into<PathBuf>) -> Self {
        Self {
            roots: vec![root.into()],
            max_document_bytes: Settings::default().max_document_bytes,
            is_search_path: false,
            are_examples_beside: true,
        }
    }
}

impl LoadOptions {
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
    pub catalog: Arc<Catalog>,
    /// Everything that is wrong, by file.
    pub diagnostics: Arc<[Diagnostic]>,
    /// Tools served in their last good version because their file is faulty now, by name.
    pub stale: Arc<[Arc<str>]>,
    pub documents: Documents,
    /// Faulty documents that never were good, by the name that they give their tool, with their file.
    pub faulty: Arc<[(String, String)]>,
    /// Is it served in the place of a later one that has errors (`catalog.strict_reload`)? The diagnostics are of that.
    pub holds_back: bool,
}

impl Loaded {
    /// What is wrong with the document of a tool that is not there: of that which says its name, or is called after it.
    pub fn faults_of(&self, tool: &str) -> Vec<&Diagnostic> {
        let is_named = |file: &str| {
            let mut claimed = self.faulty.iter().filter(|(_, claimed)| claimed == file).peekable();
            match claimed.peek() {
                Some(_) => claimed.any(|(name, _)| name == tool),
                None => Path::new(file).file_stem().is_some_and(|stem| stem == tool),
            }
        };
        self.diagnostics.iter().filter(|found| found.is_error() && is_named(&found.file)).collect()
    }

    /// Adds what was found wrong beside the documents.
    pub fn add(&mut self, found: Vec<Diagnostic>) {
        if !found.is_empty() {
            let mut diagnostics: Vec<Diagnostic> = self.diagnostics.iter().cloned().chain(found).collect();
            findings::sort(&mut diagnostics);
            self.diagnostics = diagnostics.into();
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

pub fn load(options: LoadOptions) -> Loaded {
    let mut scanner = Scanner::new(options);
    scanner.read_once().clone()
}

/// Reads the content of one document.
pub fn parse(path: &Path, content: &[u8], limit: usize) -> Result<ToolMetadata, Vec<Diagnostic>> {
    if load::is_blank(content) {
        return Err(vec![Diagnostic::error(path, "empty-document", "the document is empty")]);
    }
    load::parse_unless(path, content, &Limits::of_bytes(limit), |node| foreign::fault(path, node)).map_err(
        |mut faults| {
            for fault in faults.iter_mut().filter(|fault| fault.code == "too-large") {
                fault.hint = Some("raise catalog.max_document_bytes, or shorten it".to_owned());
            }
            faults
        },
    )
}

/// The name that a faulty document gives its tool, if that much of it can be read.
pub fn claimed_name(content: &[u8], limit: usize) -> Option<String> {
    let limits = Limits::of_bytes(limit);
    if let Ok(Node::Map(entries)) = yaml(content, &limits) {
        return entries.into_iter().find_map(|(key, value)| match value {
            Node::String(name) if key == "name" => Some(name),
            _ => None,
        });
    }
    let text = String::from_utf8_lossy(content);
    let name = text.lines().find_map(|line| line.strip_prefix("name:"))?;
    let name = name.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// A hash of a file's content, to compare.
pub(super) fn digest(content: &[u8]) -> u128 {
    let sum = Sha256::digest(content);
    u128::from_be_bytes(sum[..16].try_into().expect("a SHA-256 sum has 32 bytes"))
}

/// What is wrong with a document whose tool another one describes.
pub(super) fn shadowed(entry: &Entry, first: &Entry) -> Diagnostic {
    let message =
        format!("the tool `{}` is already described in {}, which serves", entry.name(), first.file().display());
    Diagnostic::error(entry.file(), "duplicate-tool", message).with_hint("rename one of the two, or remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faulty_document_says_whose_it_is() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(claimed_name(text.as_bytes(), 10_000).as_deref(), expected, "{text:?}");
        };
        check("name: x\ncategry: y\n", Some("x"));
        check("title: t\nname: 'x y' # why\nbad: [\n", Some("x y"));
        check("{\"name\": \"x\"}", Some("x"));
        check("name: 1\n", None);
        check("name:\n: [", None);
        check("a: [", None);
    }

    /// Any bytes are a document, or faults whose places are in them.
    #[test]
    fn fuzz_documents() {
        crate::text::edits::fuzz("documents", |bytes| match parse(Path::new("f"), bytes, 1 << 16) {
            Ok(document) => {
                let entry = super::super::Entry::new(&document, Path::new("f").into());
                assert_eq!(entry.document().name, document.name);
            }
            Err(faults) => {
                // YAML ends lines at a carriage return, too, and at U+0085, U+2028 and U+2029.
                let ends = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r' | 0x85 | 0xa8 | 0xa9));
                let lines = ends.count() + 1;
                assert!(!faults.is_empty() && faults.iter().all(|fault| fault.line <= lines + 1), "{faults:?}");
            }
        });
    }
}
