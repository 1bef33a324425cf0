//! The beginning of a text, cut where a character ends.

/// The longest beginning of `text` of at most `bytes` bytes.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
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
    }
}
