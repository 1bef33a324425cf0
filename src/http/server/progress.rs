//! What a connection is doing and since when: the transport notes it, the connection's one timer looks at it.
//!
//! A timer armed and disarmed for every request costs more than the request; a store to an atomic does not.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::places::Place;
use crate::http::handler::Connection;
use crate::http::settings::Settings;

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Progress {
    /// Milliseconds of the clock.
    opened: u64,
    phase: AtomicU8,
    /// Milliseconds from `opened` to when the phase began.
    since: AtomicU64,
    /// How often there was nothing to read.
    lulls: AtomicU64,
    /// Milliseconds from `opened`, and one, to when the peer stopped taking what is written; 0 while it takes it.
    stalled: AtomicU64,
    /// Is the request's work given up when the client leaves?
    is_abandoned: AtomicBool,
    /// The connection's place among those that ask, until it only listens.
    place: Mutex<Option<Place>>,
    /// Was a request answered whose body was not read to its end?
    is_unread: AtomicBool,
    /// Has the peer closed its side?
    has_ended: AtomicBool,
    /// Bytes that the peer took since it stalled.
    trickled: AtomicU64,
    /// Are no more requests taken than the one that is on its way?
    is_ending: AtomicBool,
}

/// Nothing has come yet.
const FRESH: u8 = 0;
const IDLE: u8 = 1;
/// A head began to arrive.
const HEAD: u8 = 2;
/// A request is worked on, its body included.
const WORKING: u8 = 3;
/// The answer is being written; the request's clock runs on.
const ANSWERING: u8 = 4;
/// The answer is a stream, which may last.
const STREAMING: u8 = 5;

/// What a peer must take of a stream within its time limit, in bytes, unless it takes all there is.
const LEAST_BYTES: u64 = 4096;

/// A time limit that a connection broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    Idle,
    Head,
    Request,
    /// The peer takes nothing of a stream.
    Stalled,
}

impl Overdue {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Idle => "idle_timeout",
            Self::Head => "header_read_timeout",
            Self::Request => "request_timeout",
            Self::Stalled => "stalled_stream",
        }
    }
}

