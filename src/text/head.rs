//! The beginning and the end of a text, cut between characters.

/// The longest beginning of `text` of at most `bytes` bytes.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of `text` of at most `bytes` bytes.
pub fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_stay_whole() {
        let check = |bytes, expected: &str| assert_eq!(head("aü東", bytes), expected, "{bytes} bytes");
        check(0, "");
        check(1, "a");
        check(2, "a");
        check(3, "aü");
        check(5, "aü");
        check(6, "aü東");
        check(99, "aü東");
        let check = |bytes, expected: &str| assert_eq!(tail("aü東", bytes), expected, "{bytes} bytes");
        check(0, "");
        check(2, "");
        check(3, "東");
        check(5, "ü東");
        check(99, "aü東");
    }
}
