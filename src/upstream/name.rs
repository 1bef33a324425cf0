//! Names under which tools of servers are offered.

use crate::sum::Sum;

/// Longest name by default: clients put a prefix of their own before it, and models stop at 64.
pub const MAX_NAME: usize = 50;

/// Digits of the sum that tell a name that was cut from others.
const DIGITS: usize = 8;

/// The name of a server's tool: `{prefix}_{tool}`, or the tool's own without a prefix. One that is longer than `most`
/// bytes, or has other characters than `[A-Za-z0-9_.-]`, is cut to `most` − 9 characters, others as `_`, with `_` and
/// the first 8 hexadecimal digits of the whole name's SHA-256.
pub fn public_name(prefix: &str, tool: &str, most: usize) -> String {
    let whole = if prefix.is_empty() { tool.to_owned() } else { format!("{prefix}_{tool}") };
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if whole.len() <= most && whole.chars().all(is_plain) {
        return whole;
    }
    let kept = whole.chars().map(|character| if is_plain(character) { character } else { '_' });
    let cut: String = kept.take(most.saturating_sub(DIGITS + 1)).collect();
    format!("{cut}_{}", &Sum::of(whole.as_bytes()).to_string()[..DIGITS])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        let check = |prefix: &str, tool: &str, expected: &str| assert_eq!(public_name(prefix, tool, 20), expected);
        check("files", "read_file", "files_read_file");
        check("", "read.file-2", "read.file-2");
        check("files", "read a", "files_read__f32ef900");
        check("files", "a_rather_long_name", "files_a_rat_8fbf909a");
    }

    proptest! {
        #[test]
        fn every_name_fits(prefix in "[a-z-]{0,12}", tool in any::<String>(), most in 16_usize..64) {
            let name = public_name(&prefix, &tool, most);
            prop_assert!(name.len() <= most);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)));
        }
    }
}
