//! Words that say how somebody asks, not what for.

use std::sync::LazyLock;

use foldhash::HashSet;

use super::analysis;

/// English function words, courtesies and the verbs of asking.
pub const WORDS: &str = include_str!("stop_words.txt");

static TERMS: LazyLock<HashSet<Box<str>>> = LazyLock::new(|| {
    let mut terms = HashSet::default();
    analysis::terms(WORDS, |term| {
        terms.insert(term.into());
    });
    terms
});

static WHOLE: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split_whitespace().collect());

/// Is a word, in lower case, one of them as it is written?
pub fn is_word(word: &str) -> bool {
    WHOLE.contains(word)
}

/// Is a term, as [`analysis::terms`] makes them, one of them?
pub fn is_stop_word(term: &str) -> bool {
    TERMS.contains(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_none_of_them() {
        for (word, expected) in [("what", true), ("please", true), ("bridge", false), ("weather", false)] {
            analysis::terms(word, |term| assert_eq!(is_stop_word(term), expected, "{word}"));
        }
    }
}
