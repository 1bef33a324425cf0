//! How long things have been kept, by what cannot jump: the order they came in, and the time that passed.
//!
//! Now and then a mark is written: which record was the last, what the clock said, and how much time has passed since
//! the first mark. While the daemon runs, that is what the kernel counts since the machine was started, whatever is set
//! on the clock. Between two runs only the clock can tell, so of what it says a limited part counts. What is older than
//! a mark is at least as old as the mark; so nothing goes before its time, and a leap of the clock takes nothing.

use std::time::Duration;

use rusqlite::{OptionalExtension, Transaction, params};

use crate::store::clock::now;

/// What counts at most of the time between two runs: longer pauses keep what there is for longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// The share of the retention that a pause counts for at most is one in this many.
const PAUSES: u32 = 8;

/// Marks of a retention, about: one in this many is how exact an age is.
const MARKS: u32 = 1000;

/// What the clock may be off by without its being said: some are set once a day.
const TOLERATED_MS: i64 = 10 * 60 * 1000;

/// A longer pause than this is said: it may as well be the clock.
const PAUSE_SAID_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// What two clocks say at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// Since the epoch, as far as the machine knows.
    pub(super) wall_ms: i64,
    /// Since the machine was started, its sleep included.
    pub(super) running_ms: i64,
}

impl ClockReading {
    pub(super) fn now() -> Self {
        let running = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let running_ms = running.tv_sec.saturating_mul(1000).saturating_add(running.tv_nsec / 1_000_000);
        Self { wall_ms: now().as_millis() as i64, running_ms }
    }
}

/// A clock that was set, or was wrong in one of two runs, by so many ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leap {
    Ahead(i64),
    Back(i64),
}

impl Leap {
    fn of(said_ms: i64, passed_ms: i64) -> Option<Self> {
        let by_ms = said_ms.saturating_sub(passed_ms);
        let leap = if by_ms > 0 { Self::Ahead(by_ms) } else { Self::Back(-by_ms) };
        (by_ms.abs() >= TOLERATED_MS).then_some(leap)
    }

    /// Says what it is about to change: nothing.
    fn say(self, retention: Duration) {
        let (by_ms, way) = match self {
            Self::Ahead(by_ms) => (by_ms, "ahead of"),
            Self::Back(by_ms) => (by_ms, "behind"),
        };
        let by = humantime::format_duration(Duration::from_secs(by_ms.unsigned_abs() / 1000));
        let retention = humantime::format_duration(retention);
        tracing::warn!(
            "the clock is {by} {way} the time that passed while this daemon ran or paused; it removes nothing for \
             that: records go once {retention} have passed since they came"
        );
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    passed_ms: i64,
    wall_ms: i64,
}

/// How much time has passed at the moment `now`, by the last mark and, if this run wrote it, the moment it was written
/// at.
fn pass(
    last: Option<Mark>,
    written: Option<ClockReading>,
    now: ClockReading,
    retention: Duration,
) -> (i64, Option<Leap>) {
    match (last, written) {
        (None, _) => (0, None),
        (Some(last), Some(written)) => {
            let passed = (now.running_ms - written.running_ms).max(0);
            (last.passed_ms.saturating_add(passed), Leap::of(now.wall_ms - written.wall_ms, passed))
        }
        (Some(last), None) => {
            let longest = LONGEST_PAUSE.min(retention / PAUSES).as_millis() as i64;
            let said = now.wall_ms.saturating_sub(last.wall_ms);
            let passed = said.clamp(0, longest);
            let leap = match said {
                ..=PAUSE_SAID_MS => Leap::of(said.min(0), 0),
                _ => Some(Leap::Ahead(said - passed)),
            };
            (last.passed_ms.saturating_add(passed), leap)
        }
    }
}

/// What is old enough to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Old {
    /// Records up to this id.
    pub(super) through: i64,
    /// What was stamped before this by the clock, in ms since the epoch.
    pub(super) before_ms: i64,
}

