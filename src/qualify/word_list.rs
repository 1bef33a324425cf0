//! Short lists of words, written as one text with spaces between them.

/// Does the list have the word?
pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}
