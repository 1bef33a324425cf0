//! Sessions that other daemons were told calls of, too. What such a session called last is known to the database alone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::store::SessionCall;

/// Sessions that are held. Beyond them all are forgotten.
const MAX_SESSIONS: usize = 10_000;

/// By tenant and name.
#[derive(Debug, Default)]
pub(super) struct MovedSessions {
    held: Mutex<HashSet<(String, String)>>,
    /// Were some forgotten since this was asked?
    is_cut: AtomicBool,
}

impl MovedSessions {
    /// Others were told these calls.
    pub(super) fn hear(&self, calls: &[SessionCall]) {
        if calls.is_empty() {
            return;
        }
        let mut sessions = self.held.lock();
        for SessionCall { tenant, session, .. } in calls {
            if sessions.len() >= MAX_SESSIONS {
                sessions.clear();
                self.is_cut.store(true, Ordering::Relaxed);
            }
            sessions.insert((tenant.clone(), session.clone()));
        }
    }

    /// Was another daemon told of this one?
    pub(super) fn has(&self, tenant: &str, session: &str) -> bool {
        let sessions = self.held.lock();
        !sessions.is_empty() && sessions.contains(&(tenant.to_owned(), session.to_owned()))
    }

    /// Were some forgotten? Told once; then nothing that is held of any session stands.
    pub(super) fn were_cut(&self) -> bool {
        self.is_cut.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_held_within_bounds() {
        let moved = MovedSessions::default();
        let call = |number: usize| {
            let (tenant, tool) = ("t".to_owned(), "a".to_owned());
            SessionCall { tenant, session: number.to_string(), tool, at_ms: 0 }
        };
        moved.hear(&[call(0), call(1), call(1)]);
        assert!(moved.has("t", "1") && !moved.has("u", "1") && !moved.has("t", "2"));
        assert!(!moved.were_cut());
        moved.hear(&(2..=MAX_SESSIONS).map(call).collect::<Vec<_>>());
        assert!(moved.has("t", &MAX_SESSIONS.to_string()) && moved.held.lock().len() <= MAX_SESSIONS);
        assert!(moved.were_cut() && !moved.were_cut(), "told once");
    }
}
