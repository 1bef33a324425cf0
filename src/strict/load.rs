//! A YAML file to a typed value, or to every fault in it with its line.

use std::error::Error;
use std::io;
use std::path::Path;

use super::decode::decode_file;
use super::read::{Limits, yaml};
use super::{Diagnostic, FromNode, Node, diagnostic, file};

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read {file}")]
    Unreadable { file: String, source: io::Error },
    /// It is not what it should be.
    #[error("{file} has {}", diagnostic::count(.diagnostics))]
    Faulty {
        file: String,
        /// All faults, in the order of the text.
        diagnostics: Vec<Diagnostic>,
    },
}

impl LoadError {
    /// What is wrong, place by place; empty if there is no place.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Faulty { diagnostics, .. } => diagnostics,
            Self::Unreadable { .. } => &[],
        }
    }

    /// Is there no such file?
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The error and its places as one text, each place after `separator`.
    pub fn describe(&self, separator: &str) -> String {
        let source = self.source().map(|source| format!(": {source}")).unwrap_or_default();
        let places = self.diagnostics().iter().map(|fault| {
            let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{separator}{}: {}{hint}", fault.place(), fault.message)
        });
        format!("{self}{source}{}", places.collect::<String>())
    }

    /// The same as diagnostics, also where the file could not be read.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        match self {
            Self::Faulty { diagnostics, .. } => diagnostics,
            Self::Unreadable { file, source } => {
                vec![Diagnostic::error(Path::new(&file), "unreadable", format!("cannot be read: {source}"))]
            }
        }
    }
}

/// Reads the file at `path` under `limits`.
pub fn load<T: FromNode>(path: &Path, limits: &Limits) -> Result<T, LoadError> {
    let name = path.display().to_string();
    let content =
        file::read(path, limits.bytes).map_err(|source| LoadError::Unreadable { file: name.clone(), source })?;
    parse(path, &content, limits).map_err(|diagnostics| LoadError::Faulty { file: name, diagnostics })
}

/// Reads `content`, the text of the file at `path`. Nothing but blanks and comments is read as an empty mapping.
pub fn parse<T: FromNode>(path: &Path, content: &[u8], limits: &Limits) -> Result<T, Vec<Diagnostic>> {
    let node = match yaml(content, limits) {
        Ok(Node::Null) => Node::Map(Vec::new()),
        Err(_) if is_blank(content) => Node::Map(Vec::new()),
        Ok(node) => node,
        Err(error) => return Err(vec![Diagnostic::unreadable(path, content, &error)]),
    };
    decode_file(node).map_err(|faults| {
        let text = String::from_utf8_lossy(content);
        let mut found: Vec<Diagnostic> = faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect();
        found.sort_by_key(|fault| (fault.line, fault.column));
        found
    })
}

/// Does `content` hold nothing but blanks and comments?
pub fn is_blank(content: &[u8]) -> bool {
    content.split(|&byte| byte == b'\n').all(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#")
    })
}
