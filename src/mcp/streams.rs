//! Streams of events that are open: no more than the limit, and of legacy ones what a client that lost its connection
//! may ask for again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::jsonrpc::sse;

/// Pieces that wait for a slow peer before whoever tells waits as well.
pub(super) const PIECES: usize = 32;

/// Between two comments.
pub(super) const COMMENTS: Duration = Duration::from_secs(15);

/// For how long the answer of a lost connection is kept.
pub(super) const KEPT_FOR: Duration = Duration::from_secs(5 * 60);

/// What is kept of one stream: events, and their bytes. The oldest give way, but never the last.
const MAX_EVENTS: usize = 64;
const MAX_BYTES: usize = 256 * 1024;

/// Streams of which something is kept.
const MAX_KEPT: usize = 1024;

/// The open streams.
#[derive(Debug)]
pub(super) struct Streams {
    places: Arc<Semaphore>,
    count: IntGauge,
    kept: Arc<Kept>,
    next: AtomicU32,
}

type Kept = Mutex<HashMap<(u64, u32), mpsc::Sender<Attach>>>;

/// A client is back.
#[derive(Debug)]
pub(super) struct Attach {
    /// The last event that it has.
    after: u64,
    to: AttachedStream,
}

/// Where events go while a client is there.
pub(super) type AttachedStream = (mpsc::Sender<Bytes>, StreamPlace);

/// A place among the open streams.
#[derive(Debug)]
pub(super) struct StreamPlace {
    _permit: OwnedSemaphorePermit,
    count: IntGauge,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.count.dec();
    }
}

impl Streams {
    /// At most `most` at once; `count` shows how many.
    pub(super) fn new(most: usize, count: IntGauge) -> Self {
        let mut seed = [0; 4];
        // Without randomness an id may be one of before a restart: its stream is not found then, as is right.
        let _ = getrandom::fill(&mut seed);
        let next = AtomicU32::new(u32::from_ne_bytes(seed));
        Self { places: Arc::new(Semaphore::new(most)), count, kept: Arc::default(), next }
    }

    /// A place, if there is one.
    pub(super) fn place(&self) -> Option<StreamPlace> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        self.count.inc();
        Some(StreamPlace { _permit: permit, count: self.count.clone() })
    }

    /// Keeps what a new stream of the session tells.
    pub(super) fn keep(&self, session: u64) -> EventLog {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (attach, attached) = mpsc::channel(1);
        let mut kept = self.kept.lock();
        if kept.len() < MAX_KEPT {
            kept.insert((session, number), attach);
        }
        drop(kept);
        EventLog {
            key: (session, number),
            told: 0,
            events: VecDeque::new(),
            bytes: 0,
            attached,
            kept: Arc::clone(&self.kept),
        }
    }

    /// The rest of a stream, of which the client has the events up to that of the id `last`; if there is a place.
    pub(super) fn resume(&self, session: u64, last: &str) -> Option<mpsc::Receiver<Bytes>> {
        let (number, after) = last.split_once('-')?;
        let number = u32::from_str_radix(number, 16).ok()?;
        let after = after.parse().ok()?;
        let kept = self.kept.lock();
        let (to, pieces) = mpsc::channel(PIECES);
        let attach = kept.get(&(session, number))?;
        attach.try_send(Attach { after, to: (to, self.place()?) }).ok()?;
        Some(pieces)
    }
}

/// What a stream told so far, as far as it is kept.
#[derive(Debug)]
pub(super) struct EventLog {
    key: (u64, u32),
    told: u64,
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    attached: mpsc::Receiver<Attach>,
    kept: Arc<Kept>,
}

impl EventLog {
    fn id(&self, number: u64) -> String {
        format!("{:x}-{number}", self.key.1)
    }

    /// The event that a client can ask from before anything was told.
    pub(super) fn priming(&self) -> Bytes {
        sse::priming(&self.id(0))
    }

    /// The event of a message; kept.
    pub(super) fn event(&mut self, json: &[u8]) -> Bytes {
        self.told += 1;
        let event = sse::message(Some(&self.id(self.told)), json);
        self.bytes += event.len();
        self.events.push_back((self.told, event.clone()));
        while self.events.len() > MAX_EVENTS || self.bytes > MAX_BYTES && self.events.len() > 1 {
            if let Some((_, oldest)) = self.events.pop_front() {
                self.bytes -= oldest.len();
            }
        }
        event
    }

    /// Waits for a client that is back. Nothing is lost if that is given up.
    pub(super) async fn attached(&mut self) -> Option<Attach> {
        self.attached.recv().await
    }

    /// Gives a client that is back what it has not. Returns where the rest goes.
    pub(super) async fn replay(&self, back: Attach) -> AttachedStream {
        let Attach { after, to: (to, place) } = back;
        for (_, event) in self.events.iter().filter(|(number, _)| *number > after) {
            // A client that is gone again is noticed by whoever sends next.
            let _ = to.send(event.clone()).await;
        }
        (to, place)
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.kept.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(most: usize) -> Streams {
        Streams::new(most, IntGauge::new("n", "n").unwrap())
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let streams = streams(1);
        let place = streams.place();
        assert!(place.is_some() && streams.place().is_none());
        assert_eq!(streams.count.get(), 1);
        drop(place);
        assert_eq!(streams.count.get(), 0);
        assert!(streams.place().is_some());
    }

    #[tokio::test]
    async fn a_client_that_is_back_gets_what_it_has_not() {
        let streams = streams(1);
        let mut log = streams.keep(7);
        let first = log.event(b"1");
        let id = String::from_utf8(first.to_vec()).unwrap();
        let id = id.lines().next().unwrap().strip_prefix("id: ").unwrap();
        let second = log.event(b"2");
        assert!(streams.resume(8, id).is_none(), "the session of another");
        assert!(streams.resume(7, "nonsense").is_none());
        let mut pieces = streams.resume(7, id).unwrap();
        let back = log.attached().await.unwrap();
        let (to, _place) = log.replay(back).await;
        assert_eq!(pieces.recv().await, Some(second));
        let third = log.event(b"3");
        to.send(third.clone()).await.unwrap();
        assert_eq!(pieces.recv().await, Some(third));
        drop(log);
        assert!(streams.resume(7, id).is_none(), "it has ended");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let streams = streams(1);
        let mut log = streams.keep(1);
        for _ in 0..100 {
            log.event(&[b'x'; 10]);
        }
        assert_eq!(log.events.len(), MAX_EVENTS);
        log.event(&vec![b'x'; 2 * MAX_BYTES]);
        assert_eq!(log.events.len(), 1);
    }
}
