//! Events of a `text/event-stream`, written and read. A message is one line of JSON, so it needs no splitting.

use std::time::Duration;

use bytes::Bytes;

/// Keeps idle timeouts of clients and proxies away.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// A message, with an id if it can be asked for again.
pub(crate) fn message(id: Option<&str>, json: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(json.len() + 64);
    if let Some(id) = id {
        event.extend_from_slice(b"id: ");
        event.extend_from_slice(id.as_bytes());
        event.push(b'\n');
    }
    event.extend_from_slice(b"event: message\ndata: ");
    // Raw JSON of a client or server may be laid out over lines.
    event.extend(json.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// An event that says nothing but its id, so that a client knows what to ask for.
pub(crate) fn priming(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// Messages out of a stream that comes in pieces. What is no message is passed over, as is one beyond the limit.
#[derive(Debug)]
pub(crate) struct SseReader {
    most: usize,
    bytes: Vec<u8>,
    /// Up to here no event ends.
    searched: usize,
    place: EventPlace,
}

/// Where a stream has come to, and when to come back for the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventPlace {
    /// The id of the last event that had one.
    pub(crate) last_id: Option<String>,
    /// How long to wait before one asks for what follows, if the stream says so.
    pub(crate) retry: Option<Duration>,
}

impl EventPlace {
    /// It has come to there, in a stream that goes on from here.
    pub(crate) fn follow(&mut self, other: &Self) {
        if other.last_id.is_some() {
            self.last_id.clone_from(&other.last_id);
        }
        self.retry = other.retry.or(self.retry);
    }

    fn note(&mut self, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else { return };
        let value = |name: &str| line.strip_prefix(name).map(|value| value.strip_prefix(' ').unwrap_or(value));
        if let Some(id) = value("id:") {
            self.last_id = Some(id).filter(|id| !id.is_empty()).map(str::to_owned);
        } else if let Some(Ok(millis)) = value("retry:").map(str::parse) {
            self.retry = Some(Duration::from_millis(millis));
        }
    }
}

impl SseReader {
    /// Of messages of at most `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), searched: 0, place: EventPlace::default() }
    }

    /// Where the stream has come to, by the events that are whole.
    pub(crate) fn place(&self) -> &EventPlace {
        &self.place
    }

    /// The stream goes on.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend(piece.iter().copied().filter(|byte| *byte != b'\r'));
        if self.bytes.len() > self.most + 1024 && self.end().is_none() {
            self.bytes.clear();
            self.searched = 0;
        }
    }

    fn end(&mut self) -> Option<usize> {
        let from = self.searched.saturating_sub(1);
        let found = self.bytes[from..].windows(2).position(|pair| pair == b"\n\n");
        self.searched = self.bytes.len();
        found.map(|at| from + at)
    }

    /// The next message that is whole.
    pub(crate) fn next(&mut self) -> Option<String> {
        while let Some(end) = self.end() {
            let event: Vec<u8> = self.bytes.drain(..end + 2).collect();
            self.searched = 0;
            event.split(|byte| *byte == b'\n').for_each(|line| self.place.note(line));
            let data = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
            let data: Vec<&[u8]> = data.map(|line| line.strip_prefix(b" ").unwrap_or(line)).collect();
            if let Ok(message) = String::from_utf8(data.join(&b'\n'))
                && !message.trim().is_empty()
            {
                return Some(message);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        assert_eq!(message(None, b"{\"a\":\n 1}"), "event: message\ndata: {\"a\":  1}\n\n");
        assert_eq!(message(Some("7-1"), b"{}"), "id: 7-1\nevent: message\ndata: {}\n\n");
        assert_eq!(priming("7-0"), "id: 7-0\ndata: \n\n");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            texts in prop::collection::vec("[a-z]{1,9}", 0..5),
            cut in 1_usize..7,
        ) {
            let mut stream = vec![COMMENT, priming("x")];
            stream.extend(texts.iter().map(|text| message(Some("x"), text.as_bytes())));
            let (mut events, mut read) = (SseReader::new(1000), Vec::new());
            for piece in stream.concat().chunks(cut) {
                events.push(piece);
                read.extend(std::iter::from_fn(|| events.next()));
            }
            prop_assert_eq!(read, texts);
        }
    }

    #[test]
    fn a_place_is_that_of_the_last_event_that_is_whole() {
        let mut events = SseReader::new(1000);
        events.push(b"id: a\nretry: 500\ndata: \n\nid:b\ndata: {}\n\ndata: {}\n\nid: c\ndata: {");
        assert_eq!(std::iter::from_fn(|| events.next()).count(), 2);
        let place = EventPlace { last_id: Some("b".to_owned()), retry: Some(Duration::from_millis(500)) };
        assert_eq!(events.place(), &place);
        events.push(b"}\nretry: soon\n\nid\n\nid:\n\n");
        assert_eq!(std::iter::from_fn(|| events.next()).count(), 1);
        assert_eq!(events.place(), &EventPlace { last_id: None, ..place });
    }

    #[test]
    fn an_event_without_end_is_not_kept() {
        let mut events = SseReader::new(10);
        events.push(&[b'x'; 5000]);
        assert!(events.bytes.is_empty());
        events.push(b"\n\ndata: {}\n\n");
        assert_eq!(events.next().as_deref(), Some("{}"));
    }
}
