//! Files of passwords in PostgreSQL's own form: a line `host:port:database:user:password`, in which `*` stands for
//! anything and a backslash before `:` and itself. The first line that fits holds.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::address::{DatabaseAddress, Password, ServerPlace};

/// Largest file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A file of passwords that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PasswordFileError {
    #[error("the password file {} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("the password file {} can be read by others; `chmod 600` it", .0.display())]
    Exposed(PathBuf),
}

/// The password for a host: what the address says itself, else what its file has, else none.
pub(super) fn password_for(
    address: &DatabaseAddress,
    host: &ServerPlace,
    port: u16,
) -> Result<Option<Password>, PasswordFileError> {
    match (&address.password, &address.password_file) {
        (Some(password), _) => Ok(Some(password.clone())),
        (None, Some(file)) => {
            let host = match host {
                ServerPlace::Tcp(name) => name.as_str(),
                // So PostgreSQL's own programs name any socket where they expect it.
                ServerPlace::Unix(_) => "localhost",
            };
            Ok(find(&read(file)?, &[host, &port.to_string(), &address.database, &address.user]))
        }
        (None, None) => Ok(None),
    }
}

fn read(path: &Path) -> Result<String, PasswordFileError> {
    let unreadable = |source| PasswordFileError::Unreadable(path.to_owned(), source);
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
        return Err(PasswordFileError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// The password of the first line whose fields are `wanted`.
fn find(text: &str, wanted: &[&str]) -> Option<Password> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let (password, names) = fields.split_last()?;
        let fits = |(name, wanted): (&(String, bool), &&str)| name.0 == **wanted || (name.0 == "*" && !name.1);
        (names.len() == wanted.len() && names.iter().zip(wanted).all(fits)).then(|| Password::new(&*password.0))
    })
}

/// The fields of a line, and whether a backslash was in each. The last one may have colons.
fn fields(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), false)];
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        let is_last = fields.len() == 5;
        let Some((text, is_escaped)) = fields.last_mut() else { break };
        match c {
            '\\' => {
                *is_escaped = true;
                text.extend(rest.next());
            }
            ':' if !is_last => fields.push((String::new(), false)),
            c => text.push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::address::Origin;
    use super::*;

    #[test]
    fn the_first_line_that_fits_holds() {
        let text = "# h:1:d:u:comment\nh:1:d:u:one\n*:2:*:u:t:wo\nh:3:a\\:b:u:th\\:ree\nh:*:d:\\*:four\n\nbroken\n";
        let check = |wanted: [&str; 4], expected: Option<&str>| {
            assert_eq!(find(text, &wanted).as_ref().map(Password::expose), expected, "{wanted:?}");
        };
        check(["h", "1", "d", "u"], Some("one"));
        check(["x", "2", "y", "u"], Some("t:wo"));
        check(["h", "3", "a:b", "u"], Some("th:ree"));
        check(["h", "9", "d", "*"], Some("four"));
        check(["h", "9", "d", "v"], None);
        check(["h", "1", "d", "v"], None);
    }

    #[test]
    fn a_file_that_others_read_is_refused() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("pgpass");
        fs::write(&path, "localhost:5432:d:u:p\n").unwrap();
        let address = |query: &str| {
            let file = path.display();
            DatabaseAddress::parse(&format!("postgres://u@localhost/d?passfile={file}{query}"), Origin::CommandLine)
                .unwrap()
        };
        let find = |address: &DatabaseAddress| password_for(address, &address.hosts[0].0, address.hosts[0].1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(find(&address("")), Err(PasswordFileError::Exposed(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(&address("")).unwrap(), Some(Password::new("p")));
        assert_eq!(find(&address("&host=/run/postgresql")).unwrap(), Some(Password::new("p")));
        assert_eq!(find(&address("&port=1")).unwrap(), None);
        // The environment's stands in for it, and does not replace it.
        let elsewhere = Some(PathBuf::from("/nonexistent"));
        assert_eq!(find(&address("").or_password_file(elsewhere)).unwrap(), Some(Password::new("p")));
        let without = DatabaseAddress::parse("postgres://u@localhost/d", Origin::CommandLine).unwrap();
        assert_eq!(find(&without).unwrap(), None);
        assert_eq!(find(&without.or_password_file(Some(path.clone()))).unwrap(), Some(Password::new("p")));
        fs::remove_file(&path).unwrap();
        assert!(matches!(find(&address("")), Err(PasswordFileError::Unreadable(..))));
    }
}
