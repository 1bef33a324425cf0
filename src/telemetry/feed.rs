//! What just happened, for whoever listens: the same typed events that are logged and counted.
//!
//! The last of them are kept, so that a listener that comes late, or comes back, sees what it missed. What happens with
//! every call, and what happens now and then, is kept apart: a busy minute does not push out why a library failed.
//! Whoever tells an event never waits for a listener: what one has no room for it misses, and it is told how much that
//! was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntGauge};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::strict::Word;

/// Events of each of the two kinds that are kept.
pub const KEPT: usize = 1000;

/// Pieces that wait for a listener; a comment needs a place as well.
const QUEUE: usize = 256;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
#[serde(rename_all = "snake_case")]
#[word(noun = "a type of events")]
pub enum EventType {
    CatalogReloaded,
    ConfigReloaded,
    TokensLoaded,
    WatchChanged,
    PresetsLoaded,
    PluginStateChanged,
    PluginFaulted,
    PluginReplaced,
    PluginUpdateRefused,
    PluginGone,
    LlmBreakerChanged,
    ExecutionRecorded,
    MessageQualified,
    ToolMissed,
    ToolsSuggested,
    MemoryOperated,
    ToolRelayed,
}

impl EventType {
    /// Does it happen with calls, not with the daemon?
    fn is_frequent(self) -> bool {
        use EventType::{ExecutionRecorded, MemoryOperated, MessageQualified, ToolRelayed, ToolsSuggested};
        matches!(self, ExecutionRecorded | MessageQualified | ToolsSuggested | MemoryOperated | ToolRelayed)
    }
}

/// An event as it is kept.
#[derive(Debug)]
struct Told {
    number: u64,
    kind: EventType,
    /// Who alone is told of it; nobody in particular if it is the daemon's.
    tenant: Option<Arc<str>>,
    /// As the stream has it.
    text: Bytes,
}

impl Told {
    fn is_for(&self, tenant: &str, types: &[EventType]) -> bool {
        let is_seen = self.tenant.as_deref().is_none_or(|owner| owner == tenant);
        is_seen && (types.is_empty() || types.contains(&self.kind))
    }
}

#[derive(Debug)]
struct Listener {
    number: u64,
    tenant: Arc<str>,
    /// What it wants to hear of; everything if empty.
    types: Vec<EventType>,
    sender: mpsc::Sender<Bytes>,
    missed: u64,
}

impl Listener {
    /// Sends `text`, and before it how much was missed. Is the listener still there?
    fn send(&mut self, text: &Bytes, missed: &IntCounter, is_event: bool) -> bool {
        let piece = match self.missed {
            0 => text.clone(),
            count => {
                let notice = format!("event: missed\ndata: {{\"type\":\"missed\",\"missed\":{count}}}\n\n");
                Bytes::from([notice.as_bytes(), text].concat())
            }
        };
        match self.sender.try_send(piece) {
            Ok(()) => self.missed = 0,
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
            Err(mpsc::error::TrySendError::Full(_)) if is_event => {
                self.missed += 1;
                missed.inc();
            }
            Err(mpsc::error::TrySendError::Full(_)) => {}
        }
        true
    }
}

#[derive(Debug, Default)]
struct State {
    events: u64,
    listeners_so_far: u64,
    is_closed: bool,
    frequent: VecDeque<Told>,
    rare: VecDeque<Told>,
    listeners: Vec<Listener>,
}

/// The events of late, and those who listen.
#[derive(Debug)]
pub struct Feed {
    state: Mutex<State>,
    listening: IntGauge,
    missed: IntCounter,
}

impl Feed {
    /// A feed that counts who listens, and what they missed.
    pub fn new(listening: IntGauge, missed: IntCounter) -> Self {
        Self { state: Mutex::default(), listening, missed }
    }

    /// Tells an event of the daemon. `data` is an object.
    pub(super) fn tell(&self, kind: EventType, data: &impl Serialize) {
        self.publish(kind, None, data);
    }

