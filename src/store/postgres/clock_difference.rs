//! Whether this machine's clock agrees with the server's. What bears the time of the machine that was told it is in the
//! wrong order where they do not, and nobody else would notice.

use std::fmt;
use std::time::{Duration, SystemTime};

/// More than this is told.
const MOST: Duration = Duration::from_secs(1);

/// It is over once it is no more than this, so that what is near the bound does not come and go.
const SETTLED: Duration = Duration::from_millis(500);

/// How far this machine's clock is from the server's at least, if that is more than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDifference {
    Ahead(Duration),
    Behind(Duration),
}

impl ClockDifference {
    /// By what the server said between two moments of this machine, and what was told before.
    pub(super) fn of(before: SystemTime, said: SystemTime, after: SystemTime, told: Option<Self>) -> Option<Self> {
        let most = if told.is_some() { SETTLED } else { MOST };
        let (ahead, behind) = (before.duration_since(said), said.duration_since(after));
        let is_much = |by: &Duration| *by > most;
        ahead.ok().filter(is_much).map(Self::Ahead).or(behind.ok().filter(is_much).map(Self::Behind))
    }
}

impl fmt::Display for ClockDifference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, what) = match self {
            Self::Ahead(by) => (by, "ahead of"),
            Self::Behind(by) => (by, "behind"),
        };
        let by = humantime::format_duration(Duration::from_millis((by.as_millis() as u64 + 50) / 100 * 100));
        write!(formatter, "this machine's clock is {by} {what} the database server's; have NTP set both")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sure_and_too_much_is_told() {
        let at = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + ms);
        let check = |said: u64, before: u64, after: u64, told: Option<ClockDifference>, expected: Option<&str>| {
            let found = ClockDifference::of(at(before), at(said), at(after), told);
            assert_eq!(found.map(|found| found.to_string()).as_deref(), expected, "{said} in {before}..{after}");
        };
        let ahead = "this machine's clock is 2s 500ms ahead of the database server's; have NTP set both";
        let behind = "this machine's clock is 1s 200ms behind the database server's; have NTP set both";
        check(5000, 5000, 5000, None, None);
        check(5000, 6000, 6001, None, None);
        check(5000, 7540, 7600, None, Some(ahead));
        check(5000, 3700, 3799, None, Some(behind));
        // A server that was slow to answer may have said so at any moment of these.
        check(5000, 1000, 9000, None, None);
        let told = Some(ClockDifference::Ahead(MOST));
        check(5000, 5501, 5501, None, None);
        check(5000, 5500, 5500, told, None);
        check(5000, 7500, 7500, told, Some(ahead));
        check(
            5000,
            5600,
            5600,
            told,
            Some("this machine's clock is 600ms ahead of the database server's; have NTP set both"),
        );
    }
}
