//! What the log is told of the server: when it cannot be used, when that has another cause, and when it is over; not
//! each time that it comes and goes.

use std::mem::Discriminant;
use std::time::{Duration, Instant};

use super::fault::DatabaseFault;
use super::server_trouble::ServerTrouble;

/// Between two lines. What changed meanwhile is told then, unless it changed back.
const QUIET: Duration = Duration::from_secs(5);

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct ToldTrouble {
    /// Nothing while all is well.
    kind: Option<Discriminant<DatabaseFault>>,
    at: Option<Instant>,
    /// How many records had been sent late when it began.
    sent_before: u64,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TroubleNews<'t> {
    /// It cannot be used, for this reason.
    Is(&'t str),
    /// It can be used again, and so many records that had waited were sent since it could not.
    Over { sent: u64 },
}

impl ToldTrouble {
    /// How it is at a moment, and how many records were sent late since the start.
    pub(super) fn hear<'t>(
        &mut self,
        trouble: Option<&'t ServerTrouble>,
        sent: u64,
        now: Instant,
    ) -> Option<TroubleNews<'t>> {
        let kind = trouble.map(|trouble| trouble.kind);
        let is_too_soon = self.at.is_some_and(|at| now.saturating_duration_since(at) < QUIET);
        if kind == self.kind || is_too_soon {
            return None;
        }
        if self.kind.is_none() {
            self.sent_before = sent;
        }
        (self.kind, self.at) = (kind, Some(now));
        Some(match trouble {
            Some(trouble) => TroubleNews::Is(&trouble.why),
            None => TroubleNews::Over { sent: sent.saturating_sub(self.sent_before) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(reason: &str) -> DatabaseFault {
        DatabaseFault::Unreachable { server: "s".into(), reason: reason.into() }
    }

    /// Hears at tenths of a second of a fault and of records sent, and compares what the log is told.
    fn check(heard: &[(u64, Option<DatabaseFault>, u64, Option<&str>)]) {
        let (start, mut told) = (Instant::now(), ToldTrouble::default());
        for (tenths, fault, sent, expected) in heard {
            let trouble = fault.as_ref().map(ServerTrouble::from);
            let news = told.hear(trouble.as_ref(), *sent, start + Duration::from_millis(100 * tenths));
            let said = news.map(|news| match news {
                TroubleNews::Is(why) => why.to_owned(),
                TroubleNews::Over { sent } => format!("over, {sent} sent"),
            });
            assert_eq!(said.as_deref(), *expected, "{fault:?} at {tenths}");
        }
    }

    #[test]
    fn what_comes_and_goes_and_changes_is_told_once() {
        let gone = || Some(unreachable("gone"));
        let said = "the database server s cannot be reached: gone";
        let refused = || Some(DatabaseFault::Password("no".into()));
        let said_refused = "the database server refuses the user or the password: no";
        check(&[(0, None, 0, None), (1, gone(), 3, Some(said)), (2, gone(), 3, None)]);
        check(&[(0, gone(), 3, Some(said)), (60, None, 139, Some("over, 136 sent")), (61, None, 140, None)]);
        // A detail is no other cause; another cause is told when the last line is some seconds old.
        check(&[(0, gone(), 0, Some(said)), (60, Some(unreachable("starting up")), 0, None)]);
        check(&[(0, gone(), 0, Some(said)), (10, refused(), 0, None), (50, refused(), 0, Some(said_refused))]);
        check(&[
            (0, gone(), 0, Some(said)),
            (60, refused(), 0, Some(said_refused)),
            (120, None, 5, Some("over, 5 sent")),
            (180, gone(), 5, Some(said)),
            (240, None, 7, Some("over, 2 sent")),
        ]);
        // What comes and goes all the time is told now and then.
        check(&[
            (0, gone(), 0, Some(said)),
            (1, None, 0, None),
            (2, gone(), 0, None),
            (55, None, 0, Some("over, 0 sent")),
        ]);
    }
}
