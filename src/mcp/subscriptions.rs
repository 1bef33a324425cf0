//! Which legacy sessions want to be told of changes of which resources of servers.
//!
//! A process that many share is subscribed once for all of them, so it is left only by the last.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

/// Subscriptions of all sessions together.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// A resource of a server.
type Subject = (String, String);

/// The subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Mutex<HashMap<u64, HashSet<Subject>>>);

impl Subscriptions {
    /// The session wants to be told; false if there are too many.
    pub(super) fn add(&self, session: u64, server: &str, uri: &str) -> bool {
        let mut all = self.0.lock();
        if all.values().map(HashSet::len).sum::<usize>() >= MAX_SUBSCRIPTIONS {
            return false;
        }
        all.entry(session).or_default().insert((server.to_owned(), uri.to_owned()));
        true
    }

    /// The session does not any more. Is there nobody left who does?
    pub(super) fn remove(&self, session: u64, server: &str, uri: &str) -> bool {
        let subject = (server.to_owned(), uri.to_owned());
        let mut all = self.0.lock();
        if let Some(own) = all.get_mut(&session) {
            own.remove(&subject);
            if own.is_empty() {
                all.remove(&session);
            }
        }
        !all.values().any(|subjects| subjects.contains(&subject))
    }

    /// The session has ended.
    pub(super) fn end(&self, session: u64) {
        self.0.lock().remove(&session);
    }

    /// Does the session want to be told?
    pub(super) fn has(&self, session: u64, server: &str, uri: &str) -> bool {
        let subject = (server.to_owned(), uri.to_owned());
        self.0.lock().get(&session).is_some_and(|subjects| subjects.contains(&subject))
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
        assert!(subscriptions.0.lock().is_empty());
    }

    #[test]
    fn they_are_bounded() {
        let subscriptions = Subscriptions::default();
        let added = (0..=MAX_SUBSCRIPTIONS as u64).filter(|session| subscriptions.add(*session, "a", "x")).count();
        assert_eq!(added, MAX_SUBSCRIPTIONS);
    }
}
