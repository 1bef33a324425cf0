//! When to read after file events: a file saved as a whole at once, a burst when it is over.
//!
//! Pure: the clock comes in. A lone save should be served in a fraction of a millisecond, and an unpacked archive
//! should be read once, not ten thousand times. So whole saves are read as they come, up to a few per burst, and every
//! burst ends in a full scan, which is the authority.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A burst is over when nothing more came for this long.
const QUIET: Duration = Duration::from_millis(100);

/// A writer that never pauses is scanned this often.
const LONGEST: Duration = Duration::from_secs(2);

/// Saves read one by one before a burst counts as too large for that.
const SINGLE_READS: usize = 32;

/// What a file event means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A document was closed after writing or renamed into place: its content is whole.
    Saved(PathBuf),
    /// Something in the tree changed or is about to.
    Moved,
}

/// The burst under way.
#[derive(Debug, Default)]
pub struct Debounce {
    burst: Option<Burst>,
}

#[derive(Debug)]
struct Burst {
    first: Instant,
    last: Instant,
    reads: usize,
}

impl Debounce {
    /// Takes a hint. Returns the file to read at once, if it is one.
    pub fn hint(&mut self, hint: Hint, now: Instant) -> Option<PathBuf> {
        let burst = self.burst.get_or_insert(Burst { first: now, last: now, reads: 0 });
        burst.last = now;
        match hint {
            Hint::Saved(path) if burst.reads < SINGLE_READS => {
                burst.reads += 1;
                Some(path)
            }
            Hint::Saved(_) | Hint::Moved => None,
        }
    }

    /// When the full scan is due, if a burst is under way.
    pub fn due(&self) -> Option<Instant> {
        self.burst.as_ref().map(|burst| (burst.last + QUIET).min(burst.first + LONGEST))
    }

    /// The scan is being made: the burst is over.
    pub fn scanned(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(name: &str) -> Hint {
        Hint::Saved(PathBuf::from(name))
    }

    #[test]
    fn a_lone_save_is_read_at_once_and_scanned_soon() {
        let mut debounce = Debounce::default();
        let start = Instant::now();
        assert_eq!(debounce.due(), None);
        assert_eq!(debounce.hint(Hint::Moved, start), None);
        assert_eq!(debounce.hint(saved("a"), start), Some(PathBuf::from("a")));
        assert_eq!(debounce.due(), Some(start + QUIET));
        debounce.scanned();
        assert_eq!(debounce.due(), None);
    }

    #[test]
    fn a_burst_is_left_to_the_scan() {
        let mut debounce = Debounce::default();
        let start = Instant::now();
        let reads = (0..1000).filter(|i| debounce.hint(saved(&i.to_string()), start).is_some()).count();
        assert_eq!(reads, SINGLE_READS);
    }

    #[test]
    fn a_busy_writer_cannot_starve_the_scan() {
        let mut debounce = Debounce::default();
        let start = Instant::now();
        for step in 0..100 {
            debounce.hint(Hint::Moved, start + QUIET / 2 * step);
        }
        assert_eq!(debounce.due(), Some(start + LONGEST));
    }
}
