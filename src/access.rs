//! Who may ask what: tokens, their scopes and their tenants.
//!
//! A file holds the SHA-256 sums of tokens, never the tokens. Without tokens everybody on the loopback address may do
//! everything but administer, as the one tenant `default`.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::strict::Diagnostic;
use crate::strict::decode::decode;
use crate::strict::read::{Limits, yaml};
use crate::strict::{At, FromNode, Node};

/// The tenant of whoever has no token.
pub const DEFAULT_TENANT: &str = "default";

/// Largest file of tokens, in bytes.
const MAX_FILE_BYTES: usize = 1 << 20;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// Questions that change nothing.
    Read,
    /// Recording what was called.
    Record,
    /// Memories, in both directions.
    Memory,
    /// Administration; includes the others.
    Admin,
}

impl Scope {
    /// The name in files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Record => "record",
            Self::Memory => "memory",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Who a request comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The token's name, for logs.
    pub name: Arc<str>,
    /// Whose memories, sessions and learnt messages it sees.
    pub tenant: Arc<str>,
    scopes: Vec<Scope>,
    any_tenant: bool,
}

impl Grant {
    /// Everybody on the loopback address, when there are no tokens.
    pub fn anonymous() -> Self {
        Self::new("anonymous", DEFAULT_TENANT, vec![Scope::Read, Scope::Record, Scope::Memory])
    }

    /// Whoever can open the admin socket.
    pub fn administrator() -> Self {
        Self { any_tenant: true, ..Self::new("administrator", DEFAULT_TENANT, vec![Scope::Admin]) }
    }

    fn new(name: &str, tenant: &str, scopes: Vec<Scope>) -> Self {
        Self { name: name.into(), tenant: tenant.into(), scopes, any_tenant: false }
    }

    /// May it speak for any tenant? Only whoever can open the admin socket may.
    pub fn is_for_any_tenant(&self) -> bool {
        self.any_tenant
    }

    /// Does it allow that?
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

/// The tokens of a file, or that there is no file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    entries: Vec<TokenEntry>,
    /// Is there a file? Then whoever is not in it is not let in, and an empty one lets in nobody.
    required: bool,
}

/// One token of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEntry {
    sha256: [u8; 32],
    grant: Grant,
}

/// A file of tokens could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// Not readable.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Not what a file of tokens should be.
    #[error("{file} is faulty")]
    Faulty {
        /// The file.
        file: String,
        /// All faults.
        diagnostics: Vec<Diagnostic>,
    },
}

impl Tokens {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let file = path.display().to_string();
        let content = fs::read(path).map_err(|source| TokensError::Unreadable { file: file.clone(), source })?;
        Self::parse(path, &content).map_err(|diagnostics| TokensError::Faulty { file, diagnostics })
    }

    fn parse(path: &Path, content: &[u8]) -> Result<Self, Vec<Diagnostic>> {
        let node = yaml(content, &Limits { nodes: MAX_FILE_BYTES / 8, ..Limits::of_bytes(MAX_FILE_BYTES) })
            .map_err(|error| vec![Diagnostic::unreadable(path, content, &error)])?;
        decode(node).map_err(|faults| {
            let text = String::from_utf8_lossy(content);
            faults.iter().map(|fault| Diagnostic::fault(path, &text, fault)).collect()
        })
    }

    /// Is a token needed, also on loopback?
    pub fn are_required(&self) -> bool {
        self.required
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whose token it is. Takes the same time whichever it is.
    pub fn find(&self, token: &str) -> Option<&Grant> {
        let presented: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        for entry in &self.entries {
            if bool::from(entry.sha256.ct_eq(&presented)) {
                found = Some(&entry.grant);
            }
        }
        found
    }
}

/// Makes a token, and the entry for the file that lets it in.
pub fn new_token(name: &str, tenant: &str, scopes: &[Scope]) -> Result<(String, String), getrandom::Error> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret)?;
    let token = format!("alm_{}", hex(&secret));
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let entry = serde_json::json!({
        "name": name,
        "sha256": hex(&Sha256::digest(token.as_bytes())),
        "scopes": scopes,
        "tenant": tenant,
    });
    Ok((token, format!("  - {entry}\n")))
}

