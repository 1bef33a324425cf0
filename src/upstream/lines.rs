//! Messages of a server: one line each.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Longest message of a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Of a line that is too long, what is kept of its begin and of its end: enough for the id of an answer.
const KEPT_BYTES: usize = 256;

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

/// The number behind `"id":` in a piece of a message that is too long to be read.
pub(super) fn id_in(piece: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(piece);
    let (_, rest) = text.rsplit_once(r#""id":"#)?;
    let digits = rest.trim_start().trim_start_matches('"');
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
        let check = |piece: &str, expected: Option<u64>| assert_eq!(id_in(piece.as_bytes()), expected, "{piece}");
        check(r#"{"jsonrpc":"2.0","id":17,"result":{"content"#, Some(17));
        check(r#"aaa"}]},"jsonrpc":"2.0","id": "4"}"#, Some(4));
        check("aaa", None);
        check(r#""id":x"#, None);
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
