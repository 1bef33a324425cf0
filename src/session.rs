//! What each session did lately: its calls in order, repeats kept.
//!
//! An immutable map that its owner changes and publishes: readers hold the last one. Bounded in sessions and in calls
//! of each. Tenants have equal shares: the session that goes is the quietest one of whoever has most.

pub mod days;
pub mod turns;

use std::sync::Arc;

use imbl::{HashMap, OrdMap};

pub use days::Days;
pub use turns::{Turn, Turns};

/// Calls kept of a session.
pub const MAX_CALLS: usize = 100;

pub const MAX_SESSIONS: usize = 10_000;

/// The sessions of all tenants.
#[derive(Debug, Clone, Default)]
pub struct Sessions {
    by_name: HashMap<Name, Session>,
    by_age: ByAge,
    calls: u64,
}

/// A session's tenant and identity.
type Name = Arc<(String, String)>;

#[derive(Debug, Clone)]
struct Session {
    last: u64,
    tools: Arc<[Arc<str>]>,
    moments: Arc<[Moment]>,
}

/// When a call ended.
#[derive(Debug, Clone, Copy)]
struct Moment {
    /// In ms since the epoch.
    at_ms: i64,
    /// Was this daemon told of it?
    is_own: bool,
}

impl Moment {
    /// Where its call stands among those before.
    fn place(self, moments: &[Self]) -> usize {
        let is_before = |other: &Self| self.is_own || !other.is_own || other.at_ms <= self.at_ms;
        moments.iter().rposition(is_before).map_or(0, |last| last + 1)
    }
}

impl Sessions {
    /// Takes note of a call, which comes after all that are known of the session. It ended at `at_ms`, in ms since the
    /// epoch.
    pub fn called(&mut self, tenant: &str, session: &str, tool: &str, at_ms: i64) {
        self.put(tenant, session, tool, Moment { at_ms, is_own: true });
    }

    /// Takes note of a call that another daemon was told. It is heard of late, and comes before those that this one was
    /// told meanwhile and that ended after it. Those of others keep the order in which they were told.
    pub fn heard(&mut self, tenant: &str, session: &str, tool: &str, at_ms: i64) {
        self.put(tenant, session, tool, Moment { at_ms, is_own: false });
    }

    fn put(&mut self, tenant: &str, session: &str, tool: &str, moment: Moment) {
        self.calls += 1;
        let name: Name = Arc::new((tenant.to_owned(), session.to_owned()));
        let (mut tools, mut moments) = (Vec::<Arc<str>>::new(), Vec::new());
        if let Some(known) = self.by_name.get(&name) {
            self.by_age.remove(tenant, known.last);
            tools.extend_from_slice(&known.tools);
            moments.extend_from_slice(&known.moments);
        }
        let place = moment.place(&moments);
        tools.insert(place, tool.into());
        moments.insert(place, moment);
        let beyond = tools.len().saturating_sub(MAX_CALLS);
        tools.drain(..beyond);
        moments.drain(..beyond);
        self.by_age.insert(self.calls, Arc::clone(&name));
        self.by_name.insert(name, Session { last: self.calls, tools: tools.into(), moments: moments.into() });
        while self.by_name.len() > MAX_SESSIONS {
            let Some(oldest) = self.by_age.remove_quietest() else { break };
            self.by_name.remove(&oldest);
        }
    }

    /// The session's calls, oldest first; nothing if it is not known to the tenant.
    pub fn history(&self, tenant: &str, session: &str) -> Option<&Arc<[Arc<str>]>> {
        self.by_name.get(&(tenant.to_owned(), session.to_owned())).map(|session| &session.tools)
    }
}

/// The sessions of each tenant by the time of the last call, which is a count of calls.
#[derive(Debug, Clone, Default)]
struct ByAge(HashMap<String, OrdMap<u64, Name>>);

impl ByAge {
    fn insert(&mut self, at: u64, name: Name) {
        self.0.entry(name.0.clone()).or_default().insert(at, name);
    }