/// Adds an entry made by [`new_token`] to a file, which is made if it is not there. The file is replaced as a whole, and only
/// by one that is valid and has one token more.
pub fn add_to_file(file: &Path, entry: &str) -> Result<(), AddError> {
    let before = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "tokens: []\n".to_owned(),
        Err(error) => return Err(AddError::Write(error)),
    };
    let known = Tokens::parse(file, before.as_bytes()).map_err(|_| AddError::Faulty)?.len();
    let after = if known == 0 { format!("tokens:\n{entry}") } else { format!("{}\n{entry}", before.trim_end()) };
    match Tokens::parse(file, after.as_bytes()) {
        Ok(tokens) if tokens.len() == known + 1 => {}
        _ => return Err(AddError::Layout),
    }
    let temporary = file.with_extension("new");
    let mut handle = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&temporary)?;
    handle.write_all(after.as_bytes())?;
    handle.sync_all()?;
    // Whoever could read the old file can read the new one.
    if let Ok(metadata) = fs::metadata(file) {
        fs::set_permissions(&temporary, metadata.permissions())?;
        // Only root may give a file away; for others it has the right owner already.
        let _ = std::os::unix::fs::chown(&temporary, Some(metadata.uid()), Some(metadata.gid()));
    }
    Ok(fs::rename(&temporary, file)?)
}

/// An entry could not be added to a file of tokens; the file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The file is faulty before anything is added.
    #[error("the file is faulty; `almanacd check` tells where")]
    Faulty,
    /// Its layout does not let an entry be appended.
    #[error("an entry cannot be appended to a list written like this; write its items after `  - `")]
    Layout,
    /// It cannot be read or written.
    #[error("cannot be written")]
    Write(#[from] io::Error),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FromNode for Tokens {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| Self { entries: fields.required("tokens"), required: true })
    }
}

impl FromNode for TokenEntry {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        at.map(node, |fields| {
            let sum: Sum = fields.required("sha256");
            let name: String = fields.required("name");
            let tenant: Option<String> = fields.optional("tenant");
            let scopes = fields.required("scopes");
            Self { sha256: sum.0, grant: Grant::new(&name, tenant.as_deref().unwrap_or(DEFAULT_TENANT), scopes) }
        })
    }
}

#[derive(Default)]
struct Sum([u8; 32]);

impl FromNode for Sum {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let byte =
            |index: usize| text.get(2 * index..2 * index + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        if let Some(sum) = bytes.and_then(|bytes| bytes.try_into().ok()).filter(|_| text.len() == 64) {
            Some(Self(sum))
        } else {
            at.bad_value("a SHA-256 sum has 64 hexadecimal digits; `almanacd token new` makes one");
            None
        }
    }
}

impl FromNode for Scope {
    fn from_node(node: Node, at: &mut At) -> Option<Self> {
        let text = String::from_node(node, at)?;
        let scope =
            [Self::Read, Self::Record, Self::Memory, Self::Admin].into_iter().find(|scope| scope.as_str() == text);
        if scope.is_none() {
            at.bad_value(format!("a scope is read, record, memory or admin, not `{text}`"));
        }
        scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_token_is_let_in_with_its_scopes() {
        let (token, entry) = new_token("ci: \"x\"", "acme", &[Scope::Read, Scope::Record]).unwrap();
        let tokens = Tokens::parse(Path::new("t"), format!("tokens:\n{entry}").as_bytes()).unwrap();
        let grant = tokens.find(&token).unwrap();
        assert_eq!((&*grant.name, &*grant.tenant), ("ci: \"x\"", "acme"));
        assert!(grant.allows(Scope::Read) && grant.allows(Scope::Record));
        assert!(!grant.allows(Scope::Memory) && !grant.allows(Scope::Admin));
        assert_eq!(tokens.find(&token[..token.len() - 1]), None);
        assert_eq!(tokens.find(""), None);
    }

    #[test]
    fn an_entry_is_added_or_the_file_is_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens");
        let entry = || new_token("t", "default", &[Scope::Read]).unwrap().1;
        for known in 1..4 {
            add_to_file(&file, &entry()).unwrap();
            assert_eq!(Tokens::read(&file).unwrap().len(), known);
        }
        fs::write(&file, "tokens: []").unwrap();
        add_to_file(&file, &entry()).unwrap();
        assert_eq!(Tokens::read(&file).unwrap().len(), 1);
        let flush = fs::read_to_string(&file).unwrap().replace("  - ", "- ");
        fs::write(&file, &flush).unwrap();
        assert!(matches!(add_to_file(&file, &entry()), Err(AddError::Layout)));
        assert_eq!(fs::read_to_string(&file).unwrap(), flush);
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
