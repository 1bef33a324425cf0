//! The key of an endpoint: where it comes from, and that nobody sees it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use hyper::header::HeaderValue;

/// The credential's name under systemd.
const CREDENTIAL: &str = "llm-key";

/// No key where one should be.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It was to be in the environment.
    #[error("the environment variable {variable} is not set, and there is no credential `{CREDENTIAL}`")]
    Missing { variable: String },
    /// The credential is there and cannot be read.
    #[error("cannot read the credential {}", .file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    /// Not what a header can carry.
    #[error("the key in {place} is not one word of ASCII characters")]
    Malformed {
        /// The variable or the file, never the key.
        place: String,
    },
}

/// The `authorization` header: from the environment variable, if one is named and set, else from the credential, if
/// there is one. Nothing if neither is asked for: a model on this host may need no key.
pub(super) fn authorization(variable: Option<&str>) -> Result<Option<HeaderValue>, KeyError> {
    let directory = env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    find(variable, |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()), directory.as_deref())
}

fn find(
    variable: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
    credentials: Option<&Path>,
) -> Result<Option<HeaderValue>, KeyError> {
    let named = variable.and_then(|name| Some((name.to_owned(), environment(name)?)));
    if let Some((name, key)) = named.filter(|(_, key)| !key.is_empty()) {
        return header(&key, name).map(Some);
    }
    if let Some(file) = credentials.map(|directory| directory.join(CREDENTIAL)) {
        match fs::read_to_string(&file) {
            Ok(key) => return header(key.trim_end(), file.display().to_string()).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(KeyError::Unreadable { file, source }),
        }
    }
    match variable {
        Some(variable) => Err(KeyError::Missing { variable: variable.to_owned() }),
        None => Ok(None),
    }
}

fn header(key: &str, place: String) -> Result<HeaderValue, KeyError> {
    let visible = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    match HeaderValue::try_from(format!("Bearer {key}")) {
        Ok(mut value) if visible => {
            // `Debug` does not show it then.
            value.set_sensitive(true);
            Ok(value)
        }
        _ => Err(KeyError::Malformed { place }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_before_the_credential() {
        let with = tempfile::tempdir().unwrap();
        fs::write(with.path().join("llm-key"), "from-file\n").unwrap();
        let without = tempfile::tempdir().unwrap();
        let check =
            |variable: Option<&str>, set: Option<&str>, directory: &Path, expected: Result<Option<&str>, &str>| {
                let got = find(variable, |_| set.map(str::to_owned), Some(directory));
                let got = got.map(|key| key.map(|key| key.to_str().unwrap().to_owned()));
                match (got, expected) {
                    (Ok(key), Ok(expected)) => assert_eq!(key.as_deref(), expected, "{variable:?} {set:?}"),
                    (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                    (got, expected) => panic!("{variable:?} {set:?}: {got:?} instead of {expected:?}"),
                }
            };
        check(Some("K"), Some("from-env"), with.path(), Ok(Some("Bearer from-env")));
        check(Some("K"), None, with.path(), Ok(Some("Bearer from-file")));
        check(Some("K"), Some(""), with.path(), Ok(Some("Bearer from-file")));
        check(None, Some("from-env"), with.path(), Ok(Some("Bearer from-file")));
        check(None, None, without.path(), Ok(None));
        check(Some("K"), None, without.path(), Err("variable K is not set"));
        check(Some("K"), Some("two\nlines"), without.path(), Err("the key in K"));
        check(Some("K"), Some("clé"), without.path(), Err("the key in K"));
        let directory = without.path().join("llm-key");
        fs::create_dir(directory).unwrap();
        check(Some("K"), None, without.path(), Err("cannot read the credential"));
    }

    #[test]
    fn it_is_never_shown() {
        let key = find(Some("K"), |_| Some("s3cret".to_owned()), None).unwrap();
        assert!(!format!("{key:?}").contains("s3cret"));
        let error = find(Some("K"), |_| Some("s3cret\u{7f}".to_owned()), None).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("s3cret"));
    }
}