/// The looks at the clock that were made.
#[derive(Debug, Default)]
pub(super) struct Ageing {
    /// When this run wrote the last mark.
    written: Option<ClockReading>,
    /// What had passed by then.
    passed_ms: i64,
}

impl Ageing {
    /// Writes a mark: now `through` is the id of the last record.
    pub(super) fn mark(
        &mut self,
        transaction: &Transaction<'_>,
        now: ClockReading,
        through: i64,
        retention: Duration,
    ) -> rusqlite::Result<()> {
        let mut latest =
            transaction.prepare_cached("SELECT passed_ms, wall_ms FROM age_marks ORDER BY passed_ms DESC LIMIT 2")?;
        let rows = latest.query_map([], |row| Ok(Mark { passed_ms: row.get(0)?, wall_ms: row.get(1)? }))?;
        let latest: Vec<Mark> = rows.collect::<rusqlite::Result<_>>()?;
        let (passed_ms, leap) = pass(latest.first().copied(), self.written, now, retention);
        if let Some(leap) = leap {
            leap.say(retention);
        }
        // Two marks that are closer than an age is exact are one, the later.
        let grain = (retention / MARKS).as_millis() as i64;
        if let [last, before] = latest[..]
            && last.passed_ms - before.passed_ms < grain
        {
            transaction.execute("DELETE FROM age_marks WHERE passed_ms = ?1", [last.passed_ms])?;
        }
        let put = "INSERT INTO age_marks (passed_ms, wall_ms, through) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET wall_ms = excluded.wall_ms, through = excluded.through";
        transaction.execute(put, params![passed_ms, now.wall_ms, through])?;
        (self.written, self.passed_ms) = (Some(now), passed_ms);
        Ok(())
    }

    /// What came longer than `age` ago, by the marks; nothing as long as there are none that old.
    pub(super) fn old(&self, transaction: &Transaction<'_>, age: Duration) -> rusqlite::Result<Option<Old>> {
        let since = self.passed_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let through: Option<i64> = transaction
            .prepare_cached("SELECT through FROM age_marks WHERE passed_ms <= ?1 ORDER BY passed_ms DESC LIMIT 1")?
            .query_row([since], |row| row.get(0))
            .optional()?;
        // A clock that was set back stamped what is young with what is early.
        let before_ms: Option<i64> = transaction
            .prepare_cached("SELECT min(wall_ms) FROM age_marks WHERE passed_ms >= ?1")?
            .query_row([since], |row| row.get(0))?;
        Ok(through.zip(before_ms).map(|(through, before_ms)| Old { through, before_ms }))
    }

    /// Forgets the marks that `age` and every shorter one need no more.
    pub(super) fn prune(&self, transaction: &Transaction<'_>, age: Duration) -> rusqlite::Result<()> {
        let since = self.passed_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let beyond = "DELETE FROM age_marks WHERE passed_ms <
                      (SELECT passed_ms FROM age_marks WHERE passed_ms <= ?1 ORDER BY passed_ms DESC LIMIT 1)";
        transaction.execute(beyond, [since]).map(drop)
    }
}

