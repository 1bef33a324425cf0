//! What is remembered of legacy sessions beside their ids: that one was ended, and which log messages it wants.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use prometheus::IntGauge;

use super::log_level::LogLevel;

/// Sessions of which something is remembered; the oldest give way.
const MAX_SESSIONS: usize = 10_000;

/// What is remembered of a session.
#[derive(Debug, Clone, Copy, Default)]
struct Remembered {
    has_ended: bool,
    /// From which level on log messages are wanted, if it said.
    log_level: Option<LogLevel>,
}

/// What is remembered of sessions.
#[derive(Debug)]
pub(super) struct McpSessions {
    known: Mutex<Known>,
    count: IntGauge,
}

#[derive(Debug, Default)]
struct Known {
    sessions: HashMap<u64, Remembered>,
    /// The oldest first.
    order: VecDeque<u64>,
}

impl McpSessions {
    /// Nothing yet; `count` shows of how many.
    pub(super) fn new(count: IntGauge) -> Self {
        Self { known: Mutex::default(), count }
    }

    fn change(&self, session: u64, change: impl FnOnce(&mut Remembered)) {
        let mut known = self.known.lock();
        if !known.sessions.contains_key(&session) {
            if known.sessions.len() >= MAX_SESSIONS
                && let Some(oldest) = known.order.pop_front()
            {
                known.sessions.remove(&oldest);
            }
            known.order.push_back(session);
        }
        change(known.sessions.entry(session).or_default());
        self.count.set(known.sessions.len() as i64);
    }

    /// The client ended it.
    pub(super) fn end(&self, session: u64) {
        self.change(session, |remembered| remembered.has_ended = true);
    }

    /// The client said from which level on it wants log messages.
    pub(super) fn set_log_level(&self, session: u64, level: LogLevel) {
        self.change(session, |remembered| remembered.log_level = Some(level));
    }

    /// From which level on it wants log messages, if it said.
    pub(super) fn log_level(&self, session: u64) -> Option<LogLevel> {
        self.known.lock().sessions.get(&session)?.log_level
    }

    /// Was it ended?
    pub(super) fn has_ended(&self, session: u64) -> bool {
        self.known.lock().sessions.get(&session).is_some_and(|remembered| remembered.has_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way() {
        let sessions = McpSessions::new(IntGauge::new("n", "n").unwrap());
        for session in 0..=MAX_SESSIONS as u64 {
            sessions.end(session);
        }
        assert!(!sessions.has_ended(0) && sessions.has_ended(1) && sessions.has_ended(MAX_SESSIONS as u64));
        assert_eq!(sessions.count.get(), MAX_SESSIONS as i64);
    }
}