    /// Tells an event that is one tenant's business. `data` is an object.
    pub(super) fn tell_tenant(&self, kind: EventType, tenant: &str, data: &impl Serialize) {
        self.publish(kind, Some(tenant.into()), data);
    }

    fn publish(&self, kind: EventType, tenant: Option<Arc<str>>, data: &impl Serialize) {
        let (name, at) = (kind.as_str(), humantime::format_rfc3339_millis(SystemTime::now()));
        let data = serde_json::to_string(data).unwrap_or_default();
        let (comma, rest) = match data.strip_prefix('{') {
            None | Some("}") => ("", "}"),
            Some(rest) => (",", rest),
        };
        let data = format!("{{\"type\":\"{name}\",\"at\":\"{at}\"{comma}{rest}");
        let state = &mut *self.state.lock();
        state.events += 1;
        let number = state.events;
        let text = Bytes::from(format!("id: {number}\nevent: {name}\ndata: {data}\n\n"));
        let told = Told { number, kind, tenant, text };
        state.listeners.retain_mut(|listener| {
            !told.is_for(&listener.tenant, &listener.types) || listener.send(&told.text, &self.missed, true)
        });
        self.listening.set(state.listeners.len() as i64);
        let kept = if kind.is_frequent() { &mut state.frequent } else { &mut state.rare };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(told);
    }

    /// Tells the tenant's and the daemon's events of these types, all if none is named, from now on; and first the last
    /// `last` of those that are kept. Returns the listener's number, and nothing after [`Feed::close`].
    pub fn listen(&self, tenant: Arc<str>, types: Vec<EventType>, last: usize) -> Option<(u64, mpsc::Receiver<Bytes>)> {
        let (sender, pieces) = mpsc::channel(QUEUE);
        let state = &mut *self.state.lock();
        if state.is_closed {
            return None;
        }
        let kept = state.rare.iter().chain(&state.frequent);
        let mut before: Vec<&Told> = kept.filter(|told| told.is_for(&tenant, &types)).collect();
        before.sort_unstable_by_key(|told| told.number);
        let of_late: Vec<u8> =
            before[before.len().saturating_sub(last)..].iter().flat_map(|told| told.text.iter().copied()).collect();
        state.listeners_so_far += 1;
        let number = state.listeners_so_far;
        let mut listener = Listener { number, tenant, types, sender, missed: 0 };
        // A beginning, so that whoever listens knows that it does.
        listener.send(&Bytes::from([b": listening\n\n", &*of_late].concat()), &self.missed, false);
        state.listeners.push(listener);
        self.listening.set(state.listeners.len() as i64);
        Some((number, pieces))
    }

    /// Tells a listener that it still listens. False if it does not.
    pub fn beat(&self, number: u64) -> bool {
        let state = &mut *self.state.lock();
        let mut is_there = false;
        state.listeners.retain_mut(|listener| {
            if listener.number != number {
                return true;
            }
            is_there = listener.send(&Bytes::from_static(b": still here\n\n"), &self.missed, false);
            is_there
        });
        self.listening.set(state.listeners.len() as i64);
        is_there
    }

    /// How many listen.
    pub fn listeners(&self) -> u64 {
        self.state.lock().listeners.len() as u64
    }

