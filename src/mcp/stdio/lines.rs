//! Standard input and output, a message a line, on threads of their own: both may block for as long as they like.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::sync::mpsc as threads;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;

/// What is read of a line, in bytes: much more than a message may have, so that one that is too long is answered by its
/// id.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Lines that wait to be read.
const WAITING: usize = 64;

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdioLine {
    /// A message, or what should be one.
    Message(Vec<u8>),
    /// More than is read; its end was not kept.
    TooLong,
}

/// Where messages are written.
#[derive(Clone)]
pub(super) struct StdioOutput(threads::Sender<Written>);

/// What goes to the writing thread.
enum Written {
    Line(Vec<u8>),
    /// Tells when all before it is out.
    Flush(threads::Sender<()>),
}

/// For how long the last messages may take: whoever should read them may be gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl StdioOutput {
    /// Writes a message; newlines in it are space between its tokens.
    pub(super) fn write(&self, message: &str) {
        let mut line = Vec::with_capacity(message.len() + 1);
        line.extend_from_slice(message.as_bytes());
        for byte in &mut line {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        line.push(b'\n');
        // If nobody reads any more, the input ends as well.
        let _ = self.0.send(Written::Line(line));
    }

    /// Returns when all is written, or nobody reads.
    pub(super) fn flush(&self) {
        let (done, flushed) = threads::channel();
        if self.0.send(Written::Flush(done)).is_ok() {
            let _ = flushed.recv_timeout(LAST_WORDS);
        }
    }
}

/// Reads from now on, and writes.
pub(super) fn open() -> (mpsc::Receiver<StdioLine>, StdioOutput) {
    let (read, lines) = mpsc::channel(WAITING);
    let (output, written) = threads::channel();
    thread::spawn(move || read_all(BufReader::new(io::stdin()), &read));
    thread::spawn(move || write_all(BufWriter::new(io::stdout()), &written));
    (lines, StdioOutput(output))
}

fn read_all(mut input: impl BufRead, read: &mpsc::Sender<StdioLine>) {
    while let Ok(Some(line)) = next(&mut input, MAX_LINE_BYTES) {
        if read.blocking_send(line).is_err() {
            return;
        }
    }
}

/// The next line that is not empty; nothing at the end.
fn next(input: &mut impl BufRead, most: usize) -> io::Result<Option<StdioLine>> {
    loop {
        let mut line = Vec::new();
        // One byte more than is taken tells that there was more.
        let count = input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') && line.len() > most {
            input.skip_until(b'\n')?;
            return Ok(Some(StdioLine::TooLong));
        }
        if !line.trim_ascii().is_empty() {
            line.truncate(line.trim_ascii_end().len());
            return Ok(Some(StdioLine::Message(line)));
        }
    }
}

fn write_all(mut output: impl Write, written: &threads::Receiver<Written>) {
    while let Ok(first) = written.recv() {
        let mut next = Some(first);
        while let Some(one) = next {
            let outcome = match one {
                Written::Line(line) => output.write_all(&line),
                Written::Flush(done) => output.flush().map(|()| {
                    let _ = done.send(());
                }),
            };
            if outcome.is_err() {
                return;
            }
            next = written.try_recv().ok();
        }
        if output.flush().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_one_by_one_and_bounded() {
        let mut input = io::Cursor::new(b"{}\r\n\n  \n0123456789\n012345678\nlast".to_vec());
        let mut all = Vec::new();
        while let Some(line) = next(&mut input, 9).unwrap() {
            all.push(line);
        }
        let message = |text: &str| StdioLine::Message(text.as_bytes().to_vec());
        assert_eq!(all, [message("{}"), StdioLine::TooLong, message("012345678"), message("last")]);
    }
}
