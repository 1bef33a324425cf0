//! Lists of words, written as one text with spaces between them.

use foldhash::HashSet;

/// Does a short list have the word?
pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// The words of a longer list, to look them up.
pub(super) fn set(list: &'static str) -> HashSet<&'static str> {
    list.split_ascii_whitespace().collect()
}