/// So much time passes, as a daemon sees it that runs.
#[cfg(test)]
pub(super) fn let_pass(path: &std::path::Path, time: Duration) {
    let more = "INSERT INTO age_marks SELECT max(passed_ms) + ?1, wall_ms, through FROM age_marks";
    rusqlite::Connection::open(path).unwrap().execute(more, [time.as_millis() as i64]).unwrap();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::super::migrations::migrate;
    use super::*;

    const HOUR: i64 = 60 * 60 * 1000;
    const DAY: i64 = 24 * HOUR;
    const RETENTION: Duration = Duration::from_secs(183 * 24 * 60 * 60);

    fn check(written: Option<ClockReading>, wall_ms: i64, running_ms: i64, expected: i64, leap: Option<Leap>) {
        let last = Some(Mark { passed_ms: 5 * DAY, wall_ms: 1000 * DAY });
        let now = ClockReading { wall_ms, running_ms };
        assert_eq!(pass(last, written, now, RETENTION), (5 * DAY + expected, leap), "{written:?} {now:?}");
    }

    #[test]
    fn only_time_that_passed_counts() {
        let written = Some(ClockReading { wall_ms: 1000 * DAY, running_ms: 7 * DAY });
        check(written, 1000 * DAY + HOUR, 7 * DAY + HOUR, HOUR, None);
        check(written, 1200 * DAY, 7 * DAY + HOUR, HOUR, Some(Leap::Ahead(200 * DAY - HOUR)));
        check(written, 999 * DAY, 7 * DAY + HOUR, HOUR, Some(Leap::Back(DAY + HOUR)));
        // In another run, whose machine may have been started anew.
        check(None, 1000 * DAY + HOUR, 1, HOUR, None);
        check(None, 1002 * DAY, 1, DAY, None);
        check(None, 1200 * DAY, 900 * DAY, DAY, Some(Leap::Ahead(199 * DAY)));
        check(None, 900 * DAY, 900 * DAY, 0, Some(Leap::Back(100 * DAY)));
        let first = ClockReading { wall_ms: 7, running_ms: 8 };
        assert_eq!(pass(None, None, first, RETENTION), (0, None));
    }

    /// Marks as they are written by one run after the other.
    struct Site {
        connection: Connection,
        ageing: Ageing,
        id: i64,
        /// What truly passed, and when each id came.
        time: i64,
        came: Vec<i64>,
    }

    impl Site {
        fn new() -> Self {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection).unwrap();
            Self { connection, ageing: Ageing::default(), id: 0, time: 0, came: vec![0] }
        }

        fn mark(&mut self, ahead: i64) {
            let now = ClockReading { wall_ms: 1000 * DAY + self.time + ahead, running_ms: self.time };
            let transaction = self.connection.transaction().unwrap();
            self.ageing.mark(&transaction, now, self.id, RETENTION).unwrap();
            self.ageing.prune(&transaction, RETENTION).unwrap();
            transaction.commit().unwrap();
        }

        fn old(&mut self) -> Option<Old> {
            let transaction = self.connection.transaction().unwrap();
            self.ageing.old(&transaction, RETENTION).unwrap()
        }
    }

    proptest! {
        /// Whatever the clock says while the daemon runs, nothing goes before its time, and all goes a while after.
        #[test]
        fn leaps_of_the_clock_take_nothing(leaps in prop::collection::vec((0i64..40, -400i64..400), 1..30)) {
            let mut site = Site::new();
            for (days, ahead) in leaps {
                site.mark(ahead * DAY);
                if let Some(old) = site.old() {
                    let came = site.came[old.through as usize];
                    prop_assert!(site.time - came >= 183 * DAY, "of day {} on day {}", came / DAY, site.time / DAY);
                }
                site.id += 1;
                site.came.push(site.time);
                site.time += days * DAY;
            }
            site.mark(0);
            let last = site.id;
            site.time += 184 * DAY;
            site.mark(0);
            prop_assert_eq!(site.old().map(|old| old.through), Some(last));
        }
    }

    #[test]
    fn what_a_clock_that_was_behind_stamped_goes_in_its_time() {
        let mut site = Site::new();
        let (behind, week) = (-1000 * DAY, Duration::from_secs(7 * 24 * 60 * 60));
        for (days, ahead) in [(0, behind), (1, behind), (1, 0), (6, 0), (1, 0)] {
            site.time += days * DAY;
            site.mark(ahead);
        }
        let transaction = site.connection.transaction().unwrap();
        // Nine days have passed; of the last seven, the earliest that was said.
        let old = site.ageing.old(&transaction, week).unwrap().unwrap();
        assert_eq!(old.before_ms, 1002 * DAY);
    }
}