    /// Ends all listening.
    pub fn close(&self) {
        let state = &mut *self.state.lock();
        state.is_closed = true;
        state.listeners.clear();
        self.listening.set(0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn feed() -> Feed {
        Feed::new(IntGauge::new("listening", "l").unwrap(), IntCounter::new("missed", "m").unwrap())
    }

    fn data(number: usize) -> Value {
        json!({"number": number})
    }

    fn heard(pieces: &mut mpsc::Receiver<Bytes>) -> String {
        let mut text = Vec::new();
        while let Ok(piece) = pieces.try_recv() {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_tenant_hears_its_own_events_and_the_daemons() {
        let feed = feed();
        feed.tell_tenant(EventType::ExecutionRecorded, "a", &data(1));
        feed.tell_tenant(EventType::ExecutionRecorded, "b", &data(2));
        let check = |tenant: &str, types: &[EventType], last: usize, expected: &[&str]| {
            let (_, mut pieces) = feed.listen(tenant.into(), types.to_vec(), last).unwrap();
            feed.tell(EventType::CatalogReloaded, &data(3));
            let text = heard(&mut pieces);
            let numbers: Vec<&str> =
                text.split("\"number\":").skip(1).filter_map(|rest| rest.split('}').next()).collect();
            assert_eq!(numbers, expected, "{tenant} {types:?} {text}");
        };
        check("a", &[], 0, &["3"]);
        check("a", &[], 2, &["1", "3", "3"]);
        check("b", &[EventType::ExecutionRecorded], 10, &["2"]);
        check("c", &[EventType::ExecutionRecorded], 10, &[]);
    }

    #[test]
    fn an_event_is_an_object_with_its_type_and_time() {
        let feed = feed();
        let (_, mut pieces) = feed.listen("a".into(), Vec::new(), 0).unwrap();
        let mut check = |data: Value| {
            feed.tell(EventType::CatalogReloaded, &data);
            let text = heard(&mut pieces);
            let data_line = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            let mut said: serde_json::Map<String, Value> = serde_json::from_str(data_line).unwrap();
            assert!(said.remove("at").unwrap().as_str().unwrap().ends_with('Z'), "{text}");
            assert_eq!(said.remove("type").unwrap(), "catalog_reloaded");
            assert_eq!(Value::Object(said), data);
        };
        check(json!({}));
        check(json!({"tools": 3, "said": "a \"word\"\n"}));
    }

    #[test]
    fn what_has_no_room_is_told_to_be_missed() {
        let feed = feed();
        let (number, mut pieces) = feed.listen("a".into(), Vec::new(), 0).unwrap();
        for event in 0..QUEUE + 9 {
            feed.tell(EventType::CatalogReloaded, &data(event));
        }
        assert_eq!(feed.missed.get(), 10, "the beginning took a place as well");
        let before = heard(&mut pieces);
        assert!(!before.contains("missed"), "{before}");
        assert!(feed.beat(number));
        let text = heard(&mut pieces);
        assert!(text.starts_with("event: missed\ndata: {\"type\":\"missed\",\"missed\":10}\n\n: still"), "{text}");
        feed.tell(EventType::CatalogReloaded, &data(0));
        assert!(heard(&mut pieces).starts_with("id: "));
    }

    #[test]
    fn a_busy_minute_does_not_push_out_what_happens_rarely() {
        let feed = feed();
        feed.tell(EventType::PluginFaulted, &data(7));
        for event in 0..2 * KEPT {
            feed.tell_tenant(EventType::ExecutionRecorded, "a", &data(event));
        }
        let (_, mut pieces) = feed.listen("a".into(), Vec::new(), 2 * KEPT).unwrap();
        let text = heard(&mut pieces);
        assert_eq!(text.matches("data: ").count(), KEPT + 1);
        assert!(text.contains("plugin_faulted"));
    }

    #[test]
    fn who_has_gone_is_forgotten_and_nobody_listens_after_the_end() {
        let feed = feed();
        let (number, pieces) = feed.listen("a".into(), Vec::new(), 0).unwrap();
        assert_eq!(feed.listening.get(), 1);
        drop(pieces);
        assert!(!feed.beat(number));
        assert_eq!(feed.listening.get(), 0);
        let (_, mut pieces) = feed.listen("a".into(), Vec::new(), 0).unwrap();
        feed.close();
        assert!(heard(&mut pieces).starts_with(": listening"));
        assert_eq!(pieces.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
        assert!(feed.listen("a".into(), Vec::new(), 0).is_none());
    }
}
