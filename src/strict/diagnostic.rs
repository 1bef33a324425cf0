//! What is wrong with a file, said so that its writer can mend it.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mask::masked;
use super::{Fault, Unreadable, UnreadableKind, load, locate};

/// One finding about one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// The file or directory.
    pub file: String,
    /// 1-based; 0 when the finding is about the whole file.
    pub line: usize,
    /// 1-based, in characters; 0 when the finding is about the whole file.
    pub column: usize,
    /// Whether the document can be served in spite of it.
    pub severity: Severity,
    /// Stable code, such as `unknown-key`.
    pub code: String,
    /// Lower-case sentence.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line itself, cut to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document is not served, or its last good version is.
    Error,
    /// The document is served.
    Warning,
    /// The document is served, and nothing need be wrong with it.
    Hint,
}

impl Diagnostic {
    /// A finding about the whole of `file`.
    pub fn new(file: &Path, severity: Severity, code: &str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self {
            file: escape(&file.display().to_string()),
            line: 0,
            column: 0,
            severity,
            code: code.to_owned(),
            message: escape(&masked(&message)),
            hint: None,
            source: None,
        }
    }

    /// An error about the whole of `file`.
    pub fn error(file: &Path, code: &str, message: impl Into<String>) -> Self {
        Self::new(file, Severity::Error, code, message)
    }

    /// A warning about the whole of `file`.
    pub fn warning(file: &Path, code: &str, message: impl Into<String>) -> Self {
        Self::new(file, Severity::Warning, code, message)
    }

    /// Something about the whole of `file` that is worth knowing.
    pub fn hint(file: &Path, code: &str, message: impl Into<String>) -> Self {
        Self::new(file, Severity::Hint, code, message)
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(escape(&hint.into()));
        self
    }

    /// The same at a place in `text`.
    #[must_use]
    pub fn at(mut self, text: &str, (line, column): (usize, usize)) -> Self {
        self.line = line;
        self.column = column;
        let source = text.lines().nth(line.wrapping_sub(1));
        self.source = source.map(|source| masked(source).chars().take(200).collect());
        self
    }

    /// The finding that `text`, the content of `file`, could not be read.
    pub fn unreadable(file: &Path, text: &[u8], error: &Unreadable) -> Self {
        let code = match error.kind {
            UnreadableKind::Syntax => "yaml-syntax",
            UnreadableKind::Encoding => "not-utf8",
            UnreadableKind::TooLarge => "too-large",
            UnreadableKind::TooDeep => "too-deep",
            UnreadableKind::TooManyNodes => "too-many-values",
            UnreadableKind::DuplicateKey => "duplicate-key",
        };
        Self::error(file, code, &error.message).at(&load::text_of(file, text), (error.line, error.column))
    }

    /// The finding that a value read from `text` is not what it should be.
    pub fn fault(file: &Path, text: &str, fault: &Fault) -> Self {
        let mut diagnostic = Self::error(file, fault.code.as_str(), &fault.message);
        diagnostic.hint = fault.hint.as_deref().map(escape);
        match locate::locate(text, &fault.path, fault.on_key) {
            Some(place) => diagnostic.at(text, place),
            None => diagnostic,
        }
    }

    /// One finding in the place of `faults`, without a word of the file: it may be no document at all, but a key.
    pub fn concealed(file: &Path, faults: &[Self]) -> Vec<Self> {
        let message = format!("what the link leads to has {}; nothing of it is shown here", count(faults));
        let hint = "it lies outside the directory: run `almanacd check` on it, or put the file itself here";
        vec![Self::error(file, "linked-file", message).with_hint(hint)]
    }

    /// `file:line:column`, without the parts that are 0.
    pub fn place(&self) -> String {
        if self.line == 0 { self.file.clone() } else { format!("{}:{}:{}", self.file, self.line, self.column) }
    }

    /// Is the document kept from being served?
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// What a document says must not look like a line of the log.
fn escape(text: &str) -> String {
    if text.chars().any(char::is_control) {
        text.chars()
            .flat_map(|char| if char.is_control() { char.escape_default().collect() } else { vec![char] })
            .collect()
    } else {
        text.to_owned()
    }
}

/// The errors among `diagnostics`, counted in words.
pub fn count(diagnostics: &[Diagnostic]) -> String {
    match errors(diagnostics) {
        1 => "an error".to_owned(),
        errors => format!("{errors} errors"),
    }
}

pub fn errors(diagnostics: &[Diagnostic]) -> usize {
    of(diagnostics, Severity::Error)
}

pub fn warnings(diagnostics: &[Diagnostic]) -> usize {
    of(diagnostics, Severity::Warning)
}

/// How many of them are as bad as that.
pub fn of(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_cannot_write_lines_of_the_log() {
        let finding = Diagnostic::error(Path::new("a\nb"), "x", "key `x\nINFO forged \u{1b}[31m`").with_hint("y\rz");
        assert_eq!(finding.file, "a\\nb");
        assert_eq!(finding.message, "key `x\\nINFO forged \\u{1b}[31m`");
        assert_eq!(finding.hint.as_deref(), Some("y\\rz"));
    }
}
