//! Messages over a pipe: one line each.

use std::io;
use std::mem;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Of a line that is too long, what is kept of its begin and of its end, in bytes: enough for the id of an answer.
pub(crate) const KEPT_BYTES: usize = 256;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageLine {
    /// A line without its end.
    Whole(Vec<u8>),
    /// One that is too long, and the begin and end of it.
    TooLong(Vec<u8>, Vec<u8>),
}

/// Reads lines of at most `limit` bytes.
pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    /// Of the line that is being read; of one that is too long its begin.
    line: Vec<u8>,
    /// The end of one that is too long.
    tail: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self::with_chunks(reader, limit, CHUNK)
    }

    fn with_chunks(reader: R, limit: usize, chunk: usize) -> Self {
        Self { reader: BufReader::with_capacity(chunk, reader), limit, line: Vec::new(), tail: None }
    }

    /// The next line; nothing at the end. The last one need not be ended. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<MessageLine>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(if self.line.is_empty() { None } else { Some(self.finish()) });
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            match &mut self.tail {
                None if self.line.len() + part.len() <= self.limit => self.line.extend_from_slice(part),
                None => {
                    self.line.extend_from_slice(&part[..part.len().min(KEPT_BYTES)]);
                    self.line.truncate(KEPT_BYTES);
                    self.tail = Some(part[part.len().saturating_sub(KEPT_BYTES)..].to_vec());
                }
                Some(tail) => {
                    tail.extend_from_slice(&part[part.len().saturating_sub(KEPT_BYTES)..]);
                    tail.drain(..tail.len().saturating_sub(KEPT_BYTES));
                }
            }
            let taken = part.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(Some(self.finish()));
            }
        }
    }

    fn finish(&mut self) -> MessageLine {
        let mut line = mem::take(&mut self.line);
        if let Some(tail) = self.tail.take() {
            return MessageLine::TooLong(line, tail);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        MessageLine::Whole(line)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    fn read(bytes: &[u8], chunk: usize, limit: usize) -> Vec<MessageLine> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut reader, mut lines) = (LineReader::with_chunks(bytes, limit, chunk), Vec::new());
            while let Some(line) = reader.next().await.unwrap() {
                lines.push(line);
            }
            lines
        })
    }

    fn whole(text: &str) -> MessageLine {
        MessageLine::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn bytes_become_lines() {
        assert_eq!(read(b"a\n\nbc\r\nd", 2, 10), [whole("a"), whole(""), whole("bc"), whole("d")]);
        let long = format!("{}{}\nx\n", "a".repeat(300), "b".repeat(300));
        let cut = MessageLine::TooLong("a".repeat(256).into(), "b".repeat(256).into());
        assert_eq!(read(long.as_bytes(), 1000, 400), [cut, whole("x")]);
    }

    #[test]
    fn a_dropped_wait_loses_nothing() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut far, near) = duplex(100);
            let mut reader = LineReader::new(near, 100);
            far.write_all(b"there and ").await.unwrap();
            let waits = pin!(reader.next()).poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(waits, Poll::Pending));
            far.write_all(b"back\n").await.unwrap();
            assert_eq!(reader.next().await.unwrap(), Some(whole("there and back")));
        });
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(text in "[a-c\\n]{0,200}", chunk in 1_usize..50) {
            let lines: Vec<u8> = read(text.as_bytes(), chunk, 1000).into_iter().flat_map(|line| match line {
                MessageLine::Whole(line) => [line, b"\n".to_vec()].concat(),
                MessageLine::TooLong(..) => Vec::new(),
            }).collect();
            let expected = if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" };
            prop_assert_eq!(String::from_utf8(lines).unwrap(), expected);
        }
    }
}
