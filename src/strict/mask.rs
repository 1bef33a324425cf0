//! Secrets in what is told of a file: whoever may ask what is wrong with it need not know its keys.

use std::borrow::Cow;

/// Stands for what is left out.
const MASK: &str = "…";

/// What a key is called whose value is a secret.
const NAMES: [&str; 9] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "private_key", "credential", "authorization"];

/// What keys of known services begin with; the rest of the word follows.
const PREFIXES: [&str; 9] = ["sk-", "alm_", "ghp_", "gho_", "github_pat_", "AKIA", "xoxb-", "xoxp-", "AIza"];

/// A word of letters and digits from this length on may be a key.
const LONG: usize = 24;

/// Digits that it has at least; names have a few at most.
const DIGITS: usize = 5;

/// The text without what looks like a secret: values of keys that are called so, and words that look like keys.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let text = match value_of_secret(text) {
        Some(at) => Cow::Owned(format!("{} {MASK}", &text[..at])),
        None => Cow::Borrowed(text),
    };
    let secret = words(&text).find(|word| is_key(word)).map(str::to_owned);
    match secret {
        Some(secret) => Cow::Owned(masked(&text.replace(&secret, MASK)).into_owned()),
        None => text,
    }
}

/// Where the value begins in a line such as `password: x` or `API_KEY=x`; nothing if there is no such value.
fn value_of_secret(text: &str) -> Option<usize> {
    let end = text.find([':', '='])?;
    let name = text[..end].trim().trim_matches(['"', '\'', '-', ' ']).to_ascii_lowercase().replace('-', "_");
    let value = text[end + 1..].trim();
    let is_name = !name.contains(char::is_whitespace) && NAMES.iter().any(|secret| name.ends_with(secret));
    (is_name && !value.is_empty() && value != MASK).then_some(end + 1)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=_-".contains(c))).filter(|word| !word.is_empty())
}

fn is_key(word: &str) -> bool {
    let has_prefix = PREFIXES.iter().any(|prefix| word.len() >= prefix.len() + 8 && word.starts_with(prefix));
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    // Words of a name are parted; a path has its slashes.
    let longest = word.split(['_', '-', '/']).map(str::len).max().unwrap_or_default();
    has_prefix || longest >= LONG && digits >= DIGITS && digits < word.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_masked_and_documents_are_not() {
        let check = |text: &str, expected: &str| assert_eq!(masked(text), expected);
        check("password: swordfish", "password: …");
        check("  DB_PASSWORD=a b c", "  DB_PASSWORD= …");
        check("\"api-key\": \"x\",", "\"api-key\": …");
        check("sk-proj-0123456789abcdef", "…");
        check("must be a number, not `alm_0123456789abcdef0123`", "must be a number, not `…`");
        check("c0ffee00c0ffee00c0ffee00c0ffee00", "…");
        check("name: reasoning_agent_invoke", "name: reasoning_agent_invoke");
        check("unknown key `capabilites`", "unknown key `capabilites`");
        check("env_vars: [OPENAI_API_KEY]", "env_vars: [OPENAI_API_KEY]");
        check("password:", "password:");
        check(
            "/usr/share/almanac/tool_metadata/2024-01-01/very/long/path.yaml",
            "/usr/share/almanac/tool_metadata/2024-01-01/very/long/path.yaml",
        );
    }

    proptest! {
        /// Any text comes to an end, and masking it again changes nothing.
        #[test]
        fn masking_is_idempotent(text in "[a-zA-Z0-9_=: \"-]{0,80}|\\PC{0,40}") {
            let once = masked(&text).into_owned();
            prop_assert_eq!(masked(&once).into_owned(), once);
        }
    }
}
