//! A call that ended, as it is recorded and learnt from.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::outcome::Outcome;

/// Longest duration of a call: a day, in milliseconds.
pub const MAX_DURATION_MS: u64 = 24 * 60 * 60 * 1000;

/// What makes a call long, as its caller said it; nothing is derived, so that it can be learnt from anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// Characters of the input.
    pub content_length: Option<u64>,
    pub num_perspectives: Option<u64>,
    pub num_branches: Option<u64>,
    /// Thinking budget, in tokens.
    pub thinking_budget: Option<u64>,
    /// Tokens of context.
    pub context_tokens: Option<u64>,
}

/// What a call is known by when it is told again: the caller's key, and a digest of what was told under it.
///
/// It is stored as one text, the digest behind a control character, which no key has. A key without a digest is the
/// same as any of its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct CallKey {
    pub name: String,
    /// Empty if it is not known.
    pub digest: String,
}

/// Stands between a key's name and its digest.
const BEFORE_DIGEST: char = '\u{1f}';

/// Stands between the key of a batch and the place of a call in it.
const BEFORE_PLACE: char = '\u{1e}';

/// Bytes of a digest: two bodies have the same as good as never.
const DIGEST_BYTES: usize = 16;

impl CallKey {
    /// The key of a call of which `said` is all that was told.
    pub fn of(key: &str, said: &str) -> Self {
        let digest = hex::encode(&Sha256::digest(said)[..DIGEST_BYTES]);
        Self { name: key.to_owned(), digest }
    }

    /// The same for the call at a place of a batch that was told under one key.
    #[must_use]
    pub fn at(&self, place: usize) -> Self {
        Self { name: format!("{}{BEFORE_PLACE}{place}", self.name), digest: self.digest.clone() }
    }

    /// The key as the caller knows it.
    pub fn shown(&self) -> &str {
        self.name.split(BEFORE_PLACE).next().unwrap_or_default()
    }

    /// May what was told under it be what was told with `digest`?
    pub fn agrees(&self, digest: &str) -> bool {
        self.digest.is_empty() || digest.is_empty() || self.digest == digest
    }
}

impl From<String> for CallKey {
    fn from(text: String) -> Self {
        match text.split_once(BEFORE_DIGEST) {
            Some((name, digest)) => Self { name: name.to_owned(), digest: digest.to_owned() },
            None => Self { name: text, digest: String::new() },
        }
    }
}

impl From<&str> for CallKey {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<CallKey> for String {
    fn from(CallKey { name, digest }: CallKey) -> Self {
        if digest.is_empty() { name } else { format!("{name}{BEFORE_DIGEST}{digest}") }
    }
}

/// One call that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// Whose call it was.
    pub tenant: String,
    pub tool: String,
    /// Its mode, if it has modes.
    pub mode: Option<String>,
    /// 0 to [`MAX_DURATION_MS`]; nothing if it is not known, and then the call is its session's and teaches no
    /// duration.
    pub duration_ms: Option<u64>,
    pub outcome: Outcome,
    /// What made it long.
    pub measures: Measures,
    /// The session it belongs to.
    pub session: Option<String>,
    /// When it ended, milliseconds since the epoch.
    pub at_ms: i64,
    /// A second record with this key is the same call told again.
    pub idempotency_key: Option<CallKey>,
}

/// How often a tool and mode were recorded with a duration, ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCount {
    pub tool: String,
    pub mode: Option<String>,
    /// Were these calls errors? They are counted apart.
    pub failed: bool,
    /// Records, those that retention removed included.
    pub samples: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_is_read_as_it_was_written(
            name in "[^\\p{Cc}]{1,20}",
            digest in "[0-9a-f]{0,16}",
            place in 0usize..1000,
        ) {
            let key = CallKey { name: name.clone(), digest };
            for key in [key.at(place), key] {
                prop_assert_eq!(key.shown(), &name);
                prop_assert_eq!(CallKey::from(String::from(key.clone())), key);
            }
        }
    }

    #[test]
    fn what_was_told_is_compared_where_it_is_known() {
        let check = |one: &str, other: &str, expected: bool| {
            let key = CallKey { name: "k".into(), digest: one.into() };
            assert_eq!(key.agrees(other), expected, "{one:?} and {other:?}");
        };
        check("a", "a", true);
        check("a", "b", false);
        check("", "b", true);
        check("a", "", true);
        assert_eq!(CallKey::of("k", "said"), CallKey::of("k", "said"));
        assert!(!CallKey::of("k", "said").agrees(&CallKey::of("k", "other").digest));
    }
}
