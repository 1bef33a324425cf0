//! Bytes, cut anywhere, to lines of bounded length.

/// Longest line, in bytes; a longer one is passed over as a whole.
pub(super) const MAX_LINE_BYTES: usize = 4 << 20;

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// `\n` alone: anything else is text.
    Newline,
    /// `\n`, `\r` or both, as server-sent events have it.
    Any,
}

/// A line, without what ended it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamLine {
    /// Its text; bytes that are no UTF-8 became U+FFFD.
    Text(String),
    /// It is longer than the limit.
    TooLong,
}

/// A splitter that holds what is not a whole line yet.
#[derive(Debug)]
pub(super) struct Lines {
    ends: LineEnds,
    limit: usize,
    held: Vec<u8>,
    too_long: bool,
    /// The last byte was `\r`: a `\n` that follows ends no further line.
    after_return: bool,
}

impl Lines {
    pub(super) fn new(ends: LineEnds) -> Self {
        Self::bounded(ends, MAX_LINE_BYTES)
    }

    fn bounded(ends: LineEnds, limit: usize) -> Self {
        Self { ends, limit, held: Vec::new(), too_long: false, after_return: false }
    }

    /// Takes bytes, gives the lines that they end.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(StreamLine)) {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        let is_end = |byte: &u8| *byte == b'\n' || self.ends == LineEnds::Any && *byte == b'\r';
        while let Some(end) = bytes.iter().position(is_end) {
            hold(&mut self.held, &mut self.too_long, self.limit, &bytes[..end]);
            let was_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if was_return {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            sink(take(&mut self.held, &mut self.too_long));
        }
        hold(&mut self.held, &mut self.too_long, self.limit, bytes);
    }

    /// Is nothing of an unfinished line held?
    pub(super) fn is_between(&self) -> bool {
        self.held.is_empty() && !self.too_long
    }

    /// The line that nothing ended.
    pub(super) fn rest(&mut self) -> Option<StreamLine> {
        (self.too_long || !self.held.is_empty()).then(|| take(&mut self.held, &mut self.too_long))
    }
}

fn hold(held: &mut Vec<u8>, too_long: &mut bool, limit: usize, bytes: &[u8]) {
    if *too_long || held.len() + bytes.len() > limit {
        *too_long = true;
        *held = Vec::new();
    } else {
        held.extend_from_slice(bytes);
    }
}

fn take(held: &mut Vec<u8>, too_long: &mut bool) -> StreamLine {
    if std::mem::take(too_long) {
        return StreamLine::TooLong;
    }
    let text = String::from_utf8_lossy(held).into_owned();
    held.clear();
    StreamLine::Text(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(ends: LineEnds, chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::bounded(ends, 8);
        let mut all = Vec::new();
        let mut say = |line| {
            all.push(match line {
                StreamLine::Text(text) => text,
                StreamLine::TooLong => "too long".to_owned(),
            });
        };
        for chunk in chunks {
            lines.push(chunk, &mut say);
        }
        if let Some(line) = lines.rest() {
            say(line);
        }
        all
    }

    #[test]
    fn each_protocol_has_its_ends() {
        let text: &[u8] = b"a\r\nb\rc\n\nd";
        assert_eq!(split(LineEnds::Newline, &[text]), ["a\r", "b\rc", "", "d"]);
        assert_eq!(split(LineEnds::Any, &[text]), ["a", "b", "c", "", "d"]);
        assert_eq!(split(LineEnds::Any, &[b"a\r", b"\nb"]), ["a", "b"]);
        assert_eq!(split(LineEnds::Newline, &[b"12345678\n123456", b"789\nok\n"]), ["12345678", "too long", "ok"]);
        assert_eq!(split(LineEnds::Newline, &[b"\xc3", b"\xa4\n\xff\n"]), ["ä", "\u{fffd}"]);
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            text in proptest::collection::vec(proptest::sample::select(b"ab\r\n\xc3\xa4".to_vec()), 0..40),
            cut in 0_usize..40,
            again in 0_usize..40,
        ) {
            for ends in [LineEnds::Newline, LineEnds::Any] {
                let (first, rest) = text.split_at(cut.min(text.len()));
                let (second, third) = rest.split_at(again.min(rest.len()));
                prop_assert_eq!(split(ends, &[first, second, third]), split(ends, &[&text]));
            }
        }
    }
}
