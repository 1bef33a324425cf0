//! Taking a token out of the file.

use std::fs;
use std::io;
use std::path::Path;

use super::Tokens;
use super::issue::replace;
use crate::strict::Segment;
use crate::strict::locate::locate;

/// Takes the entries of that name out of the file, which is replaced as a whole, and only by one that has all others.
pub fn revoke(file: &Path, name: &str) -> Result<(), RevokeError> {
    if file.is_symlink() {
        return Err(RevokeError::Link);
    }
    let mut text = fs::read_to_string(file)?;
    let tokens = |text: &str| Tokens::parse(file, text.as_bytes()).map_err(|_| RevokeError::Faulty);
    let mut known = tokens(&text)?;
    if known.grants().all(|grant| &*grant.name != name) {
        return Err(RevokeError::Unknown(name.to_owned()));
    }
    let place_in = |tokens: &Tokens| tokens.grants().position(|grant| &*grant.name == name);
    while let Some(place) = place_in(&known) {
        let after = without(&text, place, known.len()).ok_or(RevokeError::Layout)?;
        let left = tokens(&after).map_err(|_| RevokeError::Layout)?;
        let expected = known.grants().enumerate().filter(|(other, _)| *other != place).map(|(_, grant)| &grant.name);
        if !left.grants().map(|grant| &grant.name).eq(expected) {
            return Err(RevokeError::Layout);
        }
        (text, known) = (after, left);
    }
    replace(file, text.as_bytes())?;
    Ok(())
}

/// The text without the item at `place` of `count`, if each item has lines of its own. What stands before an item, such
/// as a comment, stays.
fn without(text: &str, place: usize, count: usize) -> Option<String> {
    if count == 1 {
        return Some("tokens: []\n".to_owned());
    }
    let line_of = |place: usize| {
        let path = [Segment::Key("tokens".to_owned()), Segment::Index(place)];
        locate(text, &path, false).map(|(line, _)| line - 1)
    };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let start = line_of(place)?;
    let next = if place + 1 < count { line_of(place + 1)? } else { lines.len() };
    let is_item = |line: usize| lines.get(line).is_some_and(|line| line.trim_start().starts_with('-'));
    if !is_item(start) || next <= start || (place + 1 < count && !is_item(next)) {
        return None;
    }
    let is_beside = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let mut end = next;
    while end > start + 1 && is_beside(lines[end - 1]) {
        end -= 1;
    }
    Some(format!("{}{}", lines[..start].concat(), lines[end..].concat()))
}

/// A token could not be taken out of a file; the file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RevokeError {
    #[error("the file is faulty; `almanacd check` tells where")]
    Faulty,
    /// It is a link; where that leads is not for this command to change.
    #[error("it is a symbolic link; name the file that it leads to")]
    Link,
    #[error("no token is called `{0}`; `almanacd token list` shows their names")]
    Unknown(String),
    /// Its layout does not let an entry be taken out.
    #[error("an entry cannot be taken out of a list written like this; take it out with an editor")]
    Layout,
    #[error("cannot be written")]
    Write(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sum::Sum;

    #[test]
    fn one_token_goes_and_every_other_line_stays() {
        let sum = Sum::of(b"x").to_string();
        let entry =
            |name: &str| format!("  - {{\"name\": \"{name}\", \"sha256\": \"{sum}\", \"scopes\": [\"read\"]}}\n");
        let by_hand = format!("  # of the pipeline\n  - name: ci\n    sha256: {sum}\n    scopes:\n    - read\n\n");
        let check = |text: &str, name: &str, expected: Result<&str, &str>| {
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("tokens");
            fs::write(&file, text).unwrap();
            let done = revoke(&file, name).map_err(|error| error.to_string());
            let now = fs::read_to_string(&file).unwrap();
            match expected {
                Ok(expected) => assert_eq!((done, now.as_str()), (Ok(()), expected)),
                Err(part) => {
                    assert!(done.as_ref().is_err_and(|error| error.contains(part)), "{done:?}");
                    assert_eq!(now, text);
                }
            }
        };
        let all = format!("tokens:\n{}{by_hand}{}", entry("a"), entry("b"));
        check(&all, "a", Ok(&format!("tokens:\n{by_hand}{}", entry("b"))));
        check(&all, "b", Ok(&format!("tokens:\n{}{by_hand}", entry("a"))));
        check(&all, "ci", Ok(&format!("tokens:\n{}  # of the pipeline\n\n{}", entry("a"), entry("b"))));
        check(&all, "c", Err("no token is called `c`"));
        check(&format!("tokens:\n{}", entry("a")), "a", Ok("tokens: []\n"));
        check(
            &format!("tokens:\n{}{}{}", entry("a"), entry("b"), entry("a")),
            "a",
            Ok(&format!("tokens:\n{}", entry("b"))),
        );
        let flow =
            format!("tokens: [{{name: a, sha256: {sum}, scopes: []}}, {{name: b, sha256: {sum}, scopes: []}}]\n");
        check(&flow, "a", Err("with an editor"));
        check("tokens: [", "a", Err("faulty"));
    }
}
