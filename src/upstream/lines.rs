//! Messages of a server: one line each.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Longest message of a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Of a line that is too long, what is kept of its begin and of its end: enough for the id of an answer.
const KEPT_BYTES: usize = 256;

/// How an answer names its request.
const ID: &str = r#""id""#;

/// What an answer has.
const PAYLOADS: [&str; 2] = [r#""result""#, r#""error""#];

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerLine {
    /// A line without its end.
    Whole(Vec<u8>),
    /// One that is too long, and the begin and end of it.
    TooLong(Vec<u8>, Vec<u8>),
}

/// The next line; nothing at the end. The last one need not be ended.
pub(super) async fn next(reader: &mut (impl AsyncBufRead + Unpin), limit: usize) -> io::Result<Option<PeerLine>> {
    let mut line = Vec::new();
    let mut tail: Option<Vec<u8>> = None;
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(if line.is_empty() { None } else { Some(finish(line, tail)) });
        }
        let end = memchr::memchr(b'\n', chunk);
        let part = &chunk[..end.unwrap_or(chunk.len())];
        match &mut tail {
            None if line.len() + part.len() <= limit => line.extend_from_slice(part),
            None => {
                line.extend_from_slice(&part[..part.len().min(KEPT_BYTES)]);
                line.truncate(KEPT_BYTES);
                tail = Some(part[part.len().saturating_sub(KEPT_BYTES)..].to_vec());
            }
            Some(tail) => {
                tail.extend_from_slice(&part[part.len().saturating_sub(KEPT_BYTES)..]);
                tail.drain(..tail.len().saturating_sub(KEPT_BYTES));
            }
        }
        let taken = part.len() + usize::from(end.is_some());
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(finish(line, tail)));
        }
    }
}

fn finish(mut line: Vec<u8>, tail: Option<Vec<u8>>) -> PeerLine {
    if let Some(tail) = tail {
        return PeerLine::TooLong(line, tail);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    PeerLine::Whole(line)
}

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
    use proptest::prelude::*;
    use tokio::io::BufReader;

    use super::*;

    fn read(bytes: &[u8], buffer: usize, limit: usize) -> Vec<PeerLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut reader, mut lines) = (BufReader::with_capacity(buffer, bytes), Vec::new());
            while let Some(line) = next(&mut reader, limit).await.unwrap() {
                lines.push(line);
            }
            lines
        })
    }

    #[test]
    fn bytes_become_lines() {
        let whole = |text: &str| PeerLine::Whole(text.as_bytes().to_vec());
        assert_eq!(read(b"a\n\nbc\r\nd", 2, 10), [whole("a"), whole(""), whole("bc"), whole("d")]);
        let long = format!("{}{}\nx\n", "a".repeat(300), "b".repeat(300));
        let cut = PeerLine::TooLong("a".repeat(256).into(), "b".repeat(256).into());
        assert_eq!(read(long.as_bytes(), 1000, 400), [cut, whole("x")]);
    }

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

    proptest! {
        #[test]
        fn no_byte_is_lost(text in "[a-c\\n]{0,200}", buffer in 1_usize..50) {
            let lines: Vec<u8> = read(text.as_bytes(), buffer, 1000).into_iter().flat_map(|line| match line {
                PeerLine::Whole(line) => [line, b"\n".to_vec()].concat(),
                PeerLine::TooLong(..) => Vec::new(),
            }).collect();
            let expected = if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" };
            prop_assert_eq!(String::from_utf8(lines).unwrap(), expected);
        }
    }
}
