//! What a worker prints, brought into the daemon's log: line by line, short, and not too often.
//!
//! The pipe is always emptied, so that a library which prints much is not stopped by it; only one that prints without
//! end is slowed down to what reading costs nothing.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Longest line, in bytes; the rest is dropped.
pub const MAX_LINE: usize = 2048;

/// Lines a second that reach the log.
const MAX_LINES: u32 = 20;

/// Bytes a second that are read.
const MAX_BYTES: usize = 1 << 20;

/// Lines and bytes are counted within this time.
const WINDOW: Duration = Duration::from_secs(1);

/// Something a library printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A line, with its level: 1 for an error to 5 for a trace.
    Line(u8, String),
    /// So many lines were dropped.
    Dropped(u64),
}

/// Reads until the last process that could print has ended.
pub async fn capture(output: File, mut emit: impl FnMut(Said)) -> io::Result<()> {
    let mut pipe = pipe::Receiver::from_owned_fd(output.into())?;
    let mut lines = Lines::default();
    let mut chunk = vec![0; 16 << 10];
    let mut window = (Instant::now(), 0);
    loop {
        let length = pipe.read(&mut chunk).await?;
        if length == 0 {
            lines.end(Instant::now(), &mut emit);
            return Ok(());
        }
        lines.take(&chunk[..length], Instant::now(), &mut emit);
        if window.0.elapsed() >= WINDOW {
            window = (Instant::now(), 0);
        }
        window.1 += length;
        if window.1 >= MAX_BYTES {
            tokio::time::sleep_until((window.0 + WINDOW).into()).await;
        }
    }
}

/// Bytes to lines, under the limits. Pure: the clock comes in.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    since: Option<Instant>,
    emitted: u32,
    dropped: u64,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], now: Instant, emit: &mut impl FnMut(Said)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_whole) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if is_whole {
                self.emit(now, emit);
            }
        }
    }

    fn end(&mut self, now: Instant, emit: &mut impl FnMut(Said)) {
        if !self.line.is_empty() {
            self.emit(now, emit);
        }
        if self.dropped > 0 {
            emit(Said::Dropped(std::mem::take(&mut self.dropped)));
        }
    }

    fn emit(&mut self, now: Instant, emit: &mut impl FnMut(Said)) {
        let line = std::mem::take(&mut self.line);
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (self.since, self.emitted) = (Some(now), 0);
            if self.dropped > 0 {
                emit(Said::Dropped(std::mem::take(&mut self.dropped)));
            }
        }
        if self.emitted == MAX_LINES {
            self.dropped += 1;
            return;
        }
        self.emitted += 1;
        let (level, text) = level(&line);
        let text = String::from_utf8_lossy(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        emit(Said::Line(level, text));
    }
}

/// The level that a worker puts before a library's messages; what was merely printed is information.
fn level(line: &[u8]) -> (u8, &[u8]) {
    match line {
        [b'<', digit @ b'1'..=b'5', b'>', text @ ..] => (digit - b'0', text),
        _ => (3, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[(&str, u64)], expected: &[Said]) {
        let start = Instant::now();
        let (mut lines, mut said) = (Lines::default(), Vec::new());
        for (chunk, millis) in chunks {
            lines.take(chunk.as_bytes(), start + Duration::from_millis(*millis), &mut |each| said.push(each));
        }
        lines.end(start, &mut |each| said.push(each));
        assert_eq!(said, expected, "{chunks:?}");
    }

    fn line(level: u8, text: &str) -> Said {
        Said::Line(level, text.to_owned())
    }

    #[test]
    fn bytes_become_lines() {
        check(&[("a\n<1>b\nc", 0)], &[line(3, "a"), line(1, "b"), line(3, "c")]);
        check(&[("<2", 0), (">x\ty", 0), ("z\n\n", 0)], &[line(2, "x yz"), line(3, "")]);
        check(&[("<9>a\n<1\n", 0)], &[line(3, "<9>a"), line(3, "<1")]);
        check(&[(&"x".repeat(3000), 0), ("y\nz\n", 0)], &[line(3, &"x".repeat(MAX_LINE)), line(3, "z")]);
    }

    #[test]
    fn a_flood_is_cut_off_and_counted() {
        let flood = "x\n".repeat(100);
        let first = vec![line(3, "x"); MAX_LINES as usize];
        check(&[(&flood, 0)], &[first.clone(), vec![Said::Dropped(80)]].concat());
        check(&[(&flood, 0), ("y\n", 1000)], &[first, vec![Said::Dropped(80), line(3, "y")]].concat());
    }
}
