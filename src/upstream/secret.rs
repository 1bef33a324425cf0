//! Secrets by reference: `${env:NAME}` and `${credential:NAME}`, the only ways to one.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A reference that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
    /// Neither of the two ways, or without an end.
    #[error("`{0}` is no reference: write ${{env:NAME}} or ${{credential:NAME}}")]
    Malformed(String),
    /// Not in the environment of this process.
    #[error("the environment variable {0} is not set")]
    Unset(String),
    /// systemd passed no such credential.
    #[error(
        "there is no credential `{name}`{}",
        if *.has_directory { "" } else { ", since CREDENTIALS_DIRECTORY is not set" }
    )]
    NoCredential {
        /// Its name.
        name: String,
        /// Were credentials passed at all?
        has_directory: bool,
    },
    /// It is there and cannot be read.
    #[error("cannot read the credential {}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A piece of a text that may name secrets.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
    Credential(&'a str),
}

/// Takes a text apart. `$${` stands for `${`.
fn pieces(text: &str) -> Result<Vec<Piece<'_>>, SecretError> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            found.push(Piece::Text(&rest[..start - 1]));
            found.push(Piece::Text("${"));
            rest = &rest[start + 2..];
            continue;
        }
        found.push(Piece::Text(&rest[..start]));
        let reference = &rest[start..];
        let malformed = |end: usize| SecretError::Malformed(reference[..end].chars().take(60).collect());
        let end = reference.find('}').ok_or_else(|| malformed(reference.len()))?;
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        found.push(match reference[2..end].split_once(':') {
            Some(("env", name)) if is_name(name) => Piece::Variable(name),
            // A name is a file's, and none above its directory.
            Some(("credential", name)) if is_name(name) && !name.starts_with('.') => Piece::Credential(name),
            _ => return Err(malformed(end + 1)),
        });
        rest = &reference[end + 1..];
    }
    found.push(Piece::Text(rest));
    Ok(found)
}

/// Are the references of this text well formed?
pub(super) fn check(text: &str) -> Result<(), SecretError> {
    pieces(text).map(drop)
}

/// Does this text refer to a secret?
pub(super) fn refers(text: &str) -> bool {
    pieces(text).is_ok_and(|pieces| pieces.iter().any(|piece| !matches!(piece, Piece::Text(_))))
}

/// Is a value under this key a secret, by its name?
pub fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "api_key",
        "apikey",
        "api-key",
        "authorization",
        "credential",
        "private_key",
    ]
    .iter()
    .any(|word| key.contains(word))
        || key.ends_with("_key")
        || key.ends_with("-key")
        || key == "key"
}

/// The secrets that were resolved, so that nothing that is shown has one in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Mask(Vec<String>);

/// What is shorter hides too much of what is no secret.
const SHORTEST: usize = 4;

impl Mask {
    /// The text with secrets put in place of their references, which are remembered.
    pub(super) fn resolve(&mut self, text: &str) -> Result<String, SecretError> {
        let directory = env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        let lookup = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        self.resolve_by(text, lookup, directory.as_deref())
    }

    fn resolve_by(
        &mut self,
        text: &str,
        environment: impl Fn(&str) -> Option<String>,
        credentials: Option<&Path>,
    ) -> Result<String, SecretError> {
        let mut resolved = String::new();
        for piece in pieces(text)? {
            let secret = match piece {
                Piece::Text(text) => {
                    resolved.push_str(text);
                    continue;
                }
                Piece::Variable(name) => environment(name).ok_or_else(|| SecretError::Unset(name.to_owned()))?,
                Piece::Credential(name) => credential(name, credentials)?,
            };
            resolved.push_str(&secret);
            if secret.len() >= SHORTEST {
                self.0.push(secret);
            }
        }
        Ok(resolved)
    }

    /// The text without the secrets.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

fn credential(name: &str, directory: Option<&Path>) -> Result<String, SecretError> {
    let missing = |has_directory| SecretError::NoCredential { name: name.to_owned(), has_directory };
    let file = directory.ok_or_else(|| missing(false))?.join(name);
    match fs::read_to_string(&file) {
        Ok(secret) => Ok(secret.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(true)),
        Err(source) => Err(SecretError::Unreadable { file, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_secrets() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("k"), "from-file\n").unwrap();
        let check = |text: &str, expected: &str| {
            let mut mask = Mask::default();
            let lookup = |name: &str| (name == "T").then(|| "from-env".to_owned());
            let resolved = mask.resolve_by(text, lookup, Some(directory.path()));
            assert_eq!(resolved.unwrap_or_else(|error| error.to_string()), expected, "{text}");
        };
        check("plain $5 {x}", "plain $5 {x}");
        check("Bearer ${env:T}", "Bearer from-env");
        check("${credential:k}${env:T}", "from-filefrom-env");
        check("$${env:T}", "${env:T}");
        check("${env:X}", "the environment variable X is not set");
        check("${credential:x}", "there is no credential `x`");
        check("${credential:../k}", "`${credential:../k}` is no reference: write ${env:NAME} or ${credential:NAME}");
        check("${T}", "`${T}` is no reference: write ${env:NAME} or ${credential:NAME}");
        check("a ${env:T", "`${env:T` is no reference: write ${env:NAME} or ${credential:NAME}");
    }

    #[test]
    fn what_is_shown_has_no_secret_in_it() {
        let mut mask = Mask::default();
        mask.resolve_by("${env:A} ${env:B}", |name| Some(if name == "A" { "s3cret" } else { "x" }.to_owned()), None)
            .unwrap();
        assert_eq!(mask.hide("the s3cret is x, s3cret"), "the *** is x, ***");
    }

    #[test]
    fn keys_of_secrets_are_known_by_their_names() {
        for key in ["GITHUB_TOKEN", "apiKey", "Authorization", "DB_PASSWORD", "X-Api-Key", "aws_secret", "OPENAI_KEY"] {
            assert!(is_secret_key(key), "{key}");
        }
        for key in ["TZ", "PATH", "keyboard", "LANG"] {
            assert!(!is_secret_key(key), "{key}");
        }
    }
}
