//! The file of tokens: SHA-256 sums, never the tokens themselves.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{DEFAULT_TENANT, Grant, Scope};
use crate::strict::read::Limits;
use crate::strict::{Diagnostic, FromNode, LoadError, file, load};
use crate::sum::Sum;

/// Largest file of tokens, in bytes; some ten thousand of them.
const MAX_FILE_BYTES: usize = 1 << 20;

const LIMITS: Limits = Limits { nodes: MAX_FILE_BYTES / 8, ..Limits::of_bytes(MAX_FILE_BYTES) };

/// The right of others to write, in a file's mode.
const WRITABLE_BY_ALL: u32 = 0o002;

/// The tokens of a file, or that there is no file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// With a file, whoever is not in it is not let in, and an empty one lets in nobody.
    file: Option<File>,
}

#[derive(Debug, PartialEq, Eq, FromNode)]
struct File {
    tokens: Vec<Entry>,
}

/// One token of a file.
#[derive(Debug, Clone, PartialEq, Eq, FromNode)]
#[node(try_from = "Line")]
struct Entry {
    sha256: Sum,
    grant: Grant,
}

/// A token as it is written.
#[derive(FromNode)]
struct Line {
    name: String,
    sha256: Sum,
    scopes: Vec<Scope>,
    tenant: Option<String>,
}

impl From<Line> for Entry {
    fn from(Line { name, sha256, scopes, tenant }: Line) -> Self {
        Self { sha256, grant: Grant::new(&name, tenant.as_deref().unwrap_or(DEFAULT_TENANT), scopes) }
    }
}

impl Tokens {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it is faulty, or everybody may write it.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let name = || path.display().to_string();
        let unreadable = |source| LoadError::Unreadable { file: name(), source };
        let (content, metadata) =
            file::read_with_metadata(path, LIMITS.bytes).map_err(|source| unreadable(with_way_out(source, path)))?;
        if metadata.mode() & WRITABLE_BY_ALL != 0 {
            let said = "everybody can write it: take that right away (chmod o-w)";
            return Err(unreadable(io::Error::new(io::ErrorKind::PermissionDenied, said)));
        }
        Self::parse(path, &content).map_err(|diagnostics| LoadError::Faulty { file: name(), diagnostics })
    }

    /// Those of an empty file.
    pub fn nobody() -> Self {
        Self { file: Some(File { tokens: Vec::new() }) }
    }

    /// Reads `content`, the text of the file at `path`.
    pub(super) fn parse(path: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        if load::is_blank(content) {
            return Ok(Self::nobody());
        }
        load::parse(path, content, &LIMITS).map(|file| Self { file: Some(file) })
    }

    /// Is a token needed, also on loopback?
    pub fn are_required(&self) -> bool {
        self.file.is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> &[Entry] {
        self.file.as_ref().map_or(&[], |file| &file.tokens)
    }

    /// Whom the tokens let in, in the order of the file.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.entries().iter().map(|entry| &entry.grant)
    }

    /// Whose token it is. Takes the same time whichever it is.
    pub fn find(&self, token: &str) -> Option<&Grant> {
        let presented = Sum::of(token.as_bytes());
        let mut found = None;
        for entry in self.entries() {
            if entry.sha256.equals(&presented) {
                found = Some(&entry.grant);
            }
        }
        found
    }
}

/// Says how a file that is not there is made.
fn with_way_out(error: io::Error, path: &Path) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let made = format!("`almanacd token new --name NAME --file {}` makes it with a first token", path.display());
    io::Error::new(error.kind(), format!("there is no such file; {made}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_token_is_let_in_with_its_scopes() {
        let (token, entry) =
            crate::access::issue::new_token("ci: \"x\"", "acme", &[Scope::Read, Scope::Record]).unwrap();
        let tokens = Tokens::parse(Path::new("t"), format!("tokens:\n{entry}").as_bytes()).unwrap();
        let grant = tokens.find(&token).unwrap();
        assert_eq!((&*grant.name, &*grant.tenant), ("ci: \"x\"", "acme"));
        assert!(grant.allows(Scope::Read) && grant.allows(Scope::Record));
        assert!(!grant.allows(Scope::Memory) && !grant.allows(Scope::Admin));
        assert_eq!(tokens.find(&token[..token.len() - 1]), None);
        assert_eq!(tokens.find(""), None);
    }

    #[test]
    fn a_file_that_is_missing_is_said_how_to_make() {
        let error = Tokens::read(Path::new("/nowhere/tokens")).unwrap_err();
        let said = error.describe("; ");
        assert!(error.is_not_found(), "{said}");
        assert!(said.contains("`almanacd token new --name NAME --file /nowhere/tokens` makes it"), "{said}");
    }

    #[test]
    fn an_empty_file_lets_nobody_in() {
        let tokens = Tokens::parse(Path::new("t"), b"tokens: []").unwrap();
        assert!(tokens.are_required() && tokens.is_empty());
        assert!(!Tokens::default().are_required());
    }

    #[test]
    fn a_faulty_file_is_explained() {
        let check = |text: &str, code: &str, line: usize| {
            let diagnostics = Tokens::parse(Path::new("t"), text.as_bytes()).unwrap_err();
            assert!(
                diagnostics.iter().any(|fault| (fault.code.as_str(), fault.line) == (code, line)),
                "{diagnostics:#?}"
            );
        };
        check("tokens:\n  - {name: a, sha256: abc, scopes: [read]}", "bad-value", 2);
        check("tokens:\n  - name: a\n    scopes: [reed]\n    sha256: x", "bad-value", 3);
        check("token: []", "missing-key", 1);
    }
}
