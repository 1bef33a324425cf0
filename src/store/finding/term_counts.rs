//! How often a row has each of its terms.

use std::collections::HashMap;

/// How often a row has a term: in its words, and in its speaker's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::store) struct Count {
    pub(in crate::store) words: u32,
    /// At most [`MOST_SPOKEN`].
    pub(in crate::store) speaker: u32,
}

/// A name that says a word more often says nothing more.
pub(in crate::store) const MOST_SPOKEN: u32 = 3;

impl Count {
    /// So often more.
    pub(in crate::store) fn and(self, words: u32, speaker: u32) -> Self {
        Self { words: self.words.saturating_add(words), speaker: self.speaker.saturating_add(speaker).min(MOST_SPOKEN) }
    }
}

/// How often a row has each of its terms.
pub(in crate::store) fn counts<'k>(words: &'k str, speaker: &'k str) -> HashMap<&'k str, Count> {
    let mut counts: HashMap<&str, Count> = HashMap::new();
    for term in words.split_ascii_whitespace() {
        let count = counts.entry(term).or_default();
        *count = count.and(1, 0);
    }
    for term in speaker.split_ascii_whitespace() {
        let count = counts.entry(term).or_default();
        *count = count.and(0, 1);
    }
    counts
}

/// How long a row's words are, in terms.
pub(in crate::store) fn length(words: &str) -> u16 {
    u16::try_from(words.split_ascii_whitespace().count()).unwrap_or(u16::MAX)
}