impl Progress {
    pub(super) fn new(place: Option<Place>) -> Self {
        Self {
            opened: coarse_ms(),
            phase: AtomicU8::new(FRESH),
            since: AtomicU64::new(0),
            lulls: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            is_abandoned: AtomicBool::new(false),
            place: Mutex::new(place),
            is_unread: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            trickled: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }

    fn elapsed(&self) -> u64 {
        coarse_ms().saturating_sub(self.opened)
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.elapsed(), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// A request is worked on from now on, which is given up when the client leaves or not.
    pub(super) fn request_began(&self, is_abandoned: bool) {
        self.is_abandoned.store(is_abandoned, Ordering::Relaxed);
        self.enter(WORKING);
    }

    /// The peer has closed its side.
    pub(super) fn ended(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Whether there is more of the request to read.
    pub(super) fn set_unread(&self, is_unread: bool) {
        self.is_unread.store(is_unread, Ordering::Relaxed);
    }

    /// Is the client still sending what nobody reads? Closed at once, the connection would be reset, and the answer
    /// with it.
    pub(super) fn lingers(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed) || self.phase.load(Ordering::Relaxed) == HEAD
    }

    pub(super) fn request_ended(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    /// The answer is a stream from now on; the connection gives up its place among those that ask.
    pub(super) fn stream_began(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.place.lock().take();
        self.enter(STREAMING);
    }

    pub(super) fn read(&self) {
        if matches!(self.phase.load(Ordering::Relaxed), FRESH | IDLE) {
            self.enter(HEAD);
        }
    }

    /// There was nothing to read.
    pub(super) fn found_nothing(&self) {
        self.lulls.fetch_add(1, Ordering::Relaxed);
    }

    /// The peer took so many bytes of what was written, or none. A few do not make up for a stall.
    pub(super) fn wrote(&self, taken: Option<usize>) {
        if let Some(taken) = taken {
            let stalled = self.stalled.load(Ordering::Relaxed) > 0;
            if stalled && self.trickled.fetch_add(taken as u64, Ordering::Relaxed) + taken as u64 >= LEAST_BYTES {
                self.keeps_up();
            }
        } else if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(self.elapsed() + 1, Ordering::Relaxed);
        }
    }

    fn keeps_up(&self) {
        self.stalled.store(0, Ordering::Relaxed);
        self.trickled.store(0, Ordering::Relaxed);
    }

    /// All that was to be written has been.
    pub(super) fn flushed(&self) {
        if self.stalled.load(Ordering::Relaxed) > 0 {
            self.keeps_up();
        }
        if self.phase.load(Ordering::Relaxed) == ANSWERING {
            self.enter(IDLE);
        }
    }

    /// Should the end of what the peer sends be told to whoever works on its request?
    pub(super) fn reports_end(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
            || !matches!(self.phase.load(Ordering::Relaxed), WORKING | ANSWERING | STREAMING)
    }

    /// The same of a connection that broke. A body that is still read will not come to its end.
    pub(super) fn reports_failure(&self) -> bool {
        self.reports_end() || self.is_unread.load(Ordering::Relaxed)
    }

    /// How long until a limit is broken, or which one is.
    pub(super) fn check(&self, limits: &Settings) -> Result<Duration, Overdue> {
        let (limit, overdue, since) = match self.phase.load(Ordering::Relaxed) {
            HEAD => (limits.header_read_timeout, Overdue::Head, self.since.load(Ordering::Relaxed)),
            WORKING | ANSWERING => {
                (limits.request_timeout + GRACE, Overdue::Request, self.since.load(Ordering::Relaxed))
            }
            STREAMING => match self.stalled.load(Ordering::Relaxed) {
                0 => return Ok(limits.stall_timeout),
                since => (limits.stall_timeout, Overdue::Stalled, since - 1),
            },
            FRESH => (limits.header_read_timeout.min(limits.idle_timeout), Overdue::Idle, 0),
            _ => (limits.idle_timeout, Overdue::Idle, self.since.load(Ordering::Relaxed)),
        };
        let spent = Duration::from_millis(self.elapsed().saturating_sub(since));
        limit.checked_sub(spent).filter(|left| !left.is_zero()).ok_or(overdue)
    }

    /// The shortest time in which a limit can be broken that none is close to now.
    pub(super) fn shortest(limits: &Settings) -> Duration {
        let least = limits.header_read_timeout.min(limits.request_timeout);
        least.min(limits.idle_timeout).min(limits.stall_timeout)
    }

    /// The daemon stops: no more is taken than the request that is on its way.
    pub(super) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Has no byte of a request come yet?
    pub(super) fn is_fresh(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == FRESH
    }

    /// Is a request on its way, or may one be?
    pub(super) fn expects_request(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), FRESH | HEAD)
    }
}

impl Connection for Progress {
    fn goes_on(&self) {
        self.enter(WORKING);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn lulls(&self) -> u64 {
        self.lulls.load(Ordering::Relaxed)
    }
}

/// Milliseconds of a clock that is read in a few nanoseconds, for limits of seconds.
fn coarse_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.cast_unsigned() * 1000 + now.tv_nsec.cast_unsigned() / 1_000_000
}

/// A handler that reads a slow body answers 408 by itself; the connection is closed only if even that does not get out.
const GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_limit() {
        let limits = Settings {
            header_read_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(3),
            stall_timeout: Duration::from_secs(9),
            ..Settings::default()
        };
        let progress = Progress { opened: coarse_ms() - 60_000, ..Progress::new(None) };
        assert_eq!(progress.check(&limits), Err(Overdue::Idle));
        let near = |limit: u64| {
            let left = progress.check(&limits).unwrap();
            assert!(
                left <= Duration::from_secs(limit) && left + Duration::from_millis(900) > Duration::from_secs(limit)
            );
        };
        assert!(progress.is_fresh() && progress.reports_end());
        progress.read();
        near(1);
        progress.request_began(false);
        progress.read();
        near(5);
        assert!(!progress.reports_end());
        progress.request_ended();
        progress.read();
        near(5);
        progress.flushed();
        near(2);
        assert!(!progress.is_fresh() && !progress.expects_request() && progress.reports_end());
        progress.request_began(true);
        assert!(progress.reports_end());
        progress.stream_began();
        near(9);
        progress.stalled.store(1, Ordering::Relaxed);
        assert_eq!(progress.check(&limits), Err(Overdue::Stalled));
        progress.wrote(Some(1));
        assert_eq!(progress.check(&limits), Err(Overdue::Stalled), "a byte does not buy time");
        progress.wrote(Some(4096));
        near(9);
    }
}