    /// The tenant's sessions, the latest first.
    fn latest_of(&self, tenant: &str) -> impl Iterator<Item = &Name> {
        self.0.get(tenant).into_iter().flat_map(|sessions| sessions.values().rev())
    }

    fn remove(&mut self, tenant: &str, at: u64) {
        if let Some(sessions) = self.0.get_mut(tenant) {
            sessions.remove(&at);
            if sessions.is_empty() {
                self.0.remove(tenant);
            }
        }
    }

    /// Of the tenant with most sessions the one that was quiet longest; of equals the tenant whose was.
    fn remove_quietest(&mut self) -> Option<Name> {
        let oldest = |sessions: &OrdMap<u64, Name>| sessions.get_min().map(|(at, _)| *at);
        let order = |sessions: &OrdMap<u64, Name>| (sessions.len(), std::cmp::Reverse(oldest(sessions)));
        let (tenant, at, name) =
            self.0.iter().max_by_key(|(_, sessions)| order(sessions)).and_then(|(tenant, sessions)| {
                sessions.get_min().map(|(at, name)| (tenant.clone(), *at, name.clone()))
            })?;
        self.remove(&tenant, at);
        Some(name)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.values().map(OrdMap::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(sessions: &Sessions, tenant: &str, session: &str) -> Vec<String> {
        sessions
            .history(tenant, session)
            .map(|tools| tools.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    #[test]
    fn order_and_repeats_are_kept_and_tenants_apart() {
        let mut sessions = Sessions::default();
        for tool in ["a", "b", "a"] {
            sessions.called("t", "s", tool, 0);
        }
        let before = sessions.clone();
        sessions.called("u", "s", "c", 0);
        assert_eq!(history(&sessions, "t", "s"), ["a", "b", "a"]);
        assert_eq!(history(&sessions, "u", "s"), ["c"]);
        assert!(before.history("u", "s").is_none(), "a published state is unmoved");
    }

    #[test]
    fn what_is_heard_late_stands_at_its_moment() {
        let mut sessions = Sessions::default();
        let mut check = |is_own: bool, tool: &str, at_ms: i64, expected: &str| {
            let note = if is_own { Sessions::called } else { Sessions::heard };
            note(&mut sessions, "t", "s", tool, at_ms);
            assert_eq!(history(&sessions, "t", "s").concat(), expected, "{tool} at {at_ms}");
        };
        check(false, "a", 10, "a");
        check(true, "c", 30, "ac");
        check(true, "d", 40, "acd");
        check(false, "b", 20, "abcd");
        check(false, "e", 40, "abcde");
        check(true, "f", 5, "abcdef");
        check(false, "g", 60, "abcdefg");
        // Whoever told of it said another moment.
        check(false, "h", 1, "abcdefgh");
    }

    #[test]
    fn both_bounds_hold() {
        let mut sessions = Sessions::default();
        for call in 0..MAX_CALLS + 5 {
            sessions.called("t", "long", &call.to_string(), 0);
        }
        assert_eq!(history(&sessions, "t", "long").len(), MAX_CALLS);
        assert_eq!(history(&sessions, "t", "long")[0], "5");
        for session in 0..MAX_SESSIONS {
            sessions.called("t", &session.to_string(), "x", 0);
        }
        assert_eq!(sessions.by_name.len(), MAX_SESSIONS);
        assert!(sessions.history("t", "long").is_none(), "the quietest is gone");
    }

    #[test]
    fn a_tenant_cannot_take_the_sessions_of_another() {
        let mut sessions = Sessions::default();
        for session in 0..100 {
            sessions.called("small", &session.to_string(), "x", 0);
        }
        for session in 0..2 * MAX_SESSIONS {
            sessions.called("large", &session.to_string(), "x", 0);
        }
        assert_eq!((sessions.by_name.len(), sessions.by_age.len()), (MAX_SESSIONS, MAX_SESSIONS));
        assert!((0..100).all(|session| sessions.history("small", &session.to_string()).is_some()));
    }
}
