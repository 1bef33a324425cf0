//! Characters that JSON writes as two escapes and YAML as one.

/// Two escapes for one character (`\ud83d\ude00`), as JSON has them and YAML has not, become YAML's one; nothing if
/// there are none.
pub(super) fn join(text: &str) -> Option<String> {
    let mut joined = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices("\\u") {
        let backslashes = text[..at].bytes().rev().take_while(|&byte| byte == b'\\').count();
        let Some(char) = (backslashes % 2 == 0 && at >= done).then(|| pair(&text[at..])).flatten() else {
            continue;
        };
        joined.push_str(&text[done..at]);
        joined.push_str(&format!("\\U{:08x}", u32::from(char)));
        done = at + 2 * ESCAPE;
    }
    (done > 0).then(|| joined + &text[done..])
}

/// Bytes of an escape of four digits.
const ESCAPE: usize = 6;

/// The character that the two escapes at the beginning of `text` stand for.
fn pair(text: &str) -> Option<char> {
    let unit = |at: usize| u16::from_str_radix(text.get(at..)?.strip_prefix("\\u")?.get(..4)?, 16).ok();
    char::decode_utf16([unit(0)?, unit(ESCAPE)?]).next()?.ok().filter(|char| u32::from(*char) > 0xFFFF)
}
