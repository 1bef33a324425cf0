//! What can be told of a server's line that is not read as a message.

use crate::jsonrpc::lines::KEPT_BYTES;

/// Longest message of a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// How an answer names its request.
const ID: &str = r#""id""#;

/// What an answer has.
const PAYLOADS: [&str; 2] = [r#""result""#, r#""error""#];

/// The number of the request that a message answers of which only the begin and the end are looked at: `"id":` before
/// its payload, or behind it.
pub(super) fn id_of(begin: &[u8], end: &[u8]) -> Option<u64> {
    let begin = String::from_utf8_lossy(&begin[..begin.len().min(KEPT_BYTES)]);
    let end = String::from_utf8_lossy(&end[end.len().saturating_sub(KEPT_BYTES)..]);
    let payload = PAYLOADS.iter().filter_map(|member| begin.find(member)).min().unwrap_or(begin.len());
    let before = begin[..payload].split_once(ID).map(|(_, rest)| rest);
    number(before.or_else(|| Some(end.rsplit_once(ID)?.1))?)
}

/// Is a line that is no message an answer all the same, to whoever reads it?
pub(super) fn looks_like_an_answer(line: &[u8]) -> bool {
    let ends = [&line[..line.len().min(KEPT_BYTES)], &line[line.len().saturating_sub(KEPT_BYTES)..]];
    let ends = ends.map(String::from_utf8_lossy);
    let has = |member: &str| ends.iter().any(|end| end.contains(member));
    line.starts_with(b"{") && has(r#""jsonrpc""#) && PAYLOADS.into_iter().any(has) && !has(r#""method""#)
}

fn number(rest: &str) -> Option<u64> {
    let digits = rest.trim_start().trim_start_matches(':').trim_start().trim_start_matches('"');
    let end = digits.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_tells_its_request() {
        let check = |begin: &str, end: &str, expected: Option<u64>| {
            assert_eq!(id_of(begin.as_bytes(), end.as_bytes()), expected, "{begin}");
        };
        check(r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"id":4"#, r#""id":5}]}}"#, Some(17));
        check(r#"{"jsonrpc": "2.0", "id": 17, "result": {"content"#, "}", Some(17));
        check(r#"{"result":{"content":[{"id":4"#, r#"aaa"}]},"jsonrpc":"2.0","id": "4"}"#, Some(4));
        check("aaa", "aaa", None);
        check(r#""id":x"#, "", None);
        check(&format!("{}{}", "é".repeat(200), r#""id":7"#), "", None);
    }

    #[test]
    fn what_cannot_be_read_may_be_an_answer() {
        let check = |line: &str, expected: bool| assert_eq!(looks_like_an_answer(line.as_bytes()), expected, "{line}");
        check(r#"{"jsonrpc":"2.0","id":3,"result":{"x":NaN}}"#, true);
        check(&format!(r#"{{"result":{},"jsonrpc":"2.0","id":3}}"#, "[".repeat(500)), true);
        check(r#"sent {"jsonrpc":"2.0","id":3,"result":{}}"#, false);
        check(r#"{"level":"info","id":3,"result":"done""#, false);
        check(r#"{"jsonrpc":"2.0","id":3,"method":"x","params":{"result":1"#, false);
    }
}
