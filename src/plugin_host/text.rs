//! Text that foreign code lends: looked at only as far as it is wanted.
#![allow(unsafe_code, reason = "borrows from foreign memory")]

use std::str;

use almanac_plugin_abi::Str;

/// The first `limit` bytes of a text, if it is there.
///
/// # Safety
/// The text is readable, as the interface demands, for as long as the result is used.
pub(super) unsafe fn prefix<'t>(text: Str, limit: usize) -> Option<&'t [u8]> {
    if text.data.is_null() {
        return None;
    }
    // SAFETY: by the contract `len` bytes are readable, and no more than those are borrowed.
    Some(unsafe { std::slice::from_raw_parts(text.data, text.len.min(limit)) })
}

/// A text of at most `limit` bytes; a longer one is cut between two characters. Nothing if it is absent or no UTF-8.
///
/// # Safety
/// As for [`prefix`].
pub(super) unsafe fn cut<'t>(text: Str, limit: usize) -> Option<&'t str> {
    // SAFETY: by the contract.
    let bytes = unsafe { prefix(text, limit) }?;
    match str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The cut went through a character.
        Err(error) if text.len > limit && error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// Does it move a terminal's cursor, ring its bell, or turn the direction of what stands behind it?
pub(super) fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Would nobody see it?
pub(super) fn is_blank(character: char) -> bool {
    character.is_whitespace() || is_control(character)
}

/// The text in one line, with blanks for what orders a terminal about.
pub(super) fn without_controls(text: &str) -> String {
    text.chars().map(|character| if is_control(character) { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        let check = |bytes: &[u8], limit, expected| {
            // SAFETY: the bytes outlive the call.
            assert_eq!(unsafe { cut(Str { data: bytes.as_ptr(), len: bytes.len() }, limit) }, expected, "{bytes:?}");
        };
        check("äöü".as_bytes(), 6, Some("äöü"));
        check("äöü".as_bytes(), 5, Some("äö"));
        check("äöü".as_bytes(), 1, Some(""));
        check(b"", 4, Some(""));
        check(b"a\xff", 4, None);
        check(b"a\xc3", 4, None);
        check(b"a\xffb", 2, None);
        // SAFETY: it is absent.
        assert_eq!(unsafe { cut(Str::ABSENT, 4) }, None);
    }
}
