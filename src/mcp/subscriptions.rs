//! Which legacy sessions want to be told of changes of which resources of servers.
//!
//! A process that many share is subscribed once for all of them, so it is left only by the last.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Subscriptions of all sessions together.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// How long a session's subscriptions outlive its stream, by which it is told.
const WITHOUT_STREAM: Duration = Duration::from_secs(300);

/// What a session wants to be told of.
#[derive(Debug)]
struct Wanted {
    subjects: HashSet<Subject>,
    /// When it last subscribed, or had a stream.
    seen: Instant,
}

impl Wanted {
    fn new() -> Self {
        Self { subjects: HashSet::new(), seen: Instant::now() }
    }

    fn has(&self, subject: &Subject, now: Instant) -> bool {
        self.is_alive(now) && self.subjects.contains(subject)
    }

    fn is_alive(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.seen) < WITHOUT_STREAM
    }
}

/// A resource of a server.
type Subject = (String, String);

/// The subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<AllWanted>);

#[derive(Debug, Default)]
struct AllWanted {
    sessions: HashMap<u64, Wanted>,
    /// Subscriptions of all of them.
    count: usize,
}

impl AllWanted {
    /// Forgets what nobody was there to be told of for long.
    fn forget(&mut self, now: Instant) {
        self.sessions.retain(|_, wanted| wanted.is_alive(now));
        self.count = self.sessions.values().map(|wanted| wanted.subjects.len()).sum();
    }
}

impl Subscriptions {
    /// The session wants to be told; false if there are too many.
    pub(super) fn add(&self, session: u64, server: &str, uri: &str) -> bool {
        let (mut all, now) = (self.0.lock(), Instant::now());
        if all.count >= MAX_SUBSCRIPTIONS {
            all.forget(now);
        }
        if all.count >= MAX_SUBSCRIPTIONS {
            return false;
        }
        let wanted = all.sessions.entry(session).or_insert_with(Wanted::new);
        wanted.seen = now;
        let is_new = wanted.subjects.insert((server.to_owned(), uri.to_owned()));
        all.count += usize::from(is_new);
        true
    }

    /// The session has a stream at this moment. Is it told of anything there?
    pub(super) fn keep(&self, session: u64, now: Instant) -> bool {
        let mut all = self.0.lock();
        let wanted = all.sessions.get_mut(&session).filter(|wanted| wanted.is_alive(now));
        wanted.is_some_and(|wanted| {
            wanted.seen = now;
            !wanted.subjects.is_empty()
        })
    }

    /// The session does not any more. Is there nobody left who does?
    pub(super) fn remove(&self, session: u64, server: &str, uri: &str) -> bool {
        let subject = (server.to_owned(), uri.to_owned());
        let mut all = self.0.lock();
        let removed = all.sessions.get_mut(&session).is_some_and(|own| own.subjects.remove(&subject));
        all.count -= usize::from(removed);
        if all.sessions.get(&session).is_some_and(|own| own.subjects.is_empty()) {
            all.sessions.remove(&session);
        }
        let now = Instant::now();
        !all.sessions.values().any(|wanted| wanted.has(&subject, now))
    }

    /// The session has ended.
    pub(super) fn end(&self, session: u64) {
        let mut all = self.0.lock();
        let ended = all.sessions.remove(&session);
        all.count -= ended.map_or(0, |wanted| wanted.subjects.len());
    }

    /// Does the session want to be told?
    pub(super) fn has(&self, session: u64, server: &str, uri: &str) -> bool {
        let subject = (server.to_owned(), uri.to_owned());
        let now = Instant::now();
        self.0.lock().sessions.get(&session).is_some_and(|wanted| wanted.has(&subject, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_left_by_the_last_who_wanted_it() {
        let subscriptions = Subscriptions::default();
        assert!(subscriptions.add(1, "a", "x") && subscriptions.add(2, "a", "x"));
        assert!(subscriptions.has(1, "a", "x") && !subscriptions.has(1, "b", "x") && !subscriptions.has(3, "a", "x"));
        assert!(!subscriptions.remove(1, "a", "x"), "the other still wants it");
        assert!(!subscriptions.has(1, "a", "x"));
        assert!(subscriptions.remove(2, "a", "x"));
        subscriptions.add(3, "a", "x");
        subscriptions.end(3);
        let all = subscriptions.0.lock();
        assert!(all.sessions.is_empty() && all.count == 0);
    }

    #[test]
    fn they_live_as_long_as_there_is_a_stream() {
        let subscriptions = Subscriptions::default();
        let start = Instant::now();
        subscriptions.add(1, "a", "x");
        let alive = |seconds: u64| subscriptions.keep(1, start + Duration::from_secs(seconds));
        assert!((0..100).all(|minute| alive(minute * 60)), "a stream is open all the time");
        assert!(subscriptions.has(1, "a", "x"));
        assert!(!alive(99 * 60 + 301), "there was none for more than five minutes");
        assert!(!subscriptions.keep(2, start));
    }

    #[test]
    fn they_are_bounded() {
        let subscriptions = Subscriptions::default();
        let added = (0..=MAX_SUBSCRIPTIONS as u64).filter(|session| subscriptions.add(*session, "a", "x")).count();
        assert_eq!(added, MAX_SUBSCRIPTIONS);
    }
}
