//! Bytes of a stream, cut anywhere, to its parts.

use super::lines::{LineEnds, Lines, MAX_LINE_BYTES, StreamLine};
use super::part::Part;
use super::ui_v1::Events;
use super::{Protocol, data_v1, ui_v1};

/// What was read: a part, or why a line gave none.
pub type Read = Result<Part, LineFault>;

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LineFault {
    /// The line, from 1; of an event, its last.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}

/// A reader of one stream. It holds at most one line, of at most 4 MiB, and one event of as much.
#[derive(Debug)]
pub struct Parser {
    protocol: Protocol,
    lines: Lines,
    events: Events,
    line: u64,
}

impl Parser {
    /// A reader of a stream of `protocol`.
    pub fn new(protocol: Protocol) -> Self {
        let ends = match protocol {
            Protocol::DataV1 => LineEnds::Newline,
            Protocol::UiV1 => LineEnds::Any,
        };
        Self { protocol, lines: Lines::new(ends), events: Events::default(), line: 0 }
    }

    /// Takes bytes, gives what they complete.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Read)) {
        let Self { protocol, lines, events, line } = self;
        lines.push(bytes, |read| {
            *line += 1;
            take(*protocol, events, *line, read, &mut sink);
        });
    }

    /// Did the bytes so far end with a whole line?
    pub fn is_between_lines(&self) -> bool {
        self.lines.is_between()
    }

    /// The stream ended: gives what nothing completed.
    pub fn finish(&mut self, mut sink: impl FnMut(Read)) {
        if let Some(rest) = self.lines.rest() {
            self.line += 1;
            take(self.protocol, &mut self.events, self.line, rest, &mut sink);
        }
        if let Some(data) = self.events.rest() {
            read(Protocol::UiV1, self.line, &data, &mut sink);
        }
    }
}

fn take(protocol: Protocol, events: &mut Events, number: u64, line: StreamLine, sink: &mut impl FnMut(Read)) {
    let text = match line {
        StreamLine::Text(text) => text,
        StreamLine::TooLong => {
            return sink(Err(LineFault { line: number, message: format!("longer than {MAX_LINE_BYTES} bytes") }));
        }
    };
    match protocol {
        Protocol::DataV1 if matches!(text.as_str(), "" | "\r") => {}
        Protocol::DataV1 => read(protocol, number, &text, sink),
        Protocol::UiV1 => match events.take(&text) {
            Ok(Some(data)) => read(protocol, number, &data, sink),
            Ok(None) if events.held() > MAX_LINE_BYTES => {
                events.rest();
                sink(Err(LineFault { line: number, message: format!("an event longer than {MAX_LINE_BYTES} bytes") }));
            }
            Ok(None) => {}
            Err(error) => sink(Err(LineFault { line: number, message: error.to_string() })),
        },
    }
}

fn read(protocol: Protocol, line: u64, text: &str, sink: &mut impl FnMut(Read)) {
    let outcome = match protocol {
        Protocol::DataV1 => data_v1::read(text, |part| sink(Ok(part))),
        Protocol::UiV1 => ui_v1::read(text, |part| sink(Ok(part))),
    };
    if let Err(error) = outcome {
        sink(Err(LineFault { line, message: error.to_string() }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(protocol: Protocol, chunks: &[&[u8]]) -> Vec<Read> {
        let mut parser = Parser::new(protocol);
        let mut all = Vec::new();
        for chunk in chunks {
            parser.push(chunk, |read| all.push(read));
        }
        parser.finish(|read| all.push(read));
        all
    }

    const DATA: &str = "0:\"grüße 東京\"\n2:[{\"type\":\"reasoning\"},2]\nnonsense\n\n\
                        9:{\"toolCallId\":\"c\",\"toolName\":\"t\",\"args\":{}}\n\
                        a:{\"toolCallId\":\"c\",\"result\":1}\n\
                        d:{\"finishReason\":\"stop\"}";

    const EVENTS: &str = ": hi\r\ndata: {\"type\":\"start\"}\r\n\r\ndata: {\"type\":\"text-delta\",\n\
                          data: \"id\":\"1\",\"delta\":\"grüße 東京\"}\n\ndata: {\"type\":\"nope\"}\n\n\
                          event: x\rdata:{\"type\":\"finish\"}\r\rdata: [DONE]\n\n";

    #[test]
    fn a_bad_line_does_not_end_the_stream() {
        let read = parse(Protocol::DataV1, &[DATA.as_bytes()]);
        let fault = read.iter().find_map(|read| read.as_ref().err()).unwrap();
        assert_eq!(fault.to_string(), "line 3: Failed to parse stream string. No separator found.");
        assert!(matches!(read.last(), Some(Ok(Part::Finish { .. }))), "the last line needs no end");
        assert_eq!(read.len(), 7);
        let read = parse(Protocol::UiV1, &[EVENTS.as_bytes()]);
        assert_eq!(read.len(), 4);
        assert_eq!(read[1], Ok(Part::Text("grüße 東京".into())));
        assert_eq!(read[2].as_ref().unwrap_err().to_string(), "line 8: unknown type of chunk \"nope\"");
    }

    /// The bytes cut at these places.
    fn pieces<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % bytes.len()).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(cuts in proptest::collection::vec(0_usize..400, 0..6)) {
            for (protocol, text) in [(Protocol::DataV1, DATA), (Protocol::UiV1, EVENTS)] {
                let chunks = pieces(text.as_bytes(), &cuts);
                prop_assert_eq!(parse(protocol, &chunks), parse(protocol, &[text.as_bytes()]));
            }
        }

        #[test]
        fn faulty_streams_are_read_alike_however_they_are_cut(
            edits in proptest::collection::vec((0_usize..400, any::<u8>()), 0..8),
            cuts in proptest::collection::vec(0_usize..400, 0..6),
        ) {
            for (protocol, text) in [(Protocol::DataV1, DATA), (Protocol::UiV1, EVENTS)] {
                let mut bytes = text.as_bytes().to_vec();
                for &(place, byte) in &edits {
                    let place = place % bytes.len();
                    bytes[place] = byte;
                }
                let whole = parse(protocol, &[&bytes]);
                prop_assert_eq!(&parse(protocol, &pieces(&bytes, &cuts)), &whole);
                let lines: Vec<u64> = whole.iter().filter_map(|read| Some(read.as_ref().err()?.line)).collect();
                let most = 1 + bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
                prop_assert!(lines.is_sorted() && lines.iter().all(|line| (1..=most as u64).contains(line)));
            }
        }
    }

    /// Any bytes say the same in one piece and in two.
    #[test]
    fn fuzz_streams() {
        crate::text::edits::fuzz("streams", |bytes| {
            let (at, bytes) = bytes.split_first().map_or((0, bytes), |(&at, rest)| (usize::from(at), rest));
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            for protocol in Protocol::ALL {
                assert_eq!(parse(protocol, &[bytes]), parse(protocol, &[first, second]));
            }
        });
    }
}
