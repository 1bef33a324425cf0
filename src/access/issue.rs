//! Making tokens, and adding them to the file.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use super::{Scope, Tokens};
use crate::strict::replacement::Replacement;
use crate::sum::Sum;

/// Makes a token, and the entry for the file that lets it in.
pub fn new_token(name: &str, tenant: &str, scopes: &[Scope]) -> Result<(String, String), getrandom::Error> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret)?;
    let token = format!("alm_{}", hex::encode(secret));
    let entry = entry_of(&token, name, tenant, scopes);
    Ok((token, entry))
}

/// The entry for the file that lets this token in.
pub fn entry_of(token: &str, name: &str, tenant: &str, scopes: &[Scope]) -> String {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let entry = serde_json::json!({
        "name": name,
        "sha256": Sum::of(token.as_bytes()).to_string(),
        "scopes": scopes,
        "tenant": tenant,
    });
    format!("  - {entry}\n")
}

/// Adds an entry made by [`new_token`] to a file, which is made if it is not there. The file is replaced as a whole,
/// and only by one that is valid and has one token more.
pub fn add_to_file(file: &Path, entry: &str) -> Result<(), AddError> {
    if file.is_symlink() {
        return Err(AddError::Link);
    }
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
    replace(file, after.as_bytes())?;
    Ok(())
}

/// Puts `content` in the place of `file`, in one step.
pub(super) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut fresh = Replacement::begin(file, NEW_MODE)?;
    fresh.write_all(content)?;
    if let Ok(old) = fs::metadata(file) {
        // Whoever could read the old file can read the new one; only root may give a file away, and for others it has
        // the right owner already.
        let _ = fchown(fresh.file(), Some(old.uid()), Some(old.gid()));
        fresh.file().set_permissions(Permissions::from_mode(old.mode() & 0o775))?;
    } else {
        // Made by root, it is for the service to read.
        if let Some(group) = service_group() {
            let _ = fchown(fresh.file(), None, Some(group));
        }
        fresh.file().set_permissions(Permissions::from_mode(NEW_MODE))?;
    }
    fresh.finish()
}

/// Of a new file: for its owner, and for the service's group to read.
const NEW_MODE: u32 = 0o640;

/// The group that an installed service has.
const SERVICE_GROUP: &str = "almanac";

/// Its number, where there is one. A name service could know further groups; the package makes this one here.
pub fn service_group() -> Option<u32> {
    group_in(&fs::read_to_string("/etc/group").ok()?, SERVICE_GROUP)
}

/// The number of the group of this name in a file of groups: `name:password:number:members` on each line.
fn group_in(text: &str, name: &str) -> Option<u32> {
    let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.split(':').nth(1)?.parse().ok());
    text.lines().find_map(of).flatten()
}

/// An entry could not be added to a file of tokens; the file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The file is faulty before anything is added.
    #[error("the file is faulty; `almanacd check` tells where")]
    Faulty,
    /// It is a link; where that leads is not for this command to change.
    #[error("it is a symbolic link; name the file that it leads to")]
    Link,
    /// Its layout does not let an entry be appended.
    #[error("an entry cannot be appended to a list written like this; write its items after `  - `")]
    Layout,
    /// It cannot be read or written.
    #[error("cannot be written")]
    Write(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn nothing_is_written_where_a_link_leads() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let entry = || new_token("t", "default", &[Scope::Read]).unwrap().1;
        fs::write(path("victim"), "tokens: []\n").unwrap();
        for link in ["tokens", "other.new"] {
            std::os::unix::fs::symlink(path("victim"), path(link)).unwrap();
        }
        assert!(matches!(add_to_file(&path("tokens"), &entry()), Err(AddError::Link)));
        add_to_file(&path("other"), &entry()).unwrap();
        assert_eq!(fs::read_to_string(path("victim")).unwrap(), "tokens: []\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4, "nothing is left behind");
    }

    #[test]
    fn rights_are_kept_but_not_for_everybody_to_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens");
        let entry = || new_token("t", "default", &[Scope::Read]).unwrap().1;
        let check = |expected: u32| {
            add_to_file(&file, &entry()).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, expected);
        };
        check(0o640);
        fs::set_permissions(&file, Permissions::from_mode(0o646)).unwrap();
        check(0o644);
        let group = fs::metadata(&file).unwrap().gid();
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        assert!(!is_root || service_group().is_none_or(|service| service == group));
    }

    #[test]
    fn a_group_is_found_by_its_name() {
        let groups = "root:x:0:\nalmanac-admins:x:7:a,b\nalmanac:x:998:\nodd:x:many:\n";
        assert_eq!(group_in(groups, "almanac"), Some(998));
        assert_eq!((group_in(groups, "odd"), group_in(groups, "alma")), (None, None));
    }
}
